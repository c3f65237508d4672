"""Checks of `removed_documents`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lc_assets.build.checks import documents_files
from lc_assets.build.stage import CheckInput, CheckResult
from lc_assets.build.tables import read_table
from lc_assets.stages.deduplication.deciding import NEAR, REASONS, WITHDRAWN
from lc_assets.stages.deduplication.removals import REMOVALS, TABLE, removed_ids
from lc_assets.stages.withdrawal.snapshot_withdrawals import (
    TABLE as WITHDRAWALS_TABLE,
    withdrawals_in,
)


def removals_add_up(check_input: CheckInput) -> CheckResult:
    """The table lists each excluded document once, with the counted number per reason; all are
    filtered documents.
    """
    table = read_table(check_input.folder / TABLE, ["id", "reason"])
    ids = table["id"].to_pylist()
    found = dict(Counter(table["reason"].to_pylist()))
    tables = _tables_of_documents(check_input)
    known = {name for path in tables for name in read_table(path, ["id"])["id"].to_pylist()}
    n_twice, n_unknown = len(ids) - len(set(ids)), len(set(ids) - known)
    counts = check_input.counts
    right = found == counts.dropped and len(known) == counts.seen
    return CheckResult(
        passed=right and not n_twice and not n_unknown,
        message=f"{len(ids):,} of {len(known):,} documents removed, {n_twice:,} twice, "
        f"{n_unknown:,} not known; counted were {counts.dropped}",
        values={"removed": len(ids)},
    )


def _tables_of_documents(check_input: CheckInput) -> Sequence[Path]:
    """Tables with the ids of the snapshot's filtered documents: those without texts if any."""
    key = check_input.fingerprint.key
    if index := check_input.inputs.get(f"signature_index/{key}"):
        return sorted(index.only("documents/*").glob("documents/*"))
    filtered = check_input.inputs.get(f"filtered_documents/{key}")
    return documents_files(filtered.folder) if filtered else ()


def every_near_duplicate_has_one_that_stays(check_input: CheckInput) -> CheckResult:
    """No document that is not withdrawn is excluded for one that is itself excluded, none without a
    reason; and near duplicates are as similar as the threshold.
    """
    lines = read_table(check_input.folder / TABLE, REMOVALS.names).to_pylist()
    least, served_not = check_input.fingerprint.params["threshold"], {line["id"] for line in lines}
    withdrawn = _withdrawn(check_input)
    wrong = [
        line["id"]
        for line in lines
        if (line["kept_id"] in served_not and line["id"] not in withdrawn)
        or not line["why"]
        or (line["reason"] == REASONS[NEAR] and line["similarity"] < least)
    ]
    return CheckResult(
        passed=not wrong,
        message=f"{len(wrong):,} of {len(lines):,} are removed for one that is removed too"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"wrong": len(wrong)},
    )


def everything_withdrawn_goes(check_input: CheckInput) -> CheckResult:
    """Every withdrawn document of the snapshot is excluded, and no other as withdrawn."""
    listed = _withdrawn(check_input)
    reasons = removed_ids(check_input.folder)
    marked = {name for name, reason in reasons.items() if reason == WITHDRAWN}
    wrong = sorted((listed - reasons.keys()) | (marked - listed))
    return CheckResult(
        passed=not wrong,
        message=f"{len(listed):,} withdrawn, {len(wrong):,} wrong"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"withdrawn": len(listed), "wrong": len(wrong)},
    )


def _withdrawn(check_input: CheckInput) -> set[str]:
    withdrawals = check_input.inputs[f"snapshot_withdrawals/{check_input.fingerprint.key}"]
    return {line["id"] for line in withdrawals_in(withdrawals.only(WITHDRAWALS_TABLE))}
