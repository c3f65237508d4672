"""The embedded engine: a function over many tasks in this machine's processes. Nothing to start, nothing that stays behind."""

import contextlib
import functools
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any, Final

from lc_assets.engines.attempts import attempt, patiently
from lc_assets.engines.crews import OUT_OF_MEMORY, Done, Lost, ended, work_through
from lc_assets.engines.engine import TERMS, Result, Task, Terms
from lc_assets.engines.progress import Watch, silent
from lc_assets.errors import BadInput

KILLED: Final = "was killed (often for memory), or the program that started it does work when it is imported (guard it by __main__)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs tasks in ``workers`` processes of this machine, or in this very process when there is one.

    Attributes:
        workers: number of processes.
        watch: what shows progress.
        preload: modules that the workers' parent imports once, so that a worker starts in milliseconds.
        terms: on which terms a task is done.
    """

    workers: int = 1
    watch: Watch = silent
    preload: tuple[str, ...] = ()
    terms: Terms = TERMS

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1, got {self.workers}")

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.engines.engine.Engine.run`."""
        alone = self.workers == 1 or len(tasks) <= 1
        yield from self.watch(self._alone(function, tasks) if alone else self._in_processes(function, tasks), total=len(tasks), what=what)

    def _alone(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        return ((task, patiently(function, task, self.terms)) for task in tasks)

    def _in_processes(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        with _processes(min(self.workers, len(tasks)), self.preload, self.terms) as crew:
            yield from work_through(crew, function, tasks, self.terms)


@contextlib.contextmanager
def _processes(workers: int, preload: Sequence[str], terms: Terms) -> Iterator["_Processes"]:
    """Workers that end with the block: when its work is done, and at once, in the middle of a task, when it is broken off."""
    # forkserver: a fork of this process could inherit locks that other threads (gRPC, Dagster) hold.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *preload])
    lifeline, held = context.Pipe(duplex=False)
    crew = _Processes(workers, terms, functools.partial(ProcessPoolExecutor, 1, context, _end_with, (lifeline,)))
    whole = False
    try:
        yield crew
        whole = True
    finally:
        if not whole:
            held.close()
        crew.dismiss()
        held.close()
        lifeline.close()


@dataclass(slots=True)
class _Processes:
    """A crew of processes, each a pool of its own: so one knows which task a death is the death of."""

    workers: int
    terms: Terms
    hire: Callable[[], ProcessPoolExecutor]
    idle: deque[ProcessPoolExecutor] = field(default_factory=deque)
    at_work: dict[Future[Any], tuple[ProcessPoolExecutor, float]] = field(default_factory=dict)

    def places(self) -> int:
        return self.workers

    def hand_out(self, function: Callable[[Task], Any], task: Task) -> Future[Any]:
        while self.idle:
            process = self.idle.popleft()
            with contextlib.suppress(BrokenProcessPool):  # it was killed while it had nothing to do
                return self._note(process, process.submit(attempt, function, task, self.terms))
        process = self.hire()
        return self._note(process, process.submit(attempt, function, task, self.terms))

    def _note(self, process: ProcessPoolExecutor, handle: Future[Any]) -> Future[Any]:
        self.at_work[handle] = process, time.monotonic()
        return handle

    def wait(self, handles: Collection[Future[Any]]) -> Iterator[tuple[Future[Any], Done | Lost]]:
        for handle in wait(handles, return_when=FIRST_COMPLETED).done:
            process, begun = self.at_work.pop(handle)
            self.idle.append(process)
            try:
                outcome: Done | Lost = Done(handle.result())
            except BrokenProcessPool:
                outcome = ended(time.monotonic() - begun, self.terms, otherwise=KILLED)
            except MemoryError:
                outcome = OUT_OF_MEMORY
            yield handle, outcome

    def dismiss(self) -> None:
        """End all; whoever is at work ends its task first, or at once when the lifeline is cut."""
        for process in [*self.idle, *(process for process, _ in self.at_work.values())]:
            process.shutdown(cancel_futures=True)


def _end_with(lifeline: connection.Connection) -> None:
    """Watch, in a worker, over the process that works with it: when that is gone, or lets go, however it did, the worker ends at once.

    A worker itself would wait for its next task for ever, with all its memory, and until then go on writing into a
    folder that a rerun has taken over.
    """
    threading.Thread(target=_end_after, args=(lifeline,), daemon=True).start()


def _end_after(lifeline: connection.Connection) -> None:
    parent = multiprocessing.parent_process()
    connection.wait([lifeline] if parent is None else [lifeline, parent.sentinel])
    os._exit(1)
