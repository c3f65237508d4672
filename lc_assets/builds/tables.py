"""The tables that stages publish: schemas, constraints, reading and writing.

A table is Parquet; a snapshot's table is one file per shard. Schemas are pandera's with pyarrow
types, so tables are checked as stored; text columns are never materialised for a check.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.table_writer import COMPRESSION, GROUP_BYTES, TableWriter
from lc_assets.errors import CorruptFile
from lc_assets.execution.containment import at_document
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.opening import batches_of, release, require_sound_footer
from lc_assets.formats.unpacking import require_small
from lc_assets.publishing import publish

Line: TypeAlias = dict[str, Any]
"""A line of a table, by column."""
_FEW_LINES = 1 << 10
MANIFEST = pa.schema(
    {
        "shard": "string",
        "part": "string",
        "path": "string",
        "n_bytes": "int64",
        "identity": "string",
    }
)
"""`raw_snapshot`: a line per file; ``n_bytes`` and ``identity`` are null where it is missing."""

IDENTITY = dict.fromkeys(
    ("id", "url", "digest", "source_domain", "cc_segment", "language", "bucket"), "string"
)
"""Identity of a document, carried from `filtered_documents` to `token_grid`."""

FILTERED = pa.schema(IDENTITY | dict.fromkeys(("date_download", "title", "raw_content"), "string"))
"""`filtered_documents`: documents that passed the filter, followed by a float64 column per tested
signal.
"""

DROPPED = pa.schema(
    {
        "id": "string",
        "url": "string",
        "digest": "string",
        "reason": "string",
        "value": "float64",
        "reasons": pa.list_(pa.string()),
        "values": pa.list_(pa.float64()),
    }
)
"""Documents that were dropped, without their text: the first reason, and all reasons with their
values. ``digest`` is the page's, or the text's where none is stated.
"""

KEYED = pa.schema(
    IDENTITY | dict.fromkeys(("text_digest", "tokenized_digest", "date_download"), "string")
)
"""`document_keys`: identity of each filtered document, digests of its text as it is and as it is
tokenized, its date, and a float64 column per tested value.
"""

WITHDRAWN = pa.schema(
    {
        "id": "string",
        "how": "string",
        "for_id": "string",
        "similarity": "float64",
        "entry": "int64",
        **dict.fromkeys(("kind", "value", "reason", "date"), "string"),
    }
)
"""`withdrawn_documents`: documents that must not be served: listed, or of the same content as the
listed ``for_id``, and by which entry.
"""

REMEMBERED = pa.schema(
    {
        **dict.fromkeys(("id", "url", "digest", "text_digest", "how"), "string"),
        **dict.fromkeys(("kind", "value", "reason", "date"), "string"),
    }
)
"""`withdrawn_documents`: every content that was ever withdrawn, by the id it had, and the entry
that withdrew it; ``digest`` as in `DROPPED`.
"""

SWEEP = pa.schema(
    {
        "rule": "string",
        "bound": "string",
        "threshold": "float64",
        "in_force": "bool",
        "kept_alone": "int64",
        "kept_with_the_others": "int64",
    }
)
"""`filtered_documents`: how many documents of a shard each threshold would keep; null where that
would need text that was not read.
"""

TOKENIZED = pa.schema(
    {
        **IDENTITY,
        "tokenized_digest": "string",
        **dict.fromkeys(("document", "n_tokens", "n_chars", "n_bytes"), "int64"),
    }
)
"""`token_documents`: the documents of a shard's ``.bin``; ``document`` is the index in its
``.idx``, ``tokenized_digest`` that of the text that was tokenized, LongPack's have their root's.
"""

SPANS_FILE = "spans.parquet"

PACKED_SPANS = pa.schema(
    {
        "split": "string",
        "row": "int64",
        "piece": "int64",
        "id": "string",
        "url": "string",
        "digest": "string",
        "tokenized_digest": "string",
        "document_start": "int64",
        "document_stop": "int64",
        "row_start": "int64",
        "row_stop": "int64",
        "n_tokens": "int64",
        "token_shard": "string",
        "document": "int64",
    }
)
"""`packed_rows`: a line per piece, train first, sorted by row and by position in the row.
``n_tokens`` is the document's length without its end-of-text token; if there is one, it is token
``n_tokens``.
"""

ROWS = pa.schema(
    {
        "split": "string",
        "row": "int64",
        **IDENTITY,
        "tokenized_digest": "string",
        "stretch": "int64",
        "shift": "int64",
        "n_tokens": "int64",
        "priority": "uint64",
        "token_shard": "string",
        "document": "int64",
    }
)
"""`token_grid`: row → document and which stretch of it. ``shift`` in the `numpy.roll` sense;
``n_tokens`` as in `token_documents`.
"""


@contextlib.contextmanager
def writing_table(
    path: Path, schema: pa.Schema, compression: str = COMPRESSION
) -> Iterator[TableWriter]:
    """Publish a table that is written line by line, when the block ends without an error."""
    with (
        publish(path) as draft,
        contextlib.closing(TableWriter(draft, schema, compression=compression)) as table,
    ):
        yield table


def write_table(path: Path, table: pa.Table) -> None:
    """Publish a table that fits into memory."""
    with publish(path) as draft:
        pq.write_table(table, draft, compression=COMPRESSION)


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table, or some of its columns.

    Raises:
        CorruptFile: when it is not Parquet or lacks a column; names the file.
    """
    with opened_table(path) as file:
        require_columns(file.schema_arrow, columns, path)
        return whole_table(file, columns)


