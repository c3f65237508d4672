"""Recognizes an artefact at a path by a receipt, a pointer, an array's metadata, an index, a
listing or a name.
"""

from collections.abc import Callable
from pathlib import Path

from lc_assets.cli.inspect import files, in_lake, upstreams
from lc_assets.cli.inspect.artefact import Artefact
from lc_assets.errors import BadInput
from lc_assets.lake.located import is_in_bucket, located

KINDS: tuple[tuple[Callable[[Path], bool], Callable[[Path, bool], Artefact]], ...] = (
    (files.is_grid, files.show_grid),
    (files.is_flat, files.show_flat),
    (files.is_table, files.show_table),
    (files.is_sources, files.show_sources),
    (files.is_array, files.show_array),
    (upstreams.is_upstream, upstreams.show_upstream),
    (upstreams.is_listing, upstreams.show_listing),
    (upstreams.is_json_lines, upstreams.show_json_lines),
    (upstreams.is_documents, upstreams.show_documents),
    (files.is_megatron, files.show_megatron),
)
"""A predicate and a description per kind; the first that matches is used."""


def recognise(where: str, *, verify: bool = False) -> Artefact:
    """Describe what is at a path, or at a URL in a bucket that contains a lake.

    Args:
        where: a lake, a stage, a partition, a version, an array, a table, a Megatron data set
            (``.bin``, ``.idx`` or their prefix), or an upstream.
        verify: whether to read every byte.

    Raises:
        BadInput: if nothing is there, or nothing known.
        CorruptFile: if it cannot be read; says where.
    """
    found = located(where)
    if found is not None and not found.within:
        return in_lake.show_located(found, verify)
    if found is not None:
        artefact = _recognise(in_lake.copy_of(found, verify=verify), verify)
        return artefact if verify else in_lake.as_in_bucket(artefact, found)
    if is_in_bucket(where):
        raise BadInput(f"{where}: nothing of a lake lies there, published or finished")
    return _recognise(Path(where), verify)


def _recognise(path: Path, verify: bool) -> Artefact:
    for is_one, describe in KINDS:
        if is_one(path):
            return describe(path, verify)
    if not path.exists():
        raise BadInput(f"{path}: nothing is there")
    raise BadInput(
        f"{path}: no artefact that is known; wanted a lake or a folder in it, a .zarr, .bin, "
        ".idx, .npy or .parquet, or an upstream"
    )
