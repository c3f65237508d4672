"""Other Pythons and other numpys give the same bytes: one command makes their environments and
prints digests side by side.

::

    LC_ENVIRONMENTS=/var/tmp/lc pytest -m network -s
    lc_assets_tests/stages/test_other_interpreters.py

``LC_PYTHONS`` names what is compared, by default `PYTHONS`: the versions that pyproject states,
with the pinned numpy and with the oldest that it allows. An interpreter is looked for on the path
and among pyenv's. Environments are made of ``docs/requirements.lock``, each file by its hash, and
stay in ``LC_ENVIRONMENTS`` for another time.
"""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from lc_assets_tests.builders import recipe_file, tiny_context, tiny_upstream
from lc_assets_tests.stages.test_same_bytes_everywhere import IN_ANOTHER_PROCESS

ROOT = Path(__file__).parents[2]
PYTHONS = "3.11 3.11-numpy-2.1.0 3.12 3.13"
GOLDEN = (
    "lc_assets_tests/text/test_measures_equal_datatrove.py",
    "lc_assets_tests/text/test_signals_equal_the_published_code.py",
    "lc_assets_tests/text/test_minhash.py",
    "lc_assets_tests/stages/test_megatron_caches.py",
    "lc_assets_tests/stages/test_megatron_exporting.py",
)
"""What is held against files and digests that other programs made."""

SAID = (
    "import sys, numpy, pyarrow; print(sys.version.split()[0], 'numpy', numpy.__version__, "
    "'pyarrow', pyarrow.__version__)"
)


def interpreter(version: str) -> str | None:
    """A Python of that version, wherever it is."""
    known = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return shutil.which(f"python{version}") or (str(known[-1]) if known else None)


def environment(name: str, folder: Path) -> Path | None:
    """Its Python: an environment of the lock, with another numpy where the name says so; made when
    it is not there.
    """
    version, _, numpy = name.partition("-numpy-")
    python = folder / name / "bin" / "python"
    if not python.exists():
        base = interpreter(version)
        if base is None:
            return None
        run(base, "-m", "venv", str(folder / name))
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--require-hashes",
            "-r",
            str(ROOT / "docs/requirements.lock"),
        )
        if numpy:
            run(python, "-m", "pip", "install", "-q", "--no-deps", f"numpy=={numpy}")
    return python


def run(*command: object) -> str:
    """What a command prints."""
    here = os.environ | {"PYTHONPATH": str(ROOT), "DAGSTER_DISABLE_TELEMETRY": "1"}
    return subprocess.run(
        [str(word) for word in command],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=here,
        cwd=ROOT,
    ).stdout


def digests_by(python: Path, folder: Path, upstream: Path, recipe: Path) -> dict[str, str]:
    """Of the whole chain, built by another interpreter."""
    lines = run(python, "-c", IN_ANOTHER_PROCESS, folder, upstream, recipe).splitlines()
    return dict(line.split() for line in lines)


@pytest.mark.network
@pytest.mark.timeout(7200)
def test_other_pythons_and_numpys_give_the_same_bytes(tmp_path):
    """Of every stage; and golden files of other programs are met by each."""
    folder = Path(os.environ.get("LC_ENVIRONMENTS", str(tmp_path / "environments")))
    upstream = tiny_upstream(tmp_path / "upstream")
    recipe = recipe_file(
        tmp_path / "recipe.toml", tiny_context(tmp_path / "plain", upstream=upstream).recipe
    )
    found: dict[str, dict[str, str]] = {}
    for name in os.environ.get("LC_PYTHONS", PYTHONS).split():
        python = environment(name, folder)
        if python is None:
            print(f"{name}: not on this machine")
            continue
        found[name] = digests_by(python, tmp_path / name, upstream, recipe)
        golden = run(python, "-m", "pytest", "-q", "-n", "0", "--timeout=1200", *GOLDEN)
        print(f"{name}: {run(python, '-c', SAID).strip()}; {golden.splitlines()[-1]}")
    assert len(found) > 1, "nothing to compare"
    print(f"{'':30}", *(f"{name:22}" for name in found))
    for stage in next(iter(found.values())):
        print(f"{stage:30}", *(f"{of[stage][:16]:22}" for of in found.values()))
    without_card = [
        {stage: digest for stage, digest in of.items() if not stage.startswith("data_set_card/")}
        for of in found.values()
    ]
    assert all(of == without_card[0] for of in without_card)
    of_one_numpy = [
        of["data_set_card/all"] for name, of in found.items() if "-numpy-" not in name
    ]  # the card names the libraries
    assert len(set(of_one_numpy)) <= 1


def test_what_is_compared_is_what_is_supported():
    """The oldest Python and numpy that pyproject allows are among those that are run, and its
    classifiers are the Pythons.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = sorted({name.partition("-")[0] for name in PYTHONS.split()})
    oldest = re.search(r"\d+\.\d+", project["requires-python"])
    assert oldest is not None
    assert oldest[0] == versions[0]
    said = [
        line.rpartition(" ")[2]
        for line in project["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert said == versions
    (numpy,) = (line for line in project["dependencies"] if line.startswith("numpy"))
    assert any(
        name.partition("-numpy-")[2].startswith(numpy.removeprefix("numpy>="))
        for name in PYTHONS.split()
    )
