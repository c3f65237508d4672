"""The embedded engine: a function over many tasks in this machine's processes. Nothing to start;
what stays behind ends by itself.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Final

from lc_assets.engines.attempts import attempt, patiently
from lc_assets.engines.crews import OUT_OF_MEMORY, Done, Lost, ended, work_through
from lc_assets.engines.engine import TERMS, Result, Task, Terms
from lc_assets.engines.processes import BENCH, Kind, Worker, kind_now
from lc_assets.engines.progress import Watch, silent
from lc_assets.errors import BadInput

KILLED: Final = (
    "was killed (often for memory), or the program that started it does work when it "
    "is imported (guard it by __main__)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs tasks in ``workers`` processes of this machine, or in this very process when there is
    one.

    Attributes:
        workers: number of processes.
        watch: what shows progress.
        preload: modules that the workers' parent imports once, so that a worker starts in
            milliseconds.
        terms: on which terms a task is done.
    """

    workers: int = 1
    watch: Watch = silent
    preload: tuple[str, ...] = ()
    terms: Terms = TERMS

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1, got {self.workers}")

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.engines.engine.Engine.run`."""
        alone = self.workers == 1 or len(tasks) <= 1
        yield from self.watch(
            self._alone(function, tasks) if alone else self._in_processes(function, tasks),
            total=len(tasks),
            what=what,
        )

    def _alone(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result]]:
        return ((task, patiently(function, task, self.terms)) for task in tasks)

    def _in_processes(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result]]:
        with _processes(min(self.workers, len(tasks)), kind_now(self.preload), self.terms) as crew:
            yield from work_through(crew, function, tasks, self.terms)


@contextlib.contextmanager
def _processes(workers: int, kind: Kind, terms: Terms) -> Iterator["_Processes"]:
    """Workers that wait for more when the block's work is done, and end at once, in the middle of a
    task, when it is broken off.
    """
    crew = _Processes(workers, kind, terms)
    whole = False
    try:
        yield crew
        whole = True
    finally:
        if whole:
            BENCH.sit_down(crew.idle)
        else:
            crew.end_at_once()


@dataclass(slots=True)
class _Processes:
    """A crew of processes, each a pool of its own: so one knows which task a death is the death
    of.
    """

    workers: int
    kind: Kind = field(repr=False)
    terms: Terms
    idle: deque[Worker] = field(default_factory=deque)
    at_work: dict[Future[Any], tuple[Worker, float]] = field(default_factory=dict)

    def places(self) -> int:
        return self.workers

    def hand_out(self, function: Callable[[Task], Any], task: Task) -> Future[Any]:
        while True:
            worker = self.idle.popleft() if self.idle else BENCH.worker(self.kind)
            if (handle := worker.begin(attempt, function, task, self.terms)) is not None:
                self.at_work[handle] = worker, time.monotonic()
                return handle
            worker.end()

    def wait(self, handles: Collection[Future[Any]]) -> Iterator[tuple[Future[Any], Done | Lost]]:
        for handle in wait(handles, return_when=FIRST_COMPLETED).done:
            worker, begun = self.at_work.pop(handle)
            self.idle.append(worker)
            try:
                outcome: Done | Lost = Done(handle.result())
            except BrokenProcessPool:
                outcome = ended(time.monotonic() - begun, self.terms, otherwise=KILLED)
            except MemoryError:
                outcome = OUT_OF_MEMORY
            yield handle, outcome

    def end_at_once(self) -> None:
        """End all, whoever is at work in the middle of its task."""
        every = [*self.idle, *(worker for worker, _ in self.at_work.values())]
        for worker in every:
            worker.cut()
        for worker in every:
            worker.end()
