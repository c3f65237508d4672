"""The check `is_up_to_date`: what the planner reports as out of date is a warning in the graph.

Dagster's own staleness is one hop deep, and the graph does not show it for partitions. This check
has the planner's verdict on all partitions of an asset, with the reasons. Runs evaluate it for the
assets that they built. A sensor records what differs from the history, with an observation of each
partition whose verdict changed; it starts no run.

The check is of whole assets, because Dagster 1.13 stores one check result per partition, and no
second one, outside runs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg
import msgspec
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.automation import DagsterPlanner
from lc_assets.orchestration.resources import claim_history
from lc_assets.stages.planning import Plan

CHECK = "is_up_to_date"
DESCRIPTION = "Building it now would give the same versions (`lc plan`)."
LOOK_EVERY_SECONDS = 60
MOST_NAMED = 5
"""Partitions that a check's description names; its metadata has the number of all."""


def verdict(stage: str, asset: dg.AssetKey, plans: Sequence[Plan]) -> dg.AssetCheckResult:
    """The planner's verdict on an asset."""
    behind = [made for made in plans if made.stage == stage and made.status != "current"]
    named = [f"{made.key}: {why(made)}" for made in behind[:MOST_NAMED]]
    more = [f"and {len(behind) - MOST_NAMED:,} more"] if len(behind) > MOST_NAMED else []
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=CHECK,
        passed=not behind,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join([*named, *more]) or "nothing is out of date",
        metadata={"out_of_date": len(behind)},
    )


def why(made: Plan) -> str:
    """What the planner says of a partition."""
    return f"{made.status}{': ' if made.reasons else ''}{made.why}"


def staleness_checks(
    planner: DagsterPlanner, asset_of: Mapping[str, dg.AssetKey]
) -> dg.AssetChecksDefinition:
    """Make the checks of all assets: one step, which plans once."""

    @dg.multi_asset_check(
        name=CHECK,
        specs=[
            dg.AssetCheckSpec(CHECK, asset=key, description=DESCRIPTION)
            for key in asset_of.values()
        ],
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        chosen = {key.asset_key for key in context.selected_asset_check_keys}
        plans: list[Plan] = []
        failure = ""
        try:
            plans = planner.plans()
        except LcError as error:  # what was built is published
            failure = f"the planner failed: {type(error).__name__}: {error}"
        for stage, asset in asset_of.items():
            if asset in chosen:
                found = verdict(stage, asset, plans)
                yield found._replace(passed=False, description=failure) if failure else found

    return check


def staleness_sensor(
    planner: DagsterPlanner, asset_of: Mapping[str, dg.AssetKey]
) -> dg.SensorDefinition:
    """Make the sensor, which runs from the start."""

    @dg.sensor(
        name="staleness",
        minimum_interval_seconds=LOOK_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Records what `lc plan` reports as the check {CHECK}; starts nothing.",
    )
    def staleness(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        try:
            claim_history(context.instance, planner.lake().url)
            plans = planner.plans()
        except LcError as error:
            return dg.SensorResult(skip_reason=f"nothing is recorded: {error}")
        before = msgspec.json.decode(context.cursor or "{}", type=dict[str, str])
        now = {made.name: why(made) for made in plans if made.status != "current"}
        changed = [made for made in plans if before.get(made.name) != now.get(made.name)]
        planned, stages = ({made.stage for made in some} for some in (plans, changed))
        newest = newest_of(context.instance, asset_of.values())
        known = warned_of(context.instance, asset_of.values(), newest)
        results = {asset: verdict(stage, asset, plans) for stage, asset in asset_of.items()}
        evaluations = [
            dg.AssetCheckEvaluation(
                asset_key=asset,
                check_name=CHECK,
                passed=result.passed,
                severity=result.severity,
                description=result.description,
                metadata=result.metadata,
                target_materialization_data=newest.get(asset),
            )
            for stage, asset in asset_of.items()
            if (result := results[asset]).passed is known[asset]
            or stage in stages
            or (known[asset] is None and stage in planned)
        ]
        observations = [_observation(asset_of[made.stage], made) for made in changed]
        return dg.SensorResult(
            asset_events=[*evaluations, *observations],
            skip_reason=f"{len(plans):,} partitions, {len(now):,} out of date; {len(changed):,} "
            f"changed, {len(evaluations):,} checks recorded",
            cursor=msgspec.json.encode(now).decode(),
        )

    return staleness


def warned_of(
    instance: dg.DagsterInstance,
    assets: Collection[dg.AssetKey],
    newest: Mapping[dg.AssetKey, AssetCheckEvaluationTargetMaterializationData],
) -> dict[dg.AssetKey, bool | None]:
    """Asset → whether the check warns; None where no result is of the newest materialization, as
    `newest_of` has it.
    """
    keys = [dg.AssetCheckKey(asset, CHECK) for asset in assets]
    warned: dict[dg.AssetKey, bool | None] = dict.fromkeys(assets)
    for key, record in instance.event_log_storage.get_latest_asset_check_execution_by_key(
        keys
    ).items():
        event = record.event.dagster_event if record.event else None
        if event is None or event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            continue
        result = event.asset_check_evaluation_data
        if result.target_materialization_data == newest.get(key.asset_key):
            warned[key.asset_key] = not result.passed
    return warned


def newest_of(
    instance: dg.DagsterInstance, assets: Collection[dg.AssetKey]
) -> dict[dg.AssetKey, AssetCheckEvaluationTargetMaterializationData]:
    """Asset → its newest materialization."""
    return {
        found.asset_entry.asset_key: AssetCheckEvaluationTargetMaterializationData(
            storage_id=last.storage_id, run_id=last.run_id, timestamp=last.timestamp
        )
        for found in instance.get_asset_records(list(assets))
        if (last := found.asset_entry.last_materialization_record)
    }


def _observation(asset: dg.AssetKey, made: Plan) -> dg.AssetObservation:
    """The verdict on one partition, for its page."""
    partition = None if made.key == GLOBAL else made.key
    return dg.AssetObservation(asset, partition=partition, metadata={CHECK: why(made)})
