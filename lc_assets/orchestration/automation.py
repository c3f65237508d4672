"""Building what the planner reports: by a condition, by nightly schedules, or in this process.

Dagster's own conditions follow events. They miss changes made while the daemon is off, or between a
request and its run, and changes to files that a setting names. These conditions follow the state: a
partition is requested while the planner reports it as out of date. The recipe is read on every
evaluation, as a run would read it. Only snapshots with a published manifest are planned: a
snapshot's first build is requested by its sensor or started manually.

The condition does not request a partition

* while it or one of its inputs is being built;
* if this version was requested before and its run failed, was cancelled, or built another version.
  It is requested again when anything about it changes, and once a night;
* if a check has rejected this version.

The schedules request each version once a night, because the cause of a failure may be gone. They
suffice to rebuild everything in a night: what has to wait in one hour can be built in the next. Run
keys contain the date, so evaluating a tick twice starts no duplicate runs. There are two schedules,
because a schedule has one job, and all partitions of a job are of one kind.

Runs in this process are recorded in the instance's history like any others, so the UI shows them;
Dagster's console output is turned off.
"""

import contextlib
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec
from dagster._core.instance.ref import InstanceRef

from lc_assets.builds.recipe import Recipe
from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.orchestration.resources import without_notices
from lc_assets.orchestration.sensors import RUNNING
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.planning import Plan, Run, partitioned_by, plan, runs_of
from lc_assets.stages.rebuilding import PartitionFailed

CRON = "0 1-6 * * *"
KINDS: Mapping[str, frozenset[str]] = {
    "nightly": frozenset({"snapshot", "nothing"}),
    "nightly_mixes": frozenset({"mix"}),
}
"""Schedule → the kinds of partitions of its job."""


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
WITHOUT_CAPTURE: Any = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


@dataclass(slots=True)
class DagsterPlanner:
    """The planner for one code location; it runs once a tick, however many assets query it.

    Attributes:
        lake: opens the lake.
        recipe: reads the recipe.
        snapshots: the partitions that exist.
        requested: names of the partitions that the condition requests in this tick.
    """

    lake: Callable[[], Lake]
    recipe: Callable[[], Recipe]
    snapshots: Collection[str]
    requested: set[str] = field(default_factory=set)
    _planned: tuple[datetime, list[Run]] | None = field(default=None, repr=False)

    def plans(self) -> list[Plan]:
        """The plan of every partition, except for snapshots without a manifest.

        Raises:
            LcError: when the recipe or a file that it names cannot be read.
        """
        lake = self.lake()
        begun = [key for key in lake.keys(raw.STAGE.name) if key in self.snapshots]
        return plan(lake, self.recipe(), begun) if begun else []

    def runs(self) -> list[Run]:
        """What can be built now, except for versions that a check has rejected; see `plans`."""
        return runs_of(self.plans())

    def buildable(self, stage: str, moment: datetime) -> dict[str, tuple[Plan, Run]]:
        """Partitions of a stage that can be built now, with their runs; planned once per
        ``moment``.
        """
        if self._planned is None or self._planned[0] != moment:
            self._planned = (moment, self.runs())
            self.requested.clear()
        return {
            run.key: (made, run)
            for run in self._planned[1]
            for made in run.plans
            if made.stage == stage
        }

    def has_been_built(self, made: Plan) -> bool:
        """Whether a run has published, since the plan was made, what a build would make."""
        pointer = self.lake().partition(made.stage, made.key).pointer()
        return not made.damaged and pointer is not None and pointer.version == made.target


