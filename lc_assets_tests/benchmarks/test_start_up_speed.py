"""How long one waits for things to begin: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_start_up_speed.py``.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.lake.lake import Lake
from lc_assets.stages.planning import keys_of
from lc_assets_tests.builders import (
    SNAPSHOTS,
    recipe_file,
    tiny_context,
    tiny_recipe,
    tiny_upstream,
    wanted_steps,
)

ROOT = Path(__file__).parents[2]
SNAPSHOT = "2023-06"
CHAIN = "*megatron_rows"
HELP = "import sys; sys.argv = ['lc', '--help']; from lc_assets.cli.app import app; app()"
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


OVER_FIVE = {
    "lc filter": "filter five.jsonl {out} --rules gopher-paper",
    "lc signals": "signals five.jsonl {out}",
    "lc minhash": "minhash five.jsonl {out}",
    "lc dedup": "dedup five.jsonl {out}",
    "lc decontaminate": "decontaminate five.jsonl {out} --against items.jsonl",
    "lc tokenize": "tokenize five.jsonl {out}",
    "lc pack": "pack five.jsonl {out} --length 1024",
    "lc buckets": "buckets five.jsonl {out}",
    "lc links": "links five.warc.gz {out}",
    "lc longpack": "longpack five.warc.gz {out}",
    "lc referrals": "referrals five.jsonl {out}",
    "lc plan, nothing to do": "plan --lake {packed}",
}
LINK = "<a href='https://a.org/1'>one</a>"
MOST_TIMES_ARROW = {"lc plan, nothing to do": 5.5, "lc longpack": 11.0}
MOST_TIMES = 10.0
"""At most so many times the CPU seconds of importing numpy and pyarrow, some 0.1."""


def test_commands_over_five_documents(tmp_path):
    """CPU seconds of each command once its kernels are compiled."""
    words = "One of many plain words, in sentences that end. " * 40
    lines = [
        {"id": f"d{i}", "url": f"https://a.org/{i}", "text": f"Text {i}. {words}"} for i in range(5)
    ]
    (tmp_path / "five.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    pages = [
        FetchedPage(line["url"], "2023-02-02T00:00:00Z", f"<p>{line['text']}</p>{LINK}")
        for line in lines
    ]
    write_pages(tmp_path / "five.warc.gz", pages, filename="five.warc.gz")
    (tmp_path / "items.jsonl").write_text(json.dumps({"text": words[:300]}) + "\n")
    program = str(Path(sys.executable).with_name("lc"))
    arrow = min(_seconds(tmp_path, *python("import numpy, pyarrow")) for _ in range(5))
    print()
    slow = []
    for name, command in OVER_FIVE.items():
        tries = []
        for number in range(4):  # the first one compiles
            out = f"{name.split()[1]}{number}"
            filled = command.format(out=out, packed="pack0")
            tries.append(_seconds(tmp_path, program, *filled.split()))
        times = min(tries) / arrow
        print(f"{name:25s} {min(tries):5.2f} CPU-s: {times:4.1f} × import numpy, pyarrow")
        if times > MOST_TIMES_ARROW.get(name, MOST_TIMES):
            slow.append(name)
    assert slow == []


ONE_STAGE = """
import sys, time
from pathlib import Path
from lc_assets.arrow_without_pandas import keep_pandas_out
keep_pandas_out()
from lc_assets_tests.builders import tiny_context
from lc_assets.stages.catalogue import stage_named
folder, name, key = sys.argv[1:]
upstream = Path(folder).with_name("upstream")
context, stage = tiny_context(Path(folder), upstream=upstream), stage_named(name)
begun = time.process_time()
stage.build(context, key)
print(time.process_time() - begun)
"""
MOST_SECONDS, MOST_TIMES_OF_A_STAGE = 0.5, 4.0
"""On a slow or busy machine, times importing numpy and pyarrow."""


def test_every_stage_begins_within_half_a_second(tmp_path):
    """CPU seconds of each stage over a tiny lake, each in a process of its own after its imports,
    once kernels are compiled; the better of two snapshots.
    """
    arrow = min(_seconds(tmp_path, *python("import numpy, pyarrow")) for _ in range(5))
    recipe = tiny_context(tmp_path / "0", upstream=tiny_upstream(tmp_path / "upstream")).recipe
    steps = [(it.name, key) for it in wanted_steps() for key in keys_of(it, recipe, SNAPSHOTS)]
    found = {}
    for name, key in steps:
        for lake in ("0", "1"):
            command = [*python(ONE_STAGE), str(tmp_path / lake), name, key]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            if lake != "0":  # that one compiles
                found[name] = min(found.get(name, 99.0), float(ended.stdout.split()[-1]))
    print(f"\nimport numpy, pyarrow: {arrow:.2f} CPU-s")
    slow = []
    for name, seconds in found.items():
        print(f"{name:25s} {seconds:5.2f} CPU-s: {seconds / arrow:4.1f} ×")
        if seconds > max(MOST_SECONDS, MOST_TIMES_OF_A_STAGE * arrow):
            slow.append(name)
    assert slow == []


def _seconds(folder, *command):
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    } | {"OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def receipts_of(environment):
    """When each receipt of the lake was written."""
    root = Lake(Path(environment["LC_ROOT"])).root
    return {path: path.stat().st_mtime_ns for path in root.rglob("receipt.json")}


def test_a_demo_from_nothing(tmp_path):
    """`lc demo` without a sample, compiled kernels or a history: at most 60 CPU-seconds."""
    ours = {"NUMBA_CACHE_DIR": tmp_path / "kernels", "DAGSTER_HOME": tmp_path / "home"}
    environment = os.environ | {name: str(value) for name, value in ours.items()}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    program = "from lc_assets.cli.main import main; main()"
    command = [sys.executable, "-c", program, "demo", "--dir", str(tmp_path / "demo")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"\nlc demo: {seconds:.1f} CPU-s, {time.perf_counter() - started:.0f} s by the clock")
    assert any((tmp_path / "kernels").rglob("*.nbc")), "nothing was compiled"
    assert seconds <= 60
