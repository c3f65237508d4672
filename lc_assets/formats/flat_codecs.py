"""The two codecs of the flat layout's chunks: LongCrawl64's own Blosc, and zstd.

==================  =========================================================================================
bytes, Blosc        what
==================  =========================================================================================
0–3                 Blosc version, codec version, flags, item size
4–7, 8–11, 12–15    bytes before compression, block size, bytes of the file; uint32 little-endian
16 …                blocks
==================  =========================================================================================

With zstd a chunk is one frame that states its content's size, without a checksum: that is how the
numcodecs of Zarr v2 write it, and old ones know no other.

Source: c-blosc's header; RFC 8878; numcodecs.
"""

import struct
import sys
from typing import Final

import msgspec
import numpy as np
import zstandard
from numcodecs import Blosc, blosc
from numcodecs.zstd import Zstd

from lc_assets.errors import CorruptFile
from lc_assets.formats.chunks import TokenArray
from lc_assets.formats.files import Files, Piece

DTYPE: Final = np.dtype("<u2")

_HEADER: Final = struct.Struct("<4BIII")


class BloscCodec(msgspec.Struct, frozen=True, tag="blosc", tag_field="id"):
    """Blosc, by default as LongCrawl64 used it. Shuffling the bytes of ids gains nothing; it is
    what was published.
    """

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
    return bytes(
        Blosc(
            cname=codec.cname, clevel=codec.clevel, shuffle=codec.shuffle, blocksize=codec.blocksize
        ).encode(ids)
    )


def decode(files: Files, name: str, codec: FlatCodec, out: TokenArray) -> None:
    """Read and decompress a chunk into a C-contiguous (row, token) array of uint16.

    Raises:
        CorruptFile: when it is missing, or does not give just that many ids; names the file.
    """
    where = files.where(name)
    content = _read(files, name, out.nbytes)
    try:
        (_unpack_zstd if isinstance(codec, ZstdCodec) else _unpack_blosc)(content, out, where)
    except (
        RuntimeError,
        ValueError,
    ) as error:  # the latter where several frames together are longer
        raise CorruptFile(f"{where}: the chunk does not decompress: {error}") from error
    if sys.byteorder == "big":
        out.byteswap(inplace=True)


def _one_thread() -> None:
    # Blosc's threads append blocks in the order they finish: 30 encodings of one chunk gave 18
    # different files.
    # They also do not survive a fork, which is how most training loops start their readers.
    blosc.use_threads = False


def _read(files: Files, name: str, chunk_bytes: int) -> bytes:
    """Read a chunk's file; never much more than the chunk itself, which no codec's output exceeds
    by as much.
    """
    try:
        (content,) = files.read([Piece(name, 0, chunk_bytes + chunk_bytes // 128 + 1024)])
    except FileNotFoundError as error:
        lost = (
            "the chunk is missing: its rows were never written, or were lost; download or "
            "write it again"
        )
        raise CorruptFile(f"{files.where(name)}: {lost}") from error
    return content


def _unpack_blosc(content: bytes, out: TokenArray, where: str) -> None:
    """Hold a chunk's header against its file before Blosc sees it.

    Blosc itself trusts the header and reads beyond the end of a truncated chunk (seen: the process
    crashed).
    """
    if len(content) < _HEADER.size:
        raise CorruptFile(
            f"{where}: {len(content):,} bytes cannot hold a Blosc header of {_HEADER.size}: "
            "truncated"
        )
    *_, n_bytes, _, n_stored = _HEADER.unpack_from(content)
    if n_stored != len(content) or n_bytes != out.nbytes:
        raise CorruptFile(
            f"{where}: the chunk states {n_stored:,} bytes that give {n_bytes:,}; wanted the "
            f"file's {len(content):,}, giving {out.nbytes:,}"
        )
    _one_thread()
    Blosc().decode(content, out)


def _unpack_zstd(content: bytes, out: TokenArray, where: str) -> None:
    """Hold what the frame says that it gives against what is wanted, before it is unpacked."""
    try:
        stated = zstandard.frame_content_size(content)
    except zstandard.ZstdError as error:
        raise CorruptFile(f"{where}: the chunk does not decompress: {error}") from error
    if stated != out.nbytes:
        raise CorruptFile(f"{where}: the chunk gives {stated:,} bytes, wanted {out.nbytes:,}")
    Zstd().decode(content, out)
