"""The embedded executor: a function over many tasks in this machine's processes. Nothing to start;
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

from lc_assets.errors import BadInput
from lc_assets.execution.attempts import run_task, with_retries
from lc_assets.execution.executor import DEFAULT_POLICY, Result, Task, TaskPolicy
from lc_assets.execution.processes import IDLE_POOL, Kind, Worker, kind_now
from lc_assets.execution.progress import Watch, silent
from lc_assets.execution.worker_pool import OUT_OF_MEMORY, Done, Lost, ended, work_through

KILLED: Final = (
    "was killed (often for memory), or the program that started it does work when it "
    "is imported (guard it by __main__)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
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
    policy: TaskPolicy = DEFAULT_POLICY

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1, got {self.workers}")

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.execution.executor.Executor.run`."""
        alone = self.workers == 1 or len(tasks) <= 1
        yield from self.watch(
            self._alone(function, tasks) if alone else self._in_processes(function, tasks),
            total=len(tasks),
            what=what,
        )

    def _alone(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result]]:
        return ((task, with_retries(function, task, self.policy)) for task in tasks)

    def _in_processes(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result]]:
        with _processes(min(self.workers, len(tasks)), kind_now(self.preload), self.policy) as pool:
            yield from work_through(pool, function, tasks, self.policy)


@contextlib.contextmanager
def _processes(workers: int, kind: Kind, policy: TaskPolicy) -> Iterator["_Processes"]:
    """Workers that wait for more when the block's work is done, and end at once, in the middle of a
    task, when it is broken off.
    """
    pool = _Processes(workers, kind, policy)
    whole = False
    try:
        yield pool
        whole = True
    finally:
        if whole:
            IDLE_POOL.keep(pool.idle)
        else:
            pool.end_at_once()


@dataclass(slots=True)
class _Processes:
    """A crew of processes, each a pool of its own: so one knows which task a death is the death
    of.
    """

    workers: int
    kind: Kind = field(repr=False)
    policy: TaskPolicy
    idle: deque[Worker] = field(default_factory=deque)
    at_work: dict[Future[Any], tuple[Worker, float]] = field(default_factory=dict)

    def capacity(self) -> int:
        return self.workers

    def submit(self, function: Callable[[Task], Any], task: Task) -> Future[Any]:
        while True:
            worker = self.idle.popleft() if self.idle else IDLE_POOL.worker(self.kind)
            if (handle := worker.begin(run_task, function, task, self.policy)) is not None:
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
                outcome = ended(time.monotonic() - begun, self.policy, otherwise=KILLED)
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
