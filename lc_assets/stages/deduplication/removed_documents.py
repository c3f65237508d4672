"""`removed_documents`: which filtered documents of a snapshot stay, on which side of the split, and
which are excluded, and why. No text is changed.

A line per document (`lc_assets.stages.deduplication.removals.DECISIONS`) is the only source of who
stays and on which side.

===================  ==============================================================================
reason               the document
===================  ==============================================================================
``same digest``      has the digest of another one, which is kept; where the recipe says so
``same text``        has the words of another one, which is kept; where the recipe says so
``same url``         has the URL of another one, which is kept; where the recipe says so
``near duplicate``   is at least as similar as the threshold to a document, of any snapshot, which
                     is kept
``near heldout``     is at least as similar as the floor to a kept one across the split: one is to
                     be trained on, the other held out. As of near duplicates, the preferred one is
                     kept
``contaminated``     holds too much of an evaluation item
``withdrawn``        must no longer be served (`lc_assets.stages.withdrawal.snapshot_withdrawals`)
===================  ==============================================================================

All reasons that were found are recorded; the first one counts. The document that is kept for others
is one that is served: neither contaminated, withdrawn nor ``near heldout``, and with as many tokens
as some stage publishes. So of several copies one is lost only if another is served, or none can be.

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
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Array, Booleans
from lc_assets.builds.lookups import write_in_groups
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import count_lines, read_table
from lc_assets.counts import Counts
from lc_assets.errors import NotPublished
from lc_assets.lake.receipts import SCRATCH
from lc_assets.stages.deduplication.deciding import (
    NEAR,
    NO_SIDE,
    WITHDRAWN,
    Involved,
    Standing,
    decide_all,
    involved,
)
from lc_assets.stages.deduplication.facts import gather_facts, gather_families
from lc_assets.stages.deduplication.index import keyed_tables
from lc_assets.stages.deduplication.lengths import counted_by, least_tokens, too_short
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as PAIRS_TABLE
from lc_assets.stages.deduplication.queries import (
    Queries,
    parquet,
    publish_batches,
    queries,
)
from lc_assets.stages.deduplication.removal_checks import (
    every_near_duplicate_has_one_that_stays,
    everything_withdrawn_goes,
    removals_add_up,
)
from lc_assets.stages.deduplication.removal_lines import (
    clusters,
    contaminated,
    in_clusters,
    removed_lines,
    withdrawn,
)
from lc_assets.stages.deduplication.removals import (
    CLUSTERS,
    CLUSTERS_FILE,
    DECISIONS,
    STAYS,
    TABLE,
)
from lc_assets.stages.deduplication.sides import held_out_in, sides_in
from lc_assets.stages.deduplication.verification import similarities_by_id
from lc_assets.stages.tokens.tokenized_text import are_held_out
from lc_assets.stages.tokens.tokenizing_tasks import params_of
from lc_assets.stages.withdrawal.withdrawn_documents import are_lists_named


def write_removed_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which documents of one snapshot are excluded.

    Raises:
        NotPublished: when the snapshot's filtered documents or withdrawals are missing.
    """
    snapshot = staging.key
    excluded = _excluded(staging, context.recipe)
    ours = [line for line in excluded if line["id"].startswith(f"{snapshot}/")]
    duplicates, counted = _duplicates(context, staging, excluded)
    found = [*duplicates, *ours]
    lines: dict[str, dict[str, Any]] = {}
    for line in found:
        first = lines.setdefault(line["id"], line | {"reasons": []})
        first["reasons"].append(line["reason"])
    table = _decisions(staging, lines)
    write_in_groups(staging.folder / TABLE, table)
    dropped = Counter(line["reason"] for line in lines.values())
    failed = Counter(reason for line in lines.values() for reason in {*line["reasons"]})
    return Counts(
        seen=table.num_rows,
        kept=table.num_rows - len(lines),
        dropped=dict(sorted(dropped.items())),
        failed_rules=dict(sorted(failed.items())),
        extra=counted,
    )


