"""Writing a table line by line, or by columns, in row groups of bounded size."""

from collections.abc import Sequence
from itertools import repeat
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


class TableWriter:
    """Writes one table in row groups of bounded size; see `lc_assets.builds.tables.writing_table`.

    Memory is bounded by ``group_bytes`` and one line, not by the table.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, group_bytes: int = GROUP_BYTES) -> None:
        self._schema = schema
        # No dictionary of texts, which would be a page of a whole row group: books are read in a
        # seventh less time. Every 64 texts the writer looks whether a page is full.
        others = [name for name in schema.names if name != "raw_content"]
        pages: dict[str, Any] = {"use_dictionary": others, "write_batch_size": 64}
        how = {"write_statistics": False} | (pages if len(others) < len(schema.names) else {})
        self._writer = pq.ParquetWriter(path, schema, compression=COMPRESSION, **how)
        self._group_bytes = group_bytes
        self._names: list[str] = schema.names
        self._lines: list[tuple[Any, ...]] = []
        self._n_bytes = 0

    def add(self, line: dict[str, Any], *, n_bytes: int = 256) -> None:
        """Add one line, which is emptied; a text may be given in UTF-8. ``n_bytes`` is about how
        much memory it takes.
        """
        held = [tuple(map(line.get, self._names))]
        line.clear()
        self._append(held.pop(), n_bytes)

    def extend(self, columns: dict[str, Sequence[Any]], n_bytes: Sequence[int]) -> None:
        """Add lines by columns, which are emptied; the others are null. See `add`."""
        found = [columns.get(name, repeat(None)) for name in self._names]
        lines = [line for *line, _ in zip(*found, n_bytes, strict=False)][::-1]
        found.clear()
        columns.clear()
        for n in n_bytes:
            self._append(tuple(lines.pop()), n)

    def _append(self, line: tuple[Any, ...], n_bytes: int) -> None:
        self._lines.append(line)
        del line
        self._n_bytes += n_bytes
        if self._n_bytes >= self._group_bytes:
            self._flush()

    def write(self, table: pa.Table) -> None:
        """Write many lines at once, after those added so far, as a row group of their own."""
        self._flush()
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._lines:
            columns = list(zip(*self._lines, strict=True))[::-1]
            self._lines, self._n_bytes = [], 0
            arrays = [pa.array(columns.pop(), field.type) for field in self._schema]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
