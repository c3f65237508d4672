"""`removed_documents`: which filtered documents of a snapshot are excluded, and why. No text is
changed.

===================  ==============================================================================
reason               the document
===================  ==============================================================================
``same digest``      has the digest of another one, which is kept; where the recipe says so
``same text``        has the words of another one, which is kept; where the recipe says so
``same url``         has the URL of another one, which is kept; where the recipe says so
``near duplicate``   belongs to a cluster of near duplicates, of all snapshots, of which another one
                     is kept
``near heldout``     is a near duplicate of a kept one across the split: one is to be trained on,
                     the other held out. The one of the newer snapshot is excluded; of one
                     snapshot, the one to be trained on
``contaminated``     holds too much of an evaluation item
``withdrawn``        must no longer be served (`lc_assets.stages.withdrawal.snapshot_withdrawals`)
===================  ==============================================================================

The first applicable reason is recorded. Withdrawals only exclude: the other reasons are determined
as if nothing were withdrawn. So duplicates of a withdrawn document are not restored, and no other
document is affected.

With ``prefer = ["oldest"]``, the default, a partition reads its own and all older snapshots: a
document is excluded when an older one is similar to it, and a newer snapshot changes nothing. (So
two old documents that only a newer one joins into a cluster are both kept.) With any other
preference, the kept document may be in a newer snapshot: a partition then reads all snapshots and
is decided again whenever one is added. If nothing changes for its own documents, its bytes are the
same and downstream partitions remain current.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.lookups import write_in_groups
from lc_assets.build.recipe import Recipe
from lc_assets.build.sharding import Read, Reads, documents_read
from lc_assets.build.stage import (
    ALL_SNAPSHOTS,
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.build.tables import count_lines, read_lines, read_table
from lc_assets.counts import Counts
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.deciding import (
    NEAR,
    REASONS,
    WITHDRAWN,
    across_the_split,
    clusters_query,
    contaminated,
    decide,
    removed_query,
    withdrawn,
)
from lc_assets.stages.deduplication.facts import gather_facts, gather_families
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as NEAR_PAIRS_TABLE
from lc_assets.stages.deduplication.queries import queries, quoted
from lc_assets.stages.withdrawal.snapshot_withdrawals import TABLE as WITHDRAWALS_TABLE
from lc_assets.stages.withdrawal.snapshot_withdrawals import withdrawals_in
from lc_assets.vocabulary import parse_document_id

REMOVALS: Final = pa.schema(
    {
        "id": "string",
        "reason": "string",
        "for_id": "string",
        "kept_id": "string",
        "similarity": "float64",
        "why": "string",
    }
)
"""An excluded document; the document or item that it is a duplicate of or contains; the document
that is finally kept; their similarity; the reason for the choice.
"""
CLUSTERS: Final = pa.schema(
    {
        "id": "string",
        "cluster": "string",
        "size": "int64",
        "stays": "bool",
        "kept_id": "string",
        "similarity_to_kept": "float64",
        "why": "string",
    }
)
"""Members of the clusters of near duplicates that a document of the partition belongs to;
``cluster`` is the least id in it. A similarity is null when the two share no band.
"""

TABLE: Final = "removals.parquet"
CLUSTERS_FILE: Final = "clusters.parquet"


def write_removed_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which documents of one snapshot are excluded.

    Raises:
        NotPublished: when the snapshot's filtered documents or withdrawals are missing.
    """
    snapshot = staging.key
    found = _duplicates(staging, context.recipe, snapshot)
    if context.recipe.contaminated_documents.action != "cut":
        found += contaminated(staging.inputs, snapshot)
    found += withdrawn(staging.inputs, snapshot)
    lines: dict[str, dict[str, Any]] = {}
    for line in found:
        lines.setdefault(line["id"], line)
    table = pa.Table.from_pylist([lines[name] for name in sorted(lines)], schema=REMOVALS)
    write_in_groups(staging.folder / TABLE, table)
    n_seen = staging.inputs[f"filtered_documents/{snapshot}"].receipt.counts.kept
    dropped = dict(sorted(Counter(line["reason"] for line in lines.values()).items()))
    return Counts(seen=n_seen, kept=n_seen - len(lines), dropped=dropped, failed_rules=dropped)