def _decisions(staging: StagingFolder, removed: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """The table of `DECISIONS` of a snapshot, with the lines of its excluded documents."""
    paths = keyed_tables(staging.inputs)
    own = read_table(paths[staging.key], ["id", "digest", "text_digest", "tokenized_digest"])
    digests = own["tokenized_digest"]
    held = held_out_in(staging.inputs, staging.key, digests)
    first = last = pa.array([staging.key] * len(own), pa.string())
    for key, path in reversed(paths.items()):
        is_seen = pc.is_in(digests, read_table(path, ["tokenized_digest"])["tokenized_digest"])
        first = pc.if_else(is_seen, key, first)
        last = pc.if_else(pc.and_(is_seen, pc.less(last, key)), key, last)
    known = [removed.get(name, STAYS) for name in own["id"].to_pylist()]
    columns = {name: own[name] for name in own.column_names} | {
        "side": pc.if_else(held, "heldout", "train"),
        "first_seen": first,
        "last_seen": last,
    }
    columns |= {
        name: pa.array([line[name] for line in known], DECISIONS.field(name).type) for name in STAYS
    }
    return pa.table([columns[name] for name in DECISIONS.names], schema=DECISIONS)


def _excluded(staging: StagingFolder, recipe: Recipe) -> list[dict[str, Any]]:
    """Lines of the contaminated and withdrawn documents of all partitions that are read."""
    needed = ["snapshot_withdrawals", *(["heldout_pairs"] if are_held_out(recipe) else [])]
    for stage in needed:
        if f"{stage}/{staging.key}" not in staging.inputs:
            raise NotPublished(
                f"{stage}/{staging.key} has not been published: materialize `{stage}` first"
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
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Lines of the snapshot's documents that duplicate a kept one, or one across the split; and the
    counts of `decide_all`.
    """
    recipe, snapshot = context.recipe, staging.key
    settings, near = recipe.removed_documents, recipe.near_duplicate_pairs.near
    pairs = sorted(
        published.only(PAIRS_TABLE) / PAIRS_TABLE
        for published in staging.inputs.values()
        if published.stage in ("near_duplicate_pairs", "heldout_pairs")
    )
    if not settings.exact and not any(map(count_lines, pairs)):
        return [], {}
    work = staging.folder / SCRATCH / "removed_documents"
    shutil.rmtree(work, ignore_errors=True)
    by = (*settings.exact, *((NEAR,) if near else ()))
    floor = min(settings.threshold, settings.heldout_floor)
    with queries(work / "duckdb") as database:
        if not settings.exact:
            lengths = "longest" in settings.prefer
            gather_families(database, staging.inputs, snapshot, pairs, lengths=lengths)
        elif not gather_facts(database, staging.inputs, pairs):
            return [], {}
        known = involved(database, by, settings.prefer, floor)
        held = _held(database, staging, known)
    standing, gone = _standing(context, staging, known, excluded, held)
    standing, decided, counted = decide_all(
        known,
        standing,
        by,
        gone,
        bounds=(settings.threshold, settings.heldout_floor),
        is_metric=recipe.near_duplicate_pairs.measure == "jaccard",
        compare=partial(
            similarities_by_id, context, staging.inputs, work / "compared", known.facts["id"]
        ),
    )
    ours = _mask(pc.starts_with(known.facts["id"], pattern=f"{snapshot}/"))
    if settings.exact:  # only then are all snapshots read, and the clusters complete
        near = removed_lines(known, standing, decided, in_clusters(decided, ours), settings.prefer)
        publish_batches(staging.folder / CLUSTERS_FILE, clusters(near).to_batches(), CLUSTERS)
    which = np.flatnonzero(ours & (decided.kept >= 0))
    lines: list[dict[str, Any]] = removed_lines(
        known, standing, decided, which, settings.prefer
    ).to_pylist()
    return lines, counted


def _mask(values: pa.ChunkedArray) -> Booleans:
    return np.asarray(values, np.bool_)


def _standing(
    context: BuildContext,
    staging: StagingFolder,
    known: Involved,
    excluded: Sequence[Mapping[str, Any]],
    held: Array,
) -> tuple[Standing, Booleans]:
    """How documents stand before any is decided, and who is withdrawn; the split concerns only
    those that are served.
    """
    ids = known.facts["id"]
    gone, ineligible = (
        _mask(pc.is_in(ids, pa.array(names, ids.type)))
        for names in (
            {line["id"] for line in excluded if line["reason"] == WITHDRAWN},
            {line["id"] for line in excluded if line["reason"] != WITHDRAWN}
            | too_short(context, staging.inputs, ids),
        )
    )
    sides = np.where(gone | ineligible, np.uint8(NO_SIDE), held)
    return Standing(ineligible, np.zeros_like(ineligible), sides), gone


def _held(database: Queries, staging: StagingFolder, known: Involved) -> Array:
    """Which documents are held out, as `Standing` has it."""
    ids = known.facts["id"]
    if not (recorded := sides_in(staging.inputs)):
        return np.full(len(ids), NO_SIDE, np.uint8)
    found = database.table(f"""
        SELECT id, max(side = 'heldout') AS held
        FROM {parquet([*keyed_tables(staging.inputs).values()])} SEMI JOIN involved USING (id)
        JOIN {parquet(recorded)} USING (tokenized_digest) GROUP BY id""")
    held = found["held"].take(pc.index_in(ids, found["id"].cast(ids.type)))
    return np.asarray(held.cast(pa.uint8()).fill_null(NO_SIDE))


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings, gridding = recipe.removed_documents, recipe.token_grid
    are_lengths_counted = _are_compared(recipe) and least_tokens(recipe) > 1
    return {
        "near": recipe.near_duplicate_pairs.near,
        "threshold": settings.threshold,
        "heldout_floor": settings.heldout_floor,
        "prefer": list(settings.prefer),
        "exact": list(settings.exact),
        "contaminated": recipe.contaminated_documents.action,
        "heldout_fraction": gridding.heldout_fraction,
        "seed": gridding.seed,
        **({"lengths": params_of(counted_by(recipe))} if are_lengths_counted else {}),
    }


def _are_compared(recipe: Recipe) -> bool:
    near = recipe.near_duplicate_pairs.near
    return near or bool(recipe.removed_documents.exact) or are_held_out(recipe)


def removes_documents(recipe: Recipe) -> bool:
    """Whether tokens and rows depend on exclusions: not if sources are files and the recipe
    excludes nothing and holds nothing out.
    """
    return (
        not recipe.sources
        or _are_compared(recipe)
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
_DECIDED = _OLDER_OR_ALL.where(lambda recipe, key, other: other == key or _are_compared(recipe))
"""Where excluded documents are read of: no document is removed for one of them."""

STAGE = Stage(
    name="removed_documents",
    description=(
        "Which filtered documents of one snapshot stay, on which side of the split; what the "
        "others duplicate, and why they go."
    ),
    code_version="8",
    reads={
        "filtered_documents": _OLDER_OR_ALL.summarized(),
        "document_keys": _OLDER_OR_ALL,
        "signature_index": _OLDER_OR_ALL.only_if(
            lambda recipe: bool(recipe.removed_documents.exact)
        ),
        "near_duplicate_pairs": _OLDER_OR_ALL.only_if(
            lambda recipe: recipe.near_duplicate_pairs.near
        ),
        "heldout_pairs": _OLDER_OR_ALL.only_if(are_held_out),
        "contaminated_documents": _DECIDED,
        "snapshot_withdrawals": _DECIDED,
    },
    params=_params,
    checks=(removals_add_up, every_near_duplicate_has_one_that_stays, everything_withdrawn_goes),
    columns=DECISIONS,
    job="snapshot_rows",
    kinds=("parquet", "duckdb"),
    write=write_removed_documents,
)
"""Excluded documents: near duplicates, documents similar to held-out ones, contaminated and
withdrawn documents.
"""
