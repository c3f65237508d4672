"""Schedules that ask the planner every hour of the night, and start what it calls out of date, each
version once a night.

The backstop of the condition (`lc_assets.orchestration.conditions`), which asks for each version
once: what failed then may have failed for a reason that has passed. Alone, they rebuild everything
    in a
night: what waits in one hour can be built in the next. A night's runs have keys of their own, so a
    tick that is evaluated twice starts nothing twice, and what has failed is not tried
again before the next night. What is being built already is left alone.

There are two, because a schedule has one job, and a job's partitions are of one kind: snapshots
(and what has no partitions), mixes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg

from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.planner import Asker
from lc_assets.orchestration.upstream_sensors import RUNNING
from lc_assets.stages.planning import Run, partitioned_by

CRON = "0 1-6 * * *"
KINDS: Mapping[str, frozenset[str]] = {
    "nightly": frozenset({"snapshot", "nothing"}),
    "nightly_mixes": frozenset({"mix"}),
}
"""Schedule → the kinds of partitions that its job has."""


def nightly_schedules(
    asker: Asker, asset_of: Mapping[str, dg.AssetKey], *, running: bool
) -> Sequence[dg.ScheduleDefinition]:
    """Make the schedules.

    Args:
        asker: asks the planner.
        asset_of: asset by stage.
        running: whether they run from the start.
    """
    status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED
    of_kind = {
        name: {stage: key for stage, key in asset_of.items() if partitioned_by(stage) in kinds}
        for name, kinds in KINDS.items()
    }
    return [_schedule(name, asker, assets, status) for name, assets in of_kind.items()]


def _schedule(
    name: str, asker: Asker, asset_of: Mapping[str, dg.AssetKey], status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=name,
        target=dg.AssetSelection.assets(*asset_of.values()),
        cron_schedule=CRON,
        default_status=status,
        description="Builds by night whatever the planner calls out of date; `lc plan` says what "
        "that is.",
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        night = context.scheduled_execution_time.strftime("%Y-%m-%d")
        try:
            requests = requests_of(asker, asset_of, context.instance, night=night)
        except LcError as error:
            yield dg.SkipReason(f"the planner cannot be asked: {error}")
            return
        if not requests:
            yield dg.SkipReason("nothing is out of date that could be built now")
        yield from requests

    return nightly


def requests_of(
    asker: Asker, asset_of: Mapping[str, dg.AssetKey], instance: dg.DagsterInstance, *, night: str
) -> list[dg.RunRequest]:
    """The runs that a night's hour asks for: what can be built now, and is not being built.

    Args:
        asker: asks the planner.
        asset_of: asset by stage, of the stages that count.
        instance: knows what is being built.
        night: names the night.

    Raises:
        LcError: when the planner cannot be asked.
    """
    busy = _busy(instance, set(asset_of.values()))
    ours = [run for run in asker.runs() if run.stages[0] in asset_of]
    return [
        request_of(run, asset_of, night=night)
        for run in ours
        if not any((asset_of[stage], run.key) in busy for stage in run.stages)
    ]


def request_of(run: Run, asset_of: Mapping[str, dg.AssetKey], *, night: str) -> dg.RunRequest:
    """A run as Dagster is asked for it; older snapshots first, and after whatever a person asked
    for.
    """
    partition = None if run.key == GLOBAL else run.key
    return dg.RunRequest(
        run_key=f"{night}/{run.key}/{run.identity}",
        partition_key=partition,
        asset_selection=[asset_of[stage] for stage in run.stages],
        tags={"dagster/priority": "-2", "lc/stages": " ".join(run.stages)},
    )


def _busy(
    instance: dg.DagsterInstance, all_assets: Collection[dg.AssetKey]
) -> set[tuple[dg.AssetKey, str]]:
    """Assets and partitions of the runs that are under way; a run of a whole job may be of any
    asset.
    """
    found: set[tuple[dg.AssetKey, str]] = set()
    for run in instance.get_runs(dg.RunsFilter(statuses=list(RUNNING))):
        found |= {
            (asset, run.tags.get("dagster/partition", GLOBAL))
            for asset in run.asset_selection or all_assets
        }
    return found
