"""`removed_documents`: which filtered documents of a snapshot are excluded, and why. No text is
changed.

===================  ==============================================================================
reason               the document
===================  ==============================================================================
``same digest``      has the digest of another one, which is kept; where the recipe says so
``same text``        has the words of another one, which is kept; where the recipe says so
``same url``         has the URL of another one, which is kept; where the recipe says so
``near duplicate``   is at least as similar as the threshold to a document, of any snapshot, which
                     is kept
``near heldout``     is a near duplicate of a kept one across the split: one is to be trained on,
                     the other held out. The one of the newer snapshot is excluded; of one
                     snapshot, the one to be trained on
``contaminated``     holds too much of an evaluation item
``withdrawn``        must no longer be served (`lc_assets.stages.withdrawal.snapshot_withdrawals`)
===================  ==============================================================================

The first applicable reason is recorded. The document that is kept for others is one that is served:
neither contaminated, withdrawn nor ``near heldout``, and with as many tokens as some stage
publishes. So of several copies one is lost only if another is served, or none can be.

With ``prefer = ["oldest"]``, the default, a partition reads its own and all older snapshots: a
document is excluded when an older one is similar to it, and a newer snapshot changes nothing. With
any other preference, the kept document may be in a newer snapshot: a partition then reads all
snapshots and is decided again whenever one is added. If nothing changes for its own documents, its
bytes are the same and downstream partitions remain current.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lc_assets.build.lookups import write_in_groups
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    Stage,
    StagingFolder,
)
from lc_assets.build.tables import count_lines
from lc_assets.counts import Counts
from lc_assets.errors import NotPublished
from lc_assets.lake.receipts import SCRATCH
from lc_assets.stages.deduplication.deciding import (
    NEAR,
    WITHDRAWN,
    across_the_split,
    clusters_query,
    compared_query,
    contaminated,
    decide,
    kept_for_others,
    removed_query,
    withdrawn,
)
from lc_assets.stages.deduplication.facts import gather_facts, gather_families
from lc_assets.stages.deduplication.lengths import counted_by, least_tokens, too_short
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as NEAR_PAIRS_TABLE
from lc_assets.stages.deduplication.queries import Queries, queries, quoted
from lc_assets.stages.deduplication.removal_checks import (
    every_near_duplicate_has_one_that_stays,
    everything_withdrawn_goes,
    removals_add_up,
)
from lc_assets.stages.deduplication.removals import CLUSTERS, CLUSTERS_FILE, REMOVALS, TABLE
from lc_assets.stages.tokens.tokenizing import params_of
from lc_assets.stages.withdrawal.withdrawn_documents import are_lists_named


def write_removed_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which documents of one snapshot are excluded.

    Raises:
        NotPublished: when the snapshot's filtered documents or withdrawals are missing.
    """
    snapshot = staging.key
    excluded = _excluded(staging, context.recipe)
    ours = [line for line in excluded if line["id"].startswith(f"{snapshot}/")]
    found = [*_duplicates(context, staging, excluded), *ours]
    lines: dict[str, dict[str, Any]] = {}
    for line in found:
        lines.setdefault(line["id"], line)
    table = pa.Table.from_pylist([lines[name] for name in sorted(lines)], schema=REMOVALS)
    write_in_groups(staging.folder / TABLE, table)
    n_seen = staging.inputs[f"filtered_documents/{snapshot}"].receipt.counts.kept
    dropped = dict(sorted(Counter(line["reason"] for line in lines.values()).items()))
    return Counts(seen=n_seen, kept=n_seen - len(lines), dropped=dropped, failed_rules=dropped)


def _excluded(staging: StagingFolder, recipe: Recipe) -> list[dict[str, Any]]:
    """Lines of the contaminated and withdrawn documents of all partitions that are read."""
    if (needed := f"snapshot_withdrawals/{staging.key}") not in staging.inputs:
        raise NotPublished(
            f"{needed} has not been published: materialize `snapshot_withdrawals` first"
        )
    readers = {"contaminated_documents": contaminated, "snapshot_withdrawals": withdrawn}
    if recipe.contaminated_documents.action == "cut":
        readers.pop("contaminated_documents")
    return [
        line
        for stage, read in readers.items()
        for published in staging.inputs.values()
        if published.stage == stage
        for line in read(published)
    ]


