"""Workers of a Ray cluster as a pool for `lc_assets.execution.executor.work_through`.

A call of Ray costs its driver some milliseconds, so short tasks are sent several at a time: the
driver is then idle however many they are. A call that loses its worker is repeated task by task, so
a loss is attributed as in other pools. The last tasks are sent in ever smaller calls, for no worker
to wait for another: guided self-scheduling, Polychronopoulos and Kuck 1987.
"""

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any
from urllib.parse import urlsplit

from lc_assets.errors import BadInput, Unreachable
from lc_assets.execution.containment import is_contained
from lc_assets.execution.environment import Environment, require_same_environment
from lc_assets.execution.executor import (
    OUT_OF_MEMORY,
    Done,
    Lost,
    Result,
    Skips,
    Task,
    TaskPolicy,
    ended_after,
    run_task,
)
from lc_assets.execution.local import LocalExecutor

AHEAD = 2
"""Submitted calls per processor of the cluster, so that the next one is ready when one finishes."""

CALL_SECONDS = 5.0
CALL_TASKS = 1_000
"""Tasks of a call: as many as take these seconds, and no more than this."""
LEAST_OF_A_CALL = 0.05
"""Of so many tasks, in the last calls."""

PROBE_SECONDS = 10.0
REFRESH_SECONDS = 10.0
"""Interval for querying the size of the cluster, which may change."""

MAX_FAILED_PROBES = 2
"""Seconds after which the head is considered lost. Ray detects it a minute later, and then ends
this process without an exception that could be caught.
"""


def probe(address: str) -> None:
    """Require that something listens at an address: Ray itself tries for minutes."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), PROBE_SECONDS).close()
    except ValueError as error:
        raise BadInput(f"no address of a cluster: {address!r}: {error}") from error
    except OSError as error:
        raise Unreachable(no_answer(address, error)) from error


def no_answer(address: str, error: Exception) -> str:
    """Why no cluster is used."""
    return (
        f"no Ray cluster answers at {address}: {last_line(error)}; is it started, and is the "
        "address that of its head?"
    )


def last_line(error: BaseException) -> str:
    r"""The last line of an error of Ray's, which may contain another process's whole traceback.

    >>> last_line(ConnectionError("Initialization failure:\nTraceback …\nOSError: no more"))
    'OSError: no more'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def run_remotely(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    policy: TaskPolicy,
    environment: Environment,
) -> tuple[list[Result], float]:
    """Run tasks in a Ray worker; return their results, and the seconds that they took."""
    require_same_environment(environment)
    started = time.monotonic()
    if policy.contains and is_contained(function):
        found = LocalExecutor(policy=policy).run(function, tasks, what=str(tasks[0]))
        results = [result for _, result in found]
    else:
        results = [run_task(function, task, policy) for task in tasks]
    return results, time.monotonic() - started


@dataclass(frozen=True, slots=True)
class _Call:
    """Tasks that were sent together, with their numbers; and when."""

    tasks: Sequence[tuple[int, Any]]
    started: float


