"""LongCrawl64's published layout: one split, all rows, as one flat Zarr v2 array.

Use it for programs that expect that layout. The project's own (`formats.grid`) is smaller and can
be read in smaller pieces.

Source: the ``.zarray`` of LongCrawl64's surviving copy; Zarr v2 specification; c-blosc's header;
RFC 8878; numcodecs.

==================  ================================================================================
path                content
==================  ================================================================================
``.zarray``         ``zarr_format`` 2, ``shape`` [rows, 65536], ``chunks`` [2048, 2048], ``dtype``
                    "<u2", ``order`` "C", ``fill_value`` 0, ``filters`` null, ``compressor``
                    {id blosc, cname lz4, clevel 5, shuffle 1, blocksize 0}; no
                    ``dimension_separator``, which means ".". Optionally, here, {id zstd, level 3}
``.zattrs``         ``{}``; here ``{"vocab_size": …}`` where ids are not GPT-2's
``{i}.{j}``         chunk: rows 2,048 i and up, tokens 2,048 j and up, always of full size; beyond
                    the array's edge it holds 0
``{i}.crc32``      here: checksums of the files of the chunks (i, 0), (i, 1), …
                    (`lc_assets.formats.checksums`)
==================  ================================================================================

A chunk is one Blosc buffer: four bytes (Blosc version, codec version, flags, item size), then three
uint32 little-endian (bytes before compression, block size, bytes of the file), then the blocks. Or
it is one zstd frame that states the size of its content, without a checksum, as the numcodecs of
Zarr v2 writes it.

The format says neither which vocabulary the ids belong to nor whether a chunk is whole. Zarr
readers return the fill value for a missing chunk, and 0 is a GPT-2 token ("!"); here a missing
chunk is `CorruptFile`. In an array of another program, which has no checksums, a damaged chunk is
found when it does not decompress or gives ids outside the vocabulary, and otherwise not.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
import zstandard
from zlib_ng import zlib_ng

from lc_assets.arrays import Array, UInt32s
from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile
from lc_assets.formats.arrays.chunks import (
    ALL,
    MOST_METADATA_BYTES,
    ChunkedArray,
    TokenArray,
    n_chunks,
    padded,
    require_no_other,
)
from lc_assets.formats.arrays.files import Files, Piece
from lc_assets.formats.checksums import SUFFIX, parse_checksums
from lc_assets.publishing import publish_bytes
from lc_assets.vocabulary import GPT2_VOCAB_SIZE

METADATA = ".zarray"
ATTRIBUTES = ".zattrs"
VOCAB_SIZE = "vocab_size"
FILL: Final = 0
CHUNK = (2048, 2048)
"""Rows × tokens of a chunk: 8 MiB before compression."""

MOST_IDS = 1 << 16
"""Of a vocabulary: an id has two bytes."""

_MAX_CHUNK_BYTES = 256 * 2**20
_BLOSC_HEADER = struct.Struct("<4BIII")


class BloscCodec(msgspec.Struct, frozen=True, tag="blosc", tag_field="id"):
    """Blosc, by default as LongCrawl64 used it; shuffling the bytes of ids gains nothing."""

    blocksize: int = 0
    clevel: int = 5
    cname: str = "lz4"
    shuffle: int = 1

    def encode(self, ids: TokenArray) -> bytes:
        """Compress a whole chunk; the same ids give the same bytes."""
        codec = _blosc().Blosc(
            cname=self.cname, clevel=self.clevel, shuffle=self.shuffle, blocksize=self.blocksize
        )
        return bytes(codec.encode(ids))

    def decode(self, content: bytes, out: TokenArray) -> None:
        """Decompress a chunk after comparing its header with the file and the chunk.

        Blosc itself trusts the header and reads beyond the end of a truncated chunk (seen: the
        process crashed).
        """
        if len(content) < _BLOSC_HEADER.size:
            raise ValueError(f"{len(content):,} bytes are fewer than a Blosc header's")
        *_, n_bytes, _, n_stored = _BLOSC_HEADER.unpack_from(content)
        if n_stored != len(content) or n_bytes != out.nbytes:
            raise ValueError(
                f"its header states {n_stored:,} bytes giving {n_bytes:,}; expected the file's "
                f"{len(content):,}, giving {out.nbytes:,}"
            )
        _blosc().Blosc().decode(content, out)


class ZstdCodec(msgspec.Struct, frozen=True, tag="zstd", tag_field="id"):
    """Zstd, which takes about 0.6 of Blosc's space."""

    level: int = 3

    def encode(self, ids: TokenArray) -> bytes:
        """Compress a whole chunk; the same ids give the same bytes."""
        from numcodecs.zstd import Zstd

        return bytes(Zstd(level=self.level).encode(np.ascontiguousarray(ids)))

    def decode(self, content: bytes, out: TokenArray) -> None:
        """Decompress a chunk after comparing the size that the frame states with the chunk's."""
        stated = zstandard.frame_content_size(content)
        if stated != out.nbytes:
            raise ValueError(f"it gives {stated:,} bytes, expected {out.nbytes:,}")
        from numcodecs.zstd import Zstd

        Zstd().decode(content, out)


