"""Which engine an address means. Nothing is asked of it before there is work.

==========================  ========================================================================================
``""`` or ``local``         this machine's processes
``ray``                     the Ray cluster that this machine belongs to, or that ``RAY_ADDRESS`` names
``ray:head.example:6379``   … whose head is there, from a machine of the cluster
``ray://head.example:10001``  … from outside of it, by Ray's client
==========================  ========================================================================================
"""

from pathlib import Path

from lc_assets.engines.engine import TERMS, Engine, Terms
from lc_assets.engines.local import LocalEngine
from lc_assets.engines.on_ray import RayEngine
from lc_assets.engines.progress import Watch, silent
from lc_assets.errors import BadInput


def engine_at(
    address: str,
    *,
    workers: int = 1,
    watch: Watch = silent,
    preload: tuple[str, ...] = (),
    terms: Terms = TERMS,
    folders: tuple[Path, ...] = (),
    sees: tuple[Path, ...] = (),
    libraries: tuple[str, ...] = (),
) -> Engine:
    """The engine at an address.

    Args:
        address: see above.
        workers: processes of the embedded engine; as well ``preload``.
        watch: what shows progress.
        terms: on which terms a task is done.
        folders: where a cluster's workers write; as well ``sees``, what they read, and
            ``libraries`` whose versions must be the same.

    Raises:
        BadInput: when the address means no engine.

    >>> engine_at("local", workers=2).workers, engine_at("ray://head:10001").address, engine_at("ray:head:6379").address
    (2, 'ray://head:10001', 'head:6379')
    """
    if address in ("", "local"):
        return LocalEngine(workers=workers, watch=watch, preload=preload, terms=terms)
    kind, _, place = address.partition(":")
    if kind != "ray" or place.strip("/") == "" != place:
        raise BadInput(
            f"no engine is at {address!r}; wanted local, ray, ray:HOST:6379 or ray://HOST:10001"
        )
    where = address if place.startswith("//") else place or "auto"
    return RayEngine(
        address=where, watch=watch, terms=terms, folders=folders, sees=sees, libraries=libraries
    )
