"""Boundaries are tests, not wishes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {"tokenizers.py": 1}
"""tiktoken's panic is a BaseException that can be named only after it is caught; whatever else is
caught is raised again.
"""
SOURCES = sorted((ROOT / "lc_assets").rglob("*.py"))


def loaded_by(module: str) -> set[str]:
    """Names of the packages in a fresh process after ``import module``."""
    code = (
        f"import sys, {module}; print(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    )
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout.split()
    )


def test_the_import_contracts_hold():
    """Arrows point down; nothing below the Dagster floor knows Dagster; the pure rooms touch no
    file.
    """
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports"))],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("module", ["lc_assets.loaders.grid", "lc_assets.loaders.rows"])
def test_loaders_pull_in_neither_dagster_nor_torch(module):
    """A training node has no Dagster, and a numpy user no torch."""
    assert not {"dagster", "torch", "pandera", "matplotlib"} & loaded_by(module)


def test_the_command_line_starts_light():
    """`lc --help` must not wait for Dagster, Arrow or Zarr."""
    assert not {"dagster", "pyarrow", "zarr", "tiktoken", "numpy", "matplotlib"} & loaded_by(
        "lc_assets.cli.main"
    )


def test_definitions_load_without_the_heavy_libraries():
    """Every run and every UI reload imports the code location: plots, schemas and arrays are
    imported when used.
    """
    assert not {"pandera", "matplotlib", "pandas", "torch"} & loaded_by("lc_assets.definitions")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_has_a_sign_and_no_trapdoor(source):
    """Each module opens with a docstring; none unpickles, evaluates, shells out or swallows every
    exception.
    """
    text = source.read_text("utf-8")
    assert text.lstrip("r").startswith('"""')
    trapdoors = (
        r"allow_pickle\s*=\s*True|\bimport pickle\b|\beval\(|\bexec\(|shell\s*=\s*True|os\.system"
        r"|^\s*except( Exception.*| BaseException.*)?:"
    )
    found = re.findall(trapdoors, text, re.MULTILINE)
    assert len(found) <= ALLOWED.get(source.name, 0), found
