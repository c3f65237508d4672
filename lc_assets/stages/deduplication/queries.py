"""SQL over tables that may be larger than memory: DuckDB with a limit and a scratch folder."""
# ruff: noqa: S608 - names and queries are this package's own, every path is quoted

import atexit
import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Int64s
from lc_assets.builds.stage import CheckResult
from lc_assets.foreign_errors import duckdb_errors_as_lc_errors
from lc_assets.publishing import publish
from lc_assets.records import frozen

MEMORY = 1 << 30
"""Bytes that one connection may take before it spills to disk."""
LINES_AT_ONCE = 1 << 16


@frozen
class Queries:
    """An open connection, which spills to ``scratch``."""

    connection: Any
    scratch: Path

    def do(self, query: str) -> None:
        """Run a statement without a result."""
        self.connection.execute(query)

    def row(self, query: str) -> list[int]:
        """The numbers of the single line that a query returns; 0 for null."""
        return [int(number or 0) for number in self.connection.execute(query).fetchall()[0]]

    def number(self, query: str) -> int:
        """The single number that a query returns."""
        return self.row(query)[0]

    def table(self, query: str) -> pa.Table:
        """The whole result."""
        return self.connection.sql(query).to_arrow_table()

    def numbers(self, query: str) -> Int64s:
        """The first column of the result, ``(n,)`` int64."""
        return np.asarray(self.connection.sql(query).to_arrow_table()[0], np.int64)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The result, `LINES_AT_ONCE` lines at a time."""
        return iter(self.connection.sql(query).to_arrow_reader(LINES_AT_ONCE))

    def lines(self, query: str) -> list[dict[str, Any]]:
        """The whole result, for small ones."""
        return [line for batch in self.batches(query) for line in batch.to_pylist()]

    def publish(self, query: str, path: Path, schema: pa.Schema) -> int:
        """Publish the result as a table; return its number of lines."""
        return publish_batches(path, self.batches(query), schema)

    def publish_parts(self, query: str, paths: Sequence[Path], schema: pa.Schema) -> None:
        """Publish the lines of each part of a result as a table, also of a part without lines; the
        result is ordered by its first column, which numbers the parts and is left out.
        """
        parts = itertools.groupby(self._parts(query), key=lambda part: part[0])
        number, batches = next(parts, (len(paths), iter(())))
        for place, path in enumerate(paths):
            with (
                publish(path) as draft,
                pq.ParquetWriter(draft, schema, compression="zstd") as writer,
            ):
                if place == number:
                    for _, batch in batches:
                        writer.write_batch(batch.cast(schema))
                    number, batches = next(parts, (len(paths), iter(())))

    def _parts(self, query: str) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Consecutive lines of one part, with its number."""
        for batch in self.batches(query):
            numbers = np.asarray(batch.column(0))
            ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
            for start, stop in itertools.pairwise([0, *ends]):
                part = batch.slice(start, stop - start)
                yield int(numbers[start]), part.select(part.schema.names[1:])


def publish_batches(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Publish lines as a table; return their number."""
    n_lines = 0
    with publish(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))
            n_lines += batch.num_rows
    return n_lines


_IDLE: list[Any] = []
"""Databases in memory, to be used again: opening one takes 14 CPU-ms, and a cursor none."""
_OF_PARENT: list[Any] = []
"""Those of the process that this one was forked from, neither used nor closed: their threads are
not in this one.
"""

os.register_at_fork(after_in_child=lambda: _OF_PARENT.append([_IDLE.pop() for _ in _IDLE[:]]))
atexit.register(_IDLE.clear)  # before the interpreter ends: DuckDB complains otherwise


@contextlib.contextmanager
def queries(scratch: Path, memory: int = MEMORY) -> Iterator[Queries]:
    """Open a connection that takes at most ``memory`` bytes and spills to ``scratch``, which is
    removed before and at the end. Its tables are in a file there.
    """
    shutil.rmtree(scratch, ignore_errors=True)  # of a killed run
    scratch.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        cursor = stack.enter_context(_cursor(scratch, memory))
        file = quoted(str(scratch / "tables.duckdb"))
        # The file is never opened again: no log, and no checkpoint at the end.
        cursor.execute(f"ATTACH {file} AS tables (RECOVERY_MODE no_wal_writes); USE tables")
        yield Queries(cursor, scratch)


@contextlib.contextmanager
def _cursor(scratch: Path, memory: int) -> Iterator[Any]:
    """Open a cursor of a database that is used again if it neither failed nor spilled.

    One thread: so the order of unsorted results, and with it every byte, is the same each time.
    """
    import duckdb

    with duckdb_errors_as_lc_errors(scratch), contextlib.ExitStack() as stack:
        database = _IDLE.pop() if _IDLE else duckdb.connect(config={"threads": 1})
        stack.callback(database.close)
        database.execute("PRAGMA disable_checkpoint_on_shutdown")
        database.execute(f"SET memory_limit = '{memory // 10**6}MB'")
        database.execute(f"SET temp_directory = {quoted(str(scratch))}")
        with contextlib.closing(database.cursor()) as cursor:
            yield cursor
        with contextlib.suppress(duckdb.NotImplementedException):  # after it has spilled
            database.execute("DETACH DATABASE IF EXISTS tables; RESET temp_directory")
            stack.pop_all()
            _IDLE.append(database)


Tables = Mapping[str, tuple[Sequence[Path], pa.Schema]]
"""Files and schema of tables, by the name that queries use."""


@contextlib.contextmanager
def queries_over(tables: Tables) -> Iterator[Queries]:
    """Open a cursor with a view of each table; a table without files is empty."""
    scratch = Path(tempfile.gettempdir()) / f"lc-check-{os.getpid()}"
    with _cursor(scratch, MEMORY) as cursor:
        for name, (paths, schema) in tables.items():
            if paths:
                cursor.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {parquet(list(paths))}")
            else:
                cursor.register(name, schema.empty_table())
        yield Queries(cursor, scratch)


def check_by_queries(
    tables: Tables, errors: Mapping[str, str], message: str, value: str = "SELECT 0"
) -> CheckResult:
    """A check that passes if no query for errors returns rows.

    Args:
        tables: that the queries read.
        errors: queries by a description of what they find.
        message: when it passes, formatted with the number that ``value`` returns.
        value: a query.
    """
    numbers = [*(f"SELECT count(*) FROM ({query})" for query in errors.values()), value]
    with queries_over(tables) as database:
        *found_lines, number = database.row(f"SELECT ({'), ('.join(numbers)})")
    counts = dict(zip(errors, found_lines, strict=True))
    found = "; ".join(f"{count:,} {error}" for error, count in counts.items() if count)
    return CheckResult(
        passed=not found, message=found or message.format(number), values=dict(counts)
    )


def quoted(words: str) -> str:
    """A string as an SQL literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + words.replace("'", "''") + "'"


def parquet(paths: Sequence[Path]) -> str:
    """Some Parquet files as a table of a query."""
    return f"read_parquet([{', '.join(quoted(str(path)) for path in paths)}])"
