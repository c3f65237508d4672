"""Rows to read while training: one array through a cache, or a lake's global order.

Here: reading through a cache of decoded chunks, and opening a data set by its path. Not here: which rectangle
comes when (`loaders.grid`), the riffle itself (`formats.riffled`).
"""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.chunks import ALL, TokenArray, gather, n_chunks, span
from lc_assets.formats.flat import METADATA as FLAT_METADATA
from lc_assets.formats.flat import FlatReader
from lc_assets.formats.grid import GridReader
from lc_assets.formats.order import SOURCES, GlobalOrder, OrderSource, require_split
from lc_assets.formats.riffled import RiffledReader, Rows
from lc_assets.formats.zarr_json import METADATA as GRID_METADATA
from lc_assets.loaders.cache import DEFAULT_CACHE_BYTES, ChunkCache
from lc_assets.storage.lake import CURRENT, RECEIPT, LakeFolder, Place, Published
from lc_assets.vocabulary import parse_snapshot

ORDER_STAGE: Final = "longcrawl"
GRID_STAGE: Final = "grid"


class RowSource(Rows, Protocol):
    """All that a loader asks for: rows, and a name for the data by which a saved position finds it again."""

    @property
    def identity(self) -> str:
        """Names the data: equal for two sources only when both hold the same rows in the same order."""
        ...


class ChunkReader(Rows, Protocol):
    """What `ZarrRows` asks of a format's reader."""

    path: Path
    metadata: bytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        ...

    @property
    def chunk_shape(self) -> tuple[int, int]:
        """Rows × tokens of a chunk."""
        ...

    def read_chunk(self, row: int, column: int) -> TokenArray:
        """Decode one chunk, cut off at the array's edges."""
        ...


class ZarrRows:
    """Rows of one array, a token grid or the flat layout, read through a cache of its chunks."""

    def __init__(self, path: Path, cache: ChunkCache) -> None:
        """Open the array at ``path``; which of the two layouts it is, its metadata says.

        Raises:
            NotPublished: when there is no array.
            CorruptFile: when its metadata is not of either layout.
            BadInput: when the cache cannot hold one chunk.
        """
        self._reader = _chunk_reader(path)
        self._cache = cache
        self._name = object()  # not the path: two readers of one path may have found two versions there
        down, across = self._reader.chunk_shape
        cache.require_room(down * across * self._reader.dtype.itemsize)

    @property
    def path(self) -> Path:
        """The array's folder."""
        return self._reader.path

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._reader.n_rows

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        return self._reader.row_tokens

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        return self._reader.vocab_size

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the metadata and of the first and last chunk: enough to tell other data, shapes and orders apart.

        Not proof against forgery; the receipt's digest is.
        """
        hasher = hashlib.sha256(self._reader.metadata)
        down, across = n_chunks((self.n_rows, self.row_tokens), self._reader.chunk_shape)
        for row, column in [(0, 0), (down - 1, across - 1)] if down else []:
            hasher.update(np.ascontiguousarray(self._chunk(row, column)).data)
        return hasher.hexdigest()

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile: when a chunk is missing or damaged; names array and chunk.
        """
        row_span, token_span = span(rows, self.n_rows, "rows"), span(tokens, self.row_tokens, "tokens")
        return gather(self._chunk, row_span, token_span, chunk_shape=self._reader.chunk_shape, dtype=self._reader.dtype)

    def _chunk(self, row: int, column: int) -> TokenArray:
        return self._cache.get((self._name, row, column), lambda: self._reader.read_chunk(row, column))


def open_rows(path: Path, split: str = "train", *, cache_bytes: int = DEFAULT_CACHE_BYTES) -> ZarrRows | RiffledReader:
    """Open the rows of one split by a path.

    Args:
        path: a ``.zarr`` folder (a token grid or LongCrawl64's layout; ``split`` plays no part then), a folder
            that holds ``{split}.zarr``, the folder of one version of the global order, or a lake's root, which
            means its published global order.
        split: ``train`` or ``heldout``.
        cache_bytes: bound of the cache of decoded chunks, shared by all arrays that are opened.

    Raises:
        BadInput: when nothing that can be opened lies at ``path``, or the cache cannot hold one chunk.
        NotPublished: when the lake lacks the order, or a grid that the order is over.
        Mismatch: when a grid is not the one that the order was made for.
        CorruptFile: when a file is not what its format promises.
    """
    require_split(split)
    cache = ChunkCache(cache_bytes)
    if (path / GRID_METADATA).is_file() or (path / FLAT_METADATA).is_file():
        return ZarrRows(path, cache)
    if (path / f"{split}.zarr").is_dir():
        return ZarrRows(path / f"{split}.zarr", cache)
    if (path / SOURCES).is_file():
        return _riffled(path, split, cache)
    if (path / CURRENT).is_file():
        return open_rows(Place(path).require().folder, split, cache_bytes=cache_bytes)
    if (path / ORDER_STAGE).is_dir() or (path / GRID_STAGE).is_dir():
        return _riffled(LakeFolder(path).place(ORDER_STAGE).require().folder, split, cache)
    looked_for = f"{split}.zarr, {SOURCES}, {GRID_METADATA} or {FLAT_METADATA}"
    raise BadInput(f"{path}: found no {looked_for}: wanted an array, a published version or a lake's root")


def _riffled(folder: Path, split: str, cache: ChunkCache) -> RiffledReader:
    order = GlobalOrder.open(folder, split)
    lake = LakeFolder(folder.absolute().parent.parent.parent)
    return RiffledReader(order, [ZarrRows(_grid_folder(lake, source) / f"{split}.zarr", cache) for source in order.sources])


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
