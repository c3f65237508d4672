"""LongCrawl64's published layout: one split, all rows, as one flat Zarr v2 array.

Here: writing and reading that layout. Not here: the project's own layout (`formats.grid`), which is smaller,
carries checksums and can be read in smaller pieces; use this one for programs that expect LongCrawl64's.

Source: the ``.zarray`` of LongCrawl64's surviving copy; Zarr v2 specification; c-blosc's header.

==================  =========================================================================================
path                what
==================  =========================================================================================
``.zarray``         ``zarr_format`` 2, ``shape`` [rows, 65536], ``chunks`` [2048, 2048], ``dtype`` "<u2",
                    ``order`` "C", ``fill_value`` 0, ``filters`` null, ``compressor`` {id blosc, cname lz4,
                    clevel 5, shuffle 1, blocksize 0}; no ``dimension_separator``, which means "."
``.zattrs``         ``{}``
``{i}.{j}``         chunk: rows 2,048 i and up, tokens 2,048 j and up, always of full size; beyond the
                    array's edge it holds 0
==================  =========================================================================================

==================  =========================================================================================
bytes of a chunk    what
==================  =========================================================================================
0–3                 Blosc version, codec version, flags, item size
4–7, 8–11, 12–15    bytes before compression, block size, bytes of the file; uint32 little-endian
16 …                blocks
==================  =========================================================================================

The format says neither which vocabulary nor whether a chunk is whole: Zarr readers answer a missing chunk with
its fill value, and 0 is a GPT-2 token ("!"). Here a missing chunk is `CorruptFile`. There is no checksum: a
damaged chunk is found when it does not decompress or gives ids outside the vocabulary, and otherwise only by
the digests of a receipt.
"""

import struct
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numcodecs import Blosc, blosc
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.chunks import ALL, RowBlock, TokenArray, gather, n_chunks, padded, plan_bands, require_band, require_tokens, span
from lc_assets.publishing import publish_bytes
from lc_assets.vocabulary import GPT2_VOCAB_SIZE

METADATA: Final = ".zarray"
ATTRIBUTES: Final = ".zattrs"
FILL: Final = 0
CHUNK: Final = (2048, 2048)
"""Rows × tokens of a chunk: 8 MiB before compression."""

_DTYPE: Final = np.dtype("<u2")
_HEADER: Final = struct.Struct("<4BIII")
_MAX_CHUNK_BYTES: Final = 256 * 2**20


class _Compressor(msgspec.Struct):
    blocksize: int = 0
    clevel: int = 5
    cname: str = "lz4"
    id: str = "blosc"
    shuffle: int = 1


class _ZArray(msgspec.Struct):
    chunks: tuple[int, int]
    compressor: _Compressor
    dtype: str
    fill_value: int
    filters: None
    order: str
    shape: tuple[int, int]
    zarr_format: int
    dimension_separator: str | msgspec.UnsetType = msgspec.UNSET


def create_flat(path: Path, n_rows: int, row_tokens: int, *, chunk: tuple[int, int] = CHUNK) -> None:
    """Write the metadata of a flat array; its rows are then written by `write_flat_band`.

    Args:
        path: the array's folder, such as ``train.zarr``.
        n_rows: rows of the array; may be zero.
        row_tokens: tokens of a row.
        chunk: rows × tokens of a chunk; LongCrawl64's are 2048 × 2048, also where the array is smaller.

    Raises:
        BadInput: when a size is not possible, or another array stands there.
    """
    if n_rows < 0 or row_tokens < 1 or min(chunk) < 1:
        raise BadInput(f"cannot lay out {n_rows:,} rows × {row_tokens:,} tokens in chunks of {chunk}")
    content = msgspec.json.format(msgspec.json.encode(_document((n_rows, row_tokens), chunk)), indent=4)
    target = path / METADATA
    if target.exists() and target.read_bytes() != content:
        raise BadInput(f"{target}: another array stands here; write to a new folder or remove it")
    publish_bytes(path / ATTRIBUTES, b"{}")
    publish_bytes(target, content)


