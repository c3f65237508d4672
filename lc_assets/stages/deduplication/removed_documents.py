"""`removed_documents`: which filtered documents of a snapshot do not go on, and why. No text is
read or changed.

===================  ==================================================================================================
reason               the document
===================  ==================================================================================================
``same digest``      has the digest of another one, which stays; looked for where the recipe says so
``same text``        has the words of another one, which stays; looked for where the recipe says so
``same url``         has the address of another one, which stays; looked for where the recipe says so
``near duplicate``   belongs to a cluster of near duplicates, of all snapshots, of which another one stays
``near heldout``     stays, and is like one that stays on the other side: one to be trained on, the other held out. Of the
                     two the one of the newer snapshot goes, of one snapshot the one to be trained
                     on
``contaminated``     stays, and holds too much of an evaluation item
``withdrawn``        stays, and must no longer be served (`lc_assets.stages.withdrawal.snapshot_withdrawals`)
===================  ==================================================================================================

Withdrawing only takes out: the other reasons are found as if nothing were withdrawn. So what was
removed in the stead of a withdrawn document does not come back, and nobody else moves.

With ``prefer = ["oldest"]``, the default, a partition reads its own and all older snapshots: a
document goes when an older one is like it, and a newer snapshot changes nothing of what stands. (So
two old documents that only a newer one joins to a cluster both stay.) By any other preference a
newer snapshot may hold the document that stays: a partition then reads all of them, is decided
again whenever one is added, and where nothing changes for its own documents, what it writes has the
same bytes and what follows stays current.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lc_assets.build.building import build
from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.lookups import write_in_groups
from lc_assets.build.recipe import Recipe
from lc_assets.build.sharding import Read, Reads, documents_read
from lc_assets.build.stage import (
    ALL_SNAPSHOTS,
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import count_lines, read_lines, read_table
from lc_assets.counts import Counts
from lc_assets.errors import NotPublished
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.stages.decontamination.contaminated_documents import STAGE as CONTAMINATED_DOCUMENTS
from lc_assets.stages.decontamination.contaminated_documents import contaminated_ids
from lc_assets.stages.decontamination.evidence import CONTAMINATED
from lc_assets.stages.deduplication.deciding import (
    CLUSTERS_FILE,
    PAIRS_FILE,
    REMOVED_FILE,
    decide,
)
from lc_assets.stages.deduplication.exact_facts import gather_facts
from lc_assets.stages.deduplication.near_duplicate_pairs import STAGE as NEAR_DUPLICATE_PAIRS
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as NEAR_PAIRS_TABLE
from lc_assets.stages.deduplication.near_families import gather_families
from lc_assets.stages.deduplication.queries import Queries, parquet, queries, quoted
from lc_assets.stages.deduplication.settings import (
    CLUSTERS,
    KINDS,
    NEAR,
    REASONS,
    Decision,
    Means,
)
from lc_assets.stages.deduplication.signature_index import STAGE as SIGNATURE_INDEX
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.withdrawal.snapshot_withdrawals import STAGE as SNAPSHOT_WITHDRAWALS
from lc_assets.stages.withdrawal.snapshot_withdrawals import TABLE as WITHDRAWALS_TABLE
from lc_assets.stages.withdrawal.snapshot_withdrawals import withdrawals_in
from lc_assets.tokens.orders import heldout
from lc_assets.vocabulary import SnapshotId, parse_document_id

REMOVALS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("reason", pa.string()),
        ("for_id", pa.string()),
        ("kept_id", pa.string()),
        ("similarity", pa.float64()),
        ("why", pa.string()),
    ]
)
"""`removed_documents`: a document that does not go on; which document or item that is for; which
one stays; how alike they are; why.
"""

TABLE: Final = "removals.parquet"
_CLUSTERS: Final = pa.schema([field for field in CLUSTERS if field.name != "number"])
"""Clusters of near duplicates that a document of the partition belongs to: `clusters.parquet`."""
NEAR_HELDOUT: Final = "near heldout"
WITHDRAWN: Final = "withdrawn"


def write_removed_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish which documents of one snapshot do not go on.

    Raises:
        NotPublished: when the snapshot's filtered documents are not there, or it is not known which
            of them are withdrawn.
    """

    def fill(staging: StagingFolder) -> Counts:
        work = staging.folder / SCRATCH / "removed_documents"
        shutil.rmtree(work, ignore_errors=True)
        with queries(work / "duckdb", Means().memory // 2) as asked:
            lines = _removals(asked, staging, context.recipe, work, snapshot)
        cuts = context.recipe.contaminated_documents.action == "cut"
        for more in (_withdrawn,) if cuts else (_contaminated, _withdrawn):
            lines += more(staging, snapshot, {line["id"] for line in lines})
        lines.sort(key=lambda line: line["id"])
        write_in_groups(staging.folder / TABLE, pa.Table.from_pylist(lines, schema=REMOVALS))
        n_seen = staging.inputs[f"filtered_documents/{snapshot}"].receipt.counts.kept
        dropped = dict(sorted(Counter(line["reason"] for line in lines).items()))
        return Counts(seen=n_seen, kept=n_seen - len(lines), dropped=dropped, failed_rules=dropped)

    return build(context, STAGE, snapshot, fill)


def removed_ids(folder: Path) -> dict[str, str]:
    """Reason of every document that does not go on, by id."""
    return {line["id"]: line["reason"] for line in read_lines(folder / TABLE, ["id", "reason"])}


def removed_by_shard(folder: Path) -> dict[str, dict[str, str]]:
    """The same, by the name of the shard that a document is in."""
    found: dict[str, dict[str, str]] = {}
    for name, reason in removed_ids(folder).items():
        found.setdefault(parse_document_id(name)[0].name, {})[name] = reason
    return found


def remaining_read(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """What each shard of a stage reads that passes over removed documents: the shard's filtered
    documents, and which of them are removed; for `Sharding.reads`.
    """
    removed = removed_by_shard(inputs[f"removed_documents/{key}"].only(TABLE))
    documents = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    return {
        name: (read, Read("removed", digest_of(removed.get(name, {}))))
        for name, read in documents.items()
    }


def _removals(
    asked: Queries, staging: StagingFolder, recipe: Recipe, work: Path, snapshot: str
) -> list[dict[str, Any]]:
    settings, near = recipe.removed_documents, recipe.near_duplicate_pairs.near
    pairs = sorted(
        published.only(NEAR_PAIRS_TABLE) / NEAR_PAIRS_TABLE
        for name, published in staging.inputs.items()
        if near and name.startswith("near_duplicate_pairs/")
    )
    if settings.exact:
        facts = gather_facts(asked, staging.inputs, pairs, work)
    elif any(count_lines(path) for path in pairs):
        lengths = "longest" in settings.prefer
        gather_families(asked, staging.inputs, snapshot, pairs, work, lengths=lengths)
        facts = [work / "facts.parquet"]
    else:
        facts = []
    if not facts:
        return []
    by = (*(kind for kind in KINDS if kind in settings.exact), *((NEAR,) if near else ()))
    decision = Decision(threshold=settings.threshold, by=by, prefer=settings.prefer)
    decide(asked, facts, work / PAIRS_FILE, decision, work)
    ours = f"starts_with(id, {quoted(f'{snapshot}/')})"
    columns = ", ".join(REMOVALS.names)
    removed = asked.lines(f"SELECT {columns} FROM {parquet([work / REMOVED_FILE])} WHERE {ours}")
    if (
        settings.exact
    ):  # without, a newer snapshot must not change what is published of an older one
        clusters = f"SELECT {', '.join(_CLUSTERS.names)} FROM {parquet([work / CLUSTERS_FILE])}"
        asked.publish(
            f"{clusters} SEMI JOIN ({clusters} WHERE {ours}) AS own USING (cluster)"
            " ORDER BY cluster, id",
            staging.folder / CLUSTERS_FILE,
            _CLUSTERS,
        )
    return [*removed, *_near_heldout(asked, recipe, work, snapshot)]


def _contaminated(
    staging: StagingFolder, snapshot: str, gone: Collection[str]
) -> list[dict[str, Any]]:
    """Documents of the snapshot that would stay, but hold too much of an evaluation item."""
    published = staging.inputs.get(f"contaminated_documents/{snapshot}")
    found = contaminated_ids(published.folder) if published else {}
    return [
        {
            "id": name,
            "reason": CONTAMINATED,
            "for_id": item,
            "kept_id": "",
            "similarity": share,
            "why": f"holds {share:.0%} of {item}",
        }
        for name, (item, share) in found.items()
        if name not in gone
    ]


def _withdrawn(
    staging: StagingFolder, snapshot: str, gone: Collection[str]
) -> list[dict[str, Any]]:
    """Documents of the snapshot that would stay, but must not be served."""
    published = staging.inputs.get(f"snapshot_withdrawals/{snapshot}")
    if published is None:
        raise NotPublished(
            f"snapshot_withdrawals/{snapshot} has not been published: materialize "
            "`snapshot_withdrawals` "
            "first"
        )
    return [
        {
            "id": line["id"],
            "reason": WITHDRAWN,
            "for_id": line["for_id"],
            "kept_id": "",
            "similarity": line["similarity"],
            "why": line["how"],
        }
        for line in withdrawals_in(published.only(WITHDRAWALS_TABLE))
        if line["id"] not in gone
    ]


def _near_heldout(
    asked: Queries, recipe: Recipe, work: Path, snapshot: str
) -> list[dict[str, Any]]:
    """Documents of the snapshot that stay, and are like one that stays on the other side, and must
    give way to it.
    """
    documents = asked.lines(
        "SELECT number, id, digest FROM documents ANTI JOIN removed USING (number) ORDER BY number"
    )
    keys = [line["digest"] or line["id"] for line in documents]
    out = heldout(
        keys, seed=recipe.token_grid.seed, fraction=recipe.token_grid.heldout_fraction
    ).tolist()
    is_out = {line["id"]: held for line, held in zip(documents, out, strict=True)}
    nearest: dict[str, tuple[float, str]] = {}
    query = (
        f"SELECT a, b, similarity FROM {parquet([work / PAIRS_FILE])} WHERE similarity >= "
        f"{recipe.removed_documents.heldout_floor!r}"
    )
    for line in (line for batch in asked.batches(query) for line in batch.to_pylist()):
        for goes, stays in ((line["a"], line["b"]), (line["b"], line["a"])):
            on_two_sides = goes in is_out and stays in is_out and is_out[goes] != is_out[stays]
            if on_two_sides and goes.startswith(f"{snapshot}/") and _gives_way(goes, stays, is_out):
                nearest[goes] = min(nearest.get(goes, (0.0, stays)), (-line["similarity"], stays))
    why = {True: "the other is trained on", False: "the other is held out"}
    return [
        {
            "id": goes,
            "reason": NEAR_HELDOUT,
            "for_id": stays,
            "kept_id": stays,
            "similarity": -minus,
            "why": why[is_out[goes]],
        }
        for goes, (minus, stays) in nearest.items()
    ]


def _gives_way(one: str, other: str, is_out: Mapping[str, bool]) -> bool:
    """Whether ``one`` goes: the newer snapshot's, else the one to be trained on."""
    snapshots = [name.partition("/")[0] for name in (one, other)]
    return not is_out[one] if snapshots[0] == snapshots[1] else snapshots[0] > snapshots[1]


def removals_add_up(check_input: CheckInput) -> CheckResult:
    """The table names each removed document once, for a known reason, as often as was counted; all
    of them stand filtered.
    """
    table = read_table(check_input.folder / TABLE, ["id", "reason"])
    ids = table["id"].to_pylist()
    found = dict(Counter(table["reason"].to_pylist()))
    filtered = check_input.inputs.get(f"filtered_documents/{check_input.fingerprint.key}")
    known = (
        {
            name
            for path in documents_files(filtered.folder)
            for name in read_table(path, ["id"])["id"].to_pylist()
        }
        if filtered
        else set()
    )
    strange = set(ids) - known
    right = (
        found == check_input.counts.dropped
        and len(set(ids)) == len(ids)
        and not strange
        and len(known) == check_input.counts.seen
    )
    return CheckResult(
        check="removals_add_up",
        passed=right,
        message=f"{len(ids):,} of {len(known):,} documents removed, {len(ids) - len(set(ids)):,} "
        "twice, "
        f"{len(strange):,} not known; counted were {check_input.counts.dropped}",
        values={"removed": len(ids)},
    )


def every_near_duplicate_has_one_that_stays(check_input: CheckInput) -> CheckResult:
    """No document is removed for one that is itself removed as a near duplicate; each is as alike
    as the threshold, or joined to it.
    """
    lines = read_table(check_input.folder / TABLE, REMOVALS.names).to_pylist()
    near = {line["id"] for line in lines if line["reason"] == REASONS[NEAR]}
    wrong = [
        line["id"]
        for line in lines
        if line["kept_id"] in near or line["kept_id"] == line["id"] or not line["why"]
    ]
    return CheckResult(
        check="every_near_duplicate_has_one_that_stays",
        passed=not wrong,
        message=f"{len(wrong):,} of {len(lines):,} are removed for one that goes too"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"wrong": len(wrong)},
    )


def everything_withdrawn_goes(check_input: CheckInput) -> CheckResult:
    """No withdrawn document of the snapshot goes on, and none goes as withdrawn that is not."""
    withdrawn = {
        line["id"]
        for line in withdrawals_in(
            _own(check_input, "snapshot_withdrawals").only(WITHDRAWALS_TABLE)
        )
    }
    reasons = removed_ids(check_input.folder)
    wrong = sorted(
        (withdrawn - reasons.keys())
        | ({name for name, reason in reasons.items() if reason == WITHDRAWN} - withdrawn)
    )
    return CheckResult(
        check="everything_withdrawn_goes",
        passed=not wrong,
        message=f"{len(withdrawn):,} withdrawn, {len(wrong):,} wrong"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"withdrawn": len(withdrawn), "wrong": len(wrong)},
    )


