"""Layers, start-up and the size of files and functions."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lc_assets.stages.catalogue import STAGES

ROOT = Path(__file__).parents[1]
MOST_OF_STAGES, MOST_OF_A_STAGE = 700, 470
"""Modules that all stages import together, and one alone; 663 and 428 when this was written."""
SOURCES = sorted((ROOT / "lc_assets").rglob("*.py"))


def loaded_by(module: str, *, whole_names: bool = False) -> set[str]:
    """Names of the packages, or of all modules, in a fresh process after ``import module``."""
    code = f"import sys, {module}; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return {name if whole_names else name.partition(".")[0] for name in ended.stdout.split()}


def test_the_import_contracts_hold():
    """Imports point down, only `orchestration` imports Dagster, and pure packages open no file."""
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports"))],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("module", ["grid", "packed", "rows", "windows"])
def test_loaders_load_without_the_heavy_libraries(module):
    """A training node has no Dagster, and a NumPy user no torch."""
    heavy = {"dagster", "torch", "pandera", "PIL", "pyarrow", "numba"}
    assert not heavy & loaded_by(f"lc_assets.loaders.{module}")


@pytest.mark.parametrize("module", ["grid, lc_assets.loaders.rows", "windows"])
def test_a_loader_loads_few_modules(module):
    """A training process reads at most 25 modules of this package to load rows."""
    names = loaded_by(f"lc_assets.loaders.{module}", whole_names=True)
    assert len({name for name in names if name.startswith("lc_assets")}) <= 25


def test_stages_read_stages_before_them():
    """Each by the name of a stage; so the list of stages is an order in which they can be built."""
    before: set[str] = set()
    for stage in STAGES:
        assert set(stage.reads) <= before, stage.name
        before.add(stage.name)


def test_the_command_line_starts_light():
    """`lc --help` must not wait for Dagster, Arrow or Zarr."""
    assert not {"dagster", "pyarrow", "zarr", "tiktoken", "numpy", "PIL"} & loaded_by(
        "lc_assets.cli.app"
    )


def test_planning_loads_no_kernels_and_no_tokenizers():
    """`lc plan` compares receipts."""
    heavy = {"dagster", "numba", "duckdb", "tiktoken", "gigatoken", "tokenizers", "pandas"}
    stages = "lc_assets.stages.catalogue as stages; stages.STAGES"
    names = loaded_by(stages, whole_names=True)
    assert not heavy & {name.partition(".")[0] for name in names}
    assert len(names) < MOST_OF_STAGES


def test_a_stage_starts_with_few_modules():
    """What a worker imports before its first task, whatever the stage: 0.2 CPU-seconds."""
    names = loaded_by("lc_assets.stages.rows.token_grid", whole_names=True)
    assert len(names) < MOST_OF_A_STAGE
    assert not {"numcodecs", "scipy", "fsspec", "pandera"} & names


def test_definitions_load_without_the_heavy_libraries():
    """Every run and every UI reload imports the code location: plots, schemas and arrays are
    imported when used.
    """
    assert not {"pandera", "PIL", "pandas", "torch"} & loaded_by("lc_assets.definitions")


MOST_LINES, MOST_MODULES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 350, 20, 60, 10


def too_large(text: str) -> Iterator[str]:
    """What is too large in a module: more than 350 lines; functions of more than 60 lines or 10
    parameters, except compiled kernels.
    """
    if (n_lines := text.count("\n")) > MOST_LINES:
        yield f"{n_lines} lines"
    for found in ast.walk(ast.parse(text)):
        if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if {"compiled", "borrowing"} & set(map(ast.unparse, found.decorator_list)):
            continue
        given = found.args
        n_parameters = len([*given.posonlyargs, *given.args, *given.kwonlyargs])
        n_lines = (found.end_lineno or 0) - found.lineno + 1
        if n_lines > MOST_FUNCTION_LINES or n_parameters > MOST_PARAMETERS:
            yield f"{found.name}: {n_lines} lines, {n_parameters} parameters"


def test_files_and_functions_are_small():
    found = {str(source): [*too_large(source.read_text("utf-8"))] for source in SOURCES}
    assert not {name: why for name, why in found.items() if why}


def test_folders_are_small():
    """At most 20 modules in a folder."""
    modules = Counter(source.parent for source in SOURCES if source.name != "__init__.py")
    assert max(modules.values()) <= MOST_MODULES, modules.most_common(1)
