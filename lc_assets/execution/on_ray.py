"""The cluster executor: the same tasks on the workers of a Ray cluster that somebody runs.

Ray's own client, scheduler and transport are used as they are; what goes over are a function's
name, a task and its counts. Ray retries nothing: a lost worker is told to the same loop that the
embedded executor has (`lc_assets.execution.worker_pool`), so a task that costs too many is named here as
there. A run that is broken off cancels what is in hand, there too.

Ray: Moritz et al. 2018; https://docs.ray.io. Its usage reports are switched off unless the
    environment says otherwise.
"""

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lc_assets.errors import BadInput, Unreachable, WorkerUnfit
from lc_assets.execution.attempts import run_task
from lc_assets.execution.environment import (
    Environment,
    current_environment,
    require_same_environment,
)
from lc_assets.execution.executor import DEFAULT_POLICY, Result, Task, TaskPolicy
from lc_assets.execution.progress import Watch, silent
from lc_assets.execution.worker_pool import OUT_OF_MEMORY, Done, Lost, ended, work_through

AHEAD: Final = 2
"""Tasks in hand per processor of the cluster: while one is done, the next lies ready."""

PROBE_SECONDS: Final = 10.0
LOOK_AGAIN_SECONDS: Final = 10.0
"""How often the cluster is asked how large it is: workers come and go."""