FlatCodec = BloscCodec | ZstdCodec
BLOSC = BloscCodec()
ZSTD = ZstdCodec()


class _ZArray(msgspec.Struct):
    chunks: tuple[int, int]
    compressor: FlatCodec
    dtype: Literal["<u2"]
    fill_value: Literal[0]
    filters: None
    order: Literal["C"]
    shape: tuple[int, int]
    zarr_format: Literal[2]
    dimension_separator: Literal["."] | msgspec.UnsetType = msgspec.UNSET


def create_flat(
    path: Path,
    n_rows: int,
    row_tokens: int,
    *,
    chunk: tuple[int, int] = CHUNK,
    codec: FlatCodec = BLOSC,
    vocab_size: int = GPT2_VOCAB_SIZE,
) -> None:
    """Write the metadata of a flat array; its rows are then written by
    `FlatReader.write`.

    Args:
        path: the array's folder, such as ``train.zarr``.
        n_rows: rows of the array; may be zero.
        row_tokens: tokens of a row.
        chunk: rows × tokens of a chunk; LongCrawl64's are 2048 × 2048, also if the array is
            smaller.
        codec: LongCrawl64's, or zstd, which is smaller and which Zarr v2 readers know too.
        vocab_size: ids are below it; stated among the attributes if it is not GPT-2's.

    Raises:
        BadInput: if a size is not possible, or ``path`` holds another array.
    """
    if n_rows < 0 or row_tokens < 1 or min(chunk) < 1:
        raise BadInput(
            f"cannot lay out {n_rows:,} rows × {row_tokens:,} tokens in chunks of {chunk}"
        )
    if not 0 < vocab_size <= MOST_IDS:
        raise BadInput(
            f"LongCrawl64's layout holds ids of two bytes; the vocabulary has {vocab_size:,} ids"
        )
    document = _ZArray(chunk, codec, "<u2", FILL, None, "C", (n_rows, row_tokens), zarr_format=2)
    content = msgspec.json.format(msgspec.json.encode(document), indent=4)
    attributes = {} if vocab_size == GPT2_VOCAB_SIZE else {VOCAB_SIZE: vocab_size}
    require_no_other(path / METADATA, content)
    publish_bytes(path / ATTRIBUTES, msgspec.json.encode(attributes))
    publish_bytes(path / METADATA, content)