def whole_table(file: pq.ParquetFile, columns: Sequence[str] | None = None) -> pa.Table:
    """All lines of an open table. Threads read it only where they save more than they cost."""
    table = file.read(columns=columns, use_threads=file.metadata.num_rows > _FEW_LINES)
    table.validate(full=True)  # a damaged page may decompress to bytes that are no text
    return table


def require_columns(found: pa.Schema, wanted: Sequence[str] | None, path: Path) -> None:
    """Refuse a table that lacks a column, which Arrow itself passes over, or that has times: one
    may be a time that Python has not, so no table of ours has any.

    Raises:
        CorruptFile: names the file, and what is missing or not expected.
    """
    missing = [name for name in wanted or () if name not in found.names]
    if missing:
        raise CorruptFile(
            f"{path}: has no column {', '.join(missing)}; its columns are "
            f"{', '.join(found.names)[:200]}"
        )
    if times := [field.name for field in found if pa.types.is_temporal(field.type)]:
        raise CorruptFile(f"{path}: is no table of a lake: {', '.join(times)[:200]} holds times")


def read_schema(path: Path) -> pa.Schema:
    """Columns of a table.

    Raises:
        CorruptFile: when it is not Parquet; names the file.
    """
    with opened_table(path) as file:
        return file.schema_arrow


def count_lines(path: Path) -> int:
    """Number of a table's lines, from its footer.

    Raises:
        CorruptFile: when it is not Parquet; names the file.
    """
    with opened_table(path) as file:
        return int(file.metadata.num_rows)


@contextlib.contextmanager
def opened_table(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a table and check its footer; the data pages are verified by the receipt's digests
    instead.

    Raises:
        CorruptFile: when it is not Parquet, has an impossible footer, or is damaged where it is
            read; names the file.
    """
    with library_errors_as_corrupt_file(path, system_errors_too=True):
        require_sound_footer(path)
        with pq.ParquetFile(path) as file:
            yield file


@contextlib.contextmanager
def mapped_table(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a table for look-ups, without bounds checks: with 80 row groups these take 12 ms, a
    look-up 3 ms.

    Raises:
        CorruptFile: when it is not Parquet, or is damaged where it is read; names the file.
    """
    with (
        library_errors_as_corrupt_file(path, system_errors_too=True),
        pq.ParquetFile(path, memory_map=True) as file,
    ):
        yield file


def read_lines(
    path: Path, columns: Sequence[str] | None = None, *, batch_lines: int = 64, utf8: str = ""
) -> Iterator[Line]:
    """Read a table line by line; see `read_columns`."""
    number = -1
    for found in read_columns(path, columns, batch_lines=batch_lines, utf8=utf8):
        names, values = list(found), [column[::-1] for column in found.values()]
        found.clear()
        while values[0]:
            at_document(number := number + 1)
            yield dict(zip(names, [column.pop() for column in values], strict=True))


def read_columns(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    batch_lines: int | None = None,
    utf8: str = "",
) -> Iterator[dict[str, list[Any]]]:
    """Read a table by columns, a small batch of lines at a time: memory is bounded by
    ``batch_lines`` lines, see `batches_of`, and by a row group. The column ``utf8`` is read as
    bytes. Nothing is kept of what was yielded.

    Raises:
        CorruptFile: as `read_table`.
    """
    with opened_table(path) as file:
        require_columns(file.schema_arrow, columns, path)
        for group in range(file.num_row_groups):  # whose bytes their writer limits
            require_small(file.metadata.row_group(group).total_byte_size - GROUP_BYTES)
            for batch in batches_of(file, group, batch_lines, columns):
                found, n_bytes = [in_utf8(batch, utf8).to_pydict()], batch.nbytes
                del batch  # its bytes are not kept beside a text
                release(n_bytes)
                yield found.pop()


def in_utf8(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """A batch with a column of texts, if it has one of that name, as their UTF-8.

    Raises:
        ArrowInvalid: when they are not UTF-8, which kernels may read beyond its end.
    """
    if name not in batch.schema.names:
        return batch
    batch[name].validate(full=True)
    return batch.set_column(batch.schema.get_field_index(name), name, batch[name].view(pa.binary()))


def read_all(
    paths: Iterable[Path], schema: pa.Schema, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read several shards' tables as one, in the paths' order; none at all is an empty table."""
    names = schema.names if columns is None else list(columns)
    wanted = pa.schema([schema.field(name) for name in names])
    return pa.concat_tables([wanted.empty_table(), *(read_table(path, names) for path in paths)])
