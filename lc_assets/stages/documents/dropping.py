"""The documents of a shard that rules drop, and every reason, in arrays.

No object is built per dropped document: reasons and values are arrays, from which tables are
sliced. (A dictionary per document took as long as decompressing and splitting the file.)
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.tables import DROPPED
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.text.rules.rules import RuleSet, judge_columns

DUPLICATE: Final = "duplicate"
DROPPED_AT_ONCE = 1 << 17
"""Dropped documents in one table, and so in one row group: some 32 MiB."""

Reasons = Sequence[tuple[str, float]]
"""Names of what a document fails by, each with the value that was tested."""


class Part:
    """Documents of a shard that are tested together, with the values that are tested first.

    Attributes:
        table: the values of the documents that have any.
        id_of: maps a line to its document id.
        n_lines: lines read so far.
        n_bytes: their bytes without newlines, except lines that are too long.
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
    ) -> None:
        lines = table.lines.tolist()
        duplicate = np.fromiter((line in duplicates for line in lines), np.bool_, len(lines))
        self.table, self.id_of, self.n_lines, self.n_bytes = table, id_of, n_lines, 0
        self.row_of = dict(zip(lines, range(len(lines)), strict=True))
        self.names = (DUPLICATE, *(rule.name for rule in rules.rules))
        judged = judge_columns(table.columns, rules) if rules.rules else np.empty((0, len(lines)))
        self.fails = np.vstack([duplicate, judged.astype(np.bool_)]).T
        self.tested = np.stack(
            [duplicate.astype(np.float64), *(table.columns[rule.column] for rule in rules.rules)],
            axis=1,
        )
        self.failing: NDArray[np.bool_] = self.fails.sum(axis=1) > 0

    def url(self, line: int) -> str:
        """Address of the document on a line as its signals have it; empty when there is none."""
        return self.table.urls[self.row_of[line]] if line in self.row_of else ""

    def dropped(self, late: dict[int, Reasons]) -> "Dropped":
        """The documents that fail: by their values, or for errors when they were read. Signals of
        lines beyond those read are ignored.

        Args:
            late: reasons found while reading documents, by line; they replace reasons from values.
        """
        rows = np.flatnonzero(self.failing)
        lines = self.table.lines[rows]
        rows = rows[(lines < self.n_lines) & ~np.isin(lines, list(late))]
        every = [reason for reasons in late.values() for reason in reasons]
        more = sorted({name for name, _ in every} - set(self.names))
        names = (*self.names, *more)
        number = {name: at for at, name in enumerate(names)}
        counts = np.concatenate(
            [self.fails[rows].sum(axis=1), np.fromiter(map(len, late.values()), np.int64)]
        )
        lines = np.concatenate([self.table.lines[rows], np.array(list(late), np.int64)])
        return Dropped(
            names=names,
            rows=rows,
            lines=lines,
            order=np.argsort(lines, kind="stable"),
            starts=np.cumsum(counts) - counts,
            counts=counts,
            reasons=np.concatenate(
                [
                    np.nonzero(self.fails[rows])[1],
                    np.array([number[name] for name, _ in every], np.int64),
                ]
            ),
            values=np.concatenate(
                [
                    self.tested[rows][self.fails[rows]],
                    np.array([value for _, value in every], np.float64),
                ]
            ),
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dropped:
    """Dropped documents and their reasons.

    Attributes:
        names: of the reasons.
        rows: of the table of values, of those that fail by their values alone.
        lines: int64, of each document.
        order: int64, the documents by line.
        starts: int64, by document: where its reasons begin.
        counts: int64, by document: how many reasons it has.
        reasons: int64, numbers into ``names``, document after document.
        values: float64, what was tested, one per entry of ``reasons``.
    """

    names: tuple[str, ...]
    rows: NDArray[np.int64]
    lines: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    reasons: NDArray[np.int64]
    values: NDArray[np.float64]

    def counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """Numbers of documents by first reason, and by any reason; unused reasons are omitted."""
        return self._by_name(self.reasons[self.starts]), self._by_name(self.reasons)

    def _by_name(self, reasons: NDArray[np.int64]) -> dict[str, int]:
        counts = np.bincount(reasons, minlength=len(self.names)).tolist()
        return {name: count for name, count in zip(self.names, counts, strict=True) if count}

    def tables(
        self, id_of: Callable[[int], str], url_of: Callable[[int], str]
    ) -> Iterator[pa.Table]:
        """The documents by line, as tables of `DROPPED` that are small enough to hold."""
        names = pa.array(self.names)
        for begin in range(0, len(self.order), DROPPED_AT_ONCE):
            some = self.order[begin : begin + DROPPED_AT_ONCE]
            lines, starts, counts = self.lines[some].tolist(), self.starts[some], self.counts[some]
            ends = np.cumsum(counts)
            entries = np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts)
            offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
            columns = (
                list(map(id_of, lines)),
                list(map(url_of, lines)),
                names.take(pa.array(self.reasons[starts])),
                self.values[starts],
                pa.ListArray.from_arrays(offsets, names.take(pa.array(self.reasons[entries]))),
                pa.ListArray.from_arrays(offsets, self.values[entries]),
            )
            yield pa.table(columns, schema=DROPPED)
