"""One shard: a file of inner chunks that are compressed one by one, with an index at its end.

Here: shards as bytes, their parts checked. Not here: the array they belong to (`formats.grid`),
    which bytes of
which file are read (`formats.shard_reader`).

Source: Zarr v3 core and its ``sharding_indexed`` codec with ``index_location: end``; RFC 8878 for
    the frame.
What is written here, any Zarr v3 reader with that codec reads.

=================  ==========================================================================================
bytes              what
=================  ==========================================================================================
0 …                inner chunks in C order, each one zstd frame of its little-endian ids in C order; the frame
                   states its content's size and ends with zstd's own checksum (low 32 bits of
                   XXH64)
16 n, before crc   index: per inner chunk of the shard, in C order, ``offset`` and ``n_bytes``, both uint64
                   little-endian; both are 2^64 - 1 for an inner chunk that lies wholly outside the
                   array
last 4             CRC-32C of the index, uint32 little-endian
=================  ==========================================================================================

An inner chunk that lies in the array is always stored, whatever it holds: a hole is damage, never a
default. The ids of an inner chunk that lie outside the array are the array's fill value.
"""

import functools
import os
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import google_crc32c
import numpy as np
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from lc_assets.errors import CorruptFile
from lc_assets.formats.chunks import TokenArray, padded

_ABSENT: Final = 2**64 - 1
_CRC: Final = struct.Struct("<I")
_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_FRAME_OVERHEAD: Final = 1024


@dataclass(frozen=True, slots=True)
class ShardShape:
    """Shape of one shard file.

    Attributes:
        shard: rows × tokens of the shard.
        inner: rows × tokens of an inner chunk; divides ``shard``.
        dtype: of the ids.
        level: at which zstd packs them; a reader need not know.
    """

    shard: tuple[int, int]
    inner: tuple[int, int]
    dtype: np.dtype[Any]
    level: int

    @property
    def grid(self) -> tuple[int, int]:
        """Inner chunks of a shard, along each axis."""
        return self.shard[0] // self.inner[0], self.shard[1] // self.inner[1]

    def cut(self, left: tuple[int, int]) -> tuple[int, int]:
        """Rows × tokens of a shard that lie in an array of which so many are left."""
        return min(self.shard[0], left[0]), min(self.shard[1], left[1])

    @property
    def inner_bytes(self) -> int:
        """Size of one inner chunk before compression."""
        return self.inner[0] * self.inner[1] * self.dtype.itemsize

    @property
    def index_bytes(self) -> int:
        """Size of the index with its checksum."""
        return 16 * self.grid[0] * self.grid[1] + _CRC.size


