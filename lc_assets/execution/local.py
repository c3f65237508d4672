"""The local executor: a function over many tasks in processes of this machine."""

import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

from lc_assets.errors import BadInput
from lc_assets.execution.containment import (
    WATCH_SECONDS,
    Watched,
    is_contained,
    may_skip,
    run_skipping,
)
from lc_assets.execution.executor import (
    DEFAULT_POLICY,
    OUT_OF_MEMORY,
    Done,
    Executor,
    Lost,
    Result,
    Skips,
    Task,
    TaskPolicy,
    ended_after,
    with_retries,
    work_through,
)
from lc_assets.execution.processes import IDLE_POOL, Kind, Worker, kind_now
from lc_assets.execution.progress import Watch, in_log, on_terminal, silent
from lc_assets.records import record

KILLED = (
    "was killed, most likely for memory: give it more, or fewer --workers, or let the filter skip "
    "such documents (--killed skip, killed_documents)"
)
AT_IMPORT = ". Or the program that started it does work when it is imported: guard it by __main__"
LARGE_BYTES = 16 << 20
"""Inputs of which one worker may need more memory than there is; they take longer than its start.
"""


@record
class LocalExecutor:
    """Runs tasks in ``workers`` processes of this machine, or in this process if there is one
    worker or task, nothing to contain, and little to read.

    Attributes:
        workers: number of processes.
        watch: shows progress.
        preload: modules that the workers' parent imports once, so that a worker starts in
            milliseconds.
        policy: limits of a task.
        apart: whether a single worker is also a process of its own, so that it can be killed for
            memory without this one.
    """

    workers: int = 1
    watch: Watch = silent
    preload: tuple[str, ...] = ()
    policy: TaskPolicy = DEFAULT_POLICY
    apart: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise BadInput(f"workers must be at least 1, got {self.workers}")

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.execution.executor.Executor.run`."""
        contains = self.policy.contains and is_contained(function)
        if tasks and (contains or self.apart or (self.workers > 1 and len(tasks) > 1)):
            results = self._in_processes(function, tasks)
        else:
            results = ((task, with_retries(function, task, self.policy)) for task in tasks)
        yield from self.watch(results, total=len(tasks), what=what)

    def _in_processes(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Run the tasks by workers that return to the pool when all succeed, and are otherwise
        killed, in the middle of a task.
        """
        pool = _Processes(min(self.workers, len(tasks)), kind_now(self.preload), self.policy)
        succeeded = False
        try:
            yield from work_through(pool, function, tasks, self.policy, may_skip=may_skip(function))
            succeeded = True
        finally:
            if succeeded:
                IDLE_POOL.keep(pool.idle)
            else:
                pool.end_at_once()


@dataclass(slots=True)
class _Assignment:
    """A worker and its task."""

    worker: Worker
    watched: Watched
    started: float = field(default_factory=time.monotonic)

    def kill_if_over_limit(self) -> None:
        if not self.watched.limit and self.watched.check():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.watched.process, signal.SIGKILL)


@dataclass(slots=True)
class _Processes:
    """A pool of processes, each a `ProcessPoolExecutor` of its own: so a death is attributed to its
    task.
    """

    workers: int
    kind: Kind = field(repr=False)
    policy: TaskPolicy
    idle: deque[Worker] = field(default_factory=deque)
    at_work: dict[Future[Any], _Assignment] = field(default_factory=dict)

    def capacity(self) -> int:
        return self.workers

    def submit(self, function: Callable[[Task], Any], task: Task, skips: Skips) -> Future[Any]:
        while True:
            if not self.idle:
                self.idle.append(IDLE_POOL.worker(self.kind))
            worker = self.idle[0]  # still there, and so ended, if a stop comes at its start
            handle = worker.begin(run_skipping, skips, function, task, self.policy)
            self.idle.popleft()
            if handle is not None:
                contains = self.policy if is_contained(function) else DEFAULT_POLICY
                self.at_work[handle] = _Assignment(worker, Watched(worker.cell, contains))
                return handle
            worker.end()

    def wait(self, handles: Collection[Future[Any]]) -> Iterator[tuple[Future[Any], Done | Lost]]:
        done: set[Future[Any]] = set()
        while not done:
            done = wait(handles, self._watch_seconds(), return_when=FIRST_COMPLETED).done
            for handle, assignment in self.at_work.items():
                if handle not in done:
                    assignment.kill_if_over_limit()
        for handle in done:
            assignment = self.at_work.pop(handle)
            self.idle.append(assignment.worker)
            yield handle, self._outcome(handle, assignment)

    def _watch_seconds(self) -> float | None:
        watching = any(assignment.watched.policy.contains for assignment in self.at_work.values())
        return WATCH_SECONDS if watching else None

    def _outcome(self, handle: Future[Any], assignment: _Assignment) -> Done | Lost:
        watched = assignment.watched
        try:
            return Done(handle.result())
        except BrokenProcessPool:
            if watched.limit:
                return Lost(watched.limit, document=watched.document, limit=watched.limit)
            seconds = time.monotonic() - assignment.started
            document = watched.document_now
            why = KILLED + ("" if document >= 0 else AT_IMPORT)
            killed = Lost(why, document=document, last=watched.last_now)
            return ended_after(seconds, self.policy, otherwise=killed)
        except MemoryError:
            return OUT_OF_MEMORY

    def end_at_once(self) -> None:
        """Kill all workers, in the middle of their tasks."""
        every = [*self.idle, *(assignment.worker for assignment in self.at_work.values())]
        for worker in every:
            worker.cut()
        for worker in every:
            worker.end()


def for_inputs_of(executor: Executor, n_bytes: int) -> Executor:
    """The same executor, for inputs of so many bytes."""
    if isinstance(executor, LocalExecutor) and n_bytes > LARGE_BYTES:
        return replace(executor, apart=True)
    return executor


def executor_of(workers: int | None, *, log_seconds: float = 0) -> LocalExecutor:
    """Return an executor with ``workers`` processes, or one per processor, that draws a bar with
    rate and time left on a terminal; or every ``log_seconds`` prints a line on standard error.
    """
    watch = in_log(_print_error, every_seconds=log_seconds) if log_seconds else on_terminal
    return LocalExecutor(workers=workers or os.cpu_count() or 1, watch=watch)


def _print_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
