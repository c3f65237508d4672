"""Files of a version: arrays, Megatron data sets, tables, orders and indices, recognized by
content.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lc_assets.build.tables import DROPPED, FILTERED, MANIFEST, ROWS, TOKENIZED
from lc_assets.cli.inspect.artefact import Artefact, Lines, Table
from lc_assets.cli.printing import sized
from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.arrays.flat import METADATA as FLAT_METADATA
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.grid_layout import METADATA as GRID_METADATA
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.arrays.order import SOURCES, GlobalOrder
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.parquet.opening import guarded
from lc_assets.stages.links.link_tables import LINK_CLAIMS, SPANS
from lc_assets.stages.packing.packing_tables import PACKED_SPANS

_ROWS_AT_ONCE: Final = 1 << 14
_MANY: Final = 1000
"""Holes; of an array that has more, its metadata are rather wrong, and they may promise any number
of chunks.
"""


def is_grid(path: Path) -> bool:
    """Whether ``path`` is a token grid's array."""
    return (path / GRID_METADATA).is_file()


def is_flat(path: Path) -> bool:
    """Whether ``path`` is an array of LongCrawl64's layout."""
    return (path / FLAT_METADATA).is_file()


def is_megatron(path: Path) -> bool:
    """Whether ``path`` is a Megatron data set: its ``.bin``, its ``.idx`` or what both begin
    with.
    """
    return idx_path(_prefix(path)).is_file()


def is_table(path: Path) -> bool:
    """Whether ``path`` is called a Parquet file."""
    return path.is_file() and path.suffix == ".parquet"


def is_sources(path: Path) -> bool:
    """Whether ``path`` is an order's ``sources.json``."""
    return path.is_file() and path.name == SOURCES


def is_array(path: Path) -> bool:
    """Whether ``path`` is called a NumPy array."""
    return path.is_file() and path.suffix == ".npy"


def show_grid(path: Path, verify: bool) -> Artefact:
    """A token grid's array: shape, chunks and attributes."""
    reader = GridReader(path)
    missing = reader.missing()
    return Artefact(
        kind="token grid (Zarr v3)",
        facts=[
            *_array_facts(reader, path),
            (
                "shards",
                " × ".join(map(str, reader.file_shape))
                + ", of chunks "
                + " × ".join(map(str, reader.chunk_shape)),
            ),
            *(reader.attributes.items()),
        ],
        damage=[*missing, *(_unreadable_rows(reader) if verify and len(missing) <= _MANY else [])],
        checked="every chunk decoded, its checksum tested"
        if verify
        else "shards and their indexes looked at",
    )


def show_flat(path: Path, verify: bool) -> Artefact:
    """An array of LongCrawl64's layout."""
    reader = FlatReader(path)
    missing = reader.missing()
    return Artefact(
        kind="flat array (Zarr v2, LongCrawl64's layout)",
        facts=[*_array_facts(reader, path), ("chunks", " × ".join(map(str, reader.chunk_shape)))],
        damage=[*missing, *(_unreadable_rows(reader) if verify and len(missing) <= _MANY else [])],
        checked="every chunk decoded" if verify else "chunks' names looked at",
    )


def _array_facts(reader: GridReader | FlatReader, path: Path) -> list[tuple[str, Any]]:
    n_tokens = reader.n_rows * reader.row_tokens
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    ratio = (
        f", {size / (n_tokens * reader.dtype.itemsize):.2f} of the plain ids"
        if n_tokens and size
        else ""
    )
    return [
        ("shape", f"{reader.n_rows:,} rows × {reader.row_tokens:,} tokens, {reader.dtype}"),
        ("tokens", n_tokens),
        ("size", f"{sized(size)}{ratio}"),
    ]


