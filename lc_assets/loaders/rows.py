"""Opening the rows of a data set by its path: an array, a published version, a lake.

Here: what lies at a path, and that it is what the global order was made for. Not here: reading rows
(`loaders.arrays`), which rectangle comes when (`loaders.grid`).
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.flat import METADATA as FLAT_METADATA
from lc_assets.formats.flat import FlatReader
from lc_assets.formats.grid import GridReader
from lc_assets.formats.grid_layout import METADATA as GRID_METADATA
from lc_assets.formats.order import SOURCES, GlobalOrder, OrderSource, require_split
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.partition import CURRENT, Current, Partition
from lc_assets.lake.receipts import RECEIPT, decode_json
from lc_assets.lake.releases import decode_release, lake_of_release, note_of
from lc_assets.lake.versions import Published
from lc_assets.loaders.arrays import ChunkReader, RiffledRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets.loaders.remote import RemoteFiles, fetch
from lc_assets.vocabulary import parse_snapshot

ORDER_STAGE: Final = "longcrawl"
GRID_STAGE: Final = "token_grid"


def open_rows(
    path: Path | str,
    split: str = "train",
    *,
    cache_bytes: int | None = None,
    release: str | None = None,
) -> ZarrRows | RiffledRows:
    """Open the rows of one split by a path.

    Args:
        path: a path, or a URL that fsspec knows (``https://…``, ``gs://…``), of a ``.zarr`` folder
            (a token grid or LongCrawl64's layout; ``split`` plays no part then), of a folder that
            holds ``{split}.zarr``, of one version of the global order, or of a lake, which means
            its published global order.
        split: ``train`` or ``heldout``.
        cache_bytes: bound of the cache of decoded chunks, shared by all arrays that are opened.
            None: what the walk needs that a loader lays over the rows, and no more.
        release: of a lake: its global order as this release pins it; the same bytes for ever.

    Raises:
        BadInput: when nothing that can be opened lies at ``path``, or the cache cannot hold one
            chunk.
        NotPublished: when the lake lacks the order, a grid that the order is over, or the release.
        Mismatch: when a grid is not the one that the order was made for.
        CorruptFile: when a file is not what its format promises.
        Unreachable: when a server does not answer, also when asked again.
    """
    require_split(split)
    if release is not None:
        path = pinned_order(path, release)
    if isinstance(path, str) and "://" in path:
        return _open_url(path.rstrip("/"), split, cache_bytes)
    path, cache = Path(path), ChunkCache(cache_bytes)
    if (path / GRID_METADATA).is_file() or (path / FLAT_METADATA).is_file():
        return open_array(path, cache)
    if (path / f"{split}.zarr").is_dir():
        return open_array(path / f"{split}.zarr", cache)
    if (path / SOURCES).is_file():
        return _riffled(path, split, cache)
    if (path / CURRENT).is_file():
        return open_rows(Partition(path).require().folder, split, cache_bytes=cache_bytes)
    if (path / ORDER_STAGE).is_dir() or (path / GRID_STAGE).is_dir():
        return _riffled(Lake(path).partition(ORDER_STAGE).require().folder, split, cache)
    raise _nothing_at(path, split)


def pinned_order(lake: Path | str, release: str) -> Path | str:
    """Where the global order lies that a release pins: a folder, or a URL where the lake has one.

    Raises:
        NotPublished: when there is no such release, or what it pins is gone.
        Mismatch: when what lies there is not what was released.
    """
    if not (isinstance(lake, str) and "://" in lake):
        return lake_of_release(Lake(Path(lake)), release).partition(ORDER_STAGE).require().home
    note, files = note_of(release), RemoteFiles(lake.rstrip("/"))
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
            raise Mismatch(f"{files.where(receipt)}: not the version that release {release} pins")
    return files.where(f"{ORDER_STAGE}/{GLOBAL}/{pin.version}")


def open_array(path: Path, cache: ChunkCache) -> ZarrRows:
    """Open the array at ``path`` itself; which of the two layouts it is, its metadata says.

    Raises:
        NotPublished: when there is no array.
        CorruptFile: when its metadata is not of either layout.
        BadInput: when the cache cannot hold one chunk.
    """
    return ZarrRows(_chunk_reader(path), cache)


def _open_url(url: str, split: str, cache_bytes: int | None) -> ZarrRows | RiffledRows:
    files, cache = RemoteFiles(url), ChunkCache(cache_bytes)
    for folder in ("", f"{split}.zarr/"):
        for metadata in (GRID_METADATA, FLAT_METADATA):
            if files.holds(f"{folder}{metadata}"):
                return _open_remote_array(f"{url}/{folder}".rstrip("/"), metadata, cache)
    if files.holds(SOURCES):
        return _open_remote_order(url, split, cache)
    if files.holds(CURRENT):
        return _open_url(published_at(url), split, cache_bytes)
    if files.holds(f"{ORDER_STAGE}/{GLOBAL}/{CURRENT}"):
        return _open_url(f"{url}/{ORDER_STAGE}/{GLOBAL}", split, cache_bytes)
    raise _nothing_at(url, split)


def published_at(url: str) -> str:
    """URL of the version that a partition at ``url`` publishes; where nothing is published there,
    ``url`` itself.

    Raises:
        CorruptFile: when the pointer is not readable.
        Unreachable: when the server does not answer.
    """
    files = RemoteFiles(url)
    if not files.holds(CURRENT):
        return url
    with TemporaryDirectory() as copies:
        fetch(files, Path(copies), CURRENT)
        return f"{url}/{decode_json(Path(copies) / CURRENT, Current).version}"


def _open_remote_array(url: str, metadata: str, cache: ChunkCache) -> ZarrRows:
    reader = GridReader if metadata == GRID_METADATA else FlatReader
    return ZarrRows(reader(Path(url), files=RemoteFiles(url)), cache)


def _open_remote_order(url: str, split: str, cache: ChunkCache) -> RiffledRows:
    """Copy the order and the grids' receipts, which are small, and check them as those of a local
    lake; rows stay where they are.
    """
    lake, *place = url.rsplit("/", 3)
    files = RemoteFiles(lake)
    with TemporaryDirectory() as copies:
        folder = Path(copies, *place)
        fetch(
            files,
            Path(copies),
            *(
                "/".join([*place, name])
                for name in (SOURCES, f"{split}_source.npy", f"{split}_row.npy")
            ),
        )
        mapped = GlobalOrder.open(folder, split)
        order = replace(mapped, source=np.array(mapped.source), row=np.array(mapped.row))
        grids = [f"{GRID_STAGE}/{source.snapshot}/{source.version}" for source in order.sources]
        for source, grid in zip(order.sources, grids, strict=True):
            fetch(files, Path(copies), f"{grid}/{RECEIPT}")
            _grid_folder(Lake(Path(copies)), source)
    return RiffledRows(
        order,
        [_open_remote_array(f"{lake}/{grid}/{split}.zarr", GRID_METADATA, cache) for grid in grids],
    )


def _nothing_at(place: Path | str, split: str) -> BadInput:
    looked_for = f"{split}.zarr, {SOURCES}, {GRID_METADATA} or {FLAT_METADATA}"
    return BadInput(
        f"{place}: found no {looked_for}: wanted an array, a published version or a lake's root"
    )


def _riffled(folder: Path, split: str, cache: ChunkCache) -> RiffledRows:
    order = GlobalOrder.open(folder, split)
    lake = Lake(folder.absolute().parent.parent.parent)
    return RiffledRows(
        order,
        [
            open_array(_grid_folder(lake, source) / f"{split}.zarr", cache)
            for source in order.sources
        ],
    )


def _grid_folder(lake: Lake, source: OrderSource) -> Path:
    folder = lake.partition(GRID_STAGE, parse_snapshot(source.snapshot)).folder / source.version
    found = Published.at(folder).digest
    if found != source.digest:
        raise Mismatch(
            f"{folder / RECEIPT}: digest {found}, the global order was made for {source.digest}: "
            "make the order again"
        )
    return folder


def _chunk_reader(path: Path) -> ChunkReader:
    if (path / GRID_METADATA).is_file():
        return GridReader(path)
    if (path / FLAT_METADATA).is_file():
        return FlatReader(path)
    raise NotPublished(f"{path}: no array here (neither {GRID_METADATA} nor {FLAT_METADATA})")
