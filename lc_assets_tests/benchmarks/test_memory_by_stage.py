"""Memory of each stage in a process of its own: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_memory_by_stage.py``.

Three inputs: a shard of a crawl; one with a document of 50 million characters, which the rules are
told to let through; a token store of 2,160 rows, more than the largest band. Figures are the
receipts' own.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets.lake.lake import Lake
from lc_assets.vocabulary import ROW_TOKENS
from lc_assets_tests.benchmarks.token_store import write_tokens

ROOT = Path(__file__).parents[2]
KEY = "2023-06"
CRAWL = {"n_chars": 20_000_000, "repeats": 5, "huge_chars": 0}
HUGE = {"n_chars": 1_000_000, "repeats": 1, "huge_chars": 50_000_000}
BAND_ROWS = 2048
TOKEN_SHARDS, SHARD_DOCUMENTS = 12, 180
"""2,160 documents: a band and a bit."""
RECIPE = """
[raw_snapshot]
languages = ["en"]
[near_duplicate_pairs]
near = false
[token_grid]
heldout_fraction = {heldout_fraction}
"""
EXCLUSIONS = (
    ("document_keys", KEY),
    ("heldout_pairs", KEY),
    ("contaminated_documents", KEY),
    ("withdrawn_documents", "all"),
    ("snapshot_withdrawals", KEY),
    ("removed_documents", KEY),
)
LENIENT = """
[filtered_documents.thresholds]
words = { at_most = 1e12 }
""" + "".join(f"dupe_{n}grams = {{ at_most = 1 }}\n" for n in range(5, 11))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def measured(folder: Path, stage: str, key: str = KEY) -> dict[str, float]:
    """Build one partition in a fresh process; what its receipt measured, and the memory that the
    process began with.

    The process is started by a small one: where a child's peak is counted from its parent's memory,
    ours does not count.
    """
    begin = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    module = (sys.executable, "-m", "lc_assets_tests.benchmarks.one_stage")
    places = (str(folder / name) for name in ("lake", "upstream", "recipe.toml"))
    command = [sys.executable, "-c", begin, *module, *places, stage, key]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def show(folder: Path, stage: str, bound: str, key: str = KEY) -> float:
    """Build, print a line of the table, and return the memory above the beginning in MiB."""
    found = measured(folder, stage, key)
    above = found["peak_rss_mb"] - found["start_rss_mb"]
    print(
        f"{stage:10s} {found['input_mb']:8.0f} MB in {found['seconds']:7.1f} s "
        f"{found['cpu_seconds']:7.1f} CPU-s "
        f"{found['peak_rss_mb']:6.0f} MiB, {above:4.0f} above the start: {bound}"
    )
    return above


def exclude_nothing(folder: Path) -> None:
    """Build what stands between the filtered documents and their tokens."""
    for stage, key in EXCLUSIONS:
        measured(folder, stage, key)


def write_upstream(folder: Path, *, n_chars: int, repeats: int, huge_chars: int) -> Path:
    """Write a crawl in another process."""
    arguments = map(str, (folder / "upstream", n_chars, repeats, huge_chars))
    subprocess.run(
        [sys.executable, "-m", "lc_assets_tests.benchmarks.crawl", *arguments], cwd=ROOT, check=True
    )
    (folder / "recipe.toml").write_text(
        RECIPE.format(heldout_fraction=0.01) + (LENIENT if huge_chars else "")
    )
    return folder


def test_memory_is_bounded_by_what_is_said(tmp_path):
    """A stage's memory is that of the libraries plus what its line says."""
    print()
    crawl = write_upstream(tmp_path / "crawl", **CRAWL)
    show(crawl, "raw_snapshot", "the listing")
    assert (
        show(
            crawl,
            "filtered_documents",
            "the longest line, a kilobyte a document, a row group of 32 MiB",
        )
        < 250
    )
    exclude_nothing(crawl)
    assert (
        show(
            crawl,
            "token_documents",
            "the longest document, and what gigatoken remembers of 64 MiB of text",
        )
        < 300
    )

    huge = write_upstream(tmp_path / "huge", **HUGE)
    show(huge, "raw_snapshot", "the listing")
    assert show(huge, "filtered_documents", "one document of 50 million characters") < 8 * 50
    assert show(huge, "document_signatures", "one document of 50 million characters") < 12 * 50
    exclude_nothing(huge)
    assert show(huge, "token_documents", "one document of 50 million characters") < 8 * 50

    rows = tmp_path / "rows"
    write_tokens(Lake(rows / "lake"), KEY, n_shards=TOKEN_SHARDS, shard_documents=SHARD_DOCUMENTS)
    # Tokens without documents, of which none can be compared with held-out ones.
    (rows / "recipe.toml").write_text(RECIPE.format(heldout_fraction=0))
    band_mib = BAND_ROWS * ROW_TOKENS * 2 / 2**20
    assert (
        show(rows, "token_grid", "a sixteenth of the rows, and a token shard, mapped")
        < 0.5 * band_mib
    )
    show(rows, "longcrawl", "a few dozen bytes a row", "all")
    assert show(rows, "longcrawl_flat", "two columns of chunks, 16 MiB", "all") < 0.5 * band_mib
    assert show(rows, "megatron_rows", "256 rows, 32 MiB") < 0.5 * band_mib
    show(rows, "blended_mix", "the indices of the blend", "by-tokens")
