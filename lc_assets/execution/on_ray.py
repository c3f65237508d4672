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

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lc_assets.errors import BadInput, Unreachable, WorkerUnfit
from lc_assets.execution.containment import may_skip
from lc_assets.execution.environment import current_environment
from lc_assets.execution.executor import (
    DEFAULT_POLICY,
    Executor,
    Result,
    Task,
    TaskPolicy,
    work_through,
)
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.progress import Watch, silent
from lc_assets.execution.ray_workers import (
    RayWorkers,
    last_line,
    no_answer,
    probe,
    run_remotely,
)
from lc_assets.records import record


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
            pool = RayWorkers(
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
    probe(address)
    try:
        ray.init(
            address=address,
            log_to_driver=True,
            logging_level=logging.WARNING,
            namespace="lc_assets",
        )
    except (ConnectionError, TimeoutError, ValueError) as error:
        raise Unreachable(no_answer(address, error)) from error
    except RuntimeError as error:  # what Ray raises for another version of itself, or of Python
        raise WorkerUnfit(
            f"the cluster at {address} cannot be joined: {' '.join(str(error).split())}"
        ) from error
    return ray