def _duplicates(
    context: BuildContext, staging: StagingFolder, excluded: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Lines of the snapshot's documents that duplicate a kept one, or one across the split."""
    recipe, snapshot = context.recipe, staging.key
    settings, near = recipe.removed_documents, recipe.near_duplicate_pairs.near
    pairs = sorted(
        published.only(NEAR_PAIRS_TABLE) / NEAR_PAIRS_TABLE
        for name, published in staging.inputs.items()
        if name.startswith("near_duplicate_pairs/")
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
        floor = min(settings.threshold, settings.heldout_floor)
        compared = [line["id"] for line in database.lines(compared_query(by, floor))]
        short = too_short(context, staging.inputs, compared)
        across = _decide_all(database, by, recipe, excluded, short)
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
        return [*(line for line in across if line["id"].startswith(f"{snapshot}/")), *removed]


def _decide_all(
    database: Queries,
    by: Sequence[str],
    recipe: Recipe,
    excluded: Sequence[Mapping[str, Any]],
    short: set[str],
) -> list[dict[str, Any]]:
    """Decide who is kept, and return the lines of those excluded across the split. If a document
    was removed for one of them, or only for a withdrawn one, decide again without that one.

    Withdrawn documents are decided like others at first, so their copies keep their reasons.
    """
    settings, across = recipe.removed_documents, dict[str, dict[str, Any]]()
    gone = {line["id"] for line in excluded if line["reason"] == WITHDRAWN}
    ineligible = {line["id"] for line in excluded if line["reason"] != WITHDRAWN} | short
    while True:
        decide(database, by, settings.prefer, settings.threshold, ineligible)
        across |= across_the_split(
            database, recipe.token_grid, floor=settings.heldout_floor, without=gone
        )
        not_served = kept_for_others(database, gone | across.keys())
        if not not_served:
            return list(across.values())
        ineligible |= not_served


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings, gridding = recipe.removed_documents, recipe.token_grid
    are_lengths_counted = _are_duplicates_removed(recipe) and least_tokens(recipe) > 1
    return {
        "near": recipe.near_duplicate_pairs.near,
        "threshold": settings.threshold,
        "heldout_floor": settings.heldout_floor,
        "prefer": list(settings.prefer),
        "exact": list(settings.exact),
        "contaminated": recipe.contaminated_documents.action,
        "heldout_fraction": gridding.heldout_fraction,
        "seed": gridding.seed,
    } | ({"lengths": params_of(counted_by(recipe))} if are_lengths_counted else {})


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
        or are_lists_named(recipe)
    )


_OLDER_OR_ALL = ALL_SNAPSHOTS.where(
    lambda recipe, key, other: (
        other <= key
        or recipe.removed_documents.prefer[:1] != ("oldest",)
        or bool(recipe.removed_documents.exact)
    )
)
"""Decisions are independent of newer snapshots only if the oldest document is preferred."""
_DECIDED = _OLDER_OR_ALL.where(
    lambda recipe, key, other: other == key or _are_duplicates_removed(recipe)
)
"""Where excluded documents are read of: no document is removed for one of them."""

STAGE = Stage(
    name="removed_documents",
    description=(
        "Filtered documents of one snapshot that are excluded, what each duplicates, and why."
    ),
    code_version="3",
    reads={
        "filtered_documents": _OLDER_OR_ALL.summarized(),
        "signature_index": _OLDER_OR_ALL.only_if(_are_duplicates_removed),
        "near_duplicate_pairs": _OLDER_OR_ALL.only_if(
            lambda recipe: recipe.near_duplicate_pairs.near
        ),
        "contaminated_documents": _DECIDED,
        "snapshot_withdrawals": _DECIDED,
    },
    params=_params,
    checks=(removals_add_up, every_near_duplicate_has_one_that_stays, everything_withdrawn_goes),
    job="snapshot_rows",
    kinds=("parquet", "duckdb"),
    write=write_removed_documents,
)
"""Excluded documents: near duplicates, documents similar to held-out ones, contaminated and
withdrawn documents.
"""