@dataclass(slots=True, kw_only=True)
class RayWorkers:
    """A pool of all workers of the cluster; a task's handle is its number."""

    ray: Any
    remote: Any
    head: str
    environment: Environment
    policy: TaskPolicy
    processors: float
    patience: float
    started: float = field(default_factory=time.monotonic)
    refreshed: float = float("-inf")
    failed_probes: int = 0
    n_processors: float = 0.0
    at_once: int = 1
    n_submitted: int = 0
    waiting: deque[tuple[int, Any]] = field(default_factory=deque)
    calls: dict[Any, _Call] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    function: Callable[[Any], Any] | None = None

    def capacity(self) -> int:
        """See `lc_assets.execution.executor.WorkerPool`, as for the next two."""
        self._refresh()
        return max(1, int(AHEAD * self._n_workers)) * self.at_once

    @property
    def _n_workers(self) -> float:
        return self.n_processors / self.processors

    def submit(self, function: Callable[[Task], Any], task: Task, _skips: Skips) -> int:
        """Keep a task until `wait`, unless it has lost a worker, and is sent alone. Documents are
        skipped where it runs.
        """
        self.function, self.n_submitted = function, self.n_submitted + 1
        if id(task) in self.lost:
            self._send([(self.n_submitted, task)])
        else:
            self.waiting.append((self.n_submitted, task))
        return self.n_submitted

    def wait(self, handles: Collection[int]) -> Iterator[tuple[int, Done | Lost]]:
        """Send what was submitted, and wait for a call."""
        are_last = len(handles) < self.capacity()
        while self.waiting:
            share = len(self.waiting) / (AHEAD * max(self._n_workers, 1)) if are_last else inf
            most = min(max(share, LEAST_OF_A_CALL * self.at_once), self.at_once)
            n_tasks = min(max(int(most), 1), len(self.waiting))
            self._send([self.waiting.popleft() for _ in range(n_tasks)])
        while not self.ray.wait(list(self.calls), timeout=REFRESH_SECONDS)[0]:
            self._refresh()
            self._require_workers()
        listed = list(self.calls)
        for handle in self.ray.wait(listed, num_returns=len(listed), timeout=0)[0]:
            yield from self._ended(handle)

    def _send(self, tasks: Sequence[tuple[int, Any]]) -> None:
        given = [task for _, task in tasks]
        handle = self.remote.remote(self.function, given, self.policy, self.environment)
        self.calls[handle] = _Call(tasks, time.monotonic())

    def _ended(self, handle: Any) -> Iterator[tuple[int, Done | Lost]]:
        """How the tasks of a call that has ended did; those of a lost one of several are sent again
        one by one.
        """
        call = self.calls.pop(handle)
        outcome = self._outcome(handle, call.started)
        if isinstance(outcome, Done):
            results, seconds = outcome.result
            wanted = CALL_SECONDS * len(results) / max(seconds, 1e-6)
            self.at_once = max(int(min(wanted, CALL_TASKS, 2 * self.at_once)), 1)
            for (number, _), result in zip(call.tasks, results, strict=True):
                yield number, Done(result)
            return
        self.at_once = 1  # and doubled by each call that ends well: less is lost with the next
        if len(call.tasks) == 1:
            self.lost.add(id(call.tasks[0][1]))
            yield call.tasks[0][0], outcome
        else:
            for task in call.tasks:
                self._send([task])

    def _outcome(self, handle: Any, started: float) -> Done | Lost:
        errors = self.ray.exceptions
        try:
            return Done(self.ray.get(handle))
        except errors.OutOfMemoryError:
            return OUT_OF_MEMORY
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError):
            return Lost("went away", departed=True)
        except errors.WorkerCrashedError:
            seconds = time.monotonic() - started
            return ended_after(seconds, self.policy, otherwise=Lost("was killed"))
        except errors.RayTaskError as error:
            if isinstance(error.cause, MemoryError):
                return OUT_OF_MEMORY
            raise error.cause from None

    def _refresh(self) -> None:
        """Query the size of the cluster at intervals, after pinging its head: Ray would wait for a
        lost one.
        """
        if (now := time.monotonic()) - self.refreshed < REFRESH_SECONDS:
            return
        self.refreshed = now
        try:
            probe(self.head)
        except Unreachable as error:
            self.failed_probes += 1
            if self.failed_probes >= MAX_FAILED_PROBES:
                raise ConnectionError(str(error.__cause__)) from error
        else:
            self.failed_probes = 0
            self.n_processors = self.ray.cluster_resources().get("CPU", 0)

    def _require_workers(self) -> None:
        if self.n_processors >= self.processors:
            self.started = time.monotonic()
        elif (waited := time.monotonic() - self.started) > self.patience:
            raise Unreachable(
                f"the cluster has had no worker of {self.processors:g} processors for "
                f"{waited:.0f} s; add one, and run this again"
            )

    def leave(self) -> None:
        """Disconnect from a lost cluster, so that the next run may connect to another."""
        self.calls.clear()
        self.ray.shutdown()

    def cancel(self) -> None:
        """Cancel the submitted tasks, on the cluster too."""
        for handle in self.calls:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(handle, force=True)
