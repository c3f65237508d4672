"""Small grids, flat arrays and lakes for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.formats.arrays.chunks import plan_rows
from lc_assets.formats.arrays.flat import FlatReader, create_flat
from lc_assets.formats.arrays.grid import create_grid, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets.formats.arrays.order import OrderSource, write_order, write_sources
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.vocabulary import GPT2_VOCAB_SIZE


def ids(
    n_rows: int, row_tokens: int, *, vocab_size: int = GPT2_VOCAB_SIZE, seed: int = 0
) -> NDArray[np.int64]:
    """Random ids, the vocabulary's first and last among them when there is room."""
    drawn = np.random.default_rng(seed).integers(0, vocab_size, (n_rows, row_tokens))
    drawn.flat[:1], drawn.flat[-1:] = 0, vocab_size - 1
    return drawn


def zipf_ids(n_rows: int, row_tokens: int, *, seed: int = 0) -> NDArray[np.uint16]:
    """Ids that a codec finds about as hard as text: word pairs whose frequencies fall as Zipf's law
    has it (zstd-3: 1.74 ×).
    """
    rng = np.random.default_rng(seed)
    words = _zipf(GPT2_VOCAB_SIZE).astype(np.uint16)
    pairs = words[rng.integers(0, 65_536, (30_000, 2), np.uint16)]
    drawn = _zipf(len(pairs))[rng.integers(0, 65_536, (n_rows, -(-row_tokens // 2)), np.uint16)]
    return pairs[drawn].reshape(n_rows, -1)[:, :row_tokens]


def _zipf(n_kinds: int) -> NDArray[np.int64]:
    """Kinds at 65,536 even steps through Zipf's cumulated frequencies."""
    cumulated = np.cumsum(1 / (np.arange(n_kinds) + 2.7))
    return np.searchsorted(cumulated / cumulated[-1], (np.arange(65_536) + 0.5) / 65_536)


def write_grid(
    path: Path, rows: NDArray, *, vocab_size: int = GPT2_VOCAB_SIZE, **chunks: int
) -> Path:
    """Write a whole grid, band by band; ``chunks`` are those of a `GridLayout`."""
    layout = GridLayout(*rows.shape, vocab_size, **chunks)
    create_grid(path, layout)
    for block in plan_bands(layout):
        write_band(path, block, rows[block.start : block.stop])
    return path


def write_flat(
    path: Path, rows: NDArray, *, chunk: tuple[int, int] = (4, 8), **layout: Any
) -> Path:
    """Write a whole flat array, band by band."""
    create_flat(path, *rows.shape, chunk=chunk, **layout)
    for block in plan_rows(len(rows), chunk[0]):
        FlatReader(path).write(block, rows[block.start : block.stop])
    return path


def riffle(counts: list[int], *, seed: int = 0) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """A random order over sources of so many rows, ascending within each."""
    source = np.random.default_rng(seed).permutation(
        np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
    )
    row = np.zeros(len(source), np.uint32)
    for number, count in enumerate(counts):
        row[source == number] = np.arange(count)
    return source, row


def publish(root: Path, stage: str, key: str, version: str) -> Published:
    """Write a folder's receipt and make it the current version."""
    partition = Lake(root).partition(stage, key)
    fingerprint = Fingerprint(stage=stage, key=key, code_version="1", params={}, inputs={})
    published = write_receipt(
        partition.folder / version, receipt_of(partition.folder / version, fingerprint, Counts())
    )
    partition.point_at(published)
    return published


def write_lake(root: Path, train: Mapping[str, NDArray], heldout: Mapping[str, NDArray]) -> Path:
    """Publish one grid per snapshot and a global order over them."""
    sources = []
    for snapshot in train:
        folder = root / "token_grid" / snapshot / "v1"
        write_grid(folder / "train.zarr", train[snapshot])
        write_grid(folder / "heldout.zarr", heldout[snapshot])
        digest = publish(root, "token_grid", snapshot, "v1").digest
        rows = {"train_rows": len(train[snapshot]), "heldout_rows": len(heldout[snapshot])}
        sources.append(OrderSource(snapshot=snapshot, version="v1", digest=digest, **rows))
    folder = root / "longcrawl" / "all" / "v7"
    write_sources(
        folder, sources, row_tokens=next(iter(train.values())).shape[1], vocab_size=GPT2_VOCAB_SIZE
    )
    for split, grids in (("train", train), ("heldout", heldout)):
        write_order(folder, split, *riffle([len(grids[snapshot]) for snapshot in train]))
    publish(root, "longcrawl", "all", "v7")
    return root
