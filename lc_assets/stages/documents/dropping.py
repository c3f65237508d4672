"""The documents of a shard that rules drop, and every reason, in arrays.

No object is built per dropped document: reasons and values are arrays, of which a table is made. (A
dictionary per document took as long as decompressing and splitting the file.)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Booleans, Floats, Int64s
from lc_assets.builds.tables import DROPPED
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.text.rules.rules import RuleSet

DUPLICATE = "duplicate"

Reasons = Sequence[tuple[str, float]]
"""Names of what a document fails by, each with the value that was tested."""


class Part:
    """Documents of a shard that are tested together, with the values that are tested first.

    Attributes:
        table: the values of the documents that have any.
        id_of: maps a line to its document id.
        digest_of: maps the line of a dropped document to its digest.
        n_lines: lines read so far.
        row_of: row of the document on a line.
        names: of the reasons, in the order in which a document's first is chosen: being a duplicate
            comes before all rules.
        fails: bool[row, reason], which reasons each row has.
        tested: float64[row, reason], the values that are tested.
        failing: bool[row], which rows have any reason.
    """

    def __init__(
        self,
        table: SignalsTable,
        rules: RuleSet,
        id_of: Callable[[int], str],
        duplicates: Collection[int] = (),
        n_lines: int = 0,
        *,
        digest_of: Callable[[int], str] = lambda _line: "",
    ) -> None:
        tested = [table.columns[rule.column] for rule in rules.rules]
        duplicate = np.isin(table.lines, list(duplicates))
        failed = (rule.fails(values) for rule, values in zip(rules.rules, tested, strict=True))
        self.table, self.id_of, self.n_lines = table, id_of, n_lines
        self.digest_of = digest_of
        self.row_of = {line: row for row, line in enumerate(table.lines.tolist())}
        self.names = (DUPLICATE, *(rule.name for rule in rules.rules))
        self.fails: Booleans = np.stack([duplicate, *failed], axis=1)
        self.tested: Floats = np.stack([duplicate, *tested], axis=1, dtype=np.float64)
        self.failing: Booleans = self.fails.sum(axis=1) > 0

    def url(self, line: int) -> str:
        """Address of the document on a line as its signals have it; empty when there is none."""
        return self.table.urls[self.row_of[line]] if line in self.row_of else ""

    def dropped_rows(self, late: Mapping[int, Reasons]) -> Int64s:
        """Rows that fail by their values and have no ``late`` reasons. Signals of lines beyond
        those read are ignored.
        """
        rows = np.flatnonzero(self.failing)
        lines = self.table.lines[rows]
        return rows[(lines < self.n_lines) & ~np.isin(lines, list(late))]

    def dropped_table(self, late: Mapping[int, Reasons]) -> pa.Table:
        """The documents that fail, by line: a table of `DROPPED`.

        Args:
            late: reasons found while reading documents, by line; they replace reasons from values.
        """
        rows = self.dropped_rows(late)
        at, reasons = np.nonzero(self.fails[rows])
        more = [(line, *reason) for line, found in late.items() for reason in found]
        names = list(dict.fromkeys([*self.names, *(name for _, name, _ in more)]))
        number = {name: i for i, name in enumerate(names)}
        lines = np.append(self.table.lines[rows[at]], np.array([it[0] for it in more], np.int64))
        reasons = np.append(reasons, np.array([number[it[1]] for it in more], np.int64))
        values = np.append(self.tested[rows[at], reasons[: len(at)]], [it[2] for it in more])
        order = np.argsort(lines, kind="stable")
        lines, values = lines[order], values[order]
        named = pa.array(names).take(pa.array(reasons[order]))
        firsts = np.flatnonzero(np.diff(lines, prepend=-1))
        offsets = pa.array(np.append(firsts, len(lines)), pa.int32())
        dropped = lines[firsts].tolist()
        columns = (
            list(map(self.id_of, dropped)),
            list(map(self.url, dropped)),
            list(map(self.digest_of, dropped)),
            named.take(pa.array(firsts)),
            values[firsts],
            pa.ListArray.from_arrays(offsets, named),
            pa.ListArray.from_arrays(offsets, values),
        )
        return pa.table(columns, schema=DROPPED)


def reason_counts(reasons: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    """How often each reason occurs."""
    return {line["values"]: line["counts"] for line in reasons.value_counts().to_pylist()}


def dropped_line(
    line: Mapping[str, Any], reason: str, value: float | None = None
) -> dict[str, Any]:
    """A line of `DROPPED` for a document with one reason."""
    known = {name: line[name] for name in ("id", "url", "digest")}
    return known | {"reason": reason, "value": value, "reasons": [reason], "values": [value]}
