"""What a long document costs each stage over files, in times its size: ``pytest -s -m "benchmark
and slow" lc_assets_tests/benchmarks/test_memory_of_a_document.py``; ``LC_MB=240`` for a longer one.

Peak memory of any process of a stage, checks included, above that with a small document. Texts have
words of prose; most have a character beyond Latin-1, so that Python holds them in two bytes each.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.test_memory_by_stage import LENIENT, ROOT
from lc_assets_tests.named_draws import rng_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MEGABYTES = int(os.environ.get("LC_MB", "60"))
SMALL_BYTES = 200_000
MOST_TIMES = 5.5
RECIPE = """
sources.a.path = "{path}"
filtered_documents.rules = "gopher-paper"
filtered_documents.min_words = 0
document_signals.lines = true
near_duplicate_pairs.near = true
removed_documents.exact = ["digest", "text", "url"]
clean_documents.wanted = true
token_grid = {{ row_tokens = 2048, heldout_fraction = 0.01 }}
token_documents.min_tokens = 2048
"""
STAGES = {
    **dict.fromkeys(
        (
            *("raw_snapshot", "document_signals", "filtered_documents", "document_signatures"),
            *("document_keys", "signature_index", "near_duplicate_pairs", "heldout_pairs"),
            "contaminated_documents",
        ),
        "a",
    ),
    "withdrawn_documents": "all",
    **dict.fromkeys(
        (
            *("snapshot_withdrawals", "removed_documents", "clean_documents", "token_documents"),
            *("token_grid", "row_lineage"),
        ),
        "a",
    ),
}


def text_of(n_bytes: int, *, ascii_only: bool) -> str:
    """Lines of books in any order, each with a number of its own: none is a duplicate."""
    rng, lines = rng_for("a long document", seed=0), prose()[1].split("\n")
    chosen, length = list[str](), 0
    while length < n_bytes:
        line = f"{rng.integers(1 << 40):x} {lines[rng.integers(len(lines))]}"
        chosen.append(line.encode("ascii", "ignore").decode() if ascii_only else line)
        length += len(chosen[-1].encode()) + 1
    return "\n".join(chosen)


def write_inputs(folder: Path, n_bytes: int, *, ascii_only: bool) -> Path:
    """A file of one document, and a recipe that keeps it."""
    folder.mkdir()
    line = {"id": "x", "url": "http://a.org/1", "text": text_of(n_bytes, ascii_only=ascii_only)}
    (folder / "one.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n", "utf-8")
    recipe = RECIPE.format(path=folder / "one.jsonl") + LENIENT
    (folder / "recipe.toml").write_text(recipe, "utf-8")
    return folder


def peak_mb(folder: Path, stage: str, key: str) -> float:
    """Build a partition; the greatest memory of a process of its session, in MB."""
    places = (str(folder / name) for name in ("lake", "none", "recipe.toml"))
    command = [sys.executable, "-m", "lc_assets_tests.benchmarks.one_stage", *places, stage, key]
    most = 0.0
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True
    ) as child:
        while child.poll() is None:
            most = max([most, *_peaks_of(child.pid)])
            time.sleep(0.03)
    assert child.returncode == 0, stage
    return most


def _peaks_of(session: int) -> list[float]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) != session:
                continue
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            continue  # it has ended
        found += [int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")]
    return found


@pytest.mark.parametrize("ascii_only", [True, False], ids=["ascii", "beyond"])
def test_a_long_document_costs_at_most_five_and_a_half_times_its_size(tmp_path, ascii_only):
    sizes = {"small": SMALL_BYTES, "long": MEGABYTES * 1_000_000}
    small, long = (
        write_inputs(tmp_path / name, n_bytes, ascii_only=ascii_only)
        for name, n_bytes in sizes.items()
    )
    print()
    too_much = []
    for stage, key in STAGES.items():
        base, most = (peak_mb(folder, stage, key) for folder in (small, long))
        times = (most - base) / MEGABYTES
        print(
            f"{stage:25s} {most:6.0f} MB, {base:4.0f} of which small: {times:5.2f} times",
            flush=True,
        )
        if times > MOST_TIMES:
            too_much.append(stage)
    assert too_much == []
