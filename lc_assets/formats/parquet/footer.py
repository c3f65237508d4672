"""The column chunks of a Parquet file: their byte ranges and numbers of values, from the footer as
Arrow reads it, checked against limits.

Refused are chunks that overlap, are outside the file or in other files, more rows than the file's
bytes allow (`VALUES_OF_A_BYTE`), and a list that could hold more items than its chunk has bytes and
than `MOST_ITEMS`. Arrow itself refuses a footer that is longer than the file, and a schema nested
deeper than 100.
"""

from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile

MAGIC: Final = b"PAR1"
TAIL_BYTES: Final = 8
"""Size of the footer and `MAGIC`, at the end of the file."""

MOST_ITEMS: Final = 1 << 24
"""Maximum items in a row of a small chunk, and maximum rows of a small file."""

VALUES_OF_A_BYTE: Final = 8
"""Maximum rows per byte of a large file: a flag takes a bit."""

STRING: Final = "BYTE_ARRAY"
FIXED_STRING: Final = "FIXED_LEN_BYTE_ARRAY"


class Chunk(NamedTuple):
    """The pages of one column in one row group: ``n_bytes`` from ``start`` on, which hold
    ``n_values``, nulls included.

    Attributes:
        column: its path, with dots.
        type: Parquet's name of it.
        width: bytes of a value of the type `FIXED_STRING`; else 0.
        is_repeated: whether a row may hold several values.
        is_optional: whether a row may hold none.
        start: first byte.
        n_bytes: size.
        n_values: number of values.
        n_rows: number of rows.
        codec: Arrow's name of the compression.
    """

    column: str
    type: str
    width: int
    is_repeated: bool
    is_optional: bool
    start: int
    n_bytes: int
    n_values: int
    n_rows: int
    codec: str


def column_chunks(metadata: pq.FileMetaData, n_bytes: int) -> list[list[Chunk]]:
    """The column chunks of a file of ``n_bytes``, by row group.

    Raises:
        CorruptFile: when the footer states something impossible; does not name the file.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    n_rows, most = (
        sum(group.num_rows for group in groups),
        max(MOST_ITEMS, n_bytes * VALUES_OF_A_BYTE),
    )
    if n_rows != metadata.num_rows:
        raise CorruptFile(f"promises {metadata.num_rows:,} rows, and {n_rows:,} in its row groups")
    if n_rows > most:
        raise CorruptFile(
            f"promises {n_rows:,} rows in {n_bytes:,} bytes; at most {most:,} are read"
        )
    found = [_chunks(metadata.schema, group) for group in groups]
    _require_apart(
        [chunk for chunks in found for chunk in chunks],
        n_bytes - TAIL_BYTES - metadata.serialized_size,
    )
    return found


def _chunks(schema: pq.ParquetSchema, group: pq.RowGroupMetaData) -> list[Chunk]:
    if group.num_columns != len(schema):
        raise CorruptFile(
            f"a row group has {group.num_columns:,} columns, the schema {len(schema):,}"
        )
    return [
        _chunk(schema.column(place), group.column(place), group.num_rows)
        for place in range(group.num_columns)
    ]


def _chunk(leaf: pq.ColumnSchema, stated: pq.ColumnChunkMetaData, n_rows: int) -> Chunk:
    if stated.file_path or stated.physical_type != leaf.physical_type:
        raise CorruptFile(
            f"{leaf.path}: lies in another file, or has another type than the schema says"
        )
    data = stated.data_page_offset
    chunk = Chunk(
        column=leaf.path,
        type=leaf.physical_type,
        width=leaf.length if leaf.physical_type == FIXED_STRING else 0,
        is_repeated=leaf.max_repetition_level > 0,
        is_optional=leaf.max_definition_level > 0,
        start=min(data, stated.dictionary_page_offset or data),
        n_bytes=stated.total_compressed_size,
        n_values=stated.num_values,
        n_rows=n_rows,
        codec=stated.compression,
    )
    most = max(MOST_ITEMS, chunk.n_bytes) if chunk.is_repeated else 0
    if not 0 <= n_rows <= chunk.n_values <= n_rows + most:
        raise CorruptFile(
            f"{leaf.path}: promises {chunk.n_values:,} values for {n_rows:,} rows; write it in "
            "smaller row groups"
        )
    return chunk


def _require_apart(chunks: list[Chunk], end: int) -> None:
    spans = sorted(
        (chunk.start, chunk.start + chunk.n_bytes) for chunk in chunks if chunk.n_values
    )  # others are at 0
    if any(not len(MAGIC) <= start <= stop <= end for start, stop in spans):
        raise CorruptFile("a column lies outside the file")
    if any(before[1] > behind[0] for before, behind in pairwise(spans)):
        raise CorruptFile("two columns lie in the same place")
