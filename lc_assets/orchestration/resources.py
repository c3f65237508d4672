"""Resources: where the lake lies, where to read from, by which recipe, with how many workers. No
computation.

Here too: what Dagster is told when a stage fails. What may pass by itself is tried again after a
pause, four times as long each time; what cannot is not, because it would fail again after the same
hours.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from lc_assets.build.building import executor_for
from lc_assets.build.recipe import read_recipe, record_recipe
from lc_assets.build.shard_runs import log_shards_to
from lc_assets.build.stage import BuildContext
from lc_assets.errors import Busy, LcError, StorageFull, Unreachable, WorkerDied
from lc_assets.execution.progress import in_log
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream

SHARD_LOG = "shards.jsonl"
"""Beside what a run printed, in Dagster's storage: what became of each shard."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often an error is met with another attempt, and how many seconds before the first; later
    ones wait four times as long.
    """

    retries: int
    seconds: float

    def pause(self, retries_before: int) -> float:
        """Seconds to wait now.

        >>> [Patience(3, 60).pause(n) for n in range(3)]
        [60.0, 240.0, 960.0]
        """
        return self.seconds * 4.0**retries_before


PATIENCE: Mapping[type[LcError], Patience] = {
    Unreachable: Patience(
        3, 60
    ),  # upstream was asked again for a minute before this; now for another twenty
    Busy: Patience(4, 30),  # somebody else builds the partition: then it will be found finished
    WorkerDied: Patience(
        1, 60
    ),  # out of memory, perhaps beside something that has ended; twice is no accident
    StorageFull: Patience(2, 300),  # somebody may be making room
}
"""What may pass by itself. Everything else (a wrong setting, a corrupt file, a failed audit, a
mismatch) is not tried again.
"""


class BuildContextResource(dg.ConfigurableResource):
    """Where and how the stages work.

    Attributes:
        lake: folder, or ``gs://bucket/folder``, under which everything is published.
        upstream: RedPajama-V2, or something of its shape: a folder, ``https://…`` or ``gs://…``.
        crawl: the crawl's own archives (WARC, WAT, indexes), where LongPack is wanted: a folder,
            ``https://…`` or ``gs://…``.
        recipe: path of the recipe's TOML file; empty for the default recipe.
        withdrawn: paths of lists of withdrawals besides the recipe's, separated as in ``PATH``.
        workers: processes that a stage uses on this machine.
        executor: who works instead, see `lc_assets.execution.on_ray`; empty is this machine.
        task_seconds: how long one shard may take; 0 is for ever.
    """

    lake: str
    upstream: str
    crawl: str = ""
    recipe: str = ""
    withdrawn: str = ""
    workers: int = 1
    executor: str = ""
    task_seconds: float = 0.0

    @contextlib.contextmanager
    def open(self, log: logging.Logger) -> Iterator[BuildContext]:
        """Open the build context of one asset. An error of this package fails the step with its
        message, or requests a retry.
        """
        where = shard_log()
        before = _size_of(where)
        try:
            record_recipe(self.lake, Path(self.recipe) if self.recipe else None)
            with log_shards_to(where):
                yield self.build_context(log)
        except LcError as error:
            _tell_dagster(error)
        if _size_of(where) > before:
            log.info(f"what became of each shard: {where}")

    def build_context(self, log: logging.Logger) -> BuildContext:
        """The build context; progress goes to ``log``."""
        lake, upstream, crawl = (
            self.lake_folder(),
            Upstream(self.upstream),
            Upstream(self.crawl) if self.crawl else None,
        )
        return BuildContext(
            lake=lake,
            upstream=upstream,
            recipe=read_recipe(
                Path(self.recipe) if self.recipe else None, withdrawn=self.withdrawn
            ),
            executor=executor_for(
                self.executor,
                lake=lake,
                reads=(upstream, crawl),
                workers=self.workers,
                watch=in_log(log.info),
                task_seconds=self.task_seconds,
            ),
            crawl=crawl,
            say=log.info,
        )

    def lake_folder(self) -> Lake:
        """The lake."""
        return open_lake(self.lake)


def shard_log() -> Path | None:
    """Where the fates of a run's shards are noted; nowhere outside a run."""
    context = _context()
    return (
        Path(context.instance.storage_directory()) / context.run_id / SHARD_LOG
        if context is not None
        else None
    )


def _size_of(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.is_file() else 0


def _tell_dagster(error: LcError) -> None:
    """Fail the step, now or after some more attempts.

    Raises:
        dg.RetryRequested: for what may pass by itself.
        dg.Failure: for the rest.
    """
    failure = dg.Failure(description=f"{type(error).__name__}: {error}", allow_retries=False)
    patience = PATIENCE.get(type(error))
    if patience is None:
        raise failure from error
    context = _context()
    pause = patience.pause(context.retry_number if context is not None else 0)
    raise dg.RetryRequested(max_retries=patience.retries, seconds_to_wait=pause) from failure


def _context() -> dg.OpExecutionContext | None:
    with contextlib.suppress(dg.DagsterInvariantViolationError):
        return dg.OpExecutionContext.get()
    return None
