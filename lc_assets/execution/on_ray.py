"""The cluster executor: the same tasks on the workers of an existing Ray cluster.

Ray's own client, scheduler and transport are used as they are; a function's name, a task and its
counts are all that is sent. Ray retries nothing: a lost worker is handled by the loop that the
local executor uses too (`lc_assets.execution.executor`), so a task that loses too many is reported
in the same way. An interrupted run cancels its submitted tasks on the cluster too. A contained
function runs in a child process of the Ray worker, which watches it
(`lc_assets.execution.containment`).

Ray: Moritz et al. 2018; https://docs.ray.io. Its usage reports are switched off unless the
environment states otherwise.
"""

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lc_assets.errors import BadInput, Unreachable, WorkerUnfit
from lc_assets.execution.containment import is_contained, may_skip
from lc_assets.execution.environment import (
    Environment,
    current_environment,
    require_same_environment,
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
    run_task,
    work_through,
)
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.progress import Watch, silent
from lc_assets.records import record

AHEAD = 2
"""Submitted tasks per processor of the cluster, so that the next one is ready when one finishes."""

PROBE_SECONDS = 10.0
REFRESH_SECONDS = 10.0
"""Interval for querying the size of the cluster, which may change."""

MAX_FAILED_PROBES = 2
"""Seconds after which the head is considered lost. Ray detects it a minute later, and then ends
this process without an exception that could be caught.
"""


def executor_at(
    address: str,
    *,
    workers: int = 1,
    watch: Watch = silent,
    preload: tuple[str, ...] = (),
    policy: TaskPolicy = DEFAULT_POLICY,
    folders: tuple[Path, ...] = (),
    sees: tuple[Path, ...] = (),
    libraries: tuple[str, ...] = (),
) -> Executor:
    """The executor at an address; nothing is contacted before there are tasks.

    =============================  ============================================================
    ``""`` or ``local``            this machine's processes
    ``ray``                        the Ray cluster of this machine, or that of ``RAY_ADDRESS``
    ``ray:head.example:6379``      the one with this head, from a machine of the cluster
    ``ray://head.example:10001``   the same from outside, through Ray's client
    =============================  ============================================================

    Args:
        address: see above.
        workers: processes of the local executor.
        watch: shows progress.
        preload: see `LocalExecutor`.
        policy: limits of a task.
        folders: output folders of a cluster's workers.
        sees: their input folders.
        libraries: must have the same versions there.

    Raises:
        BadInput: when the address has another form.

    >>> executor_at("local", workers=2).workers
    2
    >>> executor_at("ray://head:10001").address, executor_at("ray:head:6379").address
    ('ray://head:10001', 'head:6379')
    """
    if address in ("", "local"):
        return LocalExecutor(workers=workers, watch=watch, preload=preload, policy=policy)
    kind, _, head = address.partition(":")
    if kind != "ray" or head.strip("/") == "" != head:
        raise BadInput(
            f"no executor is at {address!r}; expected local, ray, ray:HOST:6379 or ray://HOST:10001"
        )
    where = address if head.startswith("//") else head or "auto"
    return RayExecutor(
        address=where, watch=watch, policy=policy, folders=folders, sees=sees, libraries=libraries
    )


