"""Checks of `removed_documents`."""

from collections import Counter

from lc_assets.builds.stage import CheckInput, CheckResult
from lc_assets.builds.tables import read_table
from lc_assets.stages.deduplication.deciding import NEAR, NEAR_HELDOUT, REASONS, WITHDRAWN
from lc_assets.stages.deduplication.index import keyed_tables
from lc_assets.stages.deduplication.removals import TABLE, removals_in, removed_ids
from lc_assets.stages.withdrawal.snapshot_withdrawals import (
    TABLE as WITHDRAWALS_TABLE,
    withdrawals_in,
)


def removals_add_up(check_input: CheckInput) -> CheckResult:
    """The table lists each filtered document once, with the counted number per reason."""
    table = read_table(check_input.folder / TABLE, ["id", "reason"])
    ids = table["id"].to_pylist()
    found = dict(Counter(filter(None, table["reason"].to_pylist())))
    keys = keyed_tables(check_input.inputs)[check_input.fingerprint.key]
    known = set(read_table(keys, ["id"])["id"].to_pylist())
    n_twice, n_unknown = len(ids) - len(set(ids)), len(set(ids) ^ known)
    counts = check_input.counts
    right = found == counts.dropped and len(known) == counts.seen
    return CheckResult(
        passed=right and not n_twice and not n_unknown,
        message=f"{sum(found.values()):,} of {len(known):,} documents removed; {n_twice:,} listed "
        f"twice, {n_unknown:,} not known or not listed; counted were {counts.dropped}",
        values={"removed": sum(found.values())},
    )


def every_near_duplicate_has_one_that_stays(check_input: CheckInput) -> CheckResult:
    """No document that is not withdrawn is excluded for one that is itself excluded, none without a
    reason; near duplicates are as similar as the threshold, those across the split as the floor.
    """
    lines, params = removals_in(check_input.folder), check_input.fingerprint.params
    least = {REASONS[NEAR]: params["threshold"], NEAR_HELDOUT: params["heldout_floor"]}
    served_not = {line["id"] for line in lines}
    withdrawn = _withdrawn(check_input)
    wrong = [
        line["id"]
        for line in lines
        if (line["kept_id"] in served_not and line["id"] not in withdrawn)
        or not line["why"]
        or (line["reason"] in least and line["similarity"] < least[line["reason"]])
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
