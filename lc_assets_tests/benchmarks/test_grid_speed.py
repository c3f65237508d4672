"""The grid against what it replaces: chunks, writing and size. Run with ``-s`` to see the figures.

Rows are Zipf-like pairs of ids, which compress about as text does. Ratios are taken within one run,
in CPU time, the best of three.
"""

import numpy as np
import pytest
from numcodecs import Blosc, blosc
from numcodecs.zstd import Zstd

from lc_assets.formats.arrays.grid import GridReader, create_grid, write_band
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets_tests.benchmarks.timing import cpu_seconds
from lc_assets_tests.grid_builders import write_grid, zipf_ids

N_ROWS, ROW_TOKENS = 512, 65_536
N_TOKENS = N_ROWS * ROW_TOKENS


@pytest.fixture(scope="module")
def rows():
    return zipf_ids(N_ROWS, ROW_TOKENS)


@pytest.fixture(scope="module")
def grid(rows, tmp_path_factory):
    return write_grid(tmp_path_factory.mktemp("bench") / "grid.zarr", rows)


def test_reading_costs_little_more_than_decoding(rows, grid):
    """Chunk by chunk, against zstd alone on the same chunks."""
    codec, chunks = (
        Zstd(level=4, checksum=True),
        [rows[top : top + 64, left : left + 1024] for top, left in _corners()],
    )
    frames = [codec.encode(np.ascontiguousarray(chunk)) for chunk in chunks]
    room = np.empty((64, 1024), np.uint16)
    bare, _ = cpu_seconds(lambda _: [codec.decode(frame, room).max() for frame in frames])
    reader = GridReader(grid)
    ours, largest = cpu_seconds(
        lambda _: [
            reader.read(slice(top, top + 64), slice(left, left + 1024)).max()
            for top, left in _corners()
        ]
    )
    assert largest == [chunk.max() for chunk in chunks]
    print(
        f"\nchunks: {N_TOKENS / 1e6 / ours:.0f} M tokens per CPU-second, zstd alone "
        f"{N_TOKENS / 1e6 / bare:.0f}: {bare / ours:.0%}"
    )


def test_writing_costs_little_more_than_compressing(rows, tmp_path):
    """Whole shards to disk, against zstd alone at the same level on the same chunks."""
    codec = Zstd(level=4, checksum=True)
    bare, frames = cpu_seconds(
        lambda _: [
            codec.encode(np.ascontiguousarray(rows[top : top + 64, left : left + 1024]))
            for top, left in _corners()
        ]
    )
    create_grid(tmp_path / "a.zarr", GridLayout(N_ROWS, ROW_TOKENS, 50_257))
    ours, _ = cpu_seconds(lambda _: write_band(tmp_path / "a.zarr", range(N_ROWS), rows))
    stored = sum(
        path.stat().st_size for path in (tmp_path / "a.zarr/c").rglob("*") if path.is_file()
    )
    print(
        f"\nwriting: {rows.nbytes / 1e6 / ours:.0f} MB per CPU-second, zstd alone "
        f"{rows.nbytes / 1e6 / bare:.0f}: {bare / ours:.0%}"
    )
    assert sum(map(len, frames)) < stored < 1.01 * sum(map(len, frames))


def test_the_grid_is_smaller_than_the_published_layout(rows, grid):
    """Against Blosc lz4 with byte shuffle on LongCrawl64's chunks."""
    blosc.use_threads = False
    codec = Blosc("lz4", 5, Blosc.SHUFFLE, 0)
    published = sum(
        len(codec.encode(np.ascontiguousarray(rows[:, left : left + 2048])))
        for left in range(0, ROW_TOKENS, 2048)
    )
    stored = sum(path.stat().st_size for path in (grid / "c").rglob("*") if path.is_file())
    said = (
        f"{rows.nbytes / stored:.2f} × smaller than the ids, blosc-lz4-shuffle "
        f"{rows.nbytes / published:.2f} ×"
    )
    print(f"\nsize: {said}: {published / stored:.2f} ×")
    assert stored < published


def _corners():
    return [(top, left) for left in range(0, ROW_TOKENS, 1024) for top in range(0, N_ROWS, 64)]
