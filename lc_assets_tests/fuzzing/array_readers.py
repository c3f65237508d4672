"""Readers of arrays and of what lies beside them: grids, flat arrays, Megatron's files, ``.npy``,
indices, orders, receipts.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.builds.tables import (
    ROWS as ROWS_TABLE,
    count_lines,
    read_lines,
    read_schema,
    read_table,
    write_table,
)
from lc_assets.counts import Counts
from lc_assets.formats.arrays.flat import BLOSC, ZSTD, FlatReader, create_flat
from lc_assets.formats.arrays.grid import GridReader, create_grid, write_band
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.arrays.order import GlobalOrder, OrderSource, write_order, write_sources
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.formats.megatron.gpt_index import (
    PrefixFacts,
    read_gpt_index,
    read_manifest,
    write_gpt_index,
    write_manifest,
)
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.releases import Pin, Release, lake_of_release, publish_release
from lc_assets.lake.versions import write_receipt
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets.text.contamination.grams import GramSettings, Item, build_index
from lc_assets_tests.fuzzing.table import Reader

ROWS = np.arange(5 * 48, dtype=np.uint16).reshape(5, 48) % 200


def make_grid(folder: Path) -> None:
    layout = GridLayout(5, 48, 200, shard_rows=4, shard_tokens=32, inner_rows=2, inner_tokens=16)
    create_grid(folder, layout)
    write_band(folder, range(4), ROWS[:4])
    write_band(folder, range(4, 5), ROWS[4:])


def read_grid(folder: Path) -> Any:
    reader = GridReader(folder)
    reader.missing()
    if (
        reader.n_rows * reader.row_tokens > 1 << 22
    ):  # a caller reads what it asked for, not what the metadata promise
        return reader.read(slice(0, 1), slice(0, 1)).tolist()
    found = reader.read()
    assert not found.size or int(found.max()) < reader.vocab_size
    return found.tolist()


def make_flat(codec: Any) -> Any:
    def make(folder: Path) -> None:
        create_flat(folder, 5, 48, chunk=(4, 32), codec=codec, vocab_size=200)
        FlatReader(folder).write(range(4), ROWS[:4])
        FlatReader(folder).write(range(4, 5), ROWS[4:])
        (folder / "0.crc32").unlink()  # so that damage reaches the codec

    return make


def read_flat(folder: Path) -> Any:
    reader = FlatReader(folder)
    reader.missing()
    if reader.n_rows * reader.row_tokens > 1 << 22:
        return reader.read(slice(0, 1), slice(0, 1)).tolist()
    found = reader.read()
    assert not found.size or int(found.max()) < reader.vocab_size
    return found.tolist()


def make_megatron(folder: Path) -> None:
    with MegatronWriter.publishing(folder / "x", np.dtype("<u2")) as writer:
        for n_ids in (3, 1, 7):
            writer.add(np.arange(n_ids))


def read_megatron(folder: Path) -> Any:
    reader = MegatronReader(folder / "x")
    return [ids.tolist() for ids in reader], reader.document_indices.tolist()


def make_manifest(folder: Path) -> None:
    write_manifest(folder, {"a": PrefixFacts(digest="0" * 64, sequences=3, boundaries=4)})


def make_gpt_index(folder: Path) -> None:
    write_gpt_index(
        folder / "x",
        build_gpt_index(np.array([5, 0, 9, 30], np.int32), sequence_length=4, seed=1, n_samples=25),
    )


def read_gpt(folder: Path) -> Any:
    index = read_gpt_index(folder / "x")
    return [
        array.tolist() for array in (index.document_index, index.sample_index, index.shuffle_index)
    ]


def make_keys(folder: Path) -> None:
    keys = np.sort(np.random.default_rng(0).integers(0, 2**64, 50, np.uint64, endpoint=False))
    write_key_index(folder / "x", keys, np.arange(50, dtype=np.uint32))


def read_keys(folder: Path) -> Any:
    index = KeyIndex(folder / "x")
    keys = np.sort(np.random.default_rng(0).integers(0, 2**64, 50, np.uint64, endpoint=False))
    return [index.places(int(key)) for key in (0, *keys[::7], 2**64 - 1)], [
        found.tolist() for found in index.places_of_all(keys)
    ]


def make_order(folder: Path) -> None:
    sources = [
        OrderSource(snapshot=name, version="abc", digest="0" * 64, train_rows=4, heldout_rows=0)
        for name in ("a", "b")
    ]
    write_sources(folder, sources, row_tokens=8, vocab_size=100)
    write_order(
        folder, "train", np.array([0, 1] * 4, np.uint16), np.arange(8, dtype=np.uint32) // 2
    )


def read_order(folder: Path) -> Any:
    order = GlobalOrder.open(folder, "train")
    order.require_riffle()
    return order.sources, order.source.tolist(), order.row.tolist()


def make_spans(folder: Path) -> None:
    row, stop = np.array([0, 0, 1]), np.array([5, 9, 12])
    PackedSpans.of(row, stop, np.array([0, 1, 2]), n_rows=2).write(folder, "train")


def read_spans(folder: Path) -> Any:
    spans = PackedSpans.open(folder, "train", row_tokens=16)
    return spans.first.tolist(), spans.lengths.tolist(), spans.document.tolist()


def make_grams(folder: Path) -> None:
    write_index(
        folder,
        build_index(
            [Item(id="a", parts=("one two three four five six",))],
            GramSettings(ngram=3, min_words=2),
        ),
    )


def read_grams(folder: Path) -> Any:
    index = open_index(folder)
    return index.item_ids, {name: array.tolist() for name, array in index.arrays.items()}


def make_lake(folder: Path) -> None:
    lake = Lake(folder)
    fingerprint = Fingerprint(
        stage="token_grid",
        key="2023-06",
        code_version="1",
        params={"a": [1, {"b": 2}]},
        inputs={"raw_snapshot/2023-06": "0" * 64},
    )
    home = lake.partition("token_grid", "2023-06").folder / fingerprint.version
    home.mkdir(parents=True)
    (home / "a.txt").write_bytes(b"one")
    published = write_receipt(
        home, receipt_of(home, fingerprint, Counts(seen=2, kept=1, dropped={"short": 1}))
    )
    lake.partition("token_grid", "2023-06").point_at(published)
    publish_release(
        lake,
        "first",
        Release(
            pins={"token_grid/2023-06": Pin(version=published.version, digest=published.digest)}
        ),
    )


def read_lake(folder: Path) -> Any:
    lake = Lake(folder)
    partition = lake.partition("token_grid", "2023-06")
    summary, found = partition.current_summary(), partition.current()
    said = (
        []
        if found is None
        else [
            *found.damage(),
            *found.differences(),
            *found.receipt.fingerprint.differences(found.receipt.fingerprint),
        ]
    )
    pinned = lake_of_release(lake, "first").partition("token_grid", "2023-06").current()
    return (
        None if summary is None else summary.digest,
        said,
        pinned is None,
        [one.version for one in partition.versions()],
    )


def make_table(folder: Path) -> None:
    lines = [
        {
            "id": f"2023-06/0000/en_head.json.gz/{n}",
            "url": f"https://a.org/{n}",
            "split": "train",
            "row": n,
        }
        for n in range(40)
    ]
    write_table(folder / "x.parquet", pa.Table.from_pylist(lines, schema=ROWS_TABLE))


def read_a_table(folder: Path) -> Any:
    path = folder / "x.parquet"
    lines = list(read_lines(path, ["id", "row"]))
    return (
        count_lines(path),
        str(read_schema(path)),
        lines,
        read_table(path, ROWS_TABLE.names).to_pylist(),
    )


def make_npy(folder: Path) -> None:
    write_npy(folder / "x.npy", np.arange(60, dtype="<i4").reshape(20, 3))


def read_array(folder: Path) -> Any:
    found = read_npy(folder / "x.npy")
    return found.shape, str(found.dtype), np.asarray(found).tobytes()


GRID = {"zarr.json": ("json",)}
FLAT = {".zarray": ("json",), ".zattrs": ("json",)}
LAKE = {".json": ("json",)}
NPY = {".npy": ("headers",)}

READERS = (
    Reader(name="token grid", make=make_grid, read=read_grid, layers=GRID, guarded=True),
    Reader(name="flat array, Blosc", make=make_flat(BLOSC), read=read_flat, layers=FLAT),
    Reader(name="flat array, zstd", make=make_flat(ZSTD), read=read_flat, layers=FLAT),
    Reader(name="Megatron .idx and .bin", make=make_megatron, read=read_megatron),
    Reader(name="Megatron cache manifest", make=make_manifest, read=read_manifest, layers=LAKE),
    Reader(name="GPT index", make=make_gpt_index, read=read_gpt, layers=NPY),
    Reader(name=".npy array", make=make_npy, read=read_array, layers=NPY),
    Reader(name="key index", make=make_keys, read=read_keys, layers=NPY),
    Reader(name="global order", make=make_order, read=read_order, layers=LAKE | NPY),
    Reader(name="packed spans", make=make_spans, read=read_spans, layers=NPY),
    Reader(name="n-gram index", make=make_grams, read=read_grams, layers=LAKE | NPY),
    Reader(
        name="table of a lake",
        make=make_table,
        read=read_a_table,
        layers={".parquet": ("parquet",)},
    ),
    Reader(name="receipt, pointer, release", make=make_lake, read=read_lake, layers=LAKE),
)
"""Doors for arrays and receipts."""
