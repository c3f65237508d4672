"""`snapshot_withdrawals`: the part of `withdrawn_documents` that concerns one snapshot, without
reasons.

Rebuilt in milliseconds whenever a list changes. If no document of the snapshot is affected it has
the same bytes, and nothing downstream is rebuilt. Reasons and dates are in `withdrawn_documents`
only, so rewording them rebuilds nothing.
"""

from pathlib import Path

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    UNPARTITIONED,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import WITHDRAWN, Line, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.lake.lake import GLOBAL
from lc_assets.lake.versions import Published
from lc_assets.stages.withdrawal.withdrawn_documents import TABLE as ALL_TABLE, are_lists_named

TABLE = "withdrawals.parquet"
COLUMNS = ("id", "how", "for_id", "similarity")
WITHDRAWALS = pa.schema([WITHDRAWN.field(name) for name in COLUMNS])
"""A withdrawn document, how it was matched, and for the same content the listed document it equals.
"""


def write_snapshot_withdrawals(_context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the withdrawn documents of one snapshot."""
    lines = part_of(staging.inputs[f"withdrawn_documents/{GLOBAL}"], staging.key)
    write_table(staging.folder / TABLE, lines)
    return Counts(seen=lines.num_rows, kept=lines.num_rows)


def part_of(withdrawn: Published, snapshot: str) -> pa.Table:
    """The withdrawn documents of one snapshot."""
    table = read_table(withdrawn.only(ALL_TABLE) / ALL_TABLE, COLUMNS)
    return table.filter(pc.starts_with(table["id"], f"{snapshot}/")).cast(WITHDRAWALS)


def withdrawals_in(folder: Path) -> list[Line]:
    """The withdrawn documents of a published version."""
    lines: list[Line] = read_table(folder / TABLE, COLUMNS).to_pylist()
    return lines


def the_part_is_this_snapshots(check_input: CheckInput) -> CheckResult:
    """The table equals this snapshot's part of `withdrawn_documents`."""
    ours = read_table(check_input.folder / TABLE, COLUMNS)
    theirs = part_of(check_input.only_input("withdrawn_documents"), check_input.fingerprint.key)
    right = ours.equals(theirs) and ours.num_rows == check_input.counts.kept
    return CheckResult(
        passed=right,
        message=f"{ours.num_rows:,} documents, `withdrawn_documents` has {theirs.num_rows:,} of "
        "this snapshot" + ("" if right else ": they are not the same"),
        values={"documents": ours.num_rows},
    )


STAGE = Stage(
    name="snapshot_withdrawals",
    description=(
        "Withdrawn documents of one snapshot; if a changed list matches none of them, "
        "nothing downstream becomes stale."
    ),
    code_version="1",
    reads={
        "withdrawn_documents": UNPARTITIONED,
        "document_keys": SAME_SNAPSHOT.only_if(are_lists_named),
    },
    params=lambda _, __: {},
    checks=(the_part_is_this_snapshots,),
    columns=WITHDRAWALS,
    early_cutoff=True,
    job="snapshot_rows",
    write=write_snapshot_withdrawals,
    pool=None,
)
"""Withdrawn documents of one snapshot."""
