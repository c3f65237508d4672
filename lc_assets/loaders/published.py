"""Open the rows of what a lake publishes: a partition, a release, the global order.

An order and its grids' receipts are small: from a URL they are copied and checked like local ones.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.arrays.order import SOURCES, GlobalOrder, OrderSource
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.partition import CURRENT, Current, Partition
from lc_assets.lake.receipts import RECEIPT, decode_json
from lc_assets.lake.releases import decode_release, lake_of_release, note_of
from lc_assets.lake.versions import Published
from lc_assets.loaders.arrays import METADATA_FILES, InterleavedRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets.loaders.rows import RemoteFiles, fetch, open_array, open_at
from lc_assets.vocabulary import parse_snapshot

ORDER_STAGE: Final = "longcrawl"
GRID_STAGE: Final = "token_grid"


def open_published(at: Path | str, split: str, cache: ChunkCache) -> ZarrRows | InterleavedRows:
    """Open a version of the global order, a partition, or a lake, in a folder or at a URL.

    Raises:
        BadInput: if it is none of these.
        NotPublished, Mismatch, CorruptFile, Unreachable: as `lc_assets.loaders.rows.open_rows`.
    """
    if isinstance(at, Path):
        if (at / SOURCES).is_file():
            return _open_order(at, split, cache)
        if (at / CURRENT).is_file():
            return open_at(version_at(at), split, cache)
        if (at / ORDER_STAGE).is_dir() or (at / GRID_STAGE).is_dir():
            return _open_order(Lake(at).partition(ORDER_STAGE).require().folder, split, cache)
    else:
        files = RemoteFiles(at)
        if files.holds(SOURCES):
            return _open_remote_order(at, split, cache)
        if files.holds(CURRENT):
            return open_at(version_at(at), split, cache)
        if files.holds(f"{ORDER_STAGE}/{GLOBAL}/{CURRENT}"):
            return open_at(version_at(f"{at}/{ORDER_STAGE}/{GLOBAL}"), split, cache)
    raise BadInput(
        f"{at}: found none of {split}.zarr, {SOURCES}, {', '.join(METADATA_FILES)}: expected an "
        "array, a published version or the root of a lake"
    )


def version_at(at: Path | str) -> Path | str:
    """The published version of the partition at a path or URL; ``at`` itself if it is none.

    Raises:
        NotPublished: if the partition has no published version.
        CorruptFile: if its pointer is not readable.
        Unreachable: if the server does not answer.
    """
    if isinstance(at, Path):
        return Partition(at).require().folder if (at / CURRENT).is_file() else at
    files = RemoteFiles(at)
    if not files.holds(CURRENT):
        return at
    with TemporaryDirectory() as copies:
        fetch(files, Path(copies), CURRENT)
        return f"{at}/{decode_json(Path(copies) / CURRENT, Current).version}"


def order_of_release(lake: Path | str, release: str) -> Path | str:
    """Folder or URL of a release's global order.

    Raises:
        NotPublished: if there is no such release, or its order is gone.
        Mismatch: if the order there is not the released one.
    """
    if isinstance(lake, Path):
        return lake_of_release(Lake(lake), release).partition(ORDER_STAGE).require().home
    note, files = note_of(release), RemoteFiles(lake)
    if not files.holds(note):
        raise NotPublished(f"{files.where(note)}: there is no such release")
    with TemporaryDirectory() as copies:
        fetch(files, Path(copies), note)
        pin = decode_release((Path(copies) / note).read_bytes(), where=files.where(note)).pins[
            f"{ORDER_STAGE}/{GLOBAL}"
        ]
        receipt = f"{ORDER_STAGE}/{GLOBAL}/{pin.version}/{RECEIPT}"
        fetch(files, Path(copies), receipt)
        if Published.at((Path(copies) / receipt).parent).digest != pin.digest:
            raise Mismatch(f"{files.where(receipt)}: not the version of release {release}")
    return files.where(f"{ORDER_STAGE}/{GLOBAL}/{pin.version}")


def _open_order(folder: Path, split: str, cache: ChunkCache) -> InterleavedRows:
    order = GlobalOrder.open(folder, split)
    lake = Lake(folder.absolute().parent.parent.parent)
    grids = [_grid_folder(lake, source) for source in order.sources]
    return InterleavedRows(
        order, [open_array(grid / f"{split}.zarr", None, cache) for grid in grids]
    )


def _open_remote_order(url: str, split: str, cache: ChunkCache) -> InterleavedRows:
    lake, *version = url.rsplit("/", 3)
    files = RemoteFiles(lake)
    with TemporaryDirectory() as copies:
        names = (SOURCES, f"{split}_source.npy", f"{split}_row.npy")
        fetch(files, Path(copies), *("/".join([*version, name]) for name in names))
        mapped = GlobalOrder.open(Path(copies, *version), split)
        order = replace(mapped, source=np.array(mapped.source), row=np.array(mapped.row))
        grids = [f"{GRID_STAGE}/{source.snapshot}/{source.version}" for source in order.sources]
        for source, grid in zip(order.sources, grids, strict=True):
            fetch(files, Path(copies), f"{grid}/{RECEIPT}")
            _grid_folder(Lake(Path(copies)), source)
    return InterleavedRows(
        order,
        [open_array(f"{lake}/{grid}/{split}.zarr", METADATA_FILES[0], cache) for grid in grids],
    )


def _grid_folder(lake: Lake, source: OrderSource) -> Path:
    """Folder of the grid that an order was made for; checks its digest."""
    folder = lake.partition(GRID_STAGE, parse_snapshot(source.snapshot)).folder / source.version
    found = Published.at(folder).digest
    if found != source.digest:
        raise Mismatch(
            f"{folder / RECEIPT}: digest {found}, but the global order was made for "
            f"{source.digest}: build the order again"
        )
    return folder
