"""What the shape of inner chunks and shards costs and gives: size, encoding, decoding, the loader,
the worst batch, requests.

``pytest -s -m "benchmark and slow" lc_assets_tests/benchmarks/test_chunk_shapes.py`` prints the
tables of docs/chunking.md. The rows are those of `test_loader_speed`: cut out of tokenized books,
2,048 of them, so that every shard is full.
"""

import shutil
import time

import numpy as np
import pytest
from numcodecs import Blosc, blosc
from numcodecs.zstd import Zstd

from lc_assets.formats.arrays.grid import GridReader
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.benchmarks.test_loader_speed import N_ROWS, ROW_TOKENS, speed, worst_wait
from lc_assets_tests.benchmarks.timing import cpu_seconds, median_seconds
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.grid_builders import write_grid
from lc_assets_tests.loaders.range_server import RangeHandler, served

INNER = [
    (64, 2048, 3),
    (128, 2048, 3),
    (128, 1024, 3),
    (64, 1024, 3),
    (64, 1024, 4),
    (32, 2048, 4),
    (32, 1024, 4),
    (16, 2048, 4),
]
"""Rows, tokens and zstd's level: 3 up to 256 KiB, and 4 up to 128 KiB, are the first that look for
matches of two ids.
"""
BATCHES = [(8, 1024), (64, 1024), (512, 1024), (8, 2048), (8, 16_384), (8, 65_536)]
SHARDS = [
    ((64, 2048, 3), 2048),
    ((128, 1024, 3), 2048),
    ((64, 1024, 4), 2048),
    ((32, 2048, 4), 2048),
    ((64, 1024, 4), 16_384),
    ((64, 1024, 4), 65_536),
]
"""Inner chunk, and tokens of a shard's rows: what is measured by range requests."""
REMOTE = [2048, 16_384, 65_536]
LATENCY_SECONDS = 0.02
N_SOURCES = 84

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def rows():
    kind, made = token_rows(N_ROWS, ROW_TOKENS)
    print(f"\nids of {kind}")
    return made


@pytest.fixture(scope="module")
def published_bytes(rows):
    """Size of the rows as LongCrawl64 was published."""
    blosc.use_threads = False
    codec = Blosc("lz4", 5, Blosc.SHUFFLE, 0)
    return sum(
        len(codec.encode(np.ascontiguousarray(rows[:, left : left + 2048])))
        for left in range(0, ROW_TOKENS, 2048)
    )


def sizes_of(inner, shard_tokens=ROW_TOKENS):
    """As settings of a layout."""
    return {
        "inner_rows": inner[0],
        "inner_tokens": inner[1],
        "zstd_level": inner[2],
        "shard_tokens": shard_tokens,
    }


def coding(rows, inner):
    """MB of ids per CPU-second that zstd alone encodes and decodes, in chunks of a shape; of a
    tenth of the rows' tokens.
    """
    codec, room = Zstd(level=inner[2], checksum=True), np.empty(inner[:2], np.uint16)
    corners = [
        (top, left) for left in range(0, 6144, inner[1]) for top in range(0, N_ROWS, inner[0])
    ]
    chunks = [
        np.ascontiguousarray(rows[top : top + inner[0], left : left + inner[1]])
        for top, left in corners
    ]
    encoding, frames = cpu_seconds(lambda _: [codec.encode(chunk) for chunk in chunks], rounds=2)
    decoding = median_seconds(lambda: [codec.decode(frame, room) for frame in frames])
    return [len(chunks) * room.nbytes / 1e6 / seconds for seconds in (encoding, decoding)]


def loading(path, batch):
    """Million tokens per CPU-second over two chunk columns of 2,048 tokens, or over the one of a
    longer context.
    """
    loader = GridLoader(open_rows(path), batch_rows=batch[0], context_tokens=batch[1])
    return speed(loader, min(len(loader), max(2 * 2048 // batch[1], 1) * loader.row_blocks))


def test_what_each_shape_of_inner_chunks_costs(rows, published_bytes, tmp_path):
    """Size against ids and published codec; MB of ids, million tokens per CPU-second; worst batch
    and caches at 8 × 65,536.
    """
    names = [
        "smaller than ids",
        "than published",
        "encode",
        "decode",
        *(f"{down}×{across:,}" for down, across in BATCHES),
    ]
    print(
        "| inner chunk | zstd | "
        + " | ".join([*names, "worst ms", "cache MB", f"of {N_SOURCES} MB"])
        + " |"
    )
    for inner in INNER:
        path = write_grid(tmp_path / "grid.zarr", rows, **sizes_of(inner))
        stored = sum(file.stat().st_size for file in (path / "c").rglob("*") if file.is_file())
        ratios = [f"{rows.nbytes / stored:.2f}", f"{published_bytes / stored:.2f}"]
        figures = [*coding(rows, inner), *(loading(path, batch) for batch in BATCHES)]
        loader = GridLoader(open_rows(path), batch_rows=8, context_tokens=ROW_TOKENS)
        worst, cache = (
            min(worst_wait(loader) for _ in range(3)) * 1e3,
            loader.rows.cache.max_bytes / 1e6,
        )
        said = [
            *ratios,
            *(f"{figure:.0f}" for figure in figures),
            f"{worst:.1f}",
            f"{cache:.1f}",
            f"{cache * N_SOURCES:.0f}",
        ]
        print(f"| {inner[0]}×{inner[1]:,} | {inner[2]} | " + " | ".join(said) + " |")
        np.testing.assert_array_equal(
            GridReader(path).read(slice(0, 200), slice(1000, 5000)), rows[:200, 1000:5000]
        )
        assert published_bytes / stored > 1.3
        shutil.rmtree(path)


class LateHandler(RangeHandler):
    """Answers after a while, with the asked part of the file only, on connections that stay
    open.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def part_of(self, path, first, last):
        time.sleep(LATENCY_SECONDS)
        with path.open("rb") as stream:
            stream.seek(first)
            return stream.read(last - first + 1)


def test_what_each_shape_asks_of_a_server(rows, tmp_path):
    """A walk down one column of 2,048 rows, 8 a batch, each request answered after 20 ms: per batch
    requests, bytes and wall time.
    """
    print(
        "| inner chunk | zstd | shard | "
        + " | ".join(f"8×{context:,}: requests, kB, ms, worst ms" for context in REMOTE)
        + " |"
    )
    for inner, shard_tokens in SHARDS:
        path = write_grid(tmp_path / "grid.zarr", rows, **sizes_of(inner, shard_tokens))
        said = []
        with served(tmp_path, LateHandler) as (url, handler, _):
            for context in REMOTE:
                loader = GridLoader(
                    open_rows(f"{url}/grid.zarr"), batch_rows=8, context_tokens=context
                )
                handler.served.clear()
                waits = []
                for step in range(n_steps := loader.row_blocks):
                    begun = time.perf_counter()
                    targets = loader[step].targets
                    waits.append(time.perf_counter() - begun)
                np.testing.assert_array_equal(targets, rows[-8:, :context])
                kilobytes = sum(last - first + 1 for _, first, last in handler.served) / 1e3
                said.append(
                    f"{len(handler.served) / n_steps:.2f}, {kilobytes / n_steps:.0f}, "
                    f"{np.mean(waits) * 1e3:.1f}, {max(waits) * 1e3:.0f}"
                )
        print(
            f"| {inner[0]}×{inner[1]:,} | {inner[2]} | 2,048×{shard_tokens:,} | "
            + " | ".join(said)
            + " |"
        )
        shutil.rmtree(path)
