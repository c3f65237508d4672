"""Which executor an address means. Nothing is asked of it before there is work.

==========================  ========================================================================================
``""`` or ``local``         this machine's processes
``ray``                     the Ray cluster that this machine belongs to, or that ``RAY_ADDRESS`` names
``ray:head.example:6379``   … whose head is there, from a machine of the cluster
``ray://head.example:10001``  … from outside of it, by Ray's client
==========================  ========================================================================================
"""

from pathlib import Path

from lc_assets.errors import BadInput
from lc_assets.execution.executor import DEFAULT_POLICY, Executor, TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.on_ray import RayExecutor
from lc_assets.execution.progress import Watch, silent


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
    """The executor at an address.

    Args:
        address: see above.
        workers: processes of the embedded executor; as well ``preload``.
        watch: what shows progress.
        terms: on which terms a task is done.
        folders: where a cluster's workers write; as well ``sees``, what they read, and
            ``libraries`` whose versions must be the same.

    Raises:
        BadInput: when the address means no executor.

    >>> executor_at("local", workers=2).workers, executor_at("ray://head:10001").address, executor_at("ray:head:6379").address
    (2, 'ray://head:10001', 'head:6379')
    """
    if address in ("", "local"):
        return LocalExecutor(workers=workers, watch=watch, preload=preload, policy=policy)
    kind, _, place = address.partition(":")
    if kind != "ray" or place.strip("/") == "" != place:
        raise BadInput(
            f"no executor is at {address!r}; wanted local, ray, ray:HOST:6379 or ray://HOST:10001"
        )
    where = address if place.startswith("//") else place or "auto"
    return RayExecutor(
        address=where, watch=watch, policy=policy, folders=folders, sees=sees, libraries=libraries
    )
