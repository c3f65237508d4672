"""Assets, checks and jobs, made from the stages' declarations.

Every check of a stage is an asset check that runs it again on the published version; one more
compares every file with its digest, and stages that serve text are compared with the current
withdrawal lists (`lc_assets.stages.withdrawal.contents`). The UI shows their values. All except
warnings block downstream assets in the same run.
"""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DEFAULT_DATA_VERSION
from dagster._core.execution.plan.execute_step import _build_data_version_tags, _InputProvenanceData

from lc_assets.builds.building import check_input_of, run_check
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import BuildContext, CheckResult, Stage
from lc_assets.errors import CorruptFile, LcError
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.orchestration.metadata import (
    config_of,
    definition_of,
    refuse_other_settings,
    result_of,
)
from lc_assets.orchestration.resources import BuildContextResource, without_notices
from lc_assets.orchestration.sensors import observation
from lc_assets.sources.settings import source_name
from lc_assets.stages.catalogue import NAMES, needed_by, stage_named
from lc_assets.stages.planning import keys_of
from lc_assets.stages.shown import shown
from lc_assets.stages.withdrawal.contents import (
    CHECK as WITHDRAWN,
    SERVED,
    nothing_withdrawn_is_served,
)
from lc_assets.vocabulary import SnapshotId, parse_snapshot

SNAPSHOT_JOB = "snapshot"
"""The job of everything that makes one snapshot's rows: those of `PARTS`."""
PARTS = ("snapshot_documents", "snapshot_rows")

JOBS: Mapping[str, str] = {
    SNAPSHOT_JOB: "Everything of one crawl snapshot, from what is upstream to Megatron's files.",
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
    sources: Collection[str] = (),
) -> dg.AssetsDefinition:
    """Make the asset of a stage.

    Args:
        stage: the declaration.
        recipe: its settings are part of the code version, so that Dagster marks assets as stale
            when the recipe changes.
        snapshots: the snapshots that are partitions.
        partitions: of the asset.
        condition: when it is materialized automatically, if automation is enabled.
        sources: names of the external assets that exist.
    """
    outside = [name for name in stage.outside if name in sources]

    @dg.asset(
        name=stage.name,
        description=stage.description,
        metadata=definition_of(stage, recipe),
        config_schema=config_of(stage, recipe),
        group_name=stage.group,
        kinds=set(stage.kinds),
        pool=stage.pool,
        code_version=code_version_of(stage, recipe, snapshots),
        partitions_def=partitions,
        deps=[*_deps(stage, recipe), *outside],
        owners=recipe.dagster.owners,
        tags={
            **recipe.dagster.tags,
            "lc_assets/stage": stage.name,
            "lc_assets/per": stage.partitioned_by,
        },
        freshness_policy=_freshness(recipe) if partitions is None else None,
        automation_condition=condition,
    )
    def materialize(
        context: dg.AssetExecutionContext, build_context: BuildContextResource
    ) -> dg.MaterializeResult:
        key = GLOBAL if partitions is None else context.partition_key
        with build_context.open(context.log) as opened:
            refuse_other_settings(stage, recipe, context.op_execution_context.op_config)
            _build_whole(context, opened, stage, snapshots)
            state = stage.state(opened, parse_snapshot(key)) if stage.state else None
            for name in outside:
                context.log_event(observation(name, key, str(state)))
                # The materialization is of this state, not of the one before the step.
                context.get_step_execution_context().wipe_input_asset_version_info(
                    dg.AssetKey(name)
                )
            built = stage.build(replace(opened, following=_selected(context)), key)
            return result_of(stage, built, shown(stage, opened, built), state=state)

    return materialize


def _selected(context: dg.AssetExecutionContext) -> tuple[Stage, ...]:
    """The stages whose assets are materialized in the same run."""
    names = {key.path[-1] for key in context.job_def.asset_layer.executable_asset_keys}
    return tuple(stage_named(name) for name in NAMES if name in names)


def _freshness(recipe: Recipe) -> dg.FreshnessPolicy | None:
    hours = recipe.dagster.fresh_hours
    if hours is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))


def code_version_of(stage: Stage, recipe: Recipe, snapshots: Sequence[SnapshotId]) -> str:
    """The stage's code version, and a digest of its settings in this recipe: of every mix, or of
    one partition of each source.
    """
    keys = keys_of(stage, recipe, snapshots)
    if not keys and not recipe.sources and stage.partitioned_by != "mix":
        keys = [GLOBAL]
    if stage.partitioned_by == "snapshot" and recipe.sources:
        by_source = {source_name(recipe.sources, key): key for key in reversed(keys)}
        keys = [by_source[name] for name in sorted(by_source)]
    elif stage.partitioned_by == "snapshot":
        keys = keys[:1]
    return f"{stage.code_version}-{short(digest_of([stage.params(recipe, key) for key in keys]))}"


def _deps(stage: Stage, recipe: Recipe) -> Iterator[dg.AssetDep]:
    """The edges to the upstream assets that the recipe builds. Dagster follows them downstream too,
    and a backfill would build what it reaches: a snapshot is linked with the same snapshot only,
    although it may read older ones, and instead of with `_read_whole` with what these read. The
    planner knows all of it.
    """
    whole = _read_whole(stage)
    names = {name for one in (stage, *whole) for name in _needed(one, recipe)}
    for upstream in sorted(names - {one.name for one in whole}):
        per = stage_named(upstream).partitioned_by
        everything = per not in {"nothing", stage.partitioned_by}
        mapping = dg.AllPartitionMapping() if everything else None
        yield dg.AssetDep(dg.AssetKey(upstream), partition_mapping=mapping)


