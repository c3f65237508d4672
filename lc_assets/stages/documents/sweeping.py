"""How many documents each threshold would keep: a small table per shard of `filtered_documents`,
and their sum.

Counted over the documents that have signals and occur in the shard's file. If rules need measures,
most texts are never read, and counts that need them are null: for a bound on a measure alone, and,
with all other rules applied, for a bound on a published signal that is laxer than the current one.

A sweep helps to choose a threshold before documents are tokenized. The grid depends only on the
bound, not on the documents, so counts of shards add up, and the same documents give the same table
for any number of workers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Booleans, Floats, Int64s
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import shard_tables
from lc_assets.builds.stage import CheckInput, CheckResult
from lc_assets.builds.table_checks import checked_columns, complaints_about, misfits
from lc_assets.builds.tables import SWEEP, read_table
from lc_assets.publishing import finished
from lc_assets.text.rules.rules import RuleSet

SWEEP_SUFFIX = ".sweep.parquet"
COUNTS = ("kept_alone", "kept_with_the_others")
KEY = [name for name in SWEEP.names if name not in COUNTS]

FACTORS = (
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

AROUND_ZERO = (
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

DIGITS = 12
"""Significant digits of a threshold: 0.7 × 0.3 is 0.21."""


def sweep(
    columns: Mapping[str, Floats],
    rules: RuleSet,
    *,
    allowed: Booleans,
    measured: Collection[str] = (),
) -> pa.Table:
    """Count what each threshold would keep among documents whose values are known.

    Args:
        columns: float64 values by column, shape ``(doc,)`` each; NaN where missing, which no
            threshold keeps.
        rules: the current rules.
        allowed: bool, shape ``(doc,)``: documents that only the rules can drop. The others are
            dropped for other reasons under any threshold.
        measured: columns of the rules that are applied only to documents that pass the others, with
            NaN elsewhere. Their thresholds have no count alone, and those of the others that are
            laxer than the one in force have no count with the other rules.

    Returns:
        A table of `SWEEP`, rule by rule, thresholds ascending.

    >>> from lc_assets.text.rules.rules import long_enough
    >>> words = {"rps_doc_word_count": np.array([500.0, 1000.0, 2000.0])}
    >>> rules = RuleSet("length", (long_enough(1000),))
    >>> swept = sweep(words, rules, allowed=np.ones(3, np.bool_)).slice(7, 6)
    >>> swept["threshold"].to_pylist(), swept["kept_alone"].to_pylist()
    ([950.0, 1000.0, 1050.0, 1100.0, 1250.0, 1500.0], [2, 2, 1, 1, 1, 1])
    """
    thresholds = _thresholds_of(rules.bounds)
    alone, others = (np.zeros(len(thresholds), np.int64) for _ in COUNTS)
    is_measured, is_laxer = (np.zeros(len(thresholds), np.bool_) for _ in COUNTS)
    fails = np.zeros((len(rules.rules), len(allowed)), np.bool_)
    for row, rule in zip(fails, rules.rules, strict=True):
        row[:] = rule.fails(columns[rule.column])
    n_failed, start = fails.sum(axis=0), 0
    for rule, failed in zip(rules.rules, fails, strict=True):
        values, only_this = columns[rule.column], allowed & (n_failed == failed)
        for is_least, own in ((True, rule.at_least), (False, rule.at_most)):
            if own is None:
                continue
            grid = _grid(own)
            own_lines, start = slice(start, start + len(grid)), start + len(grid)
            within = values <= rule.highest if is_least else values >= rule.lowest
            alone[own_lines] = _kept(values[~np.isnan(values)], grid, is_least)
            others[own_lines] = _kept(values[only_this & within], grid, is_least)
            is_measured[own_lines] = rule.column in measured
            is_laxer[own_lines] = grid < own if is_least else grid > own
    unread = is_laxer & ~is_measured & bool(measured)
    counts = pa.array(alone, mask=is_measured), pa.array(others, mask=unread)
    return pa.table([*thresholds.columns, *counts], schema=SWEEP)


@lru_cache(maxsize=8)
def _thresholds_of(bounds: tuple[tuple[str, str, float, float], ...]) -> pa.Table:
    """The columns of a sweep that are the same for all shards, of `RuleSet.bounds`."""
    lines = [
        (name, bound, threshold, threshold == own)
        for name, _, lowest, highest in bounds
        for bound, own in (("at_least", lowest), ("at_most", highest))
        if isfinite(own)
        for threshold in _grid(own).tolist()
    ]
    columns = list(zip(*lines, strict=True)) or [()] * len(KEY)
    return pa.table(columns, schema=pa.schema([SWEEP.field(name) for name in KEY]))


def rounded(threshold: float) -> float:
    """A threshold as the grid has it.

    >>> rounded(0.7 * 0.3)
    0.21
    """
    return float(f"{threshold:.{DIGITS}g}")


@lru_cache(maxsize=256)
def _grid(own: float) -> Floats:
    """The thresholds around a rule's own bound, which is one of them; ascending."""
    if not own:
        return np.array(AROUND_ZERO)
    return np.array(sorted({rounded(own * factor) for factor in FACTORS if factor != 1} | {own}))


def _kept(values: Floats, grid: Floats, is_least: bool) -> Int64s:
    """Number of values that pass each threshold; int64, one per threshold. One look-up per value,
    for any grid.
    """
    side: Literal["left", "right"] = "right" if is_least else "left"
    places = np.bincount(np.searchsorted(grid, values, side), minlength=len(grid) + 1)
    below = np.cumsum(places)[:-1]
    return np.asarray(len(values) - below if is_least else below, np.int64)


def sweep_files(folder: Path) -> list[Path]:
    """The sweeps of a version's shards, sorted."""
    return finished(folder.glob(f"*{SWEEP_SUFFIX}"))


def total_sweep(folders: Iterable[Path]) -> pa.Table:
    """The sweeps of all shards of some versions added up, see `added`.

    Raises:
        CorruptFile: when a table cannot be read.
    """
    return added([read_table(path) for folder in folders for path in sweep_files(folder)])


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


def _wrong_sweep(sweep_and_kept: tuple[Path, int]) -> list[str]:
    """What is wrong with the sweep of a shard with so many kept documents, one sentence each."""
    path, n_kept = sweep_and_kept
    table, schema = checked_columns(path, ["in_force", "kept_with_the_others"])
    kept = table.filter(table["in_force"])["kept_with_the_others"].to_pylist()
    wrong = misfits(path.name, schema, SWEEP) or complaints_about(path.name, table, None)
    return wrong + [
        f"{_shard(path)}: a threshold in force keeps {count or 0:,} documents, {n_kept:,} were kept"
        for count in sorted(set(kept))
        if count != n_kept
    ]


def _shard(path: Path) -> str:
    return path.name.partition(".")[0]


def the_sweeps_meet_the_counts(check_input: CheckInput) -> CheckResult:
    """Every shard has its sweep; it fits its schema, and every threshold in force keeps what was
    kept.
    """
    shards = shard_tables(check_input)
    found = {_shard(path): path for path in sweep_files(check_input.folder)}
    wrong = [f"{name}: has no sweep" for name in sorted(shards.keys() ^ found.keys())]
    items = [(path, shards[name].n_kept) for name, path in found.items() if name in shards]
    for complaints in by_workers(check_input, _wrong_sweep, items):
        wrong += complaints
    return CheckResult(
        passed=not wrong,
        message=f"{len(found):,} sweeps keep at their own thresholds what was kept"
        if not wrong
        else "; ".join(wrong[:5]),
        values={"sweeps": len(found), "complaints": len(wrong)},
    )
