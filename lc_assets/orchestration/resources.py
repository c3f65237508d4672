"""The build context as a Dagster resource, and the errors that Dagster retries."""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg

from lc_assets.builds.building import context_for
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import read_recipe, record_recipe
from lc_assets.builds.shard_runs import log_shards_to
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import BadInput, Busy, LcError, StorageFull, Unreachable, WorkerDied
from lc_assets.execution.progress import in_log, on_terminal, silent
from lc_assets.lake.bucket import is_in_bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.vocabulary import REDPAJAMA_V2

LAKE = "lc_assets/lake"
"""Where Dagster's storage has the lake that its history is of."""

SHARD_LOG = "shards.jsonl"
"""File beside a run's output in Dagster's storage, with a line per shard."""


RETRIES: Mapping[type[LcError], tuple[int, float]] = {
    Unreachable: (3, 60),  # after a minute of retries of the requests themselves
    Busy: (4, 30),  # another process builds the partition, which is then found finished
    WorkerDied: (1, 60),  # out of memory, perhaps because of another process
    StorageFull: (2, 300),  # another process may be deleting files
}
"""Transient errors: how often a step is retried, and the seconds before the first retry; each later
pause is four times as long. All other errors (a wrong setting, a corrupt file, a failed check, a
mismatch) fail immediately, because retries would fail again.
"""


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Dagster does not warn that what is used of it is new: observable sources, partitioned checks,
    code references and conditions of other packages are beta or a preview in 1.13.
    """
    with warnings.catch_warnings():
        for category in (dg.BetaWarning, dg.PreviewWarning, dg.SupersessionWarning):
            warnings.simplefilter("ignore", category)
        yield


class BuildContextResource(dg.ConfigurableResource):
    """Locations and execution settings of the stages.

    Attributes:
        lake: folder, or ``gs://bucket/folder``, in which everything is published.
        upstream: RedPajama-V2, or its layout: a folder, ``https://…`` or ``gs://…``.
        crawl: the crawl's own archives (WARC, WAT, indexes), for LongPack: a folder, ``https://…``
            or ``gs://…``.
        recipe: path of the recipe's TOML file; empty for the default recipe.
        sections: further sections of the recipe, as TOML, from components; None outside these.
        withdrawn: paths of lists of withdrawals besides the recipe's, separated as in ``PATH``.
        workers: processes that a stage uses on this machine.
        executor: a cluster instead, see `lc_assets.execution.on_ray`; empty for this machine.
        task_seconds: time limit per shard; 0 for none.
        on_terminal: whether progress is drawn on the terminal as well.
    """

    lake: str = "lake"
    upstream: str = REDPAJAMA_V2
    crawl: str = ""
    recipe: str = ""
    sections: str | None = None
    withdrawn: str = ""
    workers: int = 1
    executor: str = ""
    task_seconds: float = 0.0
    on_terminal: bool = False

    @contextlib.contextmanager
    def open(self, log: logging.Logger) -> Iterator[BuildContext]:
        """Open the build context of one asset; progress is logged to ``log``. An error of this
        package fails the step with its message, or requests a retry.
        """
        step = _step()
        where = None
        if step is not None:
            where = Path(step.instance.storage_directory()) / step.run_id / SHARD_LOG
        before = _size_of(where)
        try:
            if step is not None:
                claim_history(step.instance, self.lake)
            record_recipe(self.lake, self.recipe_file(), self.sections)
            with log_shards_to(where):
                yield self.build_context(log)
        except LcError as error:
            failure = dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False)
            if type(error) not in RETRIES:
                raise failure from error
            most, seconds = RETRIES[type(error)]
            before_this = step.retry_number if step is not None else 0
            raise dg.RetryRequested(
                max_retries=most, seconds_to_wait=seconds * 4.0**before_this
            ) from failure
        if _size_of(where) > before:
            log.info(f"a line per shard: {where}")

    def build_context(self, log: logging.Logger) -> BuildContext:
        """The build context; progress is logged to ``log``."""
        return context_for(
            self.lake_folder(),
            self.read_recipe(),
            upstream=self.upstream,
            crawl=self.crawl,
            executor=self.executor,
            workers=self.workers,
            task_seconds=self.task_seconds,
            watch=in_log(log.info, drawn=on_terminal if self.on_terminal else silent),
            say=log.info,
        )

    def recipe_file(self) -> Path | None:
        """The recipe's file; None for the default recipe."""
        return Path(self.recipe) if self.recipe else None

    def read_recipe(self) -> Recipe:
        """The recipe, as it is now.

        Raises:
            BadInput: when it cannot be read.
        """
        return read_recipe(self.recipe_file(), withdrawn=self.withdrawn, sections=self.sections)

    def lake_folder(self) -> Lake:
        """The lake."""
        return open_lake(self.lake)


def claim_history(instance: dg.DagsterInstance, lake: str) -> None:
    """Note in Dagster's history which lake it is of: assets of all lakes have the same keys, so
    that events of another lake would make this one's stale.

    Raises:
        BadInput: when it is of another lake that still exists.
    """
    here = lake if is_in_bucket(lake) else str(Path(lake).resolve())
    storage = instance.daemon_cursor_storage
    other = storage.get_cursor_values({LAKE}).get(LAKE, "")
    if other == here:
        return
    if other and (is_in_bucket(other) or Path(other).exists()):
        raise BadInput(
            f"this Dagster history is of the lake {other}, not of {here}: set DAGSTER_HOME to "
            "another folder"
        )
    storage.set_cursor_values({LAKE: here})


def _size_of(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.is_file() else 0


def _step() -> dg.OpExecutionContext | None:
    """Dagster's context of the step that runs now; None outside a run."""
    with contextlib.suppress(dg.DagsterInvariantViolationError):
        return dg.OpExecutionContext.get()
    return None
