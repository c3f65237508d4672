"""Why each document of a shard fails, in columns, and the table of the documents that are
dropped for it.

Nearly all documents are dropped, by signals that are known before their text is read. So nothing is
built for one document alone: reasons and values of a whole shard lie in two arrays, and a table of
dropped documents is cut out of them. (One dictionary per document took as long as decompressing and
splitting the file.)

Here: the arrays and the table. Not here: the rules (`lc_assets.text.rules.rules`), reading files
    (`filtering`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.tables import DROPPED
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.text.rules.rules import Complaint, RuleSet, judge_columns

UNREADABLE, TOO_LONG, NO_SIGNALS, OTHER_URL = range(-4, 0)
"""Fates that no signal decides. They count from the end, where their reasons are."""
WORDS_OF_OTHERS: Final = (
    "unreadable line",
    "line too long",
    "no signals",
    "signals of another url",
)
DUPLICATE: Final = "duplicate"

DROPPED_AT_ONCE = 1 << 17
"""Dropped documents in one table, and so in one row group: some 32 MiB."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """The fates of a shard's documents, and the reasons that each fate is made of.

    A fate is a row of ``table``; or after these, one of those added by `and_later`; or one of
    `UNREADABLE`, `TOO_LONG`, `NO_SIGNALS` and `OTHER_URL` (the id says that signals and document
    belong together, the addresses in them say that they do not).

    Attributes:
        table: signals of the documents that have any.
        names: of the reasons, in the order that decides which is a document's first.
        starts: int64, by fate: where its reasons begin.
        counts: int64, by fate: how many reasons it has.
        reasons: int64, numbers into ``names``, fate after fate.
        values: float64, what was judged, one per entry of ``reasons``.
        fate_of: fate of the document on a line, when it has signals.
        passing: fates of documents that pass.
    """

    table: SignalsTable
    names: tuple[str, ...]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    reasons: NDArray[np.int64]
    values: NDArray[np.float64]
    fate_of: dict[int, int]
    passing: frozenset[int]

    @classmethod
    def of(
        cls,
        table: SignalsTable,
        duplicates: Collection[int],
        rules: RuleSet,
        *,
        max_line_bytes: int,
        later: Sequence[str] = (),
    ) -> Self:
        """Judge all documents of a shard.

        Args:
            table: what the signals say.
            duplicates: lines of the documents that were seen elsewhere.
            rules: in the order in which they are applied; being a duplicate comes before all of
                them.
            max_line_bytes: what a line that is too long exceeds.
            later: names of the reasons that `and_later` may add.
        """
        lines = table.lines.tolist()
        duplicate = np.fromiter(
            (line in duplicates for line in lines), dtype=bool, count=len(lines)
        )
        fails = np.vstack([duplicate, judge_columns(table.columns, rules)]).T
        judged = np.stack(
            [duplicate.astype(np.float64), *(table.columns[rule.column] for rule in rules.rules)],
            axis=1,
        )
        others = np.arange(len(WORDS_OF_OTHERS)) + fails.shape[1] + len(later)
        counts = np.concatenate([fails.sum(axis=1), np.ones_like(others)])
        return cls(
            table=table,
            names=(DUPLICATE, *(rule.name for rule in rules.rules), *later, *WORDS_OF_OTHERS),
            starts=np.cumsum(counts) - counts,
            counts=counts,
            reasons=np.concatenate([np.nonzero(fails)[1], others]),
            values=np.concatenate([judged[fails], [np.nan, max_line_bytes, np.nan, np.nan]]),
            fate_of=dict(zip(lines, range(len(lines)), strict=True)),
            passing=frozenset(np.flatnonzero(counts == 0).tolist()),
        )

    @property
    def failing(self) -> NDArray[np.int64]:
        """Fates, out of those that signals decide, of documents that fail; ascending, and so are
        their lines.
        """
        found: NDArray[np.int64] = np.flatnonzero(self.counts[: len(self.table.lines)])
        return found

    def with_failing(
        self, n_lines: int, lines: Sequence[int], fates: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Put the documents that fail by their signals, and were not looked at, among those that
        were.

        Args:
            n_lines: of the documents file: signals of lines beyond them are signals of nothing.
            lines: dropped documents that were looked at; ascending, int64.
            fates: of each.

        Returns:
            Lines and fates of all dropped documents, by line; a line that was looked at has the
            fate given.
        """
        fated = self.failing
        fated = fated[self.table.lines[fated] < n_lines]
        fated = fated[~np.isin(self.table.lines[fated], np.array(lines, np.int64))]
        every = np.concatenate([np.array(lines, np.int64), self.table.lines[fated]])
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate([np.array(fates, np.int64), fated])[order]

    def and_later(self, complaints: Sequence[Sequence[Complaint]]) -> Self:
        """The same with a fate more for each of ``complaints``, numbered after the table's rows:
        what reading the text found.
        """
        every = [complaint for found in complaints for complaint in found]
        n_rows, before = len(self.table.lines), self.starts[-len(WORDS_OF_OTHERS)]
        counts = np.insert(
            self.counts, n_rows, np.array([len(found) for found in complaints], np.int64)
        )
        reasons = np.array([self.names.index(complaint.rule) for complaint in every], np.int64)
        values = np.array(
            [np.nan if complaint.value is None else complaint.value for complaint in every],
            np.float64,
        )
        return replace(
            self,
            starts=np.cumsum(counts) - counts,
            counts=counts,
            reasons=np.insert(self.reasons, before, reasons),
            values=np.insert(self.values, before, values),
        )

    def is_duplicate(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of the table are of documents that were seen elsewhere; bool, one per row."""
        found: NDArray[np.bool_] = (self.counts[rows] > 0) & (self.reasons[self.starts[rows]] == 0)
        return found

    def signals(self, line: int) -> dict[str, float]:
        """The judged signals of the document on ``line``."""
        return {
            name: float(column[self.fate_of[line]]) for name, column in self.table.columns.items()
        }

    def url(self, line: int) -> str:
        """Address of the document on ``line`` as its signals have it; empty when there is none."""
        return self.table.urls[self.fate_of[line]] if line in self.fate_of else ""

    def dropped(
        self,
        name_of: Callable[[int], str],
        lines: NDArray[np.int64],
        fates: NDArray[np.int64],
    ) -> Iterator[pa.Table]:
        """The documents on ``lines``, each with a reason against it, as tables of `DROPPED` that
        are small enough to hold; ``name_of`` tells a line's document id.
        """
        for at in range(0, len(lines), DROPPED_AT_ONCE):
            yield self._dropped(
                name_of, lines[at : at + DROPPED_AT_ONCE].tolist(), fates[at : at + DROPPED_AT_ONCE]
            )

    def counted(self, fates: NDArray[np.int64]) -> tuple[dict[str, int], dict[str, int]]:
        """How many documents have each reason first, and how many have it at all; reasons that none
        has are left out.
        """
        first, every = self.reasons[self.starts[fates]], self.reasons[self._entries(fates)]
        return self._by_name(first), self._by_name(every)

    def _dropped(
        self, name_of: Callable[[int], str], lines: list[int], fates: NDArray[np.int64]
    ) -> pa.Table:
        names, starts, every = pa.array(self.names), self.starts[fates], self._entries(fates)
        offsets = pa.array(np.concatenate([[0], np.cumsum(self.counts[fates])]), pa.int32())
        columns = (
            [name_of(line) for line in lines],
            [self.url(line) for line in lines],
            names.take(pa.array(self.reasons[starts])),
            self.values[starts],
            pa.ListArray.from_arrays(offsets, names.take(pa.array(self.reasons[every]))),
            pa.ListArray.from_arrays(offsets, self.values[every]),
        )
        return pa.table(columns, schema=DROPPED)

    def _entries(self, fates: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of the reasons of some fates, fate after fate."""
        counts = self.counts[fates]
        entries: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(
            self.starts[fates] - (np.cumsum(counts) - counts), counts
        )
        return entries

    def _by_name(self, reasons: NDArray[np.int64]) -> dict[str, int]:
        counts = np.bincount(reasons, minlength=len(self.names)).tolist()
        return {name: count for name, count in zip(self.names, counts, strict=True) if count}