@dataclass(frozen=True, eq=False)
class OutOfDate(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions of a stage that are out of date and can be built now. Stages of one
    partition that can be built in sequence are requested in one tick, as one run.
    """

    planner: DagsterPlanner
    stage: str

    @property
    def name(self) -> str:
        """Label in the UI."""
        return "out_of_date"

    def get_label(self) -> str:
        """Label in the UI."""
        return "out of date"

    @property
    def description(self) -> str:
        """Label in the UI."""
        return "The planner reports it as out of date, and it can be built now (see `lc plan`)."

    @property
    def children(self) -> Sequence[dg.AutomationCondition[Any]]:
        """The condition under which a partition is not requested for now."""
        own, inputs = (
            dg.AutomationCondition.in_progress(),
            dg.AutomationCondition.any_deps_in_progress(),
        )
        return [(own | inputs).with_label("it or an input is being built")]

    async def evaluate(  # type: ignore[override] # Dagster's own are coroutines, too
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        """Query the planner; the cursor stores requests by partition."""
        buildable = self.planner.buildable(self.stage, context.evaluation_time)
        before = decoded(context.cursor)
        # Assets are evaluated upstream first: what a partition waits for has been requested by now,
        # or is not in this tick. A run whose version is not known is identified by its plans.
        fresh = {
            key: identity
            for key, (made, run) in buildable.items()
            if self.planner.requested.issuperset(made.waits_for)
            and before.get(key) != (identity := made.target or f"with {run.identity}")
        }
        candidates = _subset(context, fresh)
        busy = await context.for_child_condition(self.children[0], [0], candidates).evaluate_async()
        free = candidates.compute_difference(busy.true_subset)
        keys = set() if free.is_empty else {GLOBAL}
        if keys and free.is_partitioned:
            keys = set(free.expensively_compute_partition_keys())
        # A run may have ended after the plan was made, before `busy` was evaluated.
        keys = {key for key in keys if not self.planner.has_been_built(buildable[key][0])}
        requested = {key: fresh[key] for key in keys}
        self.planner.requested.update(buildable[key][0].name for key in keys)
        remembered = {key: identity for key, identity in before.items() if key in buildable}
        cursor = msgspec.json.encode(remembered | requested, order="deterministic").decode()
        return dg.AutomationResult(
            context, _subset(context, keys), cursor=cursor, child_results=[busy]
        )


def decoded(cursor: str | None) -> dict[str, str]:
    """The content of a cursor; empty if there is none, or it is another condition's."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def _subset(context: dg.AutomationContext[dg.AssetKey], keys: Collection[str]) -> Any:
    """Those of the named partitions that the asset has."""
    view, asset, partitions = context.asset_graph_view, context.key, context.partitions_def
    if partitions is None:
        return view.get_full_subset(key=asset) if keys else view.get_empty_subset(key=asset)
    return view.get_subset_from_partition_keys(
        asset, partitions, set(keys) & set(partitions.get_partition_keys())
    )


def nightly_schedules(
    planner: DagsterPlanner, asset_of: Mapping[str, dg.AssetKey], *, running: bool
) -> Sequence[dg.ScheduleDefinition]:
    """Make the schedules.

    Args:
        planner: queried every hour of the night.
        asset_of: asset by stage.
        running: whether they run from the start.
    """
    status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED

    def schedule(name: str, of_kind: Mapping[str, dg.AssetKey]) -> dg.ScheduleDefinition:
        @dg.schedule(
            name=name,
            target=dg.AssetSelection.assets(*of_kind.values()),
            cron_schedule=CRON,
            default_status=status,
            description="Builds by night what the planner reports as out of date; see `lc plan`.",
        )
        def nightly(
            context: dg.ScheduleEvaluationContext,
        ) -> Iterator[dg.RunRequest | dg.SkipReason]:
            night = context.scheduled_execution_time.strftime("%Y-%m-%d")
            try:
                requests = requests_of(planner, of_kind, context.instance, night=night)
            except LcError as error:
                yield dg.SkipReason(f"the planner failed: {error}")
                return
            if not requests:
                yield dg.SkipReason("nothing is out of date that could be built now")
            yield from requests

        return nightly

    return [
        schedule(name, {of: key for of, key in asset_of.items() if partitioned_by(of) in kinds})
        for name, kinds in KINDS.items()
    ]


def requests_of(
    planner: DagsterPlanner,
    asset_of: Mapping[str, dg.AssetKey],
    instance: dg.DagsterInstance,
    *,
    night: str,
) -> list[dg.RunRequest]:
    """Run requests for one hour of a night: what can be built now and is not being built. Their
    priority is below that of manually requested runs.

    Args:
        planner: determines what can be built.
        asset_of: assets of the schedule's stages, by stage.
        instance: tracks what is being built.
        night: its date.

    Raises:
        LcError: when the planner fails.
    """
    busy = {
        (asset, run.tags.get("dagster/partition", GLOBAL))
        for run in instance.get_runs(dg.RunsFilter(statuses=list(RUNNING)))
        for asset in run.asset_selection or asset_of.values()  # a job's run may be of any asset
    }
    return [
        dg.RunRequest(
            run_key=f"{night}/{run.key}/{run.identity}",
            partition_key=None if run.key == GLOBAL else run.key,
            asset_selection=[asset_of[stage] for stage in run.stages],
            tags={"dagster/priority": "-2", "lc/stages": " ".join(run.stages)},
        )
        for run in planner.runs()
        if run.stages[0] in asset_of
        and not any((asset_of[stage], run.key) in busy for stage in run.stages)
    ]


@contextlib.contextmanager
def instance_at(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open the instance whose history is in ``home``, for runs in this process.

    Telemetry is off, and so is the capture of what steps print: the two processes per step that
    Dagster starts for it would answer Ctrl-C with tracebacks.
    """
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").touch()
    reference = InstanceRef.from_dir(str(home.absolute()), overrides=WITHOUT_CAPTURE)
    with dg.DagsterInstance.from_ref(reference) as instance:
        yield instance


def recorder(
    defs: dg.Definitions, instance: dg.DagsterInstance, say: Callable[[str], object]
) -> Callable[[Run], None]:
    """A function that builds the planner's runs through Dagster.

    It materializes the partitions of one run, and runs their checks. It raises `PartitionFailed`
    when a step failed, with its message in Dagster's history, and `KeyboardInterrupt` when it was
    interrupted.

    Args:
        defs: the code location.
        instance: where the history is kept.
        say: called with a line per materialized asset.
    """
    job = defs.resolve_implicit_global_asset_job_def()

    def listen(entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is None or not event.is_step_materialization:
            return
        found = event.step_materialization_data.materialization
        built, rows = (found.metadata.get(name) for name in ("built", "dagster/row_count"))
        say(
            f"{found.asset_key.to_user_string()} {found.partition or ''}: "
            f"{built.value if built else 'materialized'}{f', {rows.value:,} kept' if rows else ''}"
        )

    def build(run: Run) -> None:
        run_id = str(uuid.uuid4())
        instance.add_event_listener(run_id, listen)
        with without_notices():
            ended = job.execute_in_process(
                run_config=QUIET,
                instance=instance,
                partition_key=None if run.plans[0].key == GLOBAL else run.key,
                asset_selection=[dg.AssetKey(stage) for stage in run.stages],
                run_id=run_id,
                raise_on_error=False,
            )
        failures = [event for event in ended.all_events if event.is_step_failure]
        if any(map(_was_interrupted, failures)):
            raise KeyboardInterrupt
        if failures:
            asset = (failures[0].step_key or "").removesuffix("_checks")
            message = f"{_message_of(failures[0])} (run {run_id})"
            raise PartitionFailed(f"{asset}/{run.key}", message)

    return build


def _was_interrupted(failure: dg.DagsterEvent) -> bool:
    """Whether a step failed because of Ctrl-C, which Dagster wraps in its own error."""
    error = failure.step_failure_data.error
    return error is not None and error.cls_name == dg.DagsterExecutionInterruptedError.__name__


def _message_of(failure: dg.DagsterEvent) -> str:
    data = failure.step_failure_data
    words = data.user_failure_data.description if data.user_failure_data is not None else None
    return words or (
        data.error.message.strip() if data.error is not None else f"{failure.step_key} failed"
    )
