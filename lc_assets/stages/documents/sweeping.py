"""How many documents each threshold would keep: a small table per shard of `filtered_documents`,
and their sum.

Counted over the documents that have signals and were met in the shard's file. Where rules need
measures, the text of most documents was never read; what cannot be known without it is null: alone,
a bound on a measure; and with the others in force, a bound on a published signal that is laxer than
its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, complaints_about, dropped_files
from lc_assets.build.stage import CheckInput, CheckResult
from lc_assets.build.tables import SWEEP, count_lines, read_table
from lc_assets.publishing import finished
from lc_assets.text.rules.rules import RuleSet
from lc_assets.text.rules.sweeps import Sweep, sweep

SWEEP_SUFFIX = ".sweep.parquet"
COUNTS = ("kept_alone", "kept_with_the_others")
KEY = [name for name in SWEEP.names if name not in COUNTS]


def sweep_of_part(
    first: RuleSet,
    measured: RuleSet,
    values: Mapping[str, NDArray[np.float64]],
    measures: Mapping[str, NDArray[np.float64]],
    *,
    allowed: NDArray[np.bool_],
) -> pa.Table:
    """What each threshold would keep of some documents, as a table of `SWEEP`.

    Args:
        first: rules that are applied to every document.
        measured: rules that are applied to those that pass the first.
        values: float64 of every document, by column of the first rules.
        measures: float64 of those that pass the first rules, by column of the others.
        allowed: bool, of every document: whether nothing but the first rules drops it.
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
        check="the_sweeps_meet_the_counts",
        passed=not wrong,
        message=f"{len(found):,} sweeps keep at their own thresholds what was kept"
        if not wrong
        else "; ".join(wrong[:5]),
        values={"sweeps": len(found), "complaints": len(wrong)},
    )
