"""Who does a workshop's work: this machine's processes, or a cluster's, which must have the lake
where this machine has it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lc_assets.engines.choosing import engine_at
from lc_assets.engines.engine import Engine, Terms
from lc_assets.engines.progress import Watch
from lc_assets.stages.building import LIBRARIES
from lc_assets.storage.lake import LakeFolder
from lc_assets.storage.upstream import Upstream

WORKERS_IMPORT: Final = ("lc_assets.stages.catalogue",)
"""What is imported before a worker starts."""


def hire(
    address: str,
    *,
    lake: LakeFolder,
    reads: Sequence[Upstream | None],
    workers: int,
    watch: Watch,
    task_seconds: float = 0.0,
) -> Engine:
    """The engine at an address (`lc_assets.engines.choosing`), for work on a lake.

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
        BadInput: when the address means no engine.
    """
    sees = [
        Path(read.root).resolve() for read in reads if read is not None and "://" not in read.root
    ]
    return engine_at(
        address,
        workers=workers,
        watch=watch,
        preload=WORKERS_IMPORT,
        terms=Terms(seconds=task_seconds),
        folders=(lake.root.resolve(),),
        sees=tuple(sees),
        libraries=LIBRARIES,
    )
