"""Look-ups of single lines in large tables, in a millisecond: only the needed row groups of Parquet
with small row groups are read.

A footer of 80 row groups is decoded in 0.2 ms and a group of 1,024 lines of `tables.ROWS` in 1.2;
as one group, 79,000 lines take 30. On the disk small groups cost nothing: the table is 1 % larger.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets import arrow_compute as pc
from lc_assets.arrays import UInt32s, UInt64s
from lc_assets.builds.table_writer import COMPRESSION
from lc_assets.builds.tables import (
    Line,
    mapped_table,
    opened_table,
    read_table,
    require_columns,
)
from lc_assets.errors import CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import LocalExecutor
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.records import frozen
from lc_assets.text.links.addresses import (
    KeysOfPart,
    Kind,
    domains_above,
    host_of,
    keys_of,
    keys_of_columns,
    merged_keys,
    normal,
    values_of,
)

GROUP_LINES = 1024
LINES_AT_ONCE = 1 << 14
GROUPS_AT_ONCE = LINES_AT_ONCE // GROUP_LINES
HERE = LocalExecutor()


def write_in_groups(path: Path, table: pa.Table) -> None:
    """Publish a table in small row groups, for look-ups of single lines."""
    write_parts_in_groups(path, [table], table.schema)


def write_parts_in_groups(path: Path, parts: Iterable[pa.Table], schema: pa.Schema) -> int:
    """As `write_in_groups`, for a table given in parts, with a few row groups in memory at a time.
    Return its number of lines.
    """
    n_lines = 0
    with (
        publish(path) as draft,
        pq.ParquetWriter(draft, schema, compression=COMPRESSION, write_statistics=False) as writer,
    ):
        for table in regrouped(parts, GROUP_LINES):
            writer.write_table(table, row_group_size=GROUP_LINES)
            n_lines += table.num_rows
        if not n_lines:
            writer.write_table(schema.empty_table())
    return n_lines


def regrouped(parts: Iterable[pa.Table], n_lines: int) -> Iterator[pa.Table]:
    """The same lines in tables of ``n_lines`` each, except the last.

    >>> parts = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [4, 5]})]
    >>> [table["a"].to_pylist() for table in regrouped(parts, 2)]
    [[1, 2], [3, 4], [5]]
    """
    waiting, n_waiting = list[pa.Table](), 0
    for part in parts:
        waiting.append(part)
        n_waiting += part.num_rows
        if n_waiting >= n_lines:
            table = pa.concat_tables(waiting)
            whole = n_waiting - n_waiting % n_lines
            yield from (
                table.slice(start, n_lines).combine_chunks() for start in range(0, whole, n_lines)
            )
            waiting, n_waiting = [table.slice(whole)], n_waiting - whole
    if n_waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def read_some(path: Path, lines: Iterable[int], columns: Sequence[str] | None = None) -> list[Line]:
    """Rows of a table by 0-based number, in the order given; works with row groups of any size.

    Raises:
        CorruptFile: when it is not Parquet, or lacks the row or column; names the file.
    """
    wanted = list(lines)
    if not wanted:
        return []
    with mapped_table(path) as file:
        require_columns(file.schema_arrow, columns, path)
        if not 0 <= min(wanted) <= max(wanted) < file.metadata.num_rows:
            raise CorruptFile(
                f"{path}: {file.metadata.num_rows:,} lines; searched for line {max(wanted):,}"
            )
        begins = [
            0,
            *accumulate(
                file.metadata.row_group(group).num_rows
                for group in range(file.metadata.num_row_groups)
            ),
        ]
        found: dict[int, Line] = {}
        for group in sorted({bisect_right(begins, line) - 1 for line in wanted}):
            table = file.read_row_group(group, columns=columns, use_threads=False)
            ours = sorted({line for line in wanted if begins[group] <= line < begins[group + 1]})
            picked = table.take(pa.array([line - begins[group] for line in ours]))
            found |= dict(zip(ours, picked.to_pylist(), strict=True))
    return [found[line] for line in wanted]


def write_keyed(
    path: Path,
    index: Path,
    parts: Iterable[pa.Table],
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    executor: Executor = HERE,
) -> int:
    """Publish a table given in parts, and its lines' keys for a `KeyedTable`; return how many keys
    there are. ``columns`` are those that keys are made of, by an executor's workers.
    """
    write_parts_in_groups(path, parts, schema)
    keys, places = keys_in(path, columns, executor)
    write_key_index(index, keys, places)
    return len(keys)


def keys_in(
    path: Path, columns: Sequence[str], executor: Executor = HERE, *, every: int = 1
) -> tuple[UInt64s, UInt32s]:
    """All keys of a table's lines, or of every so many of one that `write_in_groups` wrote; uint64,
    and the line each is of, uint32; ascending by key, then by line. An executor's workers make
    them.
    """
    with opened_table(path) as file:
        tasks = range(0, file.num_row_groups, GROUPS_AT_ONCE)
    make = partial(_keys_of_groups, path, columns, every)
    found = dict(executor.run(make, tasks, what=""))
    keys, places = merged_keys(found[task] for task in tasks)
    return keys, places * np.uint32(every)


def _keys_of_groups(path: Path, columns: Sequence[str], every: int, first: int) -> KeysOfPart:
    with opened_table(path) as file:
        groups = range(file.num_row_groups)[first : first + GROUPS_AT_ONCE]
        table = file.read_row_groups(groups, columns=list(columns), use_threads=False)
    table.validate(full=True)
    some = table.take(pa.array(range(0, len(table), every), pa.int64()))
    return keys_of_columns({name: some[name].to_pylist() for name in columns})


def parts_of(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The lines of a table, some at a time.

    Raises:
        CorruptFile: when it is not Parquet, or lacks a column; names the file.
    """
    with opened_table(path) as file:
        require_columns(file.schema_arrow, columns, path)
        for batch in file.iter_batches(LINES_AT_ONCE, columns=list(columns)):
            batch.validate(full=True)
            yield pa.Table.from_batches([batch])