def _unreadable_rows(reader: GridReader | FlatReader) -> list[str]:
    down, across = reader.chunk_shape
    said = []
    for row in range(-(-reader.n_rows // down)):
        for column in range(-(-reader.row_tokens // across)):
            try:
                reader.read_chunk(row, column)
            except CorruptFile as error:
                said.append(str(error))
    return said


def show_megatron(path: Path, verify: bool) -> Artefact:
    """A Megatron data set; its reader verifies the two files against each other."""
    reader = MegatronReader(_prefix(path))
    lengths = reader.lengths
    spread = f"{int(lengths.min()):,} to {int(lengths.max()):,} tokens" if len(reader) else "none"
    facts = [
        ("documents", len(reader)),
        ("tokens", reader.n_tokens),
        ("ids", str(reader.dtype)),
        ("lengths", spread),
    ]
    if verify:
        facts.append(
            (
                "highest id",
                max((int(document.max()) for document in reader if len(document)), default=-1),
            )
        )
    return Artefact(
        kind="Megatron data set (.bin and .idx)",
        facts=facts,
        checked="the .idx read whole, the .bin's size compared with it",
    )


def _prefix(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in (".bin", ".idx") else path


def show_table(path: Path, verify: bool) -> Artefact:
    """A Parquet table, by its columns."""
    with (
        library_errors_as_corrupt_file(path, system_errors_too=True),
        guarded(path, where=str(path), rows_at_once=_ROWS_AT_ONCE) as file,
    ):
        columns, metadata = file.file.schema_arrow, file.file.metadata
        n_read = (
            sum(batch.num_rows for batch in file.batches(_ROWS_AT_ONCE))
            if verify
            else metadata.num_rows
        )
    return Artefact(
        kind=_table_kind(columns),
        facts=[
            ("lines", metadata.num_rows),
            ("row groups", metadata.num_row_groups),
            ("size", sized(path.stat().st_size)),
        ],
        tables=[
            Table(
                title="columns",
                columns=("column", "type"),
                lines=[(name.name, str(name.type)) for name in columns],
            )
        ],
        damage=[]
        if n_read == metadata.num_rows
        else [f"{path}: {n_read:,} lines read, the footer says {metadata.num_rows:,}"],
        checked="every column read" if verify else "footer read",
    )


_TABLES = {
    "manifest of a snapshot (raw)": MANIFEST,
    "row table of a grid": ROWS,
    "documents that were tokenized (tokens)": TOKENIZED,
    "documents that did not go on": DROPPED,
    "spans of packed rows (packed)": PACKED_SPANS,
    "which page's text goes before which root (link_claims)": LINK_CLAIMS,
    "parts of packed documents (longpack)": SPANS,
}
_DUPLICATES = ["shard_id", "doc_id", "digest"]


def _table_kind(columns: pa.Schema) -> str:
    for kind, schema in _TABLES.items():
        if columns.equals(schema):
            return kind
    if columns.names[: len(FILTERED)] == FILTERED.names:
        return "documents worth keeping (filtered)"
    if columns.names == _DUPLICATES:
        return "RedPajama-V2 duplicates of one shard"
    return (
        "RedPajama-V2 MinHash of one shard"
        if "signature_sim0.8" in columns.names
        else "Parquet table, none of ours"
    )


def show_sources(path: Path, _: bool) -> Artefact:
    """Which grids a global order is over."""
    order = GlobalOrder.open(path.parent, "train")
    lines: Lines = [
        (source.snapshot, source.version, source.train_rows, source.heldout_rows)
        for source in order.sources
    ]
    return Artefact(
        kind="sources of a global order",
        facts=[("row tokens", order.row_tokens), ("vocabulary", order.vocab_size)],
        tables=[
            Table(
                title="sources",
                columns=("snapshot", "version", "train rows", "heldout rows"),
                lines=lines,
            )
        ],
    )


def show_array(path: Path, _: bool) -> Artefact:
    """A NumPy array: of an order, of a mix, or of a GPT index."""
    array = read_npy(path)
    spread = f"{array.min():,} to {array.max():,}" if array.size else "none"
    facts = [
        ("shape", " × ".join(f"{length:,}" for length in array.shape)),
        ("type", str(array.dtype)),
        ("values", spread),
    ]
    return Artefact(
        kind="NumPy array",
        facts=[*facts, ("head", np.array2string(array.ravel()[:8], separator=", "))],
    )
