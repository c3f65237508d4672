"""Shards of a token grid: files of inner chunks, each compressed by itself, with an index at the
end.

Here: encoding a shard, and reading inner chunks out of shards. Not here: the array that shards make
up (`formats.grid`), keeping decoded chunks (`loaders.cache`), why this is not left to a library
(docs/decisions/0006-own-shards.md).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec with ``index_location: end``;
RFC 8878 for zstd frames. Any Zarr v3 reader with that codec reads these files.

=================  =================================================================================
bytes              what
=================  =================================================================================
0 …                inner chunks in C order, each one zstd frame of its little-endian ids in C order;
                   the frame states the size of its content and ends with zstd's own checksum (low
                   32 bits of XXH64)
16 n, before CRC   index: per inner chunk of the shard, in C order, ``offset`` and ``n_bytes``, both
                   uint64 little-endian; both are 2^64 - 1 for an inner chunk that lies wholly
                   outside the array
last 4             CRC-32C of the index, uint32 little-endian
=================  =================================================================================

Every inner chunk that overlaps the array is stored, whatever it holds, so a missing one is always
damage. Ids of an inner chunk beyond the array's edges are the array's fill value.
"""

import functools
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np
import zstandard
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.chunks import TokenArray, padded, require_vocabulary
from lc_assets.formats.arrays.files import Files, Piece

KEPT_INDEX_BYTES: Final = 2**18
"""Bytes of indexes kept per array. Each inner chunk is read by itself, and without this a walk down
an array would read and check a shard's index 32 times.
"""

_ABSENT: Final = 2**64 - 1
_CRC: Final = struct.Struct("<I")
_FRAME_OVERHEAD: Final = 1024

Inner = tuple[int, int]
"""Row and column of an inner chunk."""


@dataclass(frozen=True, slots=True)
class ShardShape:
    """Shape of a shard file.

    Attributes:
        shard: rows × tokens of the shard.
        inner: rows × tokens of an inner chunk; divides ``shard``.
        dtype: of the ids.
        level: zstd's compression level; only the writer uses it.
    """

    shard: tuple[int, int]
    inner: tuple[int, int]
    dtype: np.dtype[Any]
    level: int

    @property
    def grid(self) -> tuple[int, int]:
        """Inner chunks of a shard, along each axis."""
        return self.shard[0] // self.inner[0], self.shard[1] // self.inner[1]

    @property
    def inner_bytes(self) -> int:
        """Size of one inner chunk before compression."""
        return self.inner[0] * self.inner[1] * self.dtype.itemsize

    @property
    def index_bytes(self) -> int:
        """Size of the index with its checksum."""
        return 16 * self.grid[0] * self.grid[1] + _CRC.size