@frozen
class KeyedTable:
    """A table and its index.

    Attributes:
        path: of the table: its lines have ``id``, ``url`` and perhaps digests.
        index: of its lines' keys.
    """

    path: Path
    index: KeyIndex

    @classmethod
    def of(cls, version: Published, file: str, index: str) -> Self:
        """A version's table of a name, and its index of a name."""
        return cls(version.only(file) / file, KeyIndex(version.only(f"{index}_*.npy") / index))

    def find(self, kind: Kind, value: str) -> list[Line]:
        """Lines of the documents that are found by a value, in their order; each has been compared
        with it.

        Raises:
            CorruptFile: when the index or its table is damaged.
        """
        return [line for _, line in self.find_all([(kind, normal(kind, value))])]

    def find_all(self, wanted: Sequence[tuple[Kind, str]]) -> Iterator[tuple[int, Line]]:
        """Lines that are found by any of some normal values, each with the number of the value; by
        value, then in their order.

        Raises:
            CorruptFile: when the index or its table is damaged.
        """
        keys = np.array([keys_of(kind, [value])[0] for kind, value in wanted], np.uint64)
        which, places = self.index.places_of_all(keys)
        lines = read_some(self.path, places.tolist())
        for number, line in zip(which.tolist(), lines, strict=True):
            kind, value = wanted[number]
            if value in values_of(kind, line):
                yield number, line


@frozen
class ScannedTable:
    """A table without an index, which is read whole.

    Attributes:
        path: of the table: its lines have ``id``, ``url`` and ``digest``.
        columns: the columns to read, including these three.
    """

    path: Path
    columns: Sequence[str] = ("id", "url", "digest")

    def find(self, kind: Kind, value: str) -> list[Line]:
        """See `KeyedTable.find`."""
        return [line for _, line in self.find_all([(kind, normal(kind, value))])]

    def find_all(self, wanted: Sequence[tuple[Kind, str]]) -> list[tuple[int, Line]]:
        """See `KeyedTable.find_all`."""
        table = read_table(self.path, self.columns)
        hits = lines_found(table, wanted)
        lines = table.take(pa.array([line for _, line in hits], pa.int64())).to_pylist()
        return [(number, line) for (number, _), line in zip(hits, lines, strict=True)]


def lines_found(table: pa.Table, wanted: Sequence[tuple[Kind, str]]) -> list[tuple[int, int]]:
    """Which lines of a table, by number, are found by any of some normal values, by number too;
    ascending by the latter. The table has ``id``, ``url``, ``digest`` and perhaps ``text_digest``.
    """
    numbers: dict[Kind, dict[str, int]] = {}
    for number, (kind, value) in enumerate(wanted):
        numbers.setdefault(kind, {})[value] = number
    places = pc.indices_nonzero(_may_be_found(table, numbers))
    names = [name for name in DESCRIBED if name in table.column_names]
    lines = table.select(names).take(places)
    return sorted(
        (of_kind[value], place)
        for place, line in zip(places.to_pylist(), lines.to_pylist(), strict=True)
        for kind, of_kind in numbers.items()
        for value in values_of(kind, line)
        if value in of_kind
    )


DESCRIBED = ("id", "url", "digest", "text_digest")
"""What a document is found by."""
_HOST = r"(?s)^([^/?#\\]*[/\\]+[^/?#\\]*).*"
"""The beginning of an address that its host is read from."""


def _may_be_found(table: pa.Table, wanted: Mapping[Kind, Collection[str]]) -> pa.ChunkedArray:
    """Which lines of a table have an id or digest that is wanted, or a host of such a domain or
    address. Each host is read once, as reading an address takes longer than all else.
    """
    found = pc.is_in(table["id"], pa.array(wanted.get("document", ()), pa.string()))
    digests = pa.array(wanted.get("digest", ()), pa.string())
    for name in {*DESCRIBED[2:]}.intersection(table.column_names):
        found = pc.or_kleene(found, pc.is_in(table[name], digests))
    hosts = {domains_above(host_of(address))[:1] for address in wanted.get("url", ())}
    if () in hosts:
        return pc.is_valid(table["id"])  # an address without a host may be written anyhow
    domains = {*wanted.get("domain", ()), *(name for names in hosts for name in names)}
    if not domains:
        return found
    beginnings = pc.replace_substring_regex(table["url"], _HOST, r"\1").dictionary_encode()
    known = {
        beginning
        for chunk in beginnings.chunks
        for beginning in chunk.dictionary.to_pylist()
        if not domains.isdisjoint(domains_above(host_of(beginning)))
    }
    return pc.or_kleene(found, pc.is_in(beginnings, pa.array(known, pa.string())))


def lines_where(path: Path, condition: Any) -> list[Line]:
    """Lines of a table that fulfil an Arrow expression.

    Raises:
        CorruptFile: when it is not readable; names the file.
    """
    # Imports pandas, which takes a second.
    import pyarrow.dataset

    with library_errors_as_corrupt_file(path, system_errors_too=True):
        lines: list[Line] = (
            pyarrow.dataset.dataset(path, format="parquet").to_table(filter=condition).to_pylist()
        )
    return lines