def removed_ids(folder: Path) -> dict[str, str]:
    """Reason of every excluded document, by id."""
    return {line["id"]: line["reason"] for line in read_lines(folder / TABLE, ["id", "reason"])}


def removed_in(inputs: Mapping[str, Published], key: str) -> dict[str, dict[str, str]]:
    """The same of a partition, out of a stage's inputs, by the name of the shard that a document is
    in; empty where the recipe excludes nothing.
    """
    published, found = inputs.get(f"removed_documents/{key}"), dict[str, dict[str, str]]()
    for name, reason in removed_ids(published.only(TABLE)).items() if published else ():
        found.setdefault(parse_document_id(name)[0].name, {})[name] = reason
    return found


def remaining_read(
    inputs: Mapping[str, Published],
    key: str,
    removed: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Reads]:
    """Inputs per shard of a stage that skips excluded documents: the shard's filtered documents,
    and the exclusions (by default those of `removed_in`); for `Sharding.reads`.
    """
    left_out = removed_in(inputs, key) if removed is None else removed
    documents = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    return {
        name: (read, Read("removed", digest_of(left_out.get(name, {}))))
        for name, read in documents.items()
    }


def _duplicates(staging: StagingFolder, recipe: Recipe, snapshot: str) -> list[dict[str, Any]]:
    """Lines of the snapshot's documents that duplicate a kept one, or one across the split."""
    settings, near = recipe.removed_documents, recipe.near_duplicate_pairs.near
    pairs = sorted(
        published.only(NEAR_PAIRS_TABLE) / NEAR_PAIRS_TABLE
        for name, published in staging.inputs.items()
        if near and name.startswith("near_duplicate_pairs/")
    )
    if not settings.exact and not any(map(count_lines, pairs)):
        return []
    work = staging.folder / SCRATCH / "removed_documents"
    shutil.rmtree(work, ignore_errors=True)
    with queries(work / "duckdb") as database:
        if not settings.exact:
            lengths = "longest" in settings.prefer
            gather_families(database, staging.inputs, snapshot, pairs, lengths=lengths)
        elif not gather_facts(database, staging.inputs, pairs):
            return []
        by = (*settings.exact, *((NEAR,) if near else ()))
        decide(database, by, settings.prefer, settings.threshold)
        ours = f"starts_with(id, {quoted(f'{snapshot}/')})"
        removed = database.lines(f"SELECT * FROM ({removed_query(settings.prefer)}) WHERE {ours}")
        if settings.exact:  # only then are all snapshots read, and the clusters complete
            columns = ", ".join(CLUSTERS.names)
            database.publish(
                f"WITH clusters AS MATERIALIZED ({clusters_query(settings.prefer)}) "
                f"SELECT {columns} FROM clusters "
                f"SEMI JOIN (SELECT cluster FROM clusters WHERE {ours}) USING (cluster) "
                "ORDER BY cluster, id",
                staging.folder / CLUSTERS_FILE,
                CLUSTERS,
            )
        across = across_the_split(
            database, snapshot, recipe.token_grid, floor=settings.heldout_floor
        )
        return [*removed, *across]


def removals_add_up(check_input: CheckInput) -> CheckResult:
    """The table lists each excluded document once, with the counted number per reason; all are
    filtered documents.
    """
    table = read_table(check_input.folder / TABLE, ["id", "reason"])
    ids = table["id"].to_pylist()
    found = dict(Counter(table["reason"].to_pylist()))
    filtered = check_input.inputs.get(f"filtered_documents/{check_input.fingerprint.key}")
    known = {
        name
        for path in (documents_files(filtered.folder) if filtered else ())
        for name in read_table(path, ["id"])["id"].to_pylist()
    }
    n_twice, n_unknown = len(ids) - len(set(ids)), len(set(ids) - known)
    counts = check_input.counts
    right = found == counts.dropped and len(known) == counts.seen
    return CheckResult(
        passed=right and not n_twice and not n_unknown,
        message=f"{len(ids):,} of {len(known):,} documents removed, {n_twice:,} twice, "
        f"{n_unknown:,} not known; counted were {counts.dropped}",
        values={"removed": len(ids)},
    )


