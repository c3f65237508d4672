"""What grows with the metadata of RedPajama-v2, and how fast: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_scale.py``.

Every part runs in a process of its own at each percentage of the scale, then an exponent is fitted
to seconds and to memory.

==================  ==========================================================================================
variable            meaning
==================  ==========================================================================================
``LC_SCALE``        the percentages, ``1,10`` by default; ``1,10,100`` takes an hour and 10 GB of disk
``LC_SCALE_FOLDER`` where lakes and figures are kept: what has been measured there is not measured
again
==================  ==========================================================================================

One part alone: ``-k look_ups``; what it is asked of is made first. docs/scale.md holds the figures
of the whole.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lc_assets_tests.benchmarks.scale_parts import PARTS
from lc_assets_tests.benchmarks.scale_snapshots import VERBS
from lc_assets_tests.benchmarks.scaled_lake import DOCUMENTS

ROOT = Path(__file__).parents[2]
PERCENTS = [float(one) for one in os.environ.get("LC_SCALE", "1,10").split(",")]
BUILDERS = (
    "manifests",
    "documents",
    "document_keys",
    "signature_index",
    "near_duplicate_pairs",
    "removed_documents",
    "rows",
    "row_index",
    "order",
    "rest",
)
"""Parts that the others, and one another, stand on."""
ONLY_MADE = ("documents", "removed_documents", "rest")
LINKS = 12_000_000
MOST_EXPONENT = 1.05
NOISE = 0.1
"""Of an exponent over one decade of a machine that others use: a quarter of the time."""
MOST_MEMORY_MB = 4_000
SHORT = 1.0
"""Where the largest took fewer CPU-seconds than that, its start was measured, and no exponent is
asked for.
"""
BY_SNAPSHOTS = (8, 84)
BY_AGE = (4, 8, 16)
"""Of how many snapshots the newest is measured."""
MOST_BY_AGE = 0.2
"""Exponent in that number of what the newest costs: its own documents, whose number does not
change, are most of it.
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where lakes lie, one a percentage."""
    kept = os.environ.get("LC_SCALE_FOLDER")
    return Path(kept) if kept else tmp_path_factory.mktemp("scale")


def in_a_process(module: str, *arguments: object) -> dict[str, float]:
    """What it printed; through a small process, for a child's peak may be counted from its parent's
    memory.
    """
    begin = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    command = [
        sys.executable,
        "-c",
        begin,
        sys.executable,
        "-m",
        f"lc_assets_tests.benchmarks.{module}",
        *map(str, arguments),
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def of_lake(part: str):
    """A part that is measured on the lake."""

    def measure(folder: Path, percent: float) -> dict[str, float]:
        for before in BUILDERS[: BUILDERS.index(part)] if part in BUILDERS else BUILDERS:
            remembered(folder, percent, before, of_lake(before))
        return in_a_process("scale_parts", part, percent, folder / f"{percent:g}")

    return measure


def near_duplicates(folder: Path, percent: float) -> dict[str, float]:
    """From bands to removals, on tables of its own: as many documents as were kept."""
    n_documents = round(DOCUMENTS * percent / 100)
    said = in_a_process(
        "millions_of_signatures", folder / f"{percent:g}" / "signatures", n_documents, 2 << 30
    )
    seconds = said["cpu_pairs"] + said["cpu_deciding"]
    return {
        "items": n_documents,
        "cpu_seconds": seconds,
        "seconds": said["wall"],
        "start_mb": 0,
        "peak_mb": said["peak_rss_mb"] * 1.048576,
    }


def link_claims(folder: Path, percent: float) -> dict[str, float]:
    """Claims along links, on tables of their own: twelve million links at the whole scale."""
    tables = folder / f"{percent:g}" / "links"
    in_a_process("millions_of_links", "write", tables, 1.09 * LINKS * percent / 100)
    said = in_a_process("millions_of_links", "claim", tables, "allow", 1)
    return said | {
        "items": said["seen"],
        "start_mb": said["start_mb"] * 1.048576,
        "peak_mb": said["peak_mb"] * 1.048576,
    }


def remembered(folder: Path, percent: float, name: str, measure) -> dict[str, float]:
    """What was measured before, or is now."""
    note = folder / f"{percent:g}" / f"{name}.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    if not note.is_file():
        note.write_text(json.dumps(measure(folder, percent)))
    return json.loads(note.read_text())


MEASURES = {name: of_lake(name) for name in PARTS if name not in ONLY_MADE} | {
    "near_duplicates": near_duplicates,
    "link_claims": link_claims,
}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of the power law that fits best: the slope of logarithms against logarithms, by least
    squares.
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


@pytest.mark.parametrize("part", MEASURES)
def test_nothing_grows_faster_than_the_lake(folder, part):
    """A line a percentage, then the exponents. Of three percentages or more the smallest is left
    out, for there the start counts most.
    """
    found = {percent: remembered(folder, percent, part, MEASURES[part]) for percent in PERCENTS}
    print(f"\n{part}")
    for percent, took in found.items():
        print(
            f"  {percent:5g} %: {took['items']:12,.0f} items, {took['cpu_seconds']:8.2f} CPU-s, "
            f"{took['seconds']:8.2f} s,"
            f" {took['peak_mb']:7,.0f} MB, of which {took['start_mb']:.0f} before"
        )
    fitted = sorted(found)[-2:]
    seconds, above, whole = (
        [found[percent]["cpu_seconds"] for percent in fitted],
        [max(found[percent]["peak_mb"] - found[percent]["start_mb"], 1.0) for percent in fitted],
        [found[percent]["peak_mb"] for percent in fitted],
    )
    if len(fitted) > 1:
        print(
            f"  exponents over {fitted[0]:g} to {fitted[-1]:g} %: CPU time "
            f"{exponent(fitted, seconds):.2f}, memory above the start "
            f"{exponent(fitted, above):.2f}, whole process {exponent(fitted, whole):.2f}"
        )
        assert seconds[-1] < SHORT or exponent(fitted, seconds) <= MOST_EXPONENT + NOISE
    assert max(whole) < MOST_MEMORY_MB


def test_the_newest_of_many_snapshots_costs_what_it_adds(folder):
    """Near duplicates of one snapshot and all older ones: bands are cut once, and old keys only
    passed by.
    """
    lake, percent = folder / "snapshots", min(PERCENTS)
    found = {n: in_a_process("scale_snapshots", lake, n, percent) for n in BY_AGE}
    print()
    for n, took in found.items():
        print(
            f"{n} snapshots: " + ", ".join(f"{name} {value:,.6g}" for name, value in took.items())
        )
    seconds = [sum(took[name] for name in VERBS) for took in found.values()]
    power = exponent(BY_AGE, seconds)
    print(f"exponent over snapshots {power:.2f}")
    assert power <= MOST_BY_AGE


def test_the_ui_answers_as_soon_with_everything_materialized(tmp_path):
    """Loading the code location; what the UI asks for its graph of assets and the state of all
    partitions, over 8 and 84 snapshots.
    """
    found = {n: in_a_process("scale_dagster", n, tmp_path / str(n)) for n in BY_SNAPSHOTS}
    print()
    for n, took in found.items():
        print(
            f"{n} snapshots: " + ", ".join(f"{name} {value:,.2f}" for name, value in took.items())
        )
    for name in ("graph", "status", "graph again", "status again"):
        power = exponent(BY_SNAPSHOTS, [found[n][name] for n in BY_SNAPSHOTS])
        print(f"{name}: exponent over snapshots {power:.2f}")
        assert power <= MOST_EXPONENT
    assert found[84]["load"] < 6