def _own(check_input: CheckInput, stage: str) -> Published:
    published = check_input.inputs.get(f"{stage}/{check_input.fingerprint.key}")
    if published is None:
        raise NotPublished(
            f"{check_input.folder}: the {stage} version it was made from is gone from the lake"
        )
    return published


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


_OLDER_OR_ALL = ALL_SNAPSHOTS.where(
    lambda recipe, key, other: (
        other <= key
        or recipe.removed_documents.prefer[:1] != ("oldest",)
        or bool(recipe.removed_documents.exact)
    )
)
"""Only with the oldest preferred does a decision not depend on newer snapshots."""

STAGE = Stage(
    name="removed_documents",
    description=(
        "Filtered documents of one snapshot that are excluded, what each duplicates, and why."
    ),
    code_version="2",
    reads={
        FILTERED_DOCUMENTS: _OLDER_OR_ALL.summarized(),
        SIGNATURE_INDEX: _OLDER_OR_ALL.only_if(_are_duplicates_removed),
        NEAR_DUPLICATE_PAIRS: _OLDER_OR_ALL.only_if(_are_duplicates_removed),
        CONTAMINATED_DOCUMENTS: SAME_SNAPSHOT,
        SNAPSHOT_WITHDRAWALS: SAME_SNAPSHOT,
    },
    params=_params,
    checks=(removals_add_up, every_near_duplicate_has_one_that_stays, everything_withdrawn_goes),
    group="documents",
    job="snapshot_rows",
    pool=WORKERS,
    kinds=("parquet", "duckdb"),
    write=write_removed_documents,
    show=later("lc_assets.stages.shown.removing:removed_documents"),
)
"""Filtered documents that do not go on: near duplicates, what is like the held out, what holds
evaluation items, what is withdrawn.
"""
