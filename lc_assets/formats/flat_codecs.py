"""The two codecs of the flat layout's chunks: LongCrawl64's own Blosc, and zstd.

==================  =========================================================================================
bytes, Blosc        what
==================  =========================================================================================
0–3                 Blosc version, codec version, flags, item size
4–7, 8–11, 12–15    bytes before compression, block size, bytes of the file; uint32 little-endian
16 …                blocks
==================  =========================================================================================

With zstd a chunk is one frame that states its content's size, without a checksum: that is how the numcodecs of Zarr v2
write it, and old ones know no other.

Source: c-blosc's header; RFC 8878; numcodecs.
"""

import struct
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import zstandard
from numcodecs import Blosc, blosc
from numcodecs.zstd import Zstd

from lc_assets.errors import CorruptFile
from lc_assets.formats.chunks import TokenArray

DTYPE: Final = np.dtype("<u2")

_HEADER: Final = struct.Struct("<4BIII")


class BloscCodec(msgspec.Struct, frozen=True, tag="blosc", tag_field="id"):
    """Blosc, by default as LongCrawl64 used it. Shuffling the bytes of ids gains nothing; it is what was published."""

    blocksize: int = 0
    clevel: int = 5
    cname: str = "lz4"
    shuffle: int = 1


class ZstdCodec(msgspec.Struct, frozen=True, tag="zstd", tag_field="id"):
    """Zstd, which takes about 0.6 of Blosc's room."""

    level: int = 3


FlatCodec = BloscCodec | ZstdCodec
BLOSC: Final = BloscCodec()
ZSTD: Final = ZstdCodec()


def encode(chunk: TokenArray, codec: FlatCodec) -> bytes:
    """Compress a whole chunk of uint16 ids; the same ids give the same bytes."""
    ids = chunk.astype(DTYPE, copy=False)
    if isinstance(codec, ZstdCodec):
        return bytes(Zstd(level=codec.level).encode(np.ascontiguousarray(ids)))
    _one_thread()
    return bytes(Blosc(cname=codec.cname, clevel=codec.clevel, shuffle=codec.shuffle, blocksize=codec.blocksize).encode(ids))


def decode(path: Path, shape: tuple[int, int], codec: FlatCodec) -> TokenArray:
    """Read and decompress a chunk: (row, token) ids of uint16.

    Raises:
        CorruptFile: when it is missing, or does not give just that many ids; names the file.
    """
    n_bytes = shape[0] * shape[1] * DTYPE.itemsize
    content = _read(path, n_bytes)
    try:
        ids = _unpacked_zstd(content, n_bytes, path) if isinstance(codec, ZstdCodec) else _unpacked_blosc(content, n_bytes, path)
    except RuntimeError as error:
        raise CorruptFile(f"{path}: the chunk does not decompress: {error}") from error
    return np.frombuffer(ids, DTYPE).reshape(shape).astype(np.uint16, copy=False)


def _one_thread() -> None:
    # Blosc's threads append blocks in the order they finish: 30 encodings of one chunk gave 18 different files.
    # They also do not survive a fork, which is how most training loops start their readers.
    blosc.use_threads = False


def _read(path: Path, chunk_bytes: int) -> bytes:
    """Read a chunk's file; never much more than the chunk itself, which no codec's output exceeds by as much."""
    try:
        with path.open("rb") as stream:
            return stream.read(chunk_bytes + chunk_bytes // 128 + 1024)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFile(f"{path}: the chunk is missing: its rows were never written, or were lost; download or write it again") from error


def _unpacked_blosc(content: bytes, chunk_bytes: int, path: Path) -> bytes:
    """Hold a chunk's header against its file before Blosc sees it.

    Blosc itself trusts the header and reads beyond the end of a truncated chunk (seen: the process crashed).
    """
    if len(content) < _HEADER.size:
        raise CorruptFile(f"{path}: {len(content):,} bytes cannot hold a Blosc header of {_HEADER.size}: truncated")
    *_, n_bytes, _, n_stored = _HEADER.unpack_from(content)
    if n_stored != len(content) or n_bytes != chunk_bytes:
        raise CorruptFile(
            f"{path}: the chunk states {n_stored:,} bytes that give {n_bytes:,}; wanted the file's {len(content):,}, giving {chunk_bytes:,}"
        )
    _one_thread()
    return bytes(Blosc().decode(content))


def _unpacked_zstd(content: bytes, chunk_bytes: int, path: Path) -> bytes:
    """Hold what the frame says that it gives against what is wanted, before room is made for it."""
    try:
        stated = zstandard.frame_content_size(content)
        if stated != chunk_bytes:
            raise CorruptFile(f"{path}: the chunk gives {stated:,} bytes, wanted {chunk_bytes:,}")
        return zstandard.ZstdDecompressor().decompress(content)
    except zstandard.ZstdError as error:
        raise CorruptFile(f"{path}: the chunk does not decompress: {error}") from error
