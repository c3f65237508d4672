"""`row_lineage`: an index of one snapshot's rows, from row to document and from document to row in
milliseconds.

======================  ======================================================================
file                    content
======================  ======================================================================
``records.parquet``     the columns of the row table that tracing needs, in small row groups
``row_key.npy``         keys of the rows' documents (`lc_assets.text.links.addresses`), in the
                        format of `lc_assets.formats.key_index`
``row_place.npy``       the line of ``records.parquet`` of each key
``removed_key.npy``     ids of removed documents and of the documents kept instead
``removed_place.npy``   the line of the table of removed documents of each key
======================  ======================================================================

An index belongs to one version of a grid and is found by the grid's digest, so an older order or a
release is traced through the index made with its grid. Without an index the tables are searched,
which takes fifty times as long.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import UInt32s, UInt64s
from lc_assets.builds.lookups import KeyedTable, ScannedTable, write_in_groups
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import ROWS, read_table
from lc_assets.counts import Counts
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.randomness import keyed_u64
from lc_assets.stages.deduplication.removals import TABLE as DECISIONS_TABLE
from lc_assets.stages.rows.token_grid import ROWS_FILE, of_split
from lc_assets.text.links.addresses import keys_of_columns, merged_keys
from lc_assets.vocabulary import SPLITS

RECORDS_FILE = "records.parquet"
ROW_INDEX = "row"
REMOVED_INDEX = "removed"
RECORDS = (
    "split",
    "row",
    "id",
    "url",
    "digest",
    "cc_segment",
    "stretch",
    "shift",
    "n_tokens",
)
"""Columns of `tables.ROWS` that identify a row's document and the position of its tokens."""
SCHEMA = pa.schema([ROWS.field(name) for name in RECORDS])
_Keys = tuple[UInt64s, UInt32s]


def write_row_lineage(_context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the index of one snapshot's rows."""
    snapshot = staging.key
    grid = staging.inputs[f"token_grid/{snapshot}"]
    decided = staging.inputs[f"removed_documents/{snapshot}"]
    rows = read_table(grid.only(ROWS_FILE) / ROWS_FILE, RECORDS)
    return write_index(staging.folder, rows, read_decisions(decided))


def read_decisions(decided: Published) -> pa.Table:
    """What `write_index` needs of a version of `removed_documents`."""
    return read_table(decided.only(DECISIONS_TABLE) / DECISIONS_TABLE, ["id", "reason", "kept_id"])


def write_index(folder: Path, rows: pa.Table, decisions: pa.Table) -> Counts:
    """Write the files of an index of a row table and a table of decisions."""
    write_in_groups(folder / RECORDS_FILE, rows.select(RECORDS))
    indices = _indices(rows, decisions)
    for name, (keys, places) in indices.items():
        write_key_index(folder / name, keys, places)
    extra = {f"{split} rows": of_split(rows, split).num_rows for split in SPLITS} | {
        "keys": len(indices[ROW_INDEX][0]),
        "removals": int(pc.sum(pc.not_equal(decisions["reason"], "")).as_py() or 0),
    }
    return Counts(seen=rows.num_rows, kept=rows.num_rows, extra=extra)


def _indices(rows: pa.Table, decisions: pa.Table) -> dict[str, _Keys]:
    """Keys and their lines, by the name of the index."""
    columns = {name: rows[name].to_pylist() for name in ("id", "url", "digest")}
    return {
        ROW_INDEX: merged_keys([keys_of_columns(columns)]),
        REMOVED_INDEX: _keys_of_removals(decisions),
    }


def _keys_of_removals(decisions: pa.Table) -> _Keys:
    """Keys of the documents kept instead of excluded ones, with the lines of these; ascending."""
    lines = np.flatnonzero(pc.not_equal(decisions["kept_id"], ""))
    keys = _kept_keys(decisions["kept_id"].take(pa.array(lines)).to_pylist())
    order = np.argsort(keys, kind="stable")
    return keys[order], lines[order].astype(np.uint32)


def _kept_keys(names: Sequence[str]) -> UInt64s:
    return keyed_u64("look up removals by kept_id", seed=0, keys=names)


def rows_in(index: Published) -> KeyedTable:
    """The records of an index's rows, in the row table's order."""
    return KeyedTable.of(index, RECORDS_FILE, ROW_INDEX)


def removal_lines(index: Published, kept: str) -> list[int]:
    """Line numbers of the table of removed documents for which this one is kept; another id matches
    with probability 2⁻⁶⁴.
    """
    keys = KeyIndex(index.only(f"{REMOVED_INDEX}_*.npy") / REMOVED_INDEX)
    return keys.places(int(_kept_keys([kept])[0]))


def row_index(lake: Lake, grid: Published) -> Published | None:
    """The index of this grid; None if none was made or it is gone."""
    for published in lake.partition(STAGE.name, grid.key).versions():
        if published.receipt.fingerprint.inputs.get(grid.name) == grid.digest:
            return published
    return None


def rows_of(lake: Lake, grid: Published) -> KeyedTable | ScannedTable:
    """The records of a grid's rows, by its index if it has one."""
    index = row_index(lake, grid)
    return rows_in(index) if index else ScannedTable(grid.only(ROWS_FILE) / ROWS_FILE, RECORDS)


def every_row_is_recorded(check_input: CheckInput) -> CheckResult:
    """The records are the grid's row table, line by line."""
    records = read_table(check_input.folder / RECORDS_FILE, RECORDS)
    grid = check_input.only_input("token_grid")
    rows = read_table(grid.only(ROWS_FILE) / ROWS_FILE, RECORDS)
    right = records.equals(rows) and records.num_rows == check_input.counts.kept
    return CheckResult(
        passed=right,
        message=f"{records.num_rows:,} records of {rows.num_rows:,} rows"
        + ("" if right else ": they are not the same"),
        values={"records": records.num_rows},
    )


def every_row_is_found_by_its_keys(check_input: CheckInput) -> CheckResult:
    """The keys are exactly those of the rows' documents and of the exclusions, and each refers to
    its line.
    """
    indices = _indices(
        read_table(check_input.folder / RECORDS_FILE, RECORDS),
        read_decisions(check_input.only_input("removed_documents")),
    )
    wrong = [
        name
        for name, index in indices.items()
        if not KeyIndex(check_input.folder / name).holds(*index)
    ]
    n_keys = {name: len(keys) for name, (keys, _) in indices.items()}
    return CheckResult(
        passed=not wrong,
        message=f"{n_keys[ROW_INDEX]:,} keys of rows, {n_keys[REMOVED_INDEX]:,} of removals"
        + (f"; wrong: {', '.join(wrong)}" if wrong else ""),
        values=dict(n_keys),
    )


STAGE = Stage(
    name="row_lineage",
    description=(
        "Index of one snapshot's rows, from row to document and from document to rows, "
        "in milliseconds."
    ),
    code_version="3",
    reads={"token_grid": SAME_SNAPSHOT, "removed_documents": SAME_SNAPSHOT},
    params=lambda _, __: {},
    checks=(every_row_is_recorded, every_row_is_found_by_its_keys),
    columns=SCHEMA,
    group="tokens",
    job="snapshot_rows",
    kinds=("parquet", "numpy"),
    counted="rows",
    write=write_row_lineage,
    pool=None,
)
"""Rows by id, address, domain and digest; exclusions by excluded and by kept document."""
