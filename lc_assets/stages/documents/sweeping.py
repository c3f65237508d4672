"""How many documents each threshold would keep: a small table per shard of `filtered_documents`,
and their sum.

Counted over the documents that have signals and occur in the shard's file. If rules need measures,
most texts are never read, and counts that need them are null: for a bound on a measure alone, and,
with all other rules applied, for a bound on a published signal that is laxer than the current one.

A sweep helps to choose a threshold before documents are tokenized. The grid depends only on the
bound, not on the documents, so counts of shards add up, and the same documents give the same table
for any number of workers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, complaints_about, dropped_files
from lc_assets.build.stage import CheckInput, CheckResult
from lc_assets.build.tables import SWEEP, count_lines, read_table
from lc_assets.publishing import finished
from lc_assets.text.rules.rules import Rule, RuleSet, judge_columns

SWEEP_SUFFIX = ".sweep.parquet"
COUNTS = ("kept_alone", "kept_with_the_others")
KEY = [name for name in SWEEP.names if name not in COUNTS]


BOUNDS: Final = ("at_least", "at_most")

FACTORS: Final = (
    0.0,
    0.1,
    0.25,
    0.5,
    0.7,
    0.8,
    0.9,
    0.95,
    1.0,
    1.05,
    1.1,
    1.25,
    1.5,
    2.0,
    4.0,
    10.0,
)
"""The grid, as multiples of a rule's own bound, which is one of them."""

AROUND_ZERO: Final = (
    -1.0,
    -0.1,
    -0.01,
    -0.001,
    0.0,
    0.001,
    0.01,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    100.0,
    1000.0,
)
"""The grid of a bound that is zero."""

DIGITS: Final = 12
"""Significant digits of a threshold: 0.7 × 0.3 is 0.21."""


@dataclass(frozen=True, slots=True, order=True)
class Swept:
    """One threshold of one bound.

    Attributes:
        rule: the rule's name.
        bound: ``at_least`` or ``at_most``.
        threshold: the value that the bound would have.
        in_force: whether the rule has this very bound now.
    """

    rule: str
    bound: str
    threshold: float
    in_force: bool = field(compare=False)


class Sweep(NamedTuple):
    """What each threshold would keep.

    Attributes:
        thresholds: the tested values, rule by rule, ascending.
        kept_alone: int64, one per threshold: documents that this bound alone would keep.
        kept_with_the_others: int64: documents that it would keep with everything else applied,
            including the rule's other bound.
    """

    thresholds: tuple[Swept, ...]
    kept_alone: NDArray[np.int64]
    kept_with_the_others: NDArray[np.int64]


def sweep_of_part(
    first: RuleSet,
    measured: RuleSet,
    values: Mapping[str, NDArray[np.float64]],
    measures: Mapping[str, NDArray[np.float64]],
    *,
    allowed: NDArray[np.bool_],
) -> pa.Table:
    """The documents that each threshold would keep, as a table of `SWEEP`.

    Args:
        first: rules that are applied to every document.
        measured: rules that are applied to those that pass the first.
        values: float64 of every document, by column of the first rules.
        measures: float64 of those that pass the first rules, by column of the others.
        allowed: bool per document: whether only the first rules can drop it.
    """
    found = _table(sweep(values, first, allowed=allowed), unread=bool(measured.rules))
    if not measured.rules:
        return found
    more = _table(sweep(measures, measured), unread=False)
    at, unknown = SWEEP.get_field_index("kept_alone"), pa.nulls(len(more), pa.int64())
    return pa.concat_tables([found, more.set_column(at, "kept_alone", unknown)])


def _table(swept: Sweep, *, unread: bool) -> pa.Table:
    """A sweep as a table of `SWEEP`; with ``unread`` texts, a threshold laxer than the one in force
    has no count beside the others.
    """
    own = {(at.rule, at.bound): at.threshold for at in swept.thresholds if at.in_force}
    laxer = [
        unread
        and (
            at.threshold < own[at.rule, at.bound]
            if at.bound == "at_least"
            else at.threshold > own[at.rule, at.bound]
        )
        for at in swept.thresholds
    ]
    columns = [[getattr(at, name) for at in swept.thresholds] for name in KEY]
    others = pa.array(swept.kept_with_the_others, mask=np.array(laxer, np.bool_))
    return pa.table([*columns, swept.kept_alone, others], schema=SWEEP)


def sweep_files(folder: Path) -> list[Path]:
    """The sweeps of a version's shards, sorted."""
    return finished(folder.glob(f"*{SWEEP_SUFFIX}"))


def total_sweep(paths: Iterable[Path]) -> pa.Table:
    """The shards' sweeps added up, see `added`.

    Raises:
        CorruptFile: when a table cannot be read.
    """
    return added([read_table(path) for path in paths])


