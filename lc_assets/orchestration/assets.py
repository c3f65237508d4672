"""Assets and jobs, made from the stages' declarations."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import Stage
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.metadata import result_of
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets.sources.settings import source_name
from lc_assets.stages.planning import keys_of
from lc_assets.vocabulary import SnapshotId, parse_snapshot

WHOLE = "snapshot"
"""The job of everything that makes one snapshot's rows: those of `PARTS`."""
PARTS = ("snapshot_documents", "withdrawn", "snapshot_rows")

JOBS: Mapping[str, str] = {
    WHOLE: "Everything of one crawl snapshot, from what is upstream to Megatron's files.",
    "snapshot_documents": "One crawl snapshot's documents, filtered and compared: needed of all "
    "snapshots before rows are made.",
    "withdrawn": "Which documents the lists of withdrawals name, of all snapshots: run it when a "
    "list has changed.",
    "snapshot_rows": "One crawl snapshot's rows: removals, tokens, grid, Megatron's files.",
    "all_snapshots": "The global order over all published snapshots, and the flat Zarr.",
    "snapshot_longpack": "One crawl snapshot's long documents from hyperlinks, where the recipe "
    "wants them: pages in the crawl's archives, links, claims, packed documents.",
    "snapshot_packing": "One crawl snapshot's packed rows, where the recipe wants them: tokens of "
    "documents of any length, rows of a fixed one.",
    "snapshot_reports": "Lengths and referrals of one crawl snapshot's document sets, where the "
    "recipe wants them.",
    "mixes": "One blend of the published snapshots.",
    "card": "The data-set card of what is published.",
}
"""Job → its description."""


def asset_of(
    stage: Stage,
    *,
    recipe: Recipe,
    snapshots: Sequence[SnapshotId],
    partitions: dg.PartitionsDefinition | None,
    condition: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> dg.AssetsDefinition:
    """Make the asset of a stage.

    Args:
        stage: the declaration.
        recipe: its settings are part of the code version, so that Dagster knows what another recipe
            makes stale.
        snapshots: the snapshots that are partitions.
        partitions: of the asset.
        condition: when it is materialized by itself, where automation is on.
    """

    @dg.asset(
        name=stage.name,
        description=stage.description,
        group_name=stage.group,
        kinds=set(stage.kinds),
        pool=stage.pool,
        code_version=code_version_of(stage, recipe, snapshots),
        partitions_def=partitions,
        deps=[_dep(stage, upstream, recipe, snapshots) for upstream in stage.reads],
        owners=["team:lc_assets"],
        tags={"lc_assets/stage": stage.name, "lc_assets/per": stage.partitioned_by},
        automation_condition=condition,
    )
    def materialize(
        context: dg.AssetExecutionContext, build_context: BuildContextResource
    ) -> dg.MaterializeResult:
        key = GLOBAL if partitions is None else context.partition_key
        with build_context.open(context.log) as opened:
            state = stage.state(opened, parse_snapshot(key)) if stage.state else None
            built = stage.build(opened, key)
            return result_of(stage, built, stage.show(opened, built), state=state)

    return materialize


def code_version_of(stage: Stage, recipe: Recipe, snapshots: Sequence[SnapshotId]) -> str:
    """The stage's code version, and a digest of its settings in this recipe: of every mix, or of
    one partition of each source.
    """
    keys = keys_of(stage, recipe, snapshots) or ([] if recipe.sources else [GLOBAL])
    if stage.partitioned_by == "snapshot" and recipe.sources:
        by_source = {source_name(recipe.sources, key): key for key in reversed(keys)}
        keys = [by_source[name] for name in sorted(by_source)]
    elif stage.partitioned_by == "snapshot":
        keys = keys[:1]
    return f"{stage.code_version}-{short(digest_of([stage.params(recipe, key) for key in keys]))}"


def _dep(
    stage: Stage, upstream: Stage, recipe: Recipe, snapshots: Sequence[SnapshotId]
) -> dg.AssetDep:
    """Which partitions of an upstream asset a partition reads."""
    key = dg.AssetKey(upstream.name)
    if upstream.partitioned_by == "nothing" or not stage.reads_others:
        return dg.AssetDep(key)
    if stage.partitioned_by != "snapshot":
        return dg.AssetDep(key, partition_mapping=dg.AllPartitionMapping())
    mapping: dict[str, list[str]] = {
        other: [own for own in snapshots if stage.is_fed_by(recipe, own, upstream.name, other)]
        for other in snapshots
    }
    return dg.AssetDep(key, partition_mapping=dg.StaticPartitionMapping(mapping))


def jobs_of(stages: Sequence[Stage]) -> list[Any]:
    """Make the jobs that the stages name, and `WHOLE`."""
    by_job: dict[str, list[str]] = {}
    for stage in stages:
        for job in (WHOLE, stage.job) if stage.job in PARTS else (stage.job,):
            by_job.setdefault(job, []).append(stage.name)
    return [
        dg.define_asset_job(job, names, description=JOBS.get(job))
        for job, names in by_job.items()
        if job
    ]
