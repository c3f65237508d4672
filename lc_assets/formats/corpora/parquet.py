"""Documents from Parquet files.

Rows are read in batches of about `BATCH_BYTES` by the file's metadata, of `BATCH_ROWS` at most, and
of fewer where the headers of its pages state long ones
(`lc_assets.formats.parquet.opening.weighed`). Strings in lists stay dictionary indices until the
size of each row is known, so that a row whose list names one long string a million times is found.
Memory is bounded by a batch, a row of `MAX_DOCUMENT_BYTES`, and the compressed column chunks of one
row group.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.errors import BadInput
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file
from lc_assets.formats.corpora.batches import Batch
from lc_assets.formats.corpora.containers import (
    MAX_DOCUMENT_BYTES,
    ReadingOptions,
    name_of_places,
)
from lc_assets.formats.corpora.json_lines import Record, batch_of, text_field_of
from lc_assets.formats.parquet.opening import Bounded, weighed
from lc_assets.formats.unpacking import require_small

BATCH_BYTES = 16 << 20
BATCH_ROWS = 256
VALUE_BYTES = 32
"""Minimum memory of a number or an item of a list as a Python object."""

_ENCODER = msgspec.json.Encoder(enc_hook=str)


def read_parquet(path: Path, options: ReadingOptions) -> Iterator[Batch]:
    """Yield the documents of a Parquet file; see `lc_assets.formats.corpora.reading.read_batches`.

    Raises:
        BadInput: when it has no column for the text.
    """
    with (
        library_errors_as_corrupt_file(path, DAMAGED),
        weighed(path, most_rows=BATCH_ROWS) as (file, most_rows),
    ):
        names = file.file.schema_arrow.names
        field = text_field_of(names, options.text_field)
        if field not in names:
            raise BadInput(
                f"{path}: has no column {field}; its columns are {', '.join(names)[:200]}; name "
                "the "
                "one that holds the text: --text-field, or text_field of the source"
            )
        places, begin = name_of_places(path), 0
        for rows in _row_lists(file, most_rows):
            records = [_record(row, field, options) for row in rows]
            batch = batch_of(records, begin, places, f"{path}, row", options.id_field)
            begin += len(rows)
            del rows, records  # the caller alone holds a long text
            yield batch


def parquet_rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Yield each row of a file, or the reason why it cannot be read.

    Raises:
        CorruptFile: when it is not Parquet, or damaged.
    """
    with (
        library_errors_as_corrupt_file(path, DAMAGED),
        weighed(path, most_rows=BATCH_ROWS) as (file, most_rows),
    ):
        for rows in _row_lists(file, most_rows):
            yield from rows


def _row_lists(bounded: Bounded, most_rows: list[int]) -> Iterator[list[dict[str, Any] | str]]:
    """Some rows at a time, or the reasons why they cannot be read."""
    file = bounded.file
    for group, most in enumerate(most_rows):
        size = file.metadata.row_group(group)
        require_small(size.total_byte_size)
        fitting = max(BATCH_BYTES // (size.total_byte_size // max(size.num_rows, 1) + 1), 1)
        for batch in file.iter_batches(min(fitting, BATCH_ROWS, most), row_groups=[group]):
            for column in batch.columns:
                if _is_folded(column.type):
                    # A damaged page may unpack to places that lead out of the dictionary.
                    column.validate(full=True)
                else:
                    bounded.spend(column.nbytes)
            yield from _bounded_rows(batch, bounded)


def _bounded_rows(batch: pa.RecordBatch, bounded: Bounded) -> Iterator[list[dict[str, Any] | str]]:
    """The rows of a batch, as many at a time as take at most `BATCH_BYTES` in their nested columns
    and dictionaries; a row that would take more than `MAX_DOCUMENT_BYTES` is not made.
    """
    folded = (column for column in batch.columns if _is_folded(column.type))
    n_bytes = sum(map(_object_bytes, folded))
    if n_bytes > BATCH_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _bounded_rows(batch.slice(0, half), bounded)
        yield from _bounded_rows(batch.slice(half), bounded)
    elif n_bytes > MAX_DOCUMENT_BYTES:
        yield ["row too long"]
    else:
        bounded.spend(n_bytes)
        yield _rows(batch)


def _is_folded(kind: pa.DataType) -> bool:
    """Whether values may take more bytes as Python objects than as an array."""
    return bool(pa.types.is_nested(kind) or pa.types.is_dictionary(kind))


def _object_bytes(array: pa.Array) -> int:
    """Approximate bytes of an array's values as Python objects: those of its strings, and
    `VALUE_BYTES` for each value.
    """
    kind, n_bytes = array.type, VALUE_BYTES * len(array)
    if pa.types.is_struct(kind):
        return n_bytes + sum(map(_object_bytes, array.flatten()))
    if pa.types.is_nested(kind):
        return n_bytes + _object_bytes(array.flatten())
    try:
        lengths = pc.binary_length(array.dictionary if pa.types.is_dictionary(kind) else array)
    except pa.ArrowNotImplementedError:  # no strings
        return n_bytes
    if pa.types.is_dictionary(kind):
        lengths = lengths.take(array.indices)
    return n_bytes + (pc.sum(lengths).as_py() or 0)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any] | str]:
    try:
        found: list[dict[str, Any] | str] = batch.to_pylist()
    except (
        UnicodeDecodeError,
        OverflowError,
        ValueError,
        KeyError,
    ) as error:  # the last for an unknown time zone
        if batch.num_rows == 1:
            return [
                "not UTF-8"
                if isinstance(error, UnicodeDecodeError)
                else "a value that Python does not have"
            ]
        return [row for place in range(batch.num_rows) for row in _rows(batch.slice(place, 1))]
    return found


def _record(row: dict[str, Any] | str, field: str, options: ReadingOptions) -> Record | str:
    """The record of a row, or the reason for none."""
    if isinstance(row, str):
        return row
    text = row.pop(field)
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError:
            return "not UTF-8"
    if not isinstance(text, str):
        return "no text"
    if len(text) > options.max_document_bytes:
        return "text too long"
    return Record(text, field, msgspec.Raw(_ENCODER.encode(row)), row)