def added(tables: Sequence[pa.Table]) -> pa.Table:
    """Sweeps of the same rules added up, as a table of `SWEEP`; what is not known of one is not
    known of all.
    """
    if not tables:
        return SWEEP.empty_table()
    counts = [
        np.sum([table[name].to_numpy().astype(np.float64) for table in tables], axis=0)
        for name in COUNTS
    ]
    known = [
        pa.array(np.nan_to_num(count).astype(np.int64), mask=np.isnan(count)) for count in counts
    ]
    return pa.table([*(tables[0][name] for name in KEY), *known], schema=SWEEP)


def the_sweeps_meet_the_counts(check_input: CheckInput) -> CheckResult:
    """Every shard has its sweep; it fits its schema, and every threshold in force keeps what was
    kept.
    """
    wanted = {path.name.partition(".")[0]: path for path in dropped_files(check_input.folder)}
    found = {path.name.partition(".")[0]: path for path in sweep_files(check_input.folder)}
    wrong = [f"{name}: has no sweep" for name in sorted(wanted.keys() ^ found.keys())]
    wrong += complaints_about(list(found.values()), SWEEP)
    for name, path in found.items():
        there = count_lines(path.with_name(f"{name}{DOCUMENTS_SUFFIX}"))
        table = read_table(path, ["in_force", "kept_with_the_others"])
        kept = table.filter(table["in_force"])["kept_with_the_others"].to_pylist()
        wrong += [
            f"{name}: a threshold in force keeps {count or 0:,} documents, {there:,} were kept"
            for count in sorted(set(kept))
            if count != there
        ]
    return CheckResult(
        passed=not wrong,
        message=f"{len(found):,} sweeps keep at their own thresholds what was kept"
        if not wrong
        else "; ".join(wrong[:5]),
        values={"sweeps": len(found), "complaints": len(wrong)},
    )


def sweep(
    columns: Mapping[str, NDArray[np.float64]],
    rules: RuleSet,
    *,
    allowed: NDArray[np.bool_] | None = None,
) -> Sweep:
    """Count what each threshold would keep among documents whose values are known.

    Args:
        columns: float64 values by column, shape ``(doc,)`` each; NaN where missing, which no
            threshold keeps.
        rules: the current rules.
        allowed: bool, shape ``(doc,)``: documents that only the rules can drop; by default all. The
            others are dropped for other reasons under any threshold.

    >>> from lc_assets.text.rules.rules import long_enough
    >>> words = {"rps_doc_word_count": np.array([500.0, 1000.0, 2000.0])}
    >>> swept = sweep(words, RuleSet("length", (long_enough(1000),)))
    >>> [int(at.threshold) for at in swept.thresholds[7:13]], swept.kept_alone[7:13].tolist()
    ([950, 1000, 1050, 1100, 1250, 1500], [2, 2, 1, 1, 1, 1])

    Raises:
        BadInput: as `lc_assets.text.rules.rules.judge_columns`.
    """
    complaints = judge_columns(columns, rules)
    n_documents = complaints.shape[1]
    speaks = np.count_nonzero(complaints, axis=0)
    allowed = np.ones(n_documents, np.bool_) if allowed is None else allowed
    thresholds: list[Swept] = []
    alone: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    others: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for rule, complains in zip(rules.rules, complaints, strict=True):
        values = columns.get(rule.column, np.full(n_documents, np.nan))
        only_this = allowed & (speaks == complains)
        for bound in BOUNDS:
            swept = _grid(rule, bound)
            grid = np.array([at.threshold for at in swept])
            within = values <= rule.highest if bound == "at_least" else values >= rule.lowest
            thresholds += swept
            alone.append(_kept(values[~np.isnan(values)], grid, bound))
            others.append(_kept(values[only_this & within], grid, bound))
    return Sweep(tuple(thresholds), np.concatenate(alone), np.concatenate(others))


def rounded(threshold: float) -> float:
    """A threshold as the grid has it.

    >>> rounded(0.7 * 0.3)
    0.21
    """
    return float(f"{threshold:.{DIGITS}g}")


def _grid(rule: Rule, bound: str) -> list[Swept]:
    """The thresholds of one bound of a rule, ascending; none when it has no such bound."""
    own: float | None = getattr(rule, bound)
    if own is None:
        return []
    values = (
        sorted({rounded(own * factor) for factor in FACTORS if factor != 1} | {own})
        if own
        else list(AROUND_ZERO)
    )
    return [Swept(rule.name, bound, value, in_force=value == own) for value in values]


def _kept(values: NDArray[np.float64], grid: NDArray[np.float64], bound: str) -> NDArray[np.int64]:
    """Number of values that pass each threshold; int64, one per threshold. One look-up per value,
    for any grid.
    """
    if bound == "at_least":  # a value passes the thresholds up to itself
        reached = np.bincount(np.searchsorted(grid, values, "right"), minlength=len(grid) + 1)
        return np.asarray(len(values) - np.cumsum(reached)[:-1], dtype=np.int64)
    passed_from = np.bincount(np.searchsorted(grid, values, "left"), minlength=len(grid) + 1)
    return np.asarray(np.cumsum(passed_from)[:-1], dtype=np.int64)
