"""Processes of this machine that do an executor's tasks, and the bench where they wait for more: what
a start costs is imports.

A run takes workers from the bench or starts them, and what is left of a run that went well sits
down there. A worker on the bench is ended after `IDLE_SECONDS`, with the process that started it,
however that ends, and at the end of a run that is broken off. It works only for who is as it was
when it started: the same modules imported first, working folder, search path and environment.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import connection, forkserver
from pathlib import Path
from typing import Any, Final, NamedTuple

from lc_assets.execution.containment import enter_worker, new_cell

IDLE_SECONDS: Final = 10.0
"""How long a worker without work keeps its memory: longer than most pauses between two stages,
shorter than one that matters.
"""


class Kind(NamedTuple):
    """What a worker is started with; who wants another kind starts another worker."""

    preload: tuple[str, ...]
    folder: Path
    path: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


ENVIRONMENT: Final = threading.Lock()
"""Is held while this process's environment is read here, and while it is another for a moment."""


def kind_now(preload: tuple[str, ...]) -> Kind:
    """The kind of worker that this process would start now, with modules that are imported
    first.
    """
    with ENVIRONMENT:
        return Kind(preload, Path.cwd(), tuple(sys.path), tuple(sorted(os.environ.items())))


@dataclass(slots=True, eq=False)
class Worker:
    """One process: a pool of its own, so one knows whose task a death is, and the end of a pipe
    that it lives by.
    """

    kind: Kind = field(repr=False)  # an environment may hold secrets
    pool: ProcessPoolExecutor
    lifeline: connection.Connection
    held: connection.Connection
    cell: Any = field(repr=False)

    def begin(self, function: Callable[..., Any], *given: Any) -> Future[Any] | None:
        """Begin a task; None where the process was killed while it had nothing to do."""
        with contextlib.suppress(BrokenProcessPool):
            return self.pool.submit(function, *given)
        return None

    def cut(self) -> None:
        """Have it end at once, in the middle of a task."""
        self.held.close()

    def end(self) -> None:
        """End it when its task is done, and wait for that."""
        ALIVE.discard(self)
        self.pool.shutdown(cancel_futures=True)
        self.held.close()
        self.lifeline.close()


ALIVE: Final[set[Worker]] = set()
"""Every worker that this process, or one that it was forked from, has started and not ended."""


def start(kind: Kind, method: str) -> Worker:
    """A new worker; its process starts with its first task, by a method of `multiprocessing`."""
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["__main__", *kind.preload])
        _start_server_of_forks(kind)
    lifeline, held = context.Pipe(duplex=False)
    cell = new_cell(context)
    pool = ProcessPoolExecutor(1, context, _settle, (lifeline, kind.environment, cell))
    worker = Worker(kind, pool, lifeline, held, cell)
    ALIVE.add(worker)
    return worker


def _start_server_of_forks(kind: Kind) -> None:
    """Start the process that workers are forks of, unless it runs: it must import what this process
    would.

    Left to itself it imports from the working folder first (Python 3.11 to 3.13 are told this
    process's path and forget it): other code where another version lies there, and whatever
    somebody put there under a module's name.
    """
    path = os.pathsep.join(str(kind.folder / entry) for entry in kind.path)
    with ENVIRONMENT, _environment(kind.environment, PYTHONPATH=path, PYTHONSAFEPATH="1"):
        forkserver.ensure_running()


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


def _settle(
    lifeline: connection.Connection, environment: Iterable[tuple[str, str]], cell: Any
) -> None:
    """Make a new process a worker: it has its asker's environment, and watches over it.

    When that is gone, or lets go, however it did, the worker ends at once. It would otherwise wait
    for its next task for ever, with all its memory, and until then go on writing into a folder that
    a rerun has taken over. So it need not hear an interrupt from a keyboard.
    """
    os.environ.clear()  # that of the server of forks is as old as the first run
    os.environ.update(environment)
    enter_worker(cell, os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(lifeline,), daemon=True).start()


def _end_after(lifeline: connection.Connection) -> None:
    parent = multiprocessing.parent_process()
    connection.wait([lifeline] if parent is None else [lifeline, parent.sentinel])
    os._exit(1)


@dataclass(slots=True)
class IdlePool:
    """Workers that have nothing to do for the moment; any thread may ask."""

    seconds: float = IDLE_SECONDS
    # a fork of this process could inherit locks that other threads (gRPC, Dagster) hold
    method: str = "forkserver"
    _idle: list[Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _clock: threading.Timer | None = None

    def worker(self, kind: Kind) -> Worker:
        """One that waits and is of this kind, or a new one."""
        with self._lock:
            for place, worker in enumerate(self._idle):
                if worker.kind == kind:
                    return self._idle.pop(place)
        return start(kind, self.method)

    def keep(self, workers: Iterable[Worker]) -> None:
        """Take workers whose work is done; all that are still here after a while are ended."""
        with self._lock:
            self._idle += workers
            if self._clock is not None:
                self._clock.cancel()
            self._clock = threading.Timer(self.seconds, self.clear)
            # the end of this process waits for no clock; its pools end their processes then
            self._clock.daemon = True
            self._clock.start()

    def clear(self) -> None:
        """End all."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def forget(self) -> None:
        """Be as new, in a process that was forked: who sits here is another's, and so is the server
        of forks.
        """
        self.method = "spawn"
        self._idle, self._lock, self._clock = [], threading.Lock(), None


IDLE_POOL: Final = IdlePool()
"""The bench of this process."""


def _forked() -> None:
    """Leave all workers to the process that this one was forked from, and let go of their pipes, so
    that they notice when it ends.

    `ALIVE` goes on referring to them: a pool that is forgotten here would wake the thread that it
    has there.
    """
    IDLE_POOL.forget()
    for worker in ALIVE:
        worker.cut()


os.register_at_fork(after_in_child=_forked)