UNANSWERED: Final = 2
"""After so many knocks the head is gone. Ray knows a minute later, and ends this process, with
nothing that could be caught.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayExecutor:
    """Runs tasks on the workers of a Ray cluster.

    Attributes:
        address: ``auto``, ``host:6379`` from a machine of the cluster, or ``ray://host:10001`` from
            outside.
        watch: what shows progress.
        terms: on which terms a task is done.
        folders: that are written to; must be the same here and on every worker, under the same
            paths.
        sees: folders that are read, as well.
        libraries: must have the same versions, for they shape bytes.
        processors: that a task takes; as well ``memory``, in bytes, for Ray's scheduler: 0 asks for
            none.
        patience: seconds to wait for a first worker; a cluster may have to start one.
    """

    address: str
    watch: Watch = silent
    policy: TaskPolicy = DEFAULT_POLICY
    folders: tuple[Path, ...] = ()
    sees: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    processors: float = 1.0
    memory: int = 0
    patience: float = 900.0

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """See `lc_assets.execution.executor.Executor.run`.

        Raises:
            Unreachable: when no cluster answers at the address, or it has no worker.
            WorkerUnfit: when a worker has other code, another Python, or does not see the folders.
        """
        yield from self.watch(
            self._on_cluster(function, tasks, what) if tasks else iter(()),
            total=len(tasks),
            what=what,
        )

    def _on_cluster(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], what: str
    ) -> Iterator[tuple[Task, Result]]:
        ray = connected(self.address)
        with current_environment(
            libraries=self.libraries, folders=self.folders, sees=self.sees
        ) as environment:
            asked = {"num_cpus": self.processors, "max_retries": 0, "name": what} | (
                {"memory": self.memory} if self.memory else {}
            )
            head = self.address if "//" in self.address else ray.get_runtime_context().gcs_address
            pool = _Workers(
                ray,
                ray.remote(**asked)(run_remotely),
                head,
                environment,
                self.policy,
                self.processors,
                self.patience,
            )
            try:
                yield from work_through(pool, function, tasks, self.policy)
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
        import ray  # noqa: PLC0415 - a second, that only who has a cluster need pay
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
        raise Unreachable(_nobody(address, error)) from error
    except RuntimeError as error:  # Ray's word for another version of itself, or of Python
        raise WorkerUnfit(
            f"the cluster at {address} cannot be joined: {' '.join(str(error).split())}"
        ) from error
    return ray


def _probe(address: str) -> None:
    """Look whether anybody listens: Ray itself tries for minutes."""
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        if place.hostname and place.port:
            socket.create_connection((place.hostname, place.port), PROBE_SECONDS).close()
    except ValueError as error:
        raise BadInput(f"no address of a cluster: {address!r}: {error}") from error
    except OSError as error:
        raise Unreachable(_nobody(address, error)) from error


def _nobody(address: str, error: Exception) -> str:
    return (
        f"no Ray cluster answers at {address}: {last_line(error)}; is it started, and is the "
        "address that of its head?"
    )


def last_line(error: BaseException) -> str:
    """What an error of Ray's says in the end; it may bring a whole traceback of another process.

    >>> last_line(ConnectionError(f"Initialization failure from server:{os.linesep}Traceback …{os.linesep}OSError: no more"))
    'OSError: no more'
    """
    return next(
        (line.strip() for line in reversed(str(error).splitlines()) if line.strip()),
        type(error).__name__,
    )


def run_remotely(
    function: Callable[[Task], Result], task: Task, policy: TaskPolicy, environment: Environment
) -> Result:
    """What is called on a worker."""
    require_same_environment(environment)
    return run_task(function, task, policy)


@dataclass(slots=True)
class _Workers:
    """A crew of whatever workers the cluster has."""

    ray: Any
    remote: Any
    head: str
    environment: Environment
    policy: TaskPolicy
    processors: float
    patience: float
    begun: float = field(default_factory=time.monotonic)
    looked: float = float("-inf")
    unanswered: int = 0
    n_processors: float = 0.0
    in_hand: dict[Any, float] = field(default_factory=dict)

    def capacity(self) -> int:
        self._look()
        return max(1, int(AHEAD * self.n_processors / self.processors))

    def submit(self, function: Callable[[Task], Any], task: Task) -> Any:
        handle = self.remote.remote(function, task, self.policy, self.environment)
        self.in_hand[handle] = time.monotonic()
        return handle

    def wait(self, handles: Collection[Any]) -> Iterator[tuple[Any, Done | Lost]]:
        listed = list(handles)
        while not self.ray.wait(listed, timeout=LOOK_AGAIN_SECONDS)[0]:
            self._look()
            self._insist_on_workers()
        for handle in self.ray.wait(listed, num_returns=len(listed), timeout=0)[0]:
            begun = self.in_hand.pop(handle)
            yield handle, self._outcome(handle, begun)

    def _outcome(self, handle: Any, begun: float) -> Done | Lost:
        errors = self.ray.exceptions
        try:
            return Done(self.ray.get(handle))
        except errors.OutOfMemoryError:
            return OUT_OF_MEMORY
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError):
            return Lost("went away", departed=True)
        except errors.WorkerCrashedError:
            return ended(time.monotonic() - begun, self.policy, otherwise="was killed")
        except errors.RayTaskError as error:
            if isinstance(error.cause, MemoryError):
                return OUT_OF_MEMORY
            raise error.cause from None

    def _look(self) -> None:
        """Ask now and then how large the cluster is, having knocked at its head: Ray would wait for
        the answer of one that is gone.
        """
        if (now := time.monotonic()) - self.looked < LOOK_AGAIN_SECONDS:
            return
        self.looked = now
        try:
            _probe(self.head)
        except Unreachable as error:
            self.unanswered += 1
            if self.unanswered >= UNANSWERED:
                raise ConnectionError(str(error.__cause__)) from error
        else:
            self.unanswered = 0
            self.n_processors = self.ray.cluster_resources().get("CPU", 0)

    def _insist_on_workers(self) -> None:
        if self.n_processors >= self.processors:
            self.begun = time.monotonic()
        elif (waited := time.monotonic() - self.begun) > self.patience:
            raise Unreachable(
                f"the cluster has had no worker of {self.processors:g} processors for "
                f"{waited:.0f} s; add one, and run again"
            )

    def leave(self) -> None:
        """Forget a cluster that is gone, so that the next run may join another."""
        self.in_hand.clear()
        self.ray.shutdown()

    def cancel(self) -> None:
        """Cancel what is in hand, there too."""
        for handle in self.in_hand:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(handle, force=True)