@record
class RayExecutor:
    """Runs tasks on the workers of a Ray cluster.

    Attributes:
        address: ``auto``, ``host:6379`` from a machine of the cluster, or ``ray://host:10001`` from
            outside.
        watch: shows progress.
        policy: limits of a task.
        folders: output folders; must be the same here and on every worker, under the same paths.
        sees: input folders; must exist there.
        libraries: must have the same versions, because they shape bytes.
        processors: per task, for Ray's scheduler.
        patience: seconds to wait for a first worker; a cluster may have to start one.
    """

    address: str
    watch: Watch = silent
    policy: TaskPolicy = DEFAULT_POLICY
    folders: tuple[Path, ...] = ()
    sees: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    processors: float = 1.0
    patience: float = 900.0

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.execution.executor.Executor.run`.

        Raises:
            Unreachable: when no cluster answers at the address, or it has no worker.
            WorkerUnfit: when a worker has other code, another Python, or cannot access the folders.
        """
        results = self._on_cluster(function, tasks, what) if tasks else iter(())
        yield from self.watch(results, total=len(tasks), what=what)

    def _on_cluster(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], what: str
    ) -> Iterator[tuple[Task, Result]]:
        ray = connected(self.address)
        with current_environment(
            libraries=self.libraries, folders=self.folders, sees=self.sees
        ) as environment:
            options = {"num_cpus": self.processors, "max_retries": 0, "name": what}
            pool = _Workers(
                ray=ray,
                remote=ray.remote(**options)(run_remotely),
                head=self.address
                if "//" in self.address
                else ray.get_runtime_context().gcs_address,
                environment=environment,
                policy=self.policy,
                processors=self.processors,
                patience=self.patience,
            )
            try:
                yield from work_through(
                    pool, function, tasks, self.policy, may_skip=may_skip(function)
                )
            except ConnectionError as error:
                pool.leave()
                raise Unreachable(
                    f"the cluster at {self.address} went away while it worked: "
                    f"{last_line(error)}; run this again"
                ) from error
            finally:
                pool.cancel()


def connected(address: str) -> Any:
    """Ray, connected once per process to the cluster at an address.

    Raises:
        BadInput: when Ray is not installed.
        Unreachable: when no cluster answers.
        WorkerUnfit: when the cluster runs another version of Ray or of Python.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BadInput(
            f"an executor at {address} needs Ray: pip install 'lc_assets[ray]'"
        ) from error
    if ray.is_initialized():
        return ray
    _probe(address)
    try:
        ray.init(
            address=address,
            log_to_driver=True,
            logging_level=logging.WARNING,
            namespace="lc_assets",
        )
    except (ConnectionError, TimeoutError, ValueError) as error:
        raise Unreachable(_no_answer(address, error)) from error
    except RuntimeError as error:  # what Ray raises for another version of itself, or of Python
        raise WorkerUnfit(
            f"the cluster at {address} cannot be joined: {' '.join(str(error).split())}"
        ) from error
    return ray


def _probe(address: str) -> None:
    """Require that something listens at an address: Ray itself tries for minutes."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), PROBE_SECONDS).close()
    except ValueError as error:
        raise BadInput(f"no address of a cluster: {address!r}: {error}") from error
    except OSError as error:
        raise Unreachable(_no_answer(address, error)) from error


def _no_answer(address: str, error: Exception) -> str:
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
    function: Callable[[Task], Result], task: Task, policy: TaskPolicy, environment: Environment
) -> Result:
    """Run a task in a Ray worker."""
    require_same_environment(environment)
    if policy.contains and is_contained(function):
        ((_, result),) = LocalExecutor(policy=policy).run(function, [task], what=str(task))
        return result
    return run_task(function, task, policy)


@dataclass(slots=True, kw_only=True)
class _Workers:
    """A pool of all workers of the cluster."""

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
    in_hand: dict[Any, float] = field(default_factory=dict)

    def capacity(self) -> int:
        self._refresh()
        return max(1, int(AHEAD * self.n_processors / self.processors))

    # Documents are skipped where the task runs.
    def submit(self, function: Callable[[Task], Any], task: Task, skips: Skips) -> Any:  # noqa: ARG002
        handle = self.remote.remote(function, task, self.policy, self.environment)
        self.in_hand[handle] = time.monotonic()
        return handle

    def wait(self, handles: Collection[Any]) -> Iterator[tuple[Any, Done | Lost]]:
        listed = list(handles)
        while not self.ray.wait(listed, timeout=REFRESH_SECONDS)[0]:
            self._refresh()
            self._require_workers()
        for handle in self.ray.wait(listed, num_returns=len(listed), timeout=0)[0]:
            started = self.in_hand.pop(handle)
            yield handle, self._outcome(handle, started)

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
            _probe(self.head)
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
        self.in_hand.clear()
        self.ray.shutdown()

    def cancel(self) -> None:
        """Cancel the submitted tasks, on the cluster too."""
        for handle in self.in_hand:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(handle, force=True)
