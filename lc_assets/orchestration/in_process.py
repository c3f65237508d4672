"""Building through Dagster in this process: runs are recorded in the instance's history as any
others, so that the UI shows them; Dagster's own console lines are turned off.
"""

import contextlib
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from lc_assets.lake.lake import GLOBAL
from lc_assets.stages.planning import Run
from lc_assets.stages.rebuilding import PartitionFailed

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
NOTICES = (dg.BetaWarning, dg.PreviewWarning, dg.SupersessionWarning)


@contextlib.contextmanager
def instance_at(home: Path, settings: str = "dagster.yaml") -> Iterator[dg.DagsterInstance]:
    """Open the instance whose history is in ``home``, by its settings file of that name; Dagster's
    telemetry is off.
    """
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    with dg.DagsterInstance.from_config(str(home.absolute()), settings) as instance:
        yield instance


class Recorder:
    """Builds the planner's runs through Dagster.

    Args:
        defs: the code location.
        instance: where the history is kept.
        say: receives a line per materialized asset.
    """

    def __init__(
        self, defs: dg.Definitions, instance: dg.DagsterInstance, say: Callable[[str], object]
    ) -> None:
        self._job = defs.resolve_implicit_global_asset_job_def()
        self._instance, self._say = instance, say

    def build(self, run: Run) -> None:
        """Materialize the partitions of one run, and run their checks.

        Raises:
            PartitionFailed: when a step failed; with its message in Dagster's history.
            KeyboardInterrupt: when it was interrupted.
        """
        run_id = str(uuid.uuid4())
        self._instance.add_event_listener(run_id, self._listen)
        with warnings.catch_warnings():
            for category in NOTICES:
                warnings.simplefilter("ignore", category)
            ended = self._job.execute_in_process(
                run_config=QUIET,
                instance=self._instance,
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
            raise PartitionFailed(
                f"{asset}/{run.key}", f"{_message_of(failures[0])} (run {run_id})"
            )

    def _listen(self, entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is None or not event.is_step_materialization:
            return
        found = event.step_materialization_data.materialization
        built, rows = (found.metadata.get(name) for name in ("built", "dagster/row_count"))
        self._say(
            f"{found.asset_key.to_user_string()} {found.partition or ''}: "
            f"{built.value if built else 'materialized'}{f', {rows.value:,} kept' if rows else ''}"
        )


def _was_interrupted(failure: dg.DagsterEvent) -> bool:
    """Whether a step failed because of Ctrl-C, which Dagster turns into an error of its own."""
    error = failure.step_failure_data.error
    return error is not None and error.cls_name == dg.DagsterExecutionInterruptedError.__name__


def _message_of(failure: dg.DagsterEvent) -> str:
    data = failure.step_failure_data
    words = data.user_failure_data.description if data.user_failure_data is not None else None
    return words or (
        data.error.message.strip() if data.error is not None else f"{failure.step_key} failed"
    )
