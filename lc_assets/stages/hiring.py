"""Who does a workshop's work: this machine's processes, or a cluster's, which must have the lake
where this machine has it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lc_assets.build.building import LIBRARIES
from lc_assets.execution.executor import CONTAINING_POLICY, Executor
from lc_assets.execution.on_ray import executor_at
from lc_assets.execution.progress import Watch
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream

WORKERS_IMPORT: Final = ("lc_assets.stages.catalogue",)
"""What is imported before a worker starts."""


def executor_for(
    address: str,
    *,
    lake: Lake,
    reads: Sequence[Upstream | None],
    workers: int,
    watch: Watch,
    task_seconds: float = 0.0,
) -> Executor:
    """The executor at an address (`lc_assets.execution.on_ray`), for work on a lake.

    Args:
        address: empty for this machine.
        lake: where the work publishes; what is in a bucket is made in this machine's copy of it
            (``LC_CACHE``), which a cluster's workers must see too.
        reads: where it reads from; folders must be seen by workers as well, servers and buckets
            they ask themselves.
        workers: processes on this machine.
        watch: what shows progress.
        task_seconds: how long a task may take; 0 is for ever.

    Raises:
        BadInput: when the address means no executor.
    """
    sees = [
        Path(read.root).resolve() for read in reads if read is not None and "://" not in read.root
    ]
    return executor_at(
        address,
        workers=workers,
        watch=watch,
        preload=WORKERS_IMPORT,
        policy=replace(CONTAINING_POLICY, seconds=task_seconds),
        folders=(lake.root.resolve(),),
        sees=tuple(sees),
        libraries=LIBRARIES,
    )