def plan_flat_bands(n_rows: int, band_rows: int = CHUNK[0], *, chunk_rows: int = CHUNK[0]) -> list[RowBlock]:
    """Deal ``n_rows`` rows into bands that share no file, so that each may be written by another process.

    >>> plan_flat_bands(5000, 4096)
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]

    Raises:
        BadInput: when ``band_rows`` is no multiple of ``chunk_rows``.
    """
    return plan_bands(n_rows, band_rows, shard_rows=chunk_rows)


def plan_flat_columns(row_tokens: int) -> list[slice]:
    """Deal a row's tokens into columns of chunks: a band may be written column by column, which takes far less memory.

    >>> plan_flat_columns(5000)
    [slice(0, 2048, None), slice(2048, 4096, None), slice(4096, 5000, None)]
    """
    return [slice(block.start, block.stop) for block in plan_bands(row_tokens, CHUNK[1], shard_rows=CHUNK[1])]


def write_flat_band(path: Path, block: RowBlock, rows: NDArray[Any], *, tokens: slice = ALL, vocab_size: int = GPT2_VOCAB_SIZE) -> None:
    """Write the chunks of one band, or of some columns of it. Doing it again gives the same bytes, whatever stood there before.

    Args:
        path: the array's folder, with its metadata.
        block: which rows; begins and ends where a chunk does (see `plan_flat_bands`).
        rows: (row, token) ids of any integer dtype.
        tokens: which columns they are; begins and ends where a chunk does (see `plan_flat_columns`).
        vocab_size: ids are below it.

    Raises:
        BadInput: when ``block`` is no band or ``tokens`` no columns, or ``rows`` do not fit them or hold ids outside the vocabulary.
    """
    reader = FlatReader(path, vocab_size=vocab_size)
    require_band(block, n_rows=reader.n_rows, shard_rows=reader.chunk_shape[0])
    columns = span(tokens, reader.row_tokens, "tokens")
    down, across = reader.chunk_shape
    if columns.start % across or (columns.stop % across and columns.stop != reader.row_tokens):
        raise BadInput(
            f"tokens {columns.start:,} to {columns.stop:,} share chunks of {across:,} tokens with others (see plan_flat_columns)"
        )
    ids = require_tokens(rows, block, row_tokens=len(columns), dtype=reader.dtype, vocab_size=vocab_size)
    for row, column in np.ndindex(n_chunks(ids.shape, reader.chunk_shape)):
        part = ids[row * down : (row + 1) * down, column * across : (column + 1) * across]
        place = _chunk_path(path, block.start // down + row, columns.start // across + column)
        publish_bytes(place, _encode(padded(part, reader.chunk_shape, FILL)))


class FlatReader:
    """Reads rectangles of a flat array, without a cache; every id it returns is a token.

    Attributes:
        path: the array's folder.
        vocab_size: ids are below it; the format does not say, LongCrawl64's is GPT-2's.
        dtype: of the ids.
        metadata: the bytes of its metadata file.
    """

    def __init__(self, path: Path, *, vocab_size: int = GPT2_VOCAB_SIZE) -> None:
        """Read the metadata and nothing else.

        Raises:
            NotPublished: when there is no such array.
            CorruptFile: when the metadata is not this layout's; says which field, what it is and what was expected.
        """
        self.path = path
        self.vocab_size = vocab_size
        self.dtype: np.dtype[Any] = np.dtype(np.uint16)
        self.metadata = _read_metadata(path)
        document = _parsed(self.metadata, path / METADATA)
        self.n_rows, self.row_tokens = document.shape
        self.chunk_shape = document.chunks

    def read_chunk(self, row: int, column: int) -> TokenArray:
        """Read one chunk; chunks at the edges are cut off there.

        Raises:
            CorruptFile: when it is missing, damaged, or holds an id outside the vocabulary; names array and chunk.
        """
        path = _chunk_path(self.path, row, column)
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        tokens = _decode(path, self.chunk_shape)[: self.n_rows - top, : self.row_tokens - left]
        if int(tokens.max()) >= self.vocab_size:
            raise CorruptFile(f"{path}: the chunk holds id {int(tokens.max()):,}: the vocabulary has {self.vocab_size:,} ids")
        return tokens

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of uint16.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile: see `read_chunk`.
        """
        row_span, token_span = span(rows, self.n_rows, "rows"), span(tokens, self.row_tokens, "tokens")
        return gather(self.read_chunk, row_span, token_span, chunk_shape=self.chunk_shape, dtype=self.dtype)

    def holes(self) -> list[str]:
        """Say which chunks are missing; looks at names only. Empty for an array that is whole."""
        paths = (_chunk_path(self.path, *at) for at in np.ndindex(n_chunks((self.n_rows, self.row_tokens), self.chunk_shape)))
        return [f"{path}: the chunk is missing" for path in paths if not path.is_file()]


def _chunk_path(path: Path, row: int, column: int) -> Path:
    return path / f"{row}.{column}"


def _document(shape: tuple[int, int], chunks: tuple[int, int]) -> _ZArray:
    return _ZArray(
        chunks=chunks, compressor=_Compressor(), dtype=_DTYPE.str, fill_value=FILL, filters=None, order="C", shape=shape, zarr_format=2
    )


def _read_metadata(path: Path) -> bytes:
    try:
        return (path / METADATA).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotPublished(f"{path}: no flat array here (no {METADATA})") from error


def _parsed(content: bytes, path: Path) -> _ZArray:
    try:
        document = msgspec.json.decode(content, type=_ZArray)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path}: not the metadata of LongCrawl64's layout: {error}") from error
    if document.shape[0] < 0 or document.shape[1] < 1 or min(document.chunks) < 1:
        raise CorruptFile(f"{path}: shape {document.shape} in chunks of {document.chunks} is impossible")
    if document.chunks[0] * document.chunks[1] * _DTYPE.itemsize > _MAX_CHUNK_BYTES:
        raise CorruptFile(f"{path}: chunks of {document.chunks} are above {_MAX_CHUNK_BYTES:,} bytes")
    expected = _document(document.shape, document.chunks)
    expected.compressor = document.compressor if document.compressor.id == "blosc" else _Compressor()
    expected.dimension_separator = "." if document.dimension_separator == "." else msgspec.UNSET
    for field in _ZArray.__struct_fields__:
        if getattr(document, field) != getattr(expected, field):
            raise CorruptFile(f"{path}: {field} is {getattr(document, field)!r}, LongCrawl64's layout has {getattr(expected, field)!r}")
    return document


def _one_thread() -> None:
    # Blosc's threads append blocks in the order they finish: 30 encodings of one chunk gave 18 different files.
    # They also do not survive a fork, which is how most training loops start their readers.
    blosc.use_threads = False


def _encode(chunk: TokenArray) -> bytes:
    _one_thread()
    named = _Compressor()
    codec = Blosc(cname=named.cname, clevel=named.clevel, shuffle=named.shuffle, blocksize=named.blocksize)
    return bytes(codec.encode(chunk.astype(_DTYPE, copy=False)))


def _decode(path: Path, shape: tuple[int, int]) -> TokenArray:
    content = _stored(path, shape[0] * shape[1] * _DTYPE.itemsize)
    _one_thread()
    try:
        return np.frombuffer(Blosc().decode(content), _DTYPE).reshape(shape).astype(np.uint16, copy=False)
    except RuntimeError as error:
        raise CorruptFile(f"{path}: the chunk does not decompress: {error}") from error


def _stored(path: Path, chunk_bytes: int) -> bytes:
    """Read a chunk's file and hold its header against it.

    Blosc itself trusts the header and reads beyond the end of a truncated chunk (seen: the process crashed).
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(chunk_bytes + _HEADER.size + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFile(f"{path}: the chunk is missing: its rows were never written, or were lost; download or write it again") from error
    if len(content) < _HEADER.size:
        raise CorruptFile(f"{path}: {len(content):,} bytes cannot hold a Blosc header of {_HEADER.size}: truncated")
    *_, n_bytes, _, n_stored = _HEADER.unpack_from(content)
    if n_stored != len(content) or n_bytes != chunk_bytes:
        raise CorruptFile(
            f"{path}: the chunk states {n_stored:,} bytes that give {n_bytes:,}; wanted the file's {len(content):,}, giving {chunk_bytes:,}"
        )
    return content
