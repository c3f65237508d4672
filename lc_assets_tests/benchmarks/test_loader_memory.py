"""Memory of a loader over 84 riffled snapshots at a context of 65,536: a band of each. Run with
``-s -m slow`` to see the figure.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lc_assets.formats.arrays.order import OrderSource, write_order, write_sources
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.vocabulary import GPT2_VOCAB_SIZE
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.grid_builders import publish, riffle, write_grid
from lc_assets_tests.memory import peak_mb

ROOT = Path(__file__).parents[2]
N_SOURCES, SOURCE_ROWS, ROW_TOKENS = 84, 128, 65_536


def write_linked_lake(root: Path) -> Path:
    """84 snapshots whose files are one and the same: what they hold plays no part, and compressing
    84 of them takes long.
    """
    write_grid(root / "one.zarr", token_rows(SOURCE_ROWS, ROW_TOKENS)[1])
    sources = []
    for number in range(N_SOURCES):
        folder = root / "token_grid" / f"s{number}" / "v1"
        shutil.copytree(root / "one.zarr", folder / "train.zarr", copy_function=os.link)
        digest = publish(root, "token_grid", f"s{number}", "v1").digest
        sources.append(
            OrderSource(
                snapshot=f"s{number}",
                version="v1",
                digest=digest,
                train_rows=SOURCE_ROWS,
                heldout_rows=0,
            )
        )
    folder = root / "longcrawl" / "all" / "v7"
    write_sources(folder, sources, row_tokens=ROW_TOKENS, vocab_size=GPT2_VOCAB_SIZE)
    write_order(folder, "train", *riffle([SOURCE_ROWS] * N_SOURCES))
    publish(root, "longcrawl", "all", "v7")
    return root


@pytest.mark.slow
def test_a_loader_of_84_snapshots_stays_below_a_gigabyte(tmp_path):
    """Peak of a process that walks a whole column of 10,752 rows; every chunk is decoded once."""
    lake = write_linked_lake(tmp_path / "lake")
    program = [sys.executable, "-m", "lc_assets_tests.benchmarks.test_loader_memory", str(lake)]
    found = subprocess.run(
        program, check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    peak, start, cache, misses = map(float, found)
    print(
        f"\nloader over {N_SOURCES} snapshots, 8 × 65,536: peak {peak:.0f} MB, {peak - start:.0f} "
        f"above the start; cache {cache:.0f} MB"
    )
    assert misses == N_SOURCES * SOURCE_ROWS / 64
    assert peak < 1000


def main(lake: str) -> None:
    """Walk a column; print peak, memory before it and size of the cache in MB, and how many bands
    were decoded.
    """
    np.zeros(1)
    start = peak_mb()
    loader = GridLoader(open_rows(lake), batch_rows=8, context_tokens=ROW_TOKENS)
    for step in range(loader.row_blocks):
        loader[step]
    cache = loader.rows.sources[0].cache
    print(peak_mb(), start, cache.max_bytes / 1e6, cache.misses)


if __name__ == "__main__":
    main(*sys.argv[1:])
