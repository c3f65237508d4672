"""The grid against what it replaces: loading, writing and size. Run with ``-s`` to see the figures.

Rows are Zipf-like pairs of ids, which compress about as text does. Ratios are taken within one run, in CPU
time, the best of three.
"""

import time

import numpy as np
import pytest
from numcodecs import Blosc, blosc
from numcodecs.zstd import Zstd

from lc_assets.formats.chunks import RowBlock
from lc_assets.formats.grid import GridLayout, GridReader, create_grid, write_band
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.grid_builders import write_flat, write_grid, write_lake, zipf_ids
from lc_assets_tests.oracles.article_loader import ArticleLoader

N_ROWS, ROW_TOKENS = 512, 65_536
N_TOKENS = N_ROWS * ROW_TOKENS
CACHE_CHUNKS = {1024: 4, 65_536: 32}
"""Inner chunks that the cache holds, by context: what one batch needs, and less than a column of this small array,
so that a context of 1,024 decodes each chunk twice, as it must at real size."""


def cpu_seconds(work, repeats=3):
    """Fewest CPU seconds of a few calls, and what the last returned."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        found = work()
        seconds.append(time.process_time() - begun)
    return min(seconds), found


@pytest.fixture(scope="module")
def rows():
    return zipf_ids(N_ROWS, ROW_TOKENS)


@pytest.fixture(scope="module")
def grid(rows, tmp_path_factory):
    return write_grid(tmp_path_factory.mktemp("bench") / "grid.zarr", rows)


@pytest.fixture(scope="module")
def arrays(grid, rows, tmp_path_factory):
    """The grid, and the same rows in LongCrawl64's layout."""
    return grid, write_flat(tmp_path_factory.mktemp("bench") / "flat.zarr", rows, chunk=(2048, 2048))


def small_cached(path, batch_rows, context_tokens, n_chunks=None):
    """A loader whose cache holds what one batch needs."""
    cache_bytes = (n_chunks or CACHE_CHUNKS[context_tokens]) * 64 * 2048 * 2
    return GridLoader(open_rows(path, cache_bytes=cache_bytes), batch_rows=batch_rows, context_tokens=context_tokens)


def speed_of(loader):
    """Million tokens per CPU-second over an epoch, and the sum of all ids."""
    seconds, n_batches = cpu_seconds(lambda: sum(1 for _ in loader))
    n_tokens = n_batches * loader.walk.batch_rows * loader.walk.context_tokens
    return n_tokens / 1e6 / seconds, int(sum(batch.targets.sum(dtype=np.int64) for batch in loader))


@pytest.mark.parametrize(("batch_rows", "context_tokens"), [(8, 1024), (64, 1024), (8, 65_536)])
def test_the_loader_is_far_faster_than_the_articles(rows, arrays, monkeypatch, batch_rows, context_tokens):
    """A whole epoch for ours, a few steps for the article's, which costs the same at every step; tokens agree."""
    grid, flat = arrays
    monkeypatch.setattr(blosc, "use_threads", None)  # what a user of the article's loader has
    theirs, ours = ArticleLoader(flat, batch_rows, context_tokens), small_cached(grid, batch_rows, context_tokens)
    few = range(max(2, 16 * 8192 // (batch_rows * context_tokens)))
    seconds, found = cpu_seconds(lambda: [theirs[step]["targets"] for step in few])
    slow = sum(batch.size for batch in found) / 1e6 / seconds
    for step in few:
        np.testing.assert_array_equal(ours[step].targets, found[step])
    fast, total = speed_of(ours)
    assert total == int(rows.sum(dtype=np.int64))
    said = f"{fast:.0f} M tokens per CPU-second, article's {slow:.2f}: {fast / slow:.0f} ×"
    print(f"\nloader {batch_rows} × {context_tokens:,}: {said}")
    assert fast > 2 * slow


def test_reading_costs_little_more_than_decoding(rows, grid):
    """Chunk by chunk, against zstd alone on the same chunks."""
    codec, chunks = Zstd(level=3, checksum=True), [rows[top : top + 64, left : left + 2048] for top, left in _corners()]
    frames = [codec.encode(np.ascontiguousarray(chunk)) for chunk in chunks]
    room = np.empty((64, 2048), np.uint16)
    bare, _ = cpu_seconds(lambda: [codec.decode(frame, room).max() for frame in frames])
    reader = GridReader(grid)
    ours, largest = cpu_seconds(lambda: [reader.read_chunk(top // 64, left // 2048).max() for top, left in _corners()])
    assert largest == [chunk.max() for chunk in chunks]
    print(f"\nchunks: {N_TOKENS / 1e6 / ours:.0f} M tokens per CPU-second, zstd alone {N_TOKENS / 1e6 / bare:.0f}: {bare / ours:.0%}")


def test_writing_costs_little_more_than_compressing(rows, tmp_path):
    """Whole shards to disk, against zstd alone at the same level on the same chunks."""
    codec = Zstd(level=3, checksum=True)
    bare, frames = cpu_seconds(
        lambda: [codec.encode(np.ascontiguousarray(rows[top : top + 64, left : left + 2048])) for top, left in _corners()]
    )
    create_grid(tmp_path / "a.zarr", GridLayout(N_ROWS, ROW_TOKENS, 50_257))
    ours, _ = cpu_seconds(lambda: write_band(tmp_path / "a.zarr", RowBlock(0, N_ROWS), rows))
    stored = sum(path.stat().st_size for path in (tmp_path / "a.zarr/c").rglob("*") if path.is_file())
    print(f"\nwriting: {rows.nbytes / 1e6 / ours:.0f} MB per CPU-second, zstd alone {rows.nbytes / 1e6 / bare:.0f}: {bare / ours:.0%}")
    assert sum(map(len, frames)) < stored < 1.01 * sum(map(len, frames))


def test_the_grid_is_smaller_than_the_published_layout(rows, grid):
    """Against Blosc lz4 with byte shuffle on LongCrawl64's chunks."""
    blosc.use_threads = False
    codec = Blosc("lz4", 5, Blosc.SHUFFLE, 0)
    published = sum(len(codec.encode(np.ascontiguousarray(rows[:, left : left + 2048]))) for left in range(0, ROW_TOKENS, 2048))
    stored = sum(path.stat().st_size for path in (grid / "c").rglob("*") if path.is_file())
    said = f"{rows.nbytes / stored:.2f} × smaller than the ids, blosc-lz4-shuffle {rows.nbytes / published:.2f} ×"
    print(f"\nsize: {said}: {published / stored:.2f} ×")
    assert stored < published


def test_the_riffle_costs_little(rows, grid, tmp_path):
    """The same rows as eight snapshots in the global order, against one array; each chunk decoded once in both."""
    parts = {f"s{number}": rows[number * 64 : number * 64 + 64, :8192] for number in range(8)}
    lake = write_lake(tmp_path, parts, {name: part[:1] for name, part in parts.items()})
    single = write_grid(tmp_path / "one.zarr", rows[:, :8192])
    one, total = speed_of(small_cached(single, 8, 1024, n_chunks=8))
    eight, again = speed_of(small_cached(lake, 8, 1024, n_chunks=8))
    assert total == again == int(rows[:, :8192].sum(dtype=np.int64))
    print(f"\nriffle of 8: {eight:.0f} M tokens per CPU-second, one array {one:.0f}: {one / eight:.1f} × slower")


def _corners():
    return [(top, left) for left in range(0, ROW_TOKENS, 2048) for top in range(0, N_ROWS, 64)]
