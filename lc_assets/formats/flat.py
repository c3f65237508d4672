"""LongCrawl64's published layout: one split, all rows, as one flat Zarr v2 array.

Here: writing and reading that layout. Not here: the project's own layout (`formats.grid`), which is
    smaller,
carries checksums and can be read in smaller pieces; use this one for programs that expect
LongCrawl64's.

Source: the ``.zarray`` of LongCrawl64's surviving copy; Zarr v2 specification; c-blosc's header.

==================  =========================================================================================
path                what
==================  =========================================================================================
``.zarray``         ``zarr_format`` 2, ``shape`` [rows, 65536], ``chunks`` [2048, 2048], ``dtype`` "<u2",
                    ``order`` "C", ``fill_value`` 0, ``filters`` null, ``compressor`` {id blosc,
                    cname lz4, clevel 5, shuffle 1, blocksize 0}; no ``dimension_separator``, which
                    means ".". Here, where it is asked for, {id zstd, level 3}
``.zattrs``         ``{}``; here ``{"vocab_size": …}`` where ids are not GPT-2's
``{i}.{j}``         chunk: rows 2,048 i and up, tokens 2,048 j and up, always of full size; beyond the
                    array's edge it holds 0
==================  =========================================================================================

What a chunk's bytes are: `formats.flat_codecs`.

The format says neither which vocabulary nor whether a chunk is whole: Zarr readers answer a missing
chunk with its fill value, and 0 is a GPT-2 token ("!"). Here a missing chunk is `CorruptFile`.
There is no checksum: a damaged chunk is found when it does not decompress or gives ids outside the
vocabulary, and otherwise only by the digests of a receipt.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile
from lc_assets.formats.chunks import (
    ALL,
    RowBlock,
    TokenArray,
    gather,
    missing,
    n_chunks,
    padded,
    plan_bands,
    require_band,
    require_tokens,
    rest_of,
    span,
)
from lc_assets.formats.files import (
    MOST_METADATA_BYTES,
    Files,
    LocalFiles,
    Piece,
    numbered,
    read_metadata,
    require_published,
)
from lc_assets.formats.flat_codecs import BLOSC, DTYPE, FlatCodec, decode, encode
from lc_assets.publishing import publish_bytes
from lc_assets.vocabulary import GPT2_VOCAB_SIZE

METADATA: Final = ".zarray"
ATTRIBUTES: Final = ".zattrs"
VOCAB_SIZE: Final = "vocab_size"
FILL: Final = 0
CHUNK: Final = (2048, 2048)
"""Rows × tokens of a chunk: 8 MiB before compression."""

_MAX_CHUNK_BYTES: Final = 256 * 2**20


class _ZArray(msgspec.Struct):
    chunks: tuple[int, int]
    compressor: FlatCodec
    dtype: str
    fill_value: int
    filters: None
    order: str
    shape: tuple[int, int]
    zarr_format: int
    dimension_separator: str | msgspec.UnsetType = msgspec.UNSET


def create_flat(
    path: Path,
    n_rows: int,
    row_tokens: int,
    *,
    chunk: tuple[int, int] = CHUNK,
    codec: FlatCodec = BLOSC,
    vocab_size: int = GPT2_VOCAB_SIZE,
) -> None:
    """Write the metadata of a flat array; its rows are then written by `write_flat_band`.

    Args:
        path: the array's folder, such as ``train.zarr``.
        n_rows: rows of the array; may be zero.
        row_tokens: tokens of a row.
        chunk: rows × tokens of a chunk; LongCrawl64's are 2048 × 2048, also where the array is
            smaller.
        codec: LongCrawl64's, or zstd, which is half again smaller and which Zarr v2 readers know
            too.
        vocab_size: ids are below it; stated among the attributes when it is not GPT-2's.

    Raises:
        BadInput: when a size is not possible, or another array stands there.
    """
    if n_rows < 0 or row_tokens < 1 or min(chunk) < 1:
        raise BadInput(
            f"cannot lay out {n_rows:,} rows × {row_tokens:,} tokens in chunks of {chunk}"
        )
    if not 0 < vocab_size <= 1 << 16:
        raise BadInput(
            f"LongCrawl64's layout holds ids of two bytes, so at most {1 << 16:,} of them; the "
            f"vocabulary has {vocab_size:,}"
        )
    content = msgspec.json.format(
        msgspec.json.encode(_document((n_rows, row_tokens), chunk, codec)), indent=4
    )
    target = path / METADATA
    if target.exists() and target.read_bytes() != content:
        raise BadInput(f"{target}: another array stands here; write to a new folder or remove it")
    publish_bytes(
        path / ATTRIBUTES,
        b"{}" if vocab_size == GPT2_VOCAB_SIZE else msgspec.json.encode({VOCAB_SIZE: vocab_size}),
    )
    publish_bytes(target, content)


def plan_flat_bands(
    n_rows: int, band_rows: int = CHUNK[0], *, chunk_rows: int = CHUNK[0]
) -> list[RowBlock]:
    """Deal ``n_rows`` rows into bands that share no file, so that each may be written by another
    process.

    >>> plan_flat_bands(5000, 4096)
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]

    Raises:
        BadInput: when ``band_rows`` is no multiple of ``chunk_rows``.
    """
    return plan_bands(n_rows, band_rows, shard_rows=chunk_rows)


def plan_flat_columns(row_tokens: int) -> list[slice]:
    """Deal a row's tokens into columns of chunks: a band may be written column by column, which
    takes far less memory.

    >>> plan_flat_columns(5000)
    [slice(0, 2048, None), slice(2048, 4096, None), slice(4096, 5000, None)]
    """
    return [
        slice(block.start, block.stop)
        for block in plan_bands(row_tokens, CHUNK[1], shard_rows=CHUNK[1])
    ]


def write_flat_band(
    path: Path, block: RowBlock, rows: NDArray[Any], *, tokens: slice = ALL
) -> None:
    """Write the chunks of one band, or of some columns of it. Doing it again gives the same bytes,
    whatever stood there before.

    Args:
        path: the array's folder, with its metadata.
        block: which rows; begins and ends where a chunk does (see `plan_flat_bands`).
        rows: (row, token) ids of any integer dtype.
        tokens: which columns they are; begins and ends where a chunk does (see
            `plan_flat_columns`).

    Raises:
        BadInput: when ``block`` is no band or ``tokens`` no columns, or ``rows`` do not fit them or
            hold ids outside the vocabulary.
    """
    reader = FlatReader(path)
    require_band(block, n_rows=reader.n_rows, shard_rows=reader.chunk_shape[0])
    columns = span(tokens, reader.row_tokens, "tokens")
    down, across = reader.chunk_shape
    if columns.start % across or (columns.stop % across and columns.stop != reader.row_tokens):
        raise BadInput(
            f"tokens {columns.start:,} to {columns.stop:,} share chunks of {across:,} tokens with "
            "others (see plan_flat_columns)"
        )
    ids = require_tokens(
        rows, block, row_tokens=len(columns), dtype=reader.dtype, vocab_size=reader.vocab_size
    )
    for row, column in np.ndindex(n_chunks(ids.shape, reader.chunk_shape)):
        part = ids[row * down : (row + 1) * down, column * across : (column + 1) * across]
        place = _chunk_path(path, block.start // down + row, columns.start // across + column)
        publish_bytes(place, encode(padded(part, reader.chunk_shape, FILL), reader.codec))


class FlatReader:
    """Reads rectangles of a flat array, without a cache; every id it returns is a token.

    Attributes:
        path: the array's folder.
        vocab_size: ids are below it; GPT-2's, unless the attributes say otherwise.
        codec: of its chunks.
        dtype: of the ids.
        metadata: the bytes of its metadata file.
    """

    def __init__(
        self, path: Path, *, vocab_size: int | None = None, files: Files | None = None
    ) -> None:
        """Read the metadata and nothing else.

        Args:
            path: the array's folder; the name of the array where ``files`` are given.
            vocab_size: overrides what the metadata say.
            files: where its bytes come from; a folder of this machine by default.

        Raises:
            NotPublished: when there is no such array.
            CorruptFile: when the metadata is not this layout's; says which field, what it is and
                what was expected.
        """
        self.path = path
        self._files = LocalFiles(path) if files is None else files
        self.metadata = read_metadata(self._files, METADATA, "flat array")
        document = _parsed(self.metadata, self._files.where(METADATA))
        self.vocab_size = vocab_size or _vocab_size(self._files)
        self.dtype: np.dtype[Any] = np.dtype(np.uint16)
        self.n_rows, self.row_tokens = document.shape
        self.chunk_shape = document.chunks
        self.codec = document.compressor

    @property
    def where(self) -> str:
        """Where the array lies: its folder's path, or a URL."""
        return self._files.where("").rstrip("/")

    def read_chunk(self, row: int, column: int) -> TokenArray:
        """Read one chunk; chunks at the edges are cut off there.

        Raises:
            CorruptFile: when it is missing, damaged, or holds an id outside the vocabulary; names
                array and chunk.
        """
        whole = np.empty((1, *self.chunk_shape), self.dtype)
        self.read_chunks(row, range(column, column + 1), whole)
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        return whole[0, : self.n_rows - top, : self.row_tokens - left]

    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Read chunks that lie beside each other, whole; see
        `lc_assets.formats.grid.GridReader.read_chunks`.
        """
        for column, chunk in zip(columns, out, strict=True):
            name = f"{row}.{column}"
            try:
                decode(self._files, name, self.codec, chunk)
            except CorruptFile as error:
                require_published(self._files, METADATA, error)
                raise
            top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
            largest = int(chunk[: self.n_rows - top, : self.row_tokens - left].max())
            if largest >= self.vocab_size:
                where = self._files.where(name)
                raise CorruptFile(
                    f"{where}: the chunk holds id {largest:,}: the vocabulary has "
                    f"{self.vocab_size:,} ids"
                )

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of uint16.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile: see `read_chunk`.
        """
        row_span, token_span = (
            span(rows, self.n_rows, "rows"),
            span(tokens, self.row_tokens, "tokens"),
        )
        return gather(
            self.read_chunk, row_span, token_span, chunk_shape=self.chunk_shape, dtype=self.dtype
        )

    def holes(self) -> list[str]:
        """Say which chunks are missing; looks at the names that there are, and names the first
        thousand that there are not.

        Empty for an array that is whole. Takes as long as there are files, whatever the metadata
        promise.
        """
        found = [
            (int(row), int(column))
            for row, dot, column in (name.partition(".") for name in numbered(self.path))
            if dot
        ]
        lost, n_lost = missing(n_chunks((self.n_rows, self.row_tokens), self.chunk_shape), found)
        return [f"{_chunk_path(self.path, *at)}: the chunk is missing" for at in lost] + rest_of(
            lost, n_lost, self.path
        )


