"""How long one waits for things to begin: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_start_up_speed.py``.
"""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets.lake.lake import Lake
from lc_assets_tests.builders import recipe_file, tiny_recipe, tiny_upstream

ROOT = Path(__file__).parents[2]
SNAPSHOT = "2023-06"
CHAIN = "*megatron_rows"
HELP = "import sys; sys.argv = ['lc', '--help']; from lc_assets.cli.main import app; app()"
MOST_TIMES_A_START = {"lc --help": 25, "import lc_assets.loaders.grid": 40}
"""At most so many times what starting a bare interpreter costs, some 0.01 CPU-seconds."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A tiny upstream, an empty lake and a home for Dagster, as environment variables."""
    folder = tmp_path_factory.mktemp("start")
    recipe = recipe_file(folder / "recipe.toml", tiny_recipe(folder))
    (folder / "home").mkdir()
    shutil.copy(ROOT / "dagster.yaml", folder / "home")
    ours = {
        "LC_ROOT": folder / "lake",
        "LC_UPSTREAM": tiny_upstream(folder / "upstream"),
        "LC_RECIPE": recipe,
        "DAGSTER_HOME": folder / "home",
    }
    return os.environ | {name: str(value) for name, value in ours.items()}


def cpu_seconds(environment, *command):
    """CPU seconds of a command and its children, the better of two runs, and what the last one
    said.
    """
    seconds = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds), ended.stdout + ended.stderr


def python(code):
    return sys.executable, "-c", code


def dagster(*arguments):
    return str(Path(sys.executable).with_name("dagster")), *arguments, "-m", "lc_assets.definitions"


def test_what_one_waits_for(environment):
    """CPU seconds of each command, beside what must be paid anyway; the last one finds everything
    built, and builds nothing.
    """
    bare, _ = cpu_seconds(environment, *python("pass"))
    numpy, _ = cpu_seconds(environment, *python("import numpy"))
    theirs, _ = cpu_seconds(environment, *python("import dagster"))
    empty, _ = cpu_seconds(
        environment, *python("import dagster; dagster.Definitions().resolve_all_job_defs()")
    )
    found = {
        "lc --help": (*cpu_seconds(environment, *python(HELP)), "bare Python", bare),
        "import lc_assets.loaders.grid": (
            *cpu_seconds(environment, *python("import lc_assets.loaders.grid")),
            "import numpy",
            numpy,
        ),
        "import lc_assets.definitions": (
            *cpu_seconds(environment, *python("import lc_assets.definitions")),
            "import dagster",
            theirs,
        ),
        "dagster definitions validate": (
            *cpu_seconds(environment, *dagster("definitions", "validate")),
            "import dagster",
            empty,
        ),
    }
    materialize = dagster("asset", "materialize", "--select", CHAIN, "--partition", SNAPSHOT)
    cpu_seconds(environment, *materialize)
    receipts = receipts_of(environment)
    again, _ = cpu_seconds(environment, *materialize)
    assert receipts_of(environment) == receipts
    found["dagster asset materialize, nothing to do"] = (again, "", "import dagster", theirs)
    assert "raw_snapshot" not in found["lc --help"][1]
    print()
    for command, (seconds, _, what, paid) in found.items():
        print(f"{command:45s} {seconds:5.2f} CPU-s, {what} {paid:.2f}: {seconds / paid:.1f} ×")
    for command, most in MOST_TIMES_A_START.items():
        seconds, _, _, _ = found[command]
        assert seconds < most * bare, command


def receipts_of(environment):
    """When each receipt of the lake was written."""
    root = Lake(Path(environment["LC_ROOT"])).root
    return {path: path.stat().st_mtime_ns for path in root.rglob("receipt.json")}