def encode_shard(values: TokenArray, shape: ShardShape, *, fill: int) -> Iterator[bytes]:
    """Yield the file of one shard, inner chunk by inner chunk and then the index: no more than one
    is held.

    Args:
        values: (row, token) ids of ``shape.dtype``, the part of the shard that lies in the array.
        shape: the shard's.
        fill: stands for ids outside the array.
    """
    index = np.full((*shape.grid, 2), _ABSENT, "<u8")
    offset = 0
    for row, column in np.ndindex(
        -(-values.shape[0] // shape.inner[0]), -(-values.shape[1] // shape.inner[1])
    ):
        frame = _encode_inner(values, (row, column), shape, fill)
        index[row, column] = offset, len(frame)
        offset += len(frame)
        yield frame
    yield index.tobytes()
    yield _CRC.pack(google_crc32c.value(index.tobytes()))


def decode_inner(
    frame: bytes, shape: ShardShape, where: Callable[[], str], out: TokenArray
) -> None:
    """Decompress one inner chunk into ``out``, a C-contiguous array of ``shape.inner``; ``where``
    is for the message.

    Raises:
        CorruptFile: when the frame is of another size, or does not decompress to what its checksum
            says.
    """
    if frame_content_bytes(frame) != shape.inner_bytes:
        raise CorruptFile(
            f"{where()}: not a zstd frame that states {shape.inner_bytes:,} bytes of content and "
            "carries a checksum"
        )
    try:
        _codec().decode(frame, out)
    except (RuntimeError, ValueError) as error:
        raise CorruptFile(f"{where()}: {len(frame):,} bytes do not decompress: {error}") from error
    if sys.byteorder == "big":
        out.byteswap(inplace=True)


def require_place(
    offset: int, n_bytes: int, file_bytes: int, shape: ShardShape, where: Callable[[], str]
) -> None:
    """Refuse a line of a shard's index that places its inner chunk nowhere; ``where`` is for the
    message.

    Raises:
        CorruptFile: when the inner chunk is missing, or cannot be that long or lie there.
    """
    if (offset, n_bytes) == (_ABSENT, _ABSENT):
        raise CorruptFile(f"{where()} is missing from the index; write its band again")
    room = file_bytes - shape.index_bytes
    if not _fits(offset, n_bytes, room) or n_bytes > 2 * shape.inner_bytes + _FRAME_OVERHEAD:
        raise CorruptFile(
            f"{where()} cannot be {n_bytes:,} bytes at {offset:,}: the file has {room:,} before "
            "its index"
        )


def read_index(path: Path, shape: ShardShape) -> NDArray[np.uint64]:
    """Read a shard's index.

    Returns:
        uint64 array (row, column, 2): offset and size of each inner chunk.

    Raises:
        CorruptFile: when the file is missing or too short, or the index's checksum is wrong.
    """
    with _opened(path) as stream:
        return _index(stream, path, shape)


def missing_inner(path: Path, shape: ShardShape, present: tuple[int, int]) -> list[tuple[int, int]]:
    """Inner chunks, among the first ``present`` rows × columns of them, that the shard's index does
    not place within its file.
    """
    index = read_index(path, shape)[: present[0], : present[1]]
    room = path.stat().st_size - shape.index_bytes
    lost = [not _fits(int(offset), int(n_bytes), room) for offset, n_bytes in index.reshape(-1, 2)]
    return [(int(row), int(column)) for row, column in np.argwhere(np.reshape(lost, present))]


def frame_content_bytes(frame: bytes) -> int | None:
    """Content size that a zstd frame states in its header; None when it is none, states none or
    carries no checksum.

    It is looked at before anything is decompressed, so that hostile bytes cannot ask for memory.

    >>> frame_content_bytes(Zstd(level=3, checksum=True).encode(b"abc"))
    3
    """
    if len(frame) < 6 or not frame.startswith(_FRAME_MAGIC) or not frame[4] & 0b100:
        return None
    size_flag, single_segment, dictionary_flag = frame[4] >> 6, frame[4] >> 5 & 1, frame[4] & 0b11
    n_size = (single_segment, 2, 4, 8)[size_flag]
    start = 6 - single_segment + (0, 1, 2, 4)[dictionary_flag]
    stated = int.from_bytes(frame[start : start + n_size], "little")
    return stated + 256 * (n_size == 2) if n_size else None


def _encode_inner(values: TokenArray, at: tuple[int, int], shape: ShardShape, fill: int) -> bytes:
    row, token = at[0] * shape.inner[0], at[1] * shape.inner[1]
    inner = padded(
        values[row : row + shape.inner[0], token : token + shape.inner[1]], shape.inner, fill
    )
    return bytes(
        _codec(shape.level).encode(inner.astype(inner.dtype.newbyteorder("<"), copy=False))
    )


@functools.cache
def _codec(level: int = 1) -> Zstd:
    return Zstd(level=level, checksum=True)


def _fits(offset: int, n_bytes: int, room: int) -> bool:
    return n_bytes > 0 and offset + n_bytes <= room


def _index(stream: BinaryIO, path: Path, shape: ShardShape) -> NDArray[np.uint64]:
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(size - shape.index_bytes, 0))
    return parse_index(stream.read(shape.index_bytes), shape, str(path))


def parse_index(content: bytes, shape: ShardShape, where: str) -> NDArray[np.uint64]:
    """Return the index that the last ``shape.index_bytes`` bytes of a shard are, see `read_index`;
    ``where`` is for the message.

    Raises:
        CorruptFile: when these are fewer bytes, or the checksum is wrong.
    """
    if len(content) < shape.index_bytes:
        raise CorruptFile(
            f"{where}: {len(content):,} bytes cannot hold a shard's index of "
            f"{shape.index_bytes:,}; write its band again"
        )
    (stated,) = _CRC.unpack(content[-_CRC.size :])
    if google_crc32c.value(content[: -_CRC.size]) != stated:
        raise CorruptFile(
            f"{where}: the shard's index does not match its checksum: truncated or damaged; write "
            "its band again"
        )
    return np.frombuffer(content, "<u8", count=len(content) // 8).reshape(*shape.grid, 2)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFile(
            f"{path}: the shard is missing: its rows were never written, or were lost; write its "
            "band again"
        ) from error