def _chunk_path(path: Path, row: int, column: int) -> Path:
    return path / f"{row}.{column}"


def _document(shape: tuple[int, int], chunks: tuple[int, int], codec: FlatCodec) -> _ZArray:
    return _ZArray(
        chunks=chunks,
        compressor=codec,
        dtype=DTYPE.str,
        fill_value=FILL,
        filters=None,
        order="C",
        shape=shape,
        zarr_format=2,
    )


def _vocab_size(files: Files) -> int:
    try:
        attributes = msgspec.json.decode(
            files.read([Piece(ATTRIBUTES, 0, MOST_METADATA_BYTES)])[0], type=dict[str, Any]
        )
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
    if document.shape[0] < 0 or document.shape[1] < 1 or min(document.chunks) < 1:
        raise CorruptFile(
            f"{path}: shape {document.shape} in chunks of {document.chunks} is impossible"
        )
    if document.chunks[0] * document.chunks[1] * DTYPE.itemsize > _MAX_CHUNK_BYTES:
        raise CorruptFile(
            f"{path}: chunks of {document.chunks} are above {_MAX_CHUNK_BYTES:,} bytes"
        )
    expected = _document(document.shape, document.chunks, document.compressor)
    expected.dimension_separator = "." if document.dimension_separator == "." else msgspec.UNSET
    for field in _ZArray.__struct_fields__:
        if getattr(document, field) != getattr(expected, field):
            raise CorruptFile(
                f"{path}: {field} is {getattr(document, field)!r}, LongCrawl64's layout has "
                f"{getattr(expected, field)!r}"
            )
    return document
