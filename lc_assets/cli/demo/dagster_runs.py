"""Running Dagster's jobs in this process, with the instance's history and without its noise.

Each run is recorded in the instance as any other, so the UI shows it afterwards. Events are handed
to a listener as they happen; Dagster's own console lines are turned off.
"""

import contextlib
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL
from lc_assets.stages.planning import Run
from lc_assets.stages.rebuilding import PartitionFailed

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

Listener = Callable[[dg.EventLogEntry], None]


@contextlib.contextmanager
def instance_at(home: Path, settings: str = "dagster.yaml") -> Iterator[dg.DagsterInstance]:
    """Open the instance whose history lies in ``home``, by the settings in that file of it; nothing
    is sent to anybody.
    """
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    with dg.DagsterInstance.from_config(str(home.absolute()), settings) as instance:
        yield instance


def run_job(
    defs: dg.Definitions,
    job: str,
    *,
    instance: dg.DagsterInstance,
    partition: str | None,
    listener: Listener,
) -> None:
    """Run a job to its end.

    Raises:
        LcError: when a step failed; says which, and what Dagster's history says of it.
        KeyboardInterrupt: when it was stopped by hand; Dagster's history has it as failed.
    """
    run_id = str(uuid.uuid4())
    instance.add_event_listener(run_id, listener)
    with _told_nobody():
        ended = defs.resolve_job_def(job).execute_in_process(
            run_config=QUIET,
            instance=instance,
            partition_key=partition,
            run_id=run_id,
            raise_on_error=False,
        )
    if any(map(_was_stopped, ended.all_events)):
        raise KeyboardInterrupt
    if not ended.success:
        raise LcError(
            f"{job} {partition or ''} failed: "
            f"{'; '.join(failures(ended)) or 'Dagster does not say why'} (run {run_id})"
        )


class Recorder:
    """Builds what the planner says by runs of Dagster in this process, and lets its history have
    them.

    Args:
        defs: the code location.
        instance: where the history is kept.
        say: is told a line per materialized asset.
    """

    def __init__(
        self, defs: dg.Definitions, instance: dg.DagsterInstance, say: Callable[[str], object]
    ) -> None:
        self._job = defs.resolve_implicit_global_asset_job_def()
        self._instance, self._say = instance, say

    def build(self, run: Run) -> None:
        """Materialize the partitions of one run, and test their checks.

        Raises:
            PartitionFailed: when a step failed; says which, and what Dagster's history says of it.
            KeyboardInterrupt: when it was stopped by hand.
        """
        partition = None if run.plans[0].key == GLOBAL else run.key
        run_id = str(uuid.uuid4())
        self._instance.add_event_listener(run_id, self._listen)
        with _told_nobody():
            ended = self._job.execute_in_process(
                run_config=QUIET,
                instance=self._instance,
                partition_key=partition,
                asset_selection=[dg.AssetKey(stage) for stage in run.stages],
                run_id=run_id,
                raise_on_error=False,
            )
        if any(map(_was_stopped, ended.all_events)):
            raise KeyboardInterrupt
        for event in ended.all_events:
            if event.is_step_failure:
                asset = (event.step_key or "").removesuffix("_checks")
                raise PartitionFailed(f"{asset}/{run.key}", f"{_said(event)} (run {run_id})")

    def _listen(self, entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is not None and event.is_step_materialization:
            found = event.step_materialization_data.materialization
            built = found.metadata.get("built")
            self._say(
                f"{found.asset_key.to_user_string()} {found.partition or ''}: "
                f"{built.value if built is not None else 'materialized'}"
            )


@contextlib.contextmanager
def _told_nobody() -> Iterator[None]:
    """Send nothing to anybody, and keep Dagster's notices on what is new or old to itself."""
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    with warnings.catch_warnings():
        for category in (dg.BetaWarning, dg.PreviewWarning, dg.SupersessionWarning):
            warnings.simplefilter("ignore", category)
        yield


def failures(ended: dg.ExecuteInProcessResult) -> list[str]:
    """What each failed step said."""
    return [_said(event) for event in ended.all_events if event.is_step_failure]


def _was_stopped(event: dg.DagsterEvent) -> bool:
    """Whether a step failed because of Ctrl-C, which Dagster turns into an error of its own."""
    error = event.step_failure_data.error if event.is_step_failure else None
    return error is not None and error.cls_name == dg.DagsterExecutionInterruptedError.__name__


def _said(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    words = data.user_failure_data.description if data.user_failure_data is not None else None
    return words or (
        data.error.message.strip() if data.error is not None else f"{event.step_key} failed"
    )
