"""The embedded engine: a function over many tasks in this machine's processes.

A task is small (paths and settings), its result is small (counts), and doing it twice is harmless, because it
publishes whole files under names that the task determines. So a worker that dies costs its tasks again and
nothing else.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lc_assets.engines.progress import Watch, silent
from lc_assets.errors import BadInput, WorkerDied

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """What a stage may ask of whatever runs its work."""

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str) -> Iterator[tuple[Task, Result]]:
        """Yield each task with its result, in any order, as they are done.

        Args:
            function: a module-level function; pure but for the files that its task names.
            tasks: what to call it with, one at a time.
            what: says in a few words what is being done, for people who watch.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs tasks in ``workers`` processes of this machine, or in this very process when there is one.

    Attributes:
        workers: number of processes.
        patience: how many times the same tasks may lose their worker before `WorkerDied` is raised.
        watch: what shows progress.
        preload: modules that the workers' parent imports once, so that a worker starts in milliseconds.
    """

    workers: int = 1
    patience: int = 2
    watch: Watch = silent
    preload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1, got {self.workers}")

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str) -> Iterator[tuple[Task, Result]]:
        """See `Engine.run`.

        Raises:
            WorkerDied: when a worker was killed (often: out of memory) ``patience`` times; names the tasks in hand.
            Exception: whatever ``function`` raised, as soon as it is known; tasks not begun are cancelled.
        """
        alone = self.workers == 1 or len(tasks) <= 1
        results = ((task, function(task)) for task in tasks) if alone else self._in_processes(function, tasks)
        yield from self.watch(results, total=len(tasks), what=what)

    def _in_processes(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        waiting = dict(enumerate(tasks))
        deaths = 0
        while waiting:
            try:
                for index, result in self._one_pool(function, waiting):
                    yield waiting.pop(index), result
            except BrokenProcessPool as error:
                deaths += 1
                if deaths >= self.patience:
                    named = ", ".join(map(str, list(waiting.values())[: 2 * self.workers]))  # as many as are handed out
                    raise WorkerDied(
                        f"a worker was killed {deaths} times while working on one of: {named}; "
                        "it ran out of memory, or the program that started it does work when it is imported (guard it by __main__)"
                    ) from error

    def _one_pool(self, function: Callable[[Task], Result], waiting: dict[int, Task]) -> Iterator[tuple[int, Result]]:
        # forkserver: a fork of this process could inherit locks that other threads (gRPC, Dagster) hold.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", *self.preload])
        processes = ProcessPoolExecutor(min(self.workers, len(waiting)), mp_context=context, initializer=_end_with_parent)
        remaining = iter(list(waiting.items()))
        in_flight: dict[Future[Result], int] = {}
        try:
            while True:
                for index, task in remaining:
                    in_flight[processes.submit(function, task)] = index
                    if len(in_flight) >= 2 * self.workers:
                        break
                if not in_flight:
                    return
                for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
                    yield in_flight.pop(future), future.result()
        finally:
            processes.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Watch, in a worker, over the process that works with it: when that is gone, however it went, the worker ends at once.

    A worker itself would wait for its next task for ever, with all its memory, and until then go on writing into a
    folder that a rerun has taken over.
    """
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
