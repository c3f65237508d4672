"""How many documents each threshold would keep: a small table per shard of `filtered_documents`,
and their sum.

Counted over the documents that have signals and were met in the shard's file. Where rules ask for
measures, the text of most documents was never read; what cannot be known without it is null: alone,
a bound on a measure; and with the others in force, a bound on a published signal that is laxer than
its own.

Here: the tables, their sum, the claim about them. Not here: counting
    (`lc_assets.text.rules.sweeps`), plots.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, complaints_about, dropped_files
from lc_assets.build.stage import (
    CheckInput,
    CheckResult,
)
from lc_assets.build.tables import SWEEP, count_lines, read_table
from lc_assets.publishing import finished
from lc_assets.stages.documents.measuring import Survivors
from lc_assets.stages.documents.shard_inputs import FilterTask
from lc_assets.stages.documents.verdicts import Verdicts
from lc_assets.text.rules.sweeps import Sweep, sweep

SWEEP_SUFFIX = ".sweep.parquet"
COUNTS = ("kept_alone", "kept_with_the_others")
KEY = [name for name in SWEEP.names if name not in COUNTS]


def sweep_of_shard(
    task: FilterTask, verdicts: Verdicts, survivors: Survivors, fates: NDArray[np.int64]
) -> pa.Table:
    """What each threshold would keep of a shard, as a table of `SWEEP`.

    Args:
        task: whose rules are swept.
        verdicts: of the shard.
        survivors: what was measured of the documents that pass by their signals.
        fates: of the dropped documents.
    """
    met = np.array(survivors.rows, np.int64)
    rows = np.concatenate([fates[(fates >= 0) & (fates < len(verdicts.table.lines))], met]).astype(
        np.int64
    )
    allowed = ~verdicts.is_duplicate(rows)
    allowed[len(rows) - len(met) :] &= ~survivors.fails
    columns = {name: column[rows] for name, column in verdicts.table.columns.items()}
    published = table_of(
        sweep(columns, task.published, allowed=allowed), unread=bool(survivors.rules.rules)
    )
    if not survivors.rules.rules:
        return published
    measured = table_of(sweep(survivors.columns, survivors.rules))
    unknown = pa.nulls(len(measured), pa.int64())
    return pa.concat_tables(
        [published, measured.set_column(SWEEP.get_field_index("kept_alone"), "kept_alone", unknown)]
    )


def table_of(swept: Sweep, *, unread: bool = False, unmeasured: Collection[str] = ()) -> pa.Table:
    """A sweep as a table of `SWEEP`.

    Args:
        swept: the sweep.
        unread: whether the values of some rules outside the sweep are known only of the documents
            that pass all others; a threshold laxer than the one in force then has no count beside
            the others.
        unmeasured: names of the rules of the sweep of which the same holds; they have no count
            alone either.
    """
    own = {(at.rule, at.bound): at.threshold for at in swept.thresholds if at.in_force}
    laxer = [
        bool(unread or unmeasured)
        and (
            at.threshold < own[at.rule, at.bound]
            if at.bound == "at_least"
            else at.threshold > own[at.rule, at.bound]
        )
        for at in swept.thresholds
    ]
    columns = [[getattr(at, name) for at in swept.thresholds] for name in KEY]
    unknown = np.array([at.rule in unmeasured for at in swept.thresholds], np.bool_)
    counts = [
        pa.array(swept.kept_alone, mask=unknown),
        pa.array(swept.kept_with_the_others, mask=np.array(laxer, np.bool_)),
    ]
    return pa.table([*columns, *counts], schema=SWEEP)


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
    wrong += [
        f"{name}: a threshold in force keeps {kept:,} documents, {there:,} were kept"
        for name, kept, there in _disagreeing(found)
    ]
    return CheckResult(
        check="the_sweeps_meet_the_counts",
        passed=not wrong,
        message=f"{len(found):,} sweeps keep at their own thresholds what was kept"
        if not wrong
        else "; ".join(wrong[:5]),
        values={"sweeps": len(found), "complaints": len(wrong)},
    )


def _disagreeing(found: dict[str, Path]) -> Iterable[tuple[str, int, int]]:
    for name, path in found.items():
        there = count_lines(path.with_name(f"{name}{DOCUMENTS_SUFFIX}"))
        table = read_table(path, ["in_force", "kept_with_the_others"])
        kept = table.filter(table["in_force"])["kept_with_the_others"].to_pylist()
        yield from ((name, count or 0, there) for count in sorted(set(kept)) if count != there)
