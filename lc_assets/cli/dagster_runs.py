"""Running Dagster's jobs in this process, with the instance's history and without its noise.

Each run is recorded in the instance as any other, so the UI shows it afterwards. Events are handed to a listener
as they happen; Dagster's own console lines are turned off.
"""

import contextlib
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from lc_assets.errors import LcError

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

Listener = Callable[[dg.EventLogEntry], None]


@contextlib.contextmanager
def instance_at(home: Path, settings: str) -> Iterator[dg.DagsterInstance]:
    """Open the instance whose history lies in ``home``, by the settings in that file of it; nothing is sent to anybody."""
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    with dg.DagsterInstance.from_config(str(home.absolute()), settings) as instance:
        yield instance


def run_job(defs: dg.Definitions, job: str, *, instance: dg.DagsterInstance, partition: str | None, listener: Listener) -> None:
    """Run a job to its end.

    Raises:
        LcError: when a step failed; says which, and what Dagster's history says of it.
        KeyboardInterrupt: when it was stopped by hand; Dagster's history has it as failed.
    """
    run_id = str(uuid.uuid4())
    instance.add_event_listener(run_id, listener)
    with warnings.catch_warnings():
        for category in (dg.BetaWarning, dg.PreviewWarning, dg.SupersessionWarning):
            warnings.simplefilter("ignore", category)
        ended = defs.resolve_job_def(job).execute_in_process(
            run_config=QUIET, instance=instance, partition_key=partition, run_id=run_id, raise_on_error=False
        )
    if any(map(_was_stopped, ended.all_events)):
        raise KeyboardInterrupt
    if not ended.success:
        raise LcError(f"{job} {partition or ''} failed: {'; '.join(failures(ended)) or 'Dagster does not say why'} (run {run_id})")


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
    return words or (data.error.message.strip() if data.error is not None else f"{event.step_key} failed")