class FlatReader(ChunkedArray):
    """Reads rectangles of a flat array, without a cache; every id it returns is a token.

    Attributes:
        codec: of its chunks.
    """

    METADATA, KIND, FILE = METADATA, "flat array", "{}.{}"

    def __init__(self, path: Path, *, files: Files | None = None) -> None:
        """Read the metadata and nothing else.

        Raises:
            NotPublished: if there is no such array.
            CorruptFile: if the metadata is not this layout's; names the field, its value and the
                expected one.
        """
        super().__init__(path, files)
        document = _parsed(self.metadata, self._files.where(METADATA))
        self.vocab_size = _vocab_size(self._files)
        self.dtype = np.dtype(np.uint16)
        self.n_rows, self.row_tokens = document.shape
        self.chunk_shape = self.file_shape = document.chunks
        self.codec = document.compressor
        self._checksums: dict[int, UInt32s] = {}
        self._encoded_checksums: list[int] = []

    def write(self, block: range, rows: Array, tokens: slice = ALL) -> None:
        """Write chunks, and the checksums of a band when this reader has written all of it; see
        `ChunkedArray.write`.
        """
        self._encoded_checksums = []
        super().write(block, rows, tokens)
        down, across = n_chunks(rows.shape, self.chunk_shape)
        first = (tokens.start or 0) // self.chunk_shape[1]
        found = np.reshape(self._encoded_checksums, (down, across))
        for row, checksums in enumerate(found, block.start // self.chunk_shape[0]):
            band = self.checksums(row).copy()
            band[first : first + across] = checksums
            self._checksums[row] = band
            if band.all():
                self.write_checksums(row, band)

    def write_checksums(self, row: int, checksums: UInt32s) -> None:
        """Write the checksums of a row of chunks."""
        publish_bytes(self.path / f"{row}{SUFFIX}", checksums.astype("<u4").tobytes())

    def checksums(self, row: int) -> UInt32s:
        """Checksums of a row of chunks, uint32; zeros where none is known."""
        if row not in self._checksums:
            name, (_, n) = f"{row}{SUFFIX}", n_chunks((1, self.row_tokens), self.chunk_shape)
            try:
                (content,) = self._files.read([Piece(name, 0, MOST_METADATA_BYTES)])
                self._checksums[row] = parse_checksums(content, n, self._files.where(name))
            except FileNotFoundError:
                self._checksums[row] = np.zeros(n, np.uint32)
        return self._checksums[row]

    def chunks(self, row: int, columns: range) -> Iterator[TokenArray]:
        """See `ChunkedArray.chunks`."""
        try:
            yield from (self._chunk(row, column) for column in columns)
        except CorruptFile as error:
            self._require_published(error)
            raise

    def _chunk(self, row: int, column: int) -> TokenArray:
        chunk = np.empty(self.chunk_shape, self.dtype)
        # No codec's output exceeds the chunk by as much: a longer file is not read to its end.
        most_bytes = chunk.nbytes + chunk.nbytes // 128 + 1024
        try:
            (content,) = self._files.read([Piece(self._file(row, column), 0, most_bytes)])
        except FileNotFoundError as error:
            raise CorruptFile(
                f"{self._named(row, column)} is missing: its rows were never written, or were "
                "lost; download or write it again"
            ) from error
        expected = self.checksums(row)[column]
        if expected and zlib_ng.crc32(content) != expected:
            self._checksums = {}  # so that a chunk written again is found at the next call
            raise CorruptFile(
                f"{self._named(row, column)} does not match its checksum: it is damaged; "
                "download or write it again"
            )
        try:
            self.codec.decode(content, chunk)
        except (RuntimeError, ValueError, zstandard.ZstdError) as error:
            raise CorruptFile(f"{self._named(row, column)} does not decompress: {error}") from error
        self._check(row, column, chunk)
        return chunk

    def _encoded(self, ids: TokenArray) -> Iterable[bytes]:
        content = self.codec.encode(padded(ids, self.chunk_shape, FILL))
        self._encoded_checksums.append(zlib_ng.crc32(content))
        return [content]

    def _damage(self, row: int, column: int) -> str:
        """Looks at names only."""
        exists = (self.path / self._file(row, column)).is_file()
        return "" if exists else f"{self._named(row, column)} is missing"


def _blosc() -> Any:
    """Blosc, without threads, which append blocks in the order they finish: 30 encodings of one
    chunk gave 18 different files. Nor do they survive a fork, which is how most training loops
    start readers.
    """
    from numcodecs import blosc

    blosc.use_threads = False
    return blosc


def _vocab_size(files: Files) -> int:
    try:
        (content,) = files.read([Piece(ATTRIBUTES, 0, MOST_METADATA_BYTES)])
        attributes = msgspec.json.decode(content, type=dict[str, Any])
        return msgspec.convert(attributes.get(VOCAB_SIZE, GPT2_VOCAB_SIZE), int)
    except FileNotFoundError:
        return GPT2_VOCAB_SIZE
    except UNDECODABLE as error:
        raise CorruptFile(
            f"{files.where(ATTRIBUTES)}: not the attributes of LongCrawl64's layout: {error}"
        ) from error


def _parsed(content: bytes, path: str) -> _ZArray:
    try:
        document = msgspec.json.decode(content, type=_ZArray)
    except UNDECODABLE as error:
        raise CorruptFile(f"{path}: not the metadata of LongCrawl64's layout: {error}") from error
    shape, chunk = document.shape, document.chunks
    if shape[0] < 0 or shape[1] < 1 or min(chunk) < 1:
        raise CorruptFile(f"{path}: shape {shape} in chunks of {chunk} is impossible")
    if 2 * chunk[0] * chunk[1] > _MAX_CHUNK_BYTES:
        raise CorruptFile(f"{path}: chunks of {chunk} are above {_MAX_CHUNK_BYTES:,} bytes")
    return document
