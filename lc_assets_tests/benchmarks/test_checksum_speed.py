"""What comparing with checksums costs loaders, against the same loaders without. Run with ``-s`` to
see the figures.

A block is compared once, so an epoch that reads everything for the first time is the worst case.
The bound counts the look-up of 64 numbers per token, the least that a model does with them; the
loaders' own times are printed too.
"""

import collections
import itertools
from pathlib import Path

import numpy as np
import pytest

from lc_assets.formats.arrays.flat import BLOSC, CHUNK, ZSTD, FlatReader, create_flat
from lc_assets.formats.checksums import BlockChecksums, checksums_path
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.windows import WindowLoader
from lc_assets.vocabulary import GPT2_VOCAB_SIZE
from lc_assets_tests.benchmarks.timing import cpu_seconds
from lc_assets_tests.benchmarks.token_rows import token_rows

N_ROWS, ROW_TOKENS = 2048, 16_384
"""67 MB of ids."""
ROUNDS = 5
MOST = 1.05
"""Highest ratio of the times with and without."""


@pytest.fixture(scope="module")
def rows():
    return np.asarray(token_rows(N_ROWS, ROW_TOKENS)[1])


def data_set(folder: Path, rows: np.ndarray) -> Path:
    with MegatronWriter.publishing(folder / "rows", np.dtype(np.uint16)) as writer:
        for row in rows:
            writer.add(row)
    return folder / "rows"


def flat(folder: Path, rows: np.ndarray, codec) -> Path:
    path = folder / f"{codec.__class__.__name__}.zarr"
    create_flat(path, *rows.shape, codec=codec)
    for left in range(0, ROW_TOKENS, CHUNK[1]):
        tokens = slice(left, left + CHUNK[1])
        FlatReader(path).write(range(N_ROWS), rows[:, tokens], tokens=tokens)
    return path


def walk(loader, n_epochs):
    """Read all steps so many times."""
    for _ in range(n_epochs):
        collections.deque(map(loader.__getitem__, range(len(loader))), maxlen=0)


def ratios(what, make, checksums):
    """Print how many times longer reading takes with files of checksums than without; return it for
    the first epoch, with the time that the look-up of its tokens in an embedding takes.
    """
    contents = {path: path.read_bytes() for path in checksums}
    times = {}
    for _, n_epochs, beside in itertools.product(range(ROUNDS), (1, 10), (True, False)):
        for path, content in contents.items():
            path.write_bytes(content) if beside else path.unlink()
        seconds, _ = cpu_seconds(lambda _, n=n_epochs: walk(make(), n), rounds=1)
        times[n_epochs, beside] = min(seconds, times.get((n_epochs, beside), seconds))
    weights, loader = np.random.default_rng(0).random((GPT2_VOCAB_SIZE, 64), np.float32), make()
    batch = loader[0].text
    looking_up = len(loader) * cpu_seconds(lambda _: weights[batch])[0]
    once, ten = (times[n, True] / times[n, False] for n in (1, 10))
    embedded = (times[1, True] + looking_up) / (times[1, False] + looking_up)
    print(
        f"\n{what}: the first epoch {once:.3f} ×, with an embedding {embedded:.3f} ×, ten epochs "
        f"{ten:.3f} ×; the first epoch takes {1e9 * times[1, False] / N_ROWS / ROW_TOKENS:.1f} ns "
        f"per token, an embedding {1e9 * looking_up / N_ROWS / ROW_TOKENS:.1f}"
    )
    return embedded


@pytest.mark.parametrize(("n_ranks", "most"), [(1, MOST), (8, 1.1)])
def test_windows_with_checksums(tmp_path, rows, n_ranks, most):
    """As int64, as PyTorch's embeddings need them. Every rank compares all blocks that its windows
    are in.
    """
    prefix = data_set(tmp_path, rows)
    ratio = ratios(
        f"windows of 1,024 tokens, a rank of {n_ranks}",
        lambda: WindowLoader(
            prefix, batch_windows=64, context_tokens=1024, dtype=np.int64, n_ranks=n_ranks
        ),
        [checksums_path(bin_path(prefix))],
    )
    assert ratio < most


@pytest.mark.parametrize("codec", [BLOSC, ZSTD], ids=["blosc", "zstd"])
def test_a_flat_array_with_checksums(tmp_path, rows, codec):
    """Each chunk is compared whenever it is decoded, once per column of contexts."""
    path = flat(tmp_path, rows, codec)
    ratio = ratios(
        f"a flat array, {codec}",
        lambda: GridLoader(open_rows(path), batch_rows=64, context_tokens=1024),
        sorted(path.glob("*.crc32")),
    )
    assert ratio < MOST


def test_writing_checksums(tmp_path, rows, monkeypatch):
    """Of a ``.bin``, document by document."""
    add = BlockChecksums.add

    def seconds(what):
        monkeypatch.setattr(BlockChecksums, "add", what)
        return cpu_seconds(lambda _: data_set(tmp_path, rows), rounds=2)[0]

    pairs = [(seconds(add), seconds(lambda _, content: None)) for _ in range(ROUNDS)]
    with_them, without = map(min, zip(*pairs, strict=True))
    print(f"\nwriting a .bin: {with_them / without:.3f} ×")
    assert with_them < 2 * without
