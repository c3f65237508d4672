"""Opening the rows of a data set by its path: an array, a published version, a lake.

Here: what lies at a path, and that it is what the global order was made for. Not here: reading rows
(`loaders.arrays`), which rectangle comes when (`loaders.grid`).
"""

from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.flat import METADATA as FLAT_METADATA
from lc_assets.formats.flat import FlatReader
from lc_assets.formats.grid import GridReader
from lc_assets.formats.order import SOURCES, GlobalOrder, OrderSource, require_split
from lc_assets.formats.zarr_json import METADATA as GRID_METADATA
from lc_assets.loaders.arrays import ChunkReader, RiffledRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets.storage.lake import CURRENT, RECEIPT, LakeFolder, Place, Published
from lc_assets.vocabulary import parse_snapshot

ORDER_STAGE: Final = "longcrawl"
GRID_STAGE: Final = "grid"


def open_rows(path: Path, split: str = "train", *, cache_bytes: int | None = None) -> ZarrRows | RiffledRows:
    """Open the rows of one split by a path.

    Args:
        path: a ``.zarr`` folder (a token grid or LongCrawl64's layout; ``split`` plays no part then), a folder
            that holds ``{split}.zarr``, the folder of one version of the global order, or a lake's root, which
            means its published global order.
        split: ``train`` or ``heldout``.
        cache_bytes: bound of the cache of decoded chunks, shared by all arrays that are opened. None: what the walk
            needs that a loader lays over the rows, and no more.

    Raises:
        BadInput: when nothing that can be opened lies at ``path``, or the cache cannot hold one chunk.
        NotPublished: when the lake lacks the order, or a grid that the order is over.
        Mismatch: when a grid is not the one that the order was made for.
        CorruptFile: when a file is not what its format promises.
    """
    require_split(split)
    cache = ChunkCache(cache_bytes)
    if (path / GRID_METADATA).is_file() or (path / FLAT_METADATA).is_file():
        return open_array(path, cache)
    if (path / f"{split}.zarr").is_dir():
        return open_array(path / f"{split}.zarr", cache)
    if (path / SOURCES).is_file():
        return _riffled(path, split, cache)
    if (path / CURRENT).is_file():
        return open_rows(Place(path).require().folder, split, cache_bytes=cache_bytes)
    if (path / ORDER_STAGE).is_dir() or (path / GRID_STAGE).is_dir():
        return _riffled(LakeFolder(path).place(ORDER_STAGE).require().folder, split, cache)
    looked_for = f"{split}.zarr, {SOURCES}, {GRID_METADATA} or {FLAT_METADATA}"
    raise BadInput(f"{path}: found no {looked_for}: wanted an array, a published version or a lake's root")


def open_array(path: Path, cache: ChunkCache) -> ZarrRows:
    """Open the array at ``path`` itself; which of the two layouts it is, its metadata says.

    Raises:
        NotPublished: when there is no array.
        CorruptFile: when its metadata is not of either layout.
        BadInput: when the cache cannot hold one chunk.
    """
    return ZarrRows(_chunk_reader(path), cache)


def _riffled(folder: Path, split: str, cache: ChunkCache) -> RiffledRows:
    order = GlobalOrder.open(folder, split)
    lake = LakeFolder(folder.absolute().parent.parent.parent)
    return RiffledRows(order, [open_array(_grid_folder(lake, source) / f"{split}.zarr", cache) for source in order.sources])


def _grid_folder(lake: LakeFolder, source: OrderSource) -> Path:
    folder = lake.place(GRID_STAGE, parse_snapshot(source.snapshot)).folder / source.version
    found = Published.at(folder).digest
    if found != source.digest:
        raise Mismatch(f"{folder / RECEIPT}: digest {found}, the global order was made for {source.digest}: make the order again")
    return folder


def _chunk_reader(path: Path) -> ChunkReader:
    if (path / GRID_METADATA).is_file():
        return GridReader(path)
    if (path / FLAT_METADATA).is_file():
        return FlatReader(path)
    raise NotPublished(f"{path}: no array here (neither {GRID_METADATA} nor {FLAT_METADATA})")
