"""Documents from Parquet files.

Rows are read in batches of about `BATCH_BYTES` by the file's metadata, of `BATCH_ROWS` at most, and
of fewer where the headers of its pages state long ones
(`lc_assets.formats.parquet.opening.weighed`). Strings in lists stay dictionary indices until the
size of each row is known, so that a row whose list names one long string a million times is found.
Memory is bounded by a batch, a row of `MAX_DOCUMENT_BYTES`, and the compressed column chunks of one
row group.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets import arrow_compute as pc
from lc_assets.errors import BadInput
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file
from lc_assets.formats.corpora.containers import (
    MAX_DOCUMENT_BYTES,
    CorpusDocument,
    Unread,
    name_of_places,
)
from lc_assets.formats.corpora.reading import document_of, text_field_of
from lc_assets.formats.parquet.opening import Bounded, weighed

BATCH_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 256
VALUE_BYTES: Final = 32
"""Minimum memory of a number or an item of a list as a Python object."""

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def read_parquet(
    path: Path, *, text_field: str | None, max_document_bytes: int, id_field: str | None = None
) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of a Parquet file; see `lc_assets.formats.corpora.reading.read_corpus`.

    Raises:
        BadInput: when it has no column for the text.
    """
    with (
        library_errors_as_corrupt_file(path, DAMAGED),
        weighed(path, most_rows=BATCH_ROWS) as (file, most_rows),
    ):
        names = file.file.schema_arrow.names
        field = text_field_of(names, text_field)
        if field not in names:
            raise BadInput(
                f"{path}: has no column {field}; its columns are {', '.join(names)[:200]}; name "
                "the "
                "one that holds the text: --text-field, or text_field of the source"
            )
        places = name_of_places(path)
        for number, record in enumerate(_records(file, most_rows)):
            found = _document(record, f"{places}/{number}", field, max_document_bytes, id_field)
            yield (
                Unread(id=f"{places}/{number}", where=f"{path}, row {number}", why=found)
                if isinstance(found, str)
                else found
            )


def parquet_rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Yield each row of a file, or the reason why it cannot be read.

    Raises:
        CorruptFile: when it is not Parquet, or damaged.
    """
    with (
        library_errors_as_corrupt_file(path, DAMAGED),
        weighed(path, most_rows=BATCH_ROWS) as (file, most_rows),
    ):
        yield from _records(file, most_rows)


def _records(bounded: Bounded, most_rows: list[int]) -> Iterator[dict[str, Any] | str]:
    """Each row, or the reason why it cannot be read."""
    file = bounded.file
    for group, most in enumerate(most_rows):
        size = file.metadata.row_group(group)
        for batch in file.iter_batches(
            min(_most_rows(size.num_rows, size.total_byte_size), most), row_groups=[group]
        ):
            yield from _bounded_rows(batch, bounded)


def _bounded_rows(batch: pa.RecordBatch, bounded: Bounded) -> Iterator[dict[str, Any] | str]:
    """The rows of a batch, a part of about `BATCH_BYTES` at a time; one that would take more than
    `MAX_DOCUMENT_BYTES` is not made.
    """
    nested = [column for column in batch.columns if pa.types.is_nested(column.type)]
    bounded.spend(
        sum(column.nbytes for column in batch.columns if not pa.types.is_nested(column.type))
    )
    if not nested:
        yield from _rows(batch)
        return
    for column in nested:
        column.validate(
            full=True
        )  # a damaged page may unpack to places that lead out of the dictionary
    sizes = _added(map(_sizes, nested), batch.num_rows)
    begin = 0
    while begin < batch.num_rows:
        n_rows = max(int(np.searchsorted(np.cumsum(sizes[begin:]), BATCH_BYTES, "right")), 1)
        if sizes[begin] > MAX_DOCUMENT_BYTES:
            yield "row too long"
        else:
            bounded.spend(int(sizes[begin : begin + n_rows].sum()))
            yield from _rows(batch.slice(begin, n_rows))
        begin += n_rows


def _sizes(column: pa.Array) -> NDArray[np.int64]:
    """Approximate bytes of each value as a Python object: ``(values,)``; strings count their bytes,
    all else `VALUE_BYTES`.
    """
    kind = column.type
    if pa.types.is_struct(kind):
        return _added((_sizes(part) for part in column.flatten()), len(column)) + VALUE_BYTES
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _sizes_of_lists(column)
    if pa.types.is_dictionary(kind):
        lengths: NDArray[np.int64] = np.append(_lengths(column.dictionary), 0)
        places = pc.fill_null(pc.cast(column.indices, pa.int64()), len(lengths) - 1)
        found: NDArray[np.int64] = lengths[places.to_numpy(zero_copy_only=False)]
        return found
    return _lengths(column)


def _sizes_of_lists(column: pa.Array) -> NDArray[np.int64]:
    offsets = column.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    parts = (column.keys, column.items) if pa.types.is_map(column.type) else (column.values,)
    items = _added((_sizes(part.slice(first, last - first)) for part in parts), last - first)
    until: NDArray[np.int64] = np.concatenate([[0], np.cumsum(items)])
    sizes: NDArray[np.int64] = until[offsets[1:] - first] - until[offsets[:-1] - first]
    return sizes + VALUE_BYTES


def _added(parts: Iterable[NDArray[np.int64]], n_values: int) -> NDArray[np.int64]:
    total = np.zeros(n_values, np.int64)
    for part in parts:
        total += part
    return total


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    try:
        lengths = pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0)
    except pa.ArrowNotImplementedError:  # no strings
        return np.full(len(column), VALUE_BYTES, np.int64)
    found: NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False) + VALUE_BYTES
    return found


def _most_rows(n_rows: int, n_bytes: int) -> int:
    return min(max(BATCH_BYTES // (n_bytes // max(n_rows, 1) + 1), 1), BATCH_ROWS)


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


def _document(
    record: dict[str, Any] | str,
    place: str,
    field: str,
    max_document_bytes: int,
    id_field: str | None,
) -> CorpusDocument | str:
    """The document of a row, or the reason for none."""
    if isinstance(record, str):
        return record
    text = record.pop(field)
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError:
            return "not UTF-8"
    if not isinstance(text, str):
        return "no text"
    if len(text) > max_document_bytes:
        return "text too long"
    return document_of(
        record,
        text=text,
        text_field=field,
        place=place,
        rest=msgspec.Raw(_ENCODER.encode(record)),
        id_field=id_field,
    )
