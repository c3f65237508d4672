"""Questions to tables that may be larger than memory: DuckDB with a limit, and a scratch folder
that goes with it.
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets.foreign_errors import duckdb_errors_as_lc_errors
from lc_assets.publishing import publish

LINES_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Queries:
    """An open connection, which spills to ``scratch``."""

    connection: Any
    scratch: Path

    def do(self, query: str) -> None:
        """Run a statement that answers nothing."""
        with duckdb_errors_as_lc_errors(self.scratch):
            self.connection.execute(query)

    def number(self, query: str) -> int:
        """The one number that a query answers."""
        with duckdb_errors_as_lc_errors(self.scratch):
            return int(self.connection.execute(query).fetchall()[0][0] or 0)

    def numbers(self, query: str) -> NDArray[np.int64]:
        """The first column of the answer, ``(n,)`` int64."""
        return np.concatenate(
            [
                np.empty(0, np.int64),
                *(np.asarray(batch.column(0), dtype=np.int64) for batch in self.batches(query)),
            ]
        )

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The answer, some `LINES_AT_ONCE` lines at a time."""
        with duckdb_errors_as_lc_errors(self.scratch):
            yield from self.connection.sql(query).to_arrow_reader(LINES_AT_ONCE)

    def lines(self, query: str) -> list[dict[str, Any]]:
        """The answer as a whole, for small ones."""
        return [line for batch in self.batches(query) for line in batch.to_pylist()]

    def publish(self, query: str, path: Path, schema: pa.Schema) -> int:
        """Publish the answer as a table; return its number of lines."""
        n_lines = 0
        with publish(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for batch in self.batches(query):
                writer.write_batch(batch.cast(schema))
                n_lines += batch.num_rows
        return n_lines


@contextlib.contextmanager
def queries(scratch: Path, memory: int) -> Iterator[Queries]:
    """Open a connection that holds at most ``memory`` bytes and spills to ``scratch``, which is
    removed in the end.

    One thread: so the order of what is not sorted, and with it every byte, is the same each time.
    """
    # Takes a tenth of a second, which a reader of tables need not pay.
    import duckdb

    scratch.mkdir(parents=True, exist_ok=True)
    with duckdb_errors_as_lc_errors(scratch), contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        connection = stack.enter_context(
            contextlib.closing(duckdb.connect(str(scratch / "tables.duckdb")))
        )
        for setting, value in (
            ("memory_limit", f"'{memory // 10**6}MB'"),
            ("temp_directory", quoted(str(scratch))),
            ("threads", "1"),
        ):
            connection.execute(f"SET {setting} = {value}")
        yield Queries(connection, scratch)


def quoted(words: str) -> str:
    """A string as SQL writes it.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + words.replace("'", "''") + "'"


def parquet(paths: list[Path]) -> str:
    """Some Parquet files as a table of a query."""
    return f"read_parquet([{', '.join(quoted(str(path)) for path in paths)}])"