def every_near_duplicate_has_one_that_stays(check_input: CheckInput) -> CheckResult:
    """No document is excluded as a duplicate of one that is itself excluded as a near duplicate, or
    without a reason.
    """
    lines = read_table(check_input.folder / TABLE, REMOVALS.names).to_pylist()
    near = {line["id"] for line in lines if line["reason"] == REASONS[NEAR]}
    wrong = [
        line["id"]
        for line in lines
        if line["kept_id"] in near or line["kept_id"] == line["id"] or not line["why"]
    ]
    return CheckResult(
        passed=not wrong,
        message=f"{len(wrong):,} of {len(lines):,} are removed for one that is removed too"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"wrong": len(wrong)},
    )


def everything_withdrawn_goes(check_input: CheckInput) -> CheckResult:
    """Every withdrawn document of the snapshot is excluded, and no other as withdrawn."""
    withdrawals = check_input.only_input("snapshot_withdrawals").only(WITHDRAWALS_TABLE)
    listed = {line["id"] for line in withdrawals_in(withdrawals)}
    reasons = removed_ids(check_input.folder)
    marked = {name for name, reason in reasons.items() if reason == WITHDRAWN}
    wrong = sorted((listed - reasons.keys()) | (marked - listed))
    return CheckResult(
        passed=not wrong,
        message=f"{len(listed):,} withdrawn, {len(wrong):,} wrong"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"withdrawn": len(listed), "wrong": len(wrong)},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings, gridding = recipe.removed_documents, recipe.token_grid
    return {
        "near": recipe.near_duplicate_pairs.near,
        "threshold": settings.threshold,
        "heldout_floor": settings.heldout_floor,
        "prefer": list(settings.prefer),
        "exact": list(settings.exact),
        "contaminated": recipe.contaminated_documents.action,
        "heldout_fraction": gridding.heldout_fraction,
        "seed": gridding.seed,
    }


def _are_duplicates_removed(recipe: Recipe) -> bool:
    return recipe.near_duplicate_pairs.near or bool(recipe.removed_documents.exact)


def removes_documents(recipe: Recipe) -> bool:
    """Whether tokens and rows depend on exclusions: not if sources are files and the recipe
    excludes nothing.
    """
    return (
        not recipe.sources
        or _are_duplicates_removed(recipe)
        or bool(recipe.contaminated_documents.against)
        or bool(recipe.withdrawn_documents.lists)
    )


_OLDER_OR_ALL = ALL_SNAPSHOTS.where(
    lambda recipe, key, other: (
        other <= key
        or recipe.removed_documents.prefer[:1] != ("oldest",)
        or bool(recipe.removed_documents.exact)
    )
)
"""Decisions are independent of newer snapshots only if the oldest document is preferred."""

STAGE = Stage(
    name="removed_documents",
    description=(
        "Filtered documents of one snapshot that are excluded, what each duplicates, and why."
    ),
    code_version="2",
    reads={
        "filtered_documents": _OLDER_OR_ALL.summarized(),
        "signature_index": _OLDER_OR_ALL.only_if(_are_duplicates_removed),
        "near_duplicate_pairs": _OLDER_OR_ALL.only_if(_are_duplicates_removed),
        "contaminated_documents": SAME_SNAPSHOT,
        "snapshot_withdrawals": SAME_SNAPSHOT,
    },
    params=_params,
    checks=(removals_add_up, every_near_duplicate_has_one_that_stays, everything_withdrawn_goes),
    group="documents",
    job="snapshot_rows",
    pool=WORKERS,
    kinds=("parquet", "duckdb"),
    write=write_removed_documents,
)
"""Excluded documents: near duplicates, documents similar to held-out ones, contaminated and
withdrawn documents.
"""
