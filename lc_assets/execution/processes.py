"""Worker processes of this machine, and the pool that keeps them for the next run, which saves
their imports.

A run takes workers from the pool or starts them, and returns them when it succeeds. An idle worker
exits after `IDLE_SECONDS` and together with the process that started it, even if that is killed. A
worker is used again only with the same preloaded modules, working folder, search path and
environment.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import connection, forkserver, resource_tracker, util
from pathlib import Path
from typing import Any, NamedTuple

from lc_assets.arrow_without_pandas import keep_pandas_out
from lc_assets.execution.containment import enter_worker, new_cell

IDLE_SECONDS = 10.0
"""How long an idle worker keeps its memory: longer than most pauses between two stages."""


class Kind(NamedTuple):
    """The properties that a worker is started with."""

    preload: tuple[str, ...]
    folder: Path
    path: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


ENVIRONMENT = threading.Lock()
"""Held while this process's environment is read here or changed for a moment."""


def kind_now(preload: tuple[str, ...]) -> Kind:
    """The kind of worker that this process would start now, with preloaded modules."""
    with ENVIRONMENT:
        return Kind(preload, Path.cwd(), tuple(sys.path), tuple(sorted(os.environ.items())))


@dataclass(slots=True, eq=False)
class Worker:
    """One process, as a pool of its own, so that a death is attributed to its task.

    Attributes:
        kind: what it was started with.
        pool: of one process.
        lifeline: the worker's end of a pipe; the worker exits when the other end is closed.
        held: the other end of the pipe.
        cell: states the document it is processing (`lc_assets.execution.containment`).
        starter: the process that started it.
    """

    kind: Kind = field(repr=False)  # an environment may hold secrets
    pool: ProcessPoolExecutor
    lifeline: connection.Connection
    held: connection.Connection
    cell: Any = field(repr=False)
    starter: int = field(default_factory=os.getpid)

    def begin(self, function: Callable[..., Any], *given: Any) -> Future[Any] | None:
        """Start a task, and the process with its first; None if it was killed while it was idle."""
        with contextlib.suppress(BrokenProcessPool), _no_interrupts():
            return self.pool.submit(function, *given)
        return None

    def cut(self) -> None:
        """Kill it at once, in the middle of a task."""
        self.held.close()

    def end(self) -> None:
        """Stop it when its task is finished, and wait for that."""
        ALIVE.discard(self)
        self.pool.shutdown(cancel_futures=True)
        self.held.close()
        self.lifeline.close()


ALIVE: set[Worker] = set()
"""Every running worker that this process, or one it was forked from, has started."""


def start(kind: Kind, method: str) -> Worker:
    """A new worker; its process starts with its first task, by a method of `multiprocessing`."""
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["__main__", *kind.preload])
        _start_fork_server(kind)
    lifeline, held = context.Pipe(duplex=False)
    cell = new_cell(context)
    pool = ProcessPoolExecutor(1, context, _become_worker, (lifeline, kind.environment, cell))
    worker = Worker(kind, pool, lifeline, held, cell)
    ALIVE.add(worker)
    _end_workers_at_exit(worker.starter)
    return worker


@functools.cache
def _end_workers_at_exit(process: int) -> None:
    """End this process's workers when it exits, before `multiprocessing` closes the queues by which
    they are told to: a process that it started itself, such as a run of Dagster's, would wait for
    them forever.
    """

    def end() -> None:
        for worker in [worker for worker in ALIVE if worker.starter == process]:
            worker.cut()
            worker.end()

    util.Finalize(None, end, exitpriority=100)


def _start_fork_server(kind: Kind) -> None:
    """Start the process that workers are forked from, with this process's search path.

    By default it imports from the working folder first (Python 3.11 to 3.13 ignore the path
    that they receive), and so perhaps another version of this package, or any file with a module's
    name.
    """
    path = os.pathsep.join(str(kind.folder / entry) for entry in kind.path)
    changed = _environment(kind.environment, PYTHONPATH=path, PYTHONSAFEPATH="1")
    with ENVIRONMENT, changed, _no_interrupts():
        forkserver.ensure_running()


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Block keyboard interrupts: processes that start within never receive one, which would end
    them with a traceback before they ignore it. A signal to this process, which any of its threads
    may receive, waits too: a process that is started by halves ends with a traceback.
    """
    arrived: list[int] = []
    # Only the main thread can set handlers, and only it is interrupted.
    is_main = threading.current_thread() is threading.main_thread()
    resource_tracker.ensure_running()  # unblocks the signal when it starts
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handlers = {
        number: signal.signal(number, lambda number, _: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main and signal.getsignal(number) not in {signal.SIG_IGN, None}
    }
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for stop in arrived:
            signal.raise_signal(stop)


@contextlib.contextmanager
def _environment(usual: Iterable[tuple[str, str]], **changed: str) -> Iterator[None]:
    before = dict(usual)
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in changed:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in changed if name in before})


def _become_worker(
    lifeline: connection.Connection, environment: Iterable[tuple[str, str]], cell: Any
) -> None:
    """Make a new process a worker, with the environment of the process that started it.

    The worker ends at once when that process ends or closes the pipe. Otherwise it would wait for
    its next task indefinitely, keeping its memory, or continue to write into a folder that a rerun
    uses. So it can ignore keyboard interrupts.
    """
    os.environ.clear()  # the fork server's is as old as the first run
    os.environ.update(environment)
    enter_worker(cell)
    keep_pandas_out()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(lifeline,), daemon=True).start()


def _end_after(lifeline: connection.Connection) -> None:
    parent = multiprocessing.parent_process()
    connection.wait([lifeline] if parent is None else [lifeline, parent.sentinel])
    os._exit(1)


@dataclass(slots=True)
class IdlePool:
    """Idle workers; safe for threads."""

    seconds: float = IDLE_SECONDS
    # a fork of this process could inherit locks that other threads (gRPC, Dagster) hold
    method: str = "forkserver"
    _idle: list[Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer: threading.Timer | None = None

    def worker(self, kind: Kind) -> Worker:
        """An idle one of this kind, or a new one."""
        with self._lock:
            for position, worker in enumerate(self._idle):
                if worker.kind == kind:
                    return self._idle.pop(position)
        return start(kind, self.method)

    def keep(self, workers: Iterable[Worker]) -> None:
        """Keep workers that are finished; all that are still idle after ``seconds`` are ended."""
        with self._lock:
            self._idle += workers
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(self.seconds, self.clear)
            # Exit does not wait for the timer; the pools then stop their processes.
            self._timer.daemon = True
            self._timer.start()

    def clear(self) -> None:
        """Stop all idle workers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def forget(self) -> None:
        """Reset after a fork: the workers and the fork server belong to the parent."""
        self.method = "spawn"
        self._idle, self._lock, self._timer = [], threading.Lock(), None


IDLE_POOL = IdlePool()
"""Idle workers of this process."""


def _forked() -> None:
    """Leave all workers to the parent, and close their pipes, so that they notice when it ends.

    `ALIVE` keeps referring to them: a pool that is collected here would wake its thread there.
    """
    IDLE_POOL.forget()
    for worker in ALIVE:
        worker.cut()


os.register_at_fork(after_in_child=_forked)
