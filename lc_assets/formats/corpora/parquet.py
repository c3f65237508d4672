"""Documents out of Parquet files.

Rows are read in batches of about `BATCH_BYTES` by the file's own word, and of `BATCH_ROWS` at most, because that word
may be wrong. Memory is bounded by a batch and the compressed column chunks of one row group.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import damage_said_plainly, name_of_places
from lc_assets.formats.corpora.json_lines import document_of, text_field_of
from lc_assets.formats.corpora.records import CorpusDocument, Unread

BATCH_BYTES: Final = 16 << 20
BATCH_ROWS: Final = 256

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def read_parquet(path: Path, *, text_field: str | None, max_document_bytes: int) -> Iterator[CorpusDocument | Unread]:
    """Yield the documents of a Parquet file; see `lc_assets.formats.corpora.reading.read_corpus`.

    Raises:
        BadInput: when it has no column for the text.
    """
    with damage_said_plainly(path), pq.ParquetFile(path, pre_buffer=False) as file:
        field = text_field_of(file.schema_arrow.names, text_field)
        if field not in file.schema_arrow.names:
            raise BadInput(f"{path}: has no column {field}; its columns are {', '.join(file.schema_arrow.names)[:200]}")
        places = name_of_places(path)
        for number, record in enumerate(_records(file)):
            found = _document(record, f"{places}/{number}", field, max_document_bytes)
            yield Unread(id=f"{places}/{number}", where=f"{path}, row {number}", why=found) if isinstance(found, str) else found


def parquet_rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Yield each row of a file; in place of one that cannot be read, say why.

    Raises:
        CorruptFile: when it is no Parquet, or damaged.
    """
    with damage_said_plainly(path), pq.ParquetFile(path, pre_buffer=False) as file:
        yield from _records(file)


def _records(file: pq.ParquetFile) -> Iterator[dict[str, Any] | str]:
    """Each row, or why it cannot be read."""
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group)
        for batch in file.iter_batches(_most_rows(size.num_rows, size.total_byte_size), row_groups=[group]):
            yield from _rows(batch)


def _most_rows(n_rows: int, n_bytes: int) -> int:
    return min(max(BATCH_BYTES // (n_bytes // max(n_rows, 1) + 1), 1), BATCH_ROWS)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any] | str]:
    try:
        found: list[dict[str, Any] | str] = batch.to_pylist()
    except (UnicodeDecodeError, OverflowError, ValueError, KeyError) as error:  # the last for a time zone that nobody knows
        if batch.num_rows == 1:
            return ["not UTF-8" if isinstance(error, UnicodeDecodeError) else "a value that Python does not have"]
        return [row for place in range(batch.num_rows) for row in _rows(batch.slice(place, 1))]
    return found


def _document(record: dict[str, Any] | str, place: str, field: str, max_document_bytes: int) -> CorpusDocument | str:
    """The document of a row, or why there is none."""
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
    return document_of(record, text=text, text_field=field, place=place, rest=msgspec.Raw(_ENCODER.encode(record)))
