"""Writing a table line by line, or by columns, in row groups of bounded size."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

COMPRESSION = "zstd"
"""At Arrow's level, 1. Of texts, lz4 takes 0.8 of the time and 1.5 times the space, levels -1 to -5
0.8 to 1.2 and 1.4 to 1.7; reading is 0.06 to 0.02 CPU-seconds faster for 88 MB.
"""
GROUP_BYTES = 32 << 20
"""Bytes of lines with which a row group ends: what is more is one document's."""

LINE_BYTES = 256
"""Of memory, about, that a line without a text takes."""


Watch = Callable[[pa.Table], None]
WATCHER: ContextVar[Callable[[Path], Watch | None] | None] = ContextVar("WATCHER", default=None)
"""Says of the path of a table that is begun what gets its row groups too, if anything."""


class TableWriter:
    """Writes one table in row groups of bounded size; see `lc_assets.builds.tables.writing_table`.

    Memory is bounded by ``group_bytes`` and one line, not by the table.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        group_bytes: int = GROUP_BYTES,
        compression: str = COMPRESSION,
    ) -> None:
        self._schema = schema
        # No dictionary of texts, which would be a page of a whole row group: books are read in a
        # seventh less time. Every 64 texts the writer looks whether a page is full.
        others = [name for name in schema.names if name != "raw_content"]
        pages: dict[str, Any] = {"use_dictionary": others, "write_batch_size": 64}
        how = {"write_statistics": False} | (pages if len(others) < len(schema.names) else {})
        self._writer = pq.ParquetWriter(path, schema, compression=compression, **how)
        self._group_bytes = group_bytes
        watcher = WATCHER.get()
        self._watch = watcher(path) if watcher else None
        self._names: list[str] = schema.names
        self._columns: list[list[Any]] = [[] for _ in schema]
        self._n_bytes = 0

    def add(self, line: dict[str, Any], *, n_bytes: int = LINE_BYTES) -> None:
        """Add one line, which is emptied; a text may be given in UTF-8. ``n_bytes`` is about how
        much memory it takes.
        """
        for name, column in zip(self._names, self._columns, strict=True):
            column.append(line.get(name))
        line.clear()
        self._count(n_bytes)

    def extend(self, columns: dict[str, list[Any]], n_bytes: Sequence[int]) -> None:
        """Add lines by columns, which are emptied; the others are null. See `add`."""
        found = [columns.get(name) or [None] * len(n_bytes) for name in self._names]
        columns.clear()
        begin = 0
        for end, n in enumerate(n_bytes, 1):
            if self._n_bytes + n >= self._group_bytes or end == len(n_bytes):
                for column, more in zip(self._columns, found, strict=True):
                    column.extend(more[: end - begin])
                    del more[: end - begin]
                begin = end
            self._count(n)

    def _count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if self._n_bytes >= self._group_bytes:
            self._flush()

    def write(self, table: pa.Table) -> None:
        """Write many lines at once, after those added so far, as a row group of their own."""
        self._flush()
        self._write(table)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._columns[0]:
            columns, self._columns = self._columns[::-1], [[] for _ in self._schema]
            self._n_bytes = 0
            arrays = [_array(columns.pop(), field.type) for field in self._schema]
            self._write(pa.Table.from_arrays(arrays, schema=self._schema))

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table)
        if self._watch is not None:
            self._watch(table)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column; of strings given in UTF-8, this takes a third of `pyarrow.array`'s time."""
    if kind != pa.string():
        return pa.array(values, kind)
    found = pa.array(values, pa.binary()).view(kind)
    found.validate(full=True)
    return found
