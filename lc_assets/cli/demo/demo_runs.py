"""The demo's Dagster runs: which jobs, in which order, and a line per asset as it is
materialized.
"""

import time
from collections.abc import Callable, Sequence

import dagster as dg
from rich.status import Status
from rich.text import Text

from lc_assets.cli.demo.dagster_runs import instance_at, run_job
from lc_assets.cli.demo.workplace import QUIET_YAML, Workplace
from lc_assets.cli.printing import harmless, lasted, out, shown
from lc_assets.definitions import build_defs
from lc_assets.errors import Mismatch
from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.jobs import stages_by_job
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import Plan

STAGES_OF = stages_by_job(STAGES)
"""Job → the stages it builds, one partition of each."""

END = " 100%|"
"""In a progress line that says nothing beside the line of the finished asset."""


def run_jobs(
    place: Workplace,
    behind: Sequence[Plan],
    workers: int,
    *,
    still_behind: Callable[[], Sequence[Plan]],
) -> None:
    """Run, one after another, the jobs of what is out of date; the planner is run again after
    each.

    Args:
        place: where.
        behind: what is out of date now.
        workers: processes of a stage.
        still_behind: asks the planner again.

    Raises:
        LcError: when a run fails.
        Mismatch: when something is still out of date after its job.
    """
    sample, recipe = (str(path.absolute()) for path in (place.sample, place.recipe))
    defs = build_defs(lake=place.lake, upstream=sample, recipe=recipe, workers=workers)
    done: set[tuple[str, str | None]] = set()
    with (
        instance_at(place.dagster_home, QUIET_YAML) as instance,
        Lines(n_partitions_of(behind)) as lines,
    ):
        while behind:
            job, partition = job_of(behind[0])
            if (job, partition) in done:
                raise Mismatch(
                    f"{behind[0].name} is out of date after its job: {'; '.join(behind[0].reasons)}"
                )
            done.add((job, partition))
            run_job(defs, job, instance=instance, partition=partition, listener=lines)
            behind = still_behind()


def job_of(plan: Plan) -> tuple[str, str | None]:
    """The job, and its partition, that builds what a plan is about."""
    job = next(job for job, stages in STAGES_OF.items() if plan.stage in stages)
    return job, None if plan.key == GLOBAL else plan.key


def n_partitions_of(behind: Sequence[Plan]) -> int:
    """How many partitions the jobs of what is out of date will go through."""
    return sum(len(STAGES_OF[job]) for job, _ in {job_of(plan) for plan in behind})


class Lines:
    """A Dagster listener that prints a line per materialized asset, and shows progress in between
    on a terminal.

    A stage's own progress (count, rate, time left) comes by as log lines every few seconds.
    """

    def __init__(self, n_partitions: int) -> None:
        self._n_partitions, self._n_done = n_partitions, 0
        self._started: dict[str, float] = {}
        self._console = out()
        self._status = Status("", console=self._console)

    def __enter__(self) -> "Lines":
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def __call__(self, entry: dg.EventLogEntry) -> None:
        """Take notice of one event."""
        event = entry.dagster_event
        if event is None:
            self._progress(entry.user_message)
        elif event.is_step_start and event.step_key is not None:
            self._started[event.step_key] = time.monotonic()
            self._status.update(f"{event.step_key} {event.partition or ''}")
        elif event.is_step_materialization:
            self._materialized(event)

    def _progress(self, words: str) -> None:
        if self._console.is_terminal:
            self._status.update(words)
        elif END not in words:
            self._say(f"        {words}")

    def _materialized(self, event: dg.DagsterEvent) -> None:
        self._n_done += 1
        materialization = event.step_materialization_data.materialization
        name = f"{materialization.asset_key.to_user_string()} {materialization.partition or ''}".strip()
        seconds = time.monotonic() - self._started.get(event.step_key or "", time.monotonic())
        rows = materialization.metadata.get("dagster/row_count")
        kept = "" if rows is None else f"{shown(rows.value)} kept"
        self._say(
            f"[{self._n_done:>2}/{max(self._n_partitions, self._n_done)}] {name:<32} "
            f"{lasted(seconds):>10}   {kept}"
        )

    def _say(self, words: str) -> None:
        # By the status line's own console: it takes its line away, and draws it again below.
        self._console.print(Text(harmless(words)), soft_wrap=True)