def _needed(stage: Stage, recipe: Recipe) -> list[str]:
    """What a stage reads, without what the recipe does not build; all of it if not built itself."""
    built = needed_by(recipe)
    return [name for name in stage.reads if name in built or stage.name not in built]


def _read_whole(stage: Stage) -> list[Stage]:
    """The stages without partitions that a stage of one snapshot reads: its steps build them."""
    whole = (stage_named(name) for name in stage.reads if stage.partitioned_by == "snapshot")
    return [upstream for upstream in whole if upstream.partitioned_by == "nothing"]


def _build_whole(
    context: dg.AssetExecutionContext,
    opened: BuildContext,
    stage: Stage,
    snapshots: Sequence[SnapshotId],
) -> None:
    """Build what `_read_whole` names, where it is out of date. The history gets the event that its
    own step would leave, unless it was current and has one after those of all that it reads.
    """
    newest = context.instance.get_latest_data_version_record
    for upstream in _read_whole(stage):
        built = upstream.build(opened, GLOBAL)
        events = {
            key: found.storage_id if (found := newest(key)) else None
            for key in map(dg.AssetKey, _needed(upstream, opened.recipe))
        }
        before = newest(dg.AssetKey(upstream.name))
        if (
            built.reused
            and before
            and before.storage_id > max(filter(None, events.values()), default=0)
        ):
            continue
        made = result_of(upstream, built, shown(upstream, opened, built))
        tags = _build_data_version_tags(
            dg.DataVersion(built.published.receipt.digest),
            code_version_of(upstream, opened.recipe, snapshots),
            {
                key: _InputProvenanceData(data_version=DEFAULT_DATA_VERSION, storage_id=number)
                for key, number in events.items()
            },
            data_version_is_user_provided=True,
        )
        context.log_event(dg.AssetMaterialization(upstream.name, metadata=made.metadata, tags=tags))


def jobs_of(stages: Sequence[Stage]) -> list[Any]:
    """Make the jobs that the stages name, and `SNAPSHOT_JOB`."""
    by_job: dict[str, list[str]] = {}
    for stage in stages:
        for job in (SNAPSHOT_JOB, stage.job) if stage.job in PARTS else (stage.job,):
            by_job.setdefault(job, []).append(stage.name)
    return [
        dg.define_asset_job(job, names, description=JOBS.get(job))
        for job, names in by_job.items()
        if job
    ]


WHOLE = "every_file_is_as_published"


def checks_of(
    stage: Stage, asset: dg.AssetKey, partitions: dg.PartitionsDefinition | None
) -> dg.AssetChecksDefinition:
    """Make the checks of one asset."""
    described = {check.__name__: inspect.getdoc(check) or "" for check in stage.checks}
    described[WHOLE] = "Every file has the size and digest of the receipt."
    if stage.name in SERVED:
        described[WITHDRAWN] = inspect.getdoc(nothing_withdrawn_is_served) or ""
    with without_notices():
        # Partitioned checks, because a good snapshot would hide a bad one.
        specs = [
            dg.AssetCheckSpec(
                name, asset=asset, description=sentence, blocking=True, partitions_def=partitions
            )
            for name, sentence in described.items()
        ]

        @dg.multi_asset_check(
            name=f"{asset.to_python_identifier()}_checks", specs=specs, can_subset=True
        )
        def check(
            context: dg.AssetCheckExecutionContext, build_context: BuildContextResource
        ) -> Iterator[dg.AssetCheckResult]:
            chosen = {key.name for key in context.selected_asset_check_keys}
            with build_context.open(context.log) as opened:
                # A run of a partition may contain an asset without partitions.
                has_key = partitions is not None and context.has_partition_key
                key = context.partition_key if has_key else GLOBAL
                for found in findings_of(opened.lake, stage, key, chosen, recipe=opened.recipe):
                    is_error = found.severity == "error"
                    yield dg.AssetCheckResult(
                        asset_key=asset,
                        check_name=found.check,
                        passed=found.passed,
                        severity=getattr(dg.AssetCheckSeverity, "ERROR" if is_error else "WARN"),
                        description=found.message,
                        metadata=dict(found.values),
                    )

    return check


def findings_of(
    lake: Lake, stage: Stage, key: str, chosen: set[str], *, recipe: Recipe
) -> list[CheckResult]:
    """Run the selected checks on the published version; withdrawals are taken from ``recipe``. All
    fail where its receipt is damaged, or that of an input.
    """
    try:
        published = lake.partition(stage.name, key).require()
        check_input = check_input_of(lake, published, by_summary=stage.by_summary)
    except CorruptFile as error:
        return [_not_run(name, error) for name in sorted(chosen)]
    found = [run_check(check, check_input) for check in stage.checks if check.__name__ in chosen]
    if WITHDRAWN in chosen:
        try:
            found.append(nothing_withdrawn_is_served(lake, recipe, published))
        except LcError as error:
            found.append(_not_run(WITHDRAWN, error))
    return found + ([every_file_is_as_published(published)] if WHOLE in chosen else [])


def _not_run(check: str, error: LcError) -> CheckResult:
    message = f"cannot be checked: {type(error).__name__}: {error}"
    return CheckResult(check=check, passed=False, message=message)


def every_file_is_as_published(published: Published) -> CheckResult:
    """Read every file again and compare its digest with the receipt."""
    damage, n_files = published.damage(), len(published.receipt.files)
    message = f"{n_files:,} files, {published.receipt.n_bytes:,} bytes"
    if damage:
        message = (
            f"{'; '.join(damage[:5])}; to build the version again, remove the folder "
            f"{published.home} and materialize this partition"
        )
    return CheckResult(
        check=WHOLE,
        passed=not damage,
        message=message,
        values={"files": n_files, "bytes": published.receipt.n_bytes},
    )