def encode_shard(values: TokenArray, shape: ShardShape, *, fill: int) -> Iterator[bytes]:
    """Yield the bytes of one shard: one inner chunk at a time, then the index.

    Args:
        values: (row, token) ids of ``shape.dtype``, the part of the shard that lies in the array.
        shape: the shard's.
        fill: written for ids outside the array.
    """
    index = np.full((*shape.grid, 2), _ABSENT, "<u8")
    down, across = shape.inner
    codec, offset = _codec(shape.level), 0
    for row, column in np.ndindex(-(-values.shape[0] // down), -(-values.shape[1] // across)):
        part = values[row * down : (row + 1) * down, column * across : (column + 1) * across]
        inner = padded(part, shape.inner, fill)
        frame = bytes(codec.encode(inner.astype(inner.dtype.newbyteorder("<"), copy=False)))
        index[row, column] = offset, len(frame)
        offset += len(frame)
        yield frame
    yield index.tobytes()
    yield _CRC.pack(google_crc32c.value(index.tobytes()))


class ShardReader:
    """Decodes inner chunks of one array, whose shards are the files ``c/{row}/{column}``.

    Threads may share it. Sent to another process, it arrives without the indexes it had read.
    """

    def __init__(
        self, files: Files, shape: ShardShape, array_shape: tuple[int, int], vocab_size: int
    ) -> None:
        """Read from ``files`` an array of shards of ``shape`` with ids below ``vocab_size``."""
        self._files, self._shape = files, shape
        self._array_shape, self._vocab_size = array_shape, vocab_size
        self._indexes: OrderedDict[str, tuple[NDArray[np.uint64], int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardReader, (self._files, self._shape, self._array_shape, self._vocab_size)

    def read(self, row: int, columns: range, out: TokenArray) -> None:
        """Decode adjacent inner chunks; all their bytes are requested at once.

        Args:
            row: of the inner chunks, in the whole array.
            columns: of the inner chunks.
            out: receives them: (chunk, row, token), C-contiguous.

        Raises:
            CorruptFile: when one is missing, damaged, or holds an id outside the vocabulary; names
                it.
        """
        try:
            frames = self._read([self._piece((row, column)) for column in columns])
            for column, frame, chunk in zip(columns, frames, out, strict=True):
                self._decode((row, column), frame, chunk)
        except CorruptFile:
            with self._lock:
                self._indexes.clear()  # so that a shard written again is found at the next call
            raise

    def missing(self, path: str, present: tuple[int, int]) -> list[Inner]:
        """Inner chunks of the shard ``path``, among the first ``present`` rows × columns of them,
        that its index does not place within the file.

        Raises:
            CorruptFile: when the shard is missing or its index is damaged.
        """
        index, n_bytes = self._index(path)
        room = n_bytes - self._shape.index_bytes
        return [
            (row, column)
            for row, column in np.ndindex(*present)
            if not _fits(index[row, column].tolist(), room)
        ]

    def _decode(self, inner: Inner, frame: bytes, out: TokenArray) -> None:
        wanted = self._shape.inner_bytes
        if frame_content_bytes(frame) != wanted:
            raise CorruptFile(
                f"{self._where(inner)}: not a zstd frame that states {wanted:,} bytes of content "
                "and carries a checksum"
            )
        try:
            _codec().decode(frame, out)
        except (RuntimeError, ValueError) as error:
            raise CorruptFile(
                f"{self._where(inner)}: {len(frame):,} bytes do not decompress: {error}"
            ) from error
        if sys.byteorder == "big":
            out.byteswap(inplace=True)
        n_rows, n_tokens = (
            whole - at * size
            for whole, at, size in zip(self._array_shape, inner, self._shape.inner, strict=True)
        )
        require_vocabulary(out[:n_rows, :n_tokens], self._vocab_size, self._where, inner)

    def _where(self, inner: Inner) -> str:
        path, at = self._located(inner)
        return f"{self._files.where(path)}: inner chunk {at}"

    def _located(self, inner: Inner) -> tuple[str, Inner]:
        """The shard's file, and the inner chunk's position in it."""
        down, across = self._shape.grid
        (shard_row, row), (shard_column, column) = divmod(inner[0], down), divmod(inner[1], across)
        return f"c/{shard_row}/{shard_column}", (row, column)

    def _piece(self, inner: Inner) -> Piece:
        path, (row, column) = self._located(inner)
        index, file_bytes = self._indexes.get(path) or self._index(path)
        offset, n_bytes = index[row, column].tolist()
        if (offset, n_bytes) == (_ABSENT, _ABSENT):
            raise CorruptFile(
                f"{self._where(inner)} is missing from the index; write its band again"
            )
        room = file_bytes - self._shape.index_bytes
        if (
            not _fits((offset, n_bytes), room)
            or n_bytes > 2 * self._shape.inner_bytes + _FRAME_OVERHEAD
        ):
            raise CorruptFile(
                f"{self._where(inner)} cannot be {n_bytes:,} bytes at {offset:,}: the file has "
                f"{room:,} before its index"
            )
        return Piece(path, offset, offset + n_bytes)

    def _index(self, path: str) -> tuple[NDArray[np.uint64], int]:
        """A shard's index, (row, column, 2) of offset and size, and the size of its file."""
        size = self._shape.index_bytes
        try:
            n_bytes = self._files.n_bytes(path)
        except FileNotFoundError as error:
            raise self._lost([path]) from error
        (content,) = self._read([Piece(path, max(n_bytes - size, 0), n_bytes)])
        if len(content) < size:
            raise CorruptFile(
                f"{self._files.where(path)}: {len(content):,} bytes cannot hold a shard's index of "
                f"{size:,}; write its band again"
            )
        (stated,) = _CRC.unpack(content[-_CRC.size :])
        if google_crc32c.value(content[: -_CRC.size]) != stated:
            raise CorruptFile(
                f"{self._files.where(path)}: the shard's index does not match its checksum: "
                "truncated or damaged; write its band again"
            )
        index = np.frombuffer(content, "<u8", count=size // 8).reshape(*self._shape.grid, 2)
        with self._lock:
            self._indexes[path] = index, n_bytes
            if len(self._indexes) > max(KEPT_INDEX_BYTES // size, 4):
                self._indexes.popitem(last=False)
        return index, n_bytes

    def _read(self, pieces: list[Piece]) -> list[bytes]:
        try:
            return self._files.read(pieces)
        except FileNotFoundError as error:
            raise self._lost(sorted({piece.path for piece in pieces})[:2]) from error

    def _lost(self, paths: list[str]) -> CorruptFile:
        return CorruptFile(
            f"{', '.join(map(self._files.where, paths))}: the shard is missing: its rows were "
            "never "
            "written, or were lost; write its band again"
        )


def frame_content_bytes(frame: bytes) -> int | None:
    """Content size that a zstd frame states in its header; None when it is no frame, states no size
    or carries no checksum.

    Checked before anything is decompressed, so that hostile bytes cannot make the reader allocate.

    >>> frame_content_bytes(Zstd(level=3, checksum=True).encode(b"abc"))
    3
    """
    try:
        header = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError:
        return None
    stated = header.content_size
    return stated if header.has_checksum and stated != zstandard.CONTENTSIZE_UNKNOWN else None


@functools.cache
def _codec(level: int = 1) -> Zstd:
    return Zstd(level=level, checksum=True)


def _fits(entry: Sequence[int], room: int) -> bool:
    """Whether an entry of the index lies within the ``room`` bytes before the index."""
    offset, n_bytes = entry
    return n_bytes > 0 and offset + n_bytes <= room
