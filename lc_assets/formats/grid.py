"""The token grid: one split of one snapshot, rows × tokens, as one sharded Zarr v3 array.

Here: the array's metadata, writing bands, reading rectangles. Not here: the bytes of a shard
(`formats.shard`), shuffling and rolling (`lc_assets.tokens`), caching (`loaders.cache`).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec. zarr-python >= 3 and tensorstore read
these arrays; nothing of them is needed here, because reading through a general library cost 3.7 times the
decoding itself (2 virtual cores, zarr-python 3.1.6) and answers a missing chunk with a token.

==================  =========================================================================================
path                what
==================  =========================================================================================
``zarr.json``       metadata, below
``c/{i}/{j}``       shard: rows 2,048 i and up, tokens 65,536 j and up (see `formats.shard`)
==================  =========================================================================================

==================  =========================================================================================
metadata            value
==================  =========================================================================================
shape               (rows, row_tokens); zero rows are allowed
data type           uint16 for vocabularies of up to 65,535 ids, else uint32
shard               2,048 × 65,536, and smaller where the array is smaller (`GridLayout`); a reader takes it from here
inner chunk         64 × 1,024 unless its writer chose otherwise: 128 KiB of uint16; a reader takes it from here
codecs              little-endian bytes, zstd level 4 with its checksum; no shuffle: ids are symbols
fill value          the data type's largest number, which is no token: a hole, read by any program, is an id
                    outside the vocabulary and never token 0
attributes          format ``lc-token-grid``, format_version 2, row_tokens, vocab_size, tokenizer, and what
                    the writer adds; version 1, with inner chunks of 64 × 2,048
                    in shards of 2,048 × 2,048, zstd level 3, is read as well
==================  =========================================================================================
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats import chunks
from lc_assets.formats.chunks import ALL, RowBlock, TokenArray, gather, n_chunks, require_band, require_tokens, span
from lc_assets.formats.files import Files, LocalFiles, read_metadata
from lc_assets.formats.shard import ShardShape, encode_shard, missing_inner
from lc_assets.formats.shard_reader import ShardReader
from lc_assets.formats.zarr_json import METADATA, ZarrJson
from lc_assets.publishing import publish, publish_bytes

SHARD_ROWS: Final = 2048
SHARD_TOKENS: Final = 65_536
INNER_ROWS: Final = 64
"""Rows of an inner chunk: what a walk with long contexts must keep, in 84 riffled arrays 84 times (docs/chunking.md)."""
INNER_TOKENS: Final = 1024
"""Tokens of an inner chunk: contexts of as many are decoded once, of half as many twice."""
ZSTD_LEVEL: Final = 4
"""zstd goes by the size of what it packs: up to 128 KiB it looks for matches of two ids from level 4 on, as above at level 3."""
MOST_INNER_BYTES: Final = 2**26
"""Largest inner chunk that is read or written; a reader holds one at least."""
MOST_INNER: Final = 2**16
"""Most inner chunks of a shard: an index of a megabyte."""

FORMAT: Final = "lc-token-grid"
FORMAT_VERSION: Final = 2
READABLE_VERSIONS: Final = (1, 2)


def grid_dtype(vocab_size: int) -> np.dtype[Any]:
    """Data type of a grid's ids: uint16 while its largest number is no token of the vocabulary (docs/decisions/0005).

    >>> grid_dtype(65_535), grid_dtype(65_536)
    (dtype('uint16'), dtype('uint32'))
    """
    return np.dtype(np.uint16 if vocab_size <= np.iinfo(np.uint16).max else np.uint32)


@dataclass(frozen=True, slots=True)
class GridLayout:
    """Shape of a grid and of its chunks.

    Attributes:
        n_rows: rows of the array; may be zero.
        row_tokens: tokens of a row.
        vocab_size: ids are 0 to ``vocab_size`` - 1.
        shard_rows: rows of one file, at most ``inner_rows`` or a multiple of it. Grids of fewer rows have smaller
            shards: whole inner chunks, no more than needed.
        shard_tokens: tokens of one file's rows, a multiple of ``inner_tokens``; likewise.
        inner_rows: rows of an inner chunk, and no more than the array has.
        inner_tokens: tokens of its rows; likewise.
        zstd_level: at which chunks are packed.

    >>> GridLayout(5000, 65_536, 50_257).shards
    ShardShape(shard=(2048, 65536), inner=(64, 1024), dtype=dtype('uint16'), level=4)
    >>> GridLayout(100, 64, 50_257).shards
    ShardShape(shard=(128, 64), inner=(64, 64), dtype=dtype('uint16'), level=4)
    """

    n_rows: int
    row_tokens: int
    vocab_size: int
    shard_rows: int = SHARD_ROWS
    shard_tokens: int = SHARD_TOKENS
    inner_rows: int = INNER_ROWS
    inner_tokens: int = INNER_TOKENS
    zstd_level: int = ZSTD_LEVEL

    def __post_init__(self) -> None:
        if self.n_rows < 0 or self.row_tokens < 1:
            raise BadInput(f"a grid has no negative rows and at least one token per row, got {self.n_rows:,} × {self.row_tokens:,}")
        if not 1 <= self.vocab_size < 2**32:
            raise BadInput(f"vocab_size must be 1 to {2**32 - 1:,}, so that the fill value is no token; got {self.vocab_size:,}")
        for axis in ("rows", "tokens"):
            shard, inner = getattr(self, f"shard_{axis}"), getattr(self, f"inner_{axis}")
            if inner < 1 or shard < 1 or (shard > inner and shard % inner):
                raise BadInput(f"shard_{axis} must be at most inner_{axis}, {inner:,}, or a multiple of it, got {shard:,}")
        if not 1 <= self.zstd_level <= 22:
            raise BadInput(f"zstd_level must be 1 to 22, got {self.zstd_level}")
        shards = self.shards
        if shards.inner_bytes > MOST_INNER_BYTES or math.prod(shards.grid) > MOST_INNER:
            raise BadInput(
                f"inner chunks have at most {MOST_INNER_BYTES:,} bytes, shards {MOST_INNER:,} of them;"
                f" got {shards.inner_bytes:,} bytes and {math.prod(shards.grid):,}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows × tokens."""
        return self.n_rows, self.row_tokens

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        return grid_dtype(self.vocab_size)

    @property
    def fill(self) -> int:
        """The data type's largest number: no token."""
        return int(np.iinfo(self.dtype).max)

    @property
    def shards(self) -> ShardShape:
        """Shape of every shard file, also of the last ones, which reach beyond the array."""
        down = _shrunk(self.n_rows, self.shard_rows, self.inner_rows)
        across = _shrunk(self.row_tokens, self.shard_tokens, self.inner_tokens)
        return ShardShape((down[0], across[0]), (down[1], across[1]), self.dtype, self.zstd_level)


def _shrunk(n: int, shard: int, inner: int) -> tuple[int, int]:
    """Lengths of a shard and of an inner chunk along an axis of ``n``."""
    inner = min(inner, shard, max(n, 1))
    return min(shard, -(-max(n, 1) // inner) * inner), inner


def create_grid(path: Path, layout: GridLayout, *, tokenizer: str = "gpt2", attributes: Mapping[str, Any] | None = None) -> None:
    """Write an array's metadata: its rows are then written by `write_band`, in any order, by any process.

    Args:
        path: the array's folder, such as ``train.zarr``.
        layout: its shape.
        tokenizer: name of what the ids belong to.
        attributes: whatever else is to be said of it, as JSON-like values.

    Raises:
        BadInput: when another array stands there, or an attribute has the name of one of the format's own.
    """
    ours = {**_own_attributes(layout), "tokenizer": tokenizer}
    more = attributes or {}
    if ours.keys() & more.keys():
        raise BadInput(f"attributes must leave {', '.join(ours)} alone, got {', '.join(more)}")
    content = _document(layout, {**ours, **more}).encode()
    target = path / METADATA
    if target.exists() and target.read_bytes() != content:
        raise BadInput(f"{target}: another array stands here; write to a new folder or remove it")
    publish_bytes(target, content)


def plan_bands(layout: GridLayout, band_rows: int | None = None) -> list[RowBlock]:
    """Deal a grid's rows into bands that share no file, so that each may be written by another process.

    Args:
        layout: the grid's.
        band_rows: rows of a band, a multiple of ``layout.shard_rows``; by default just that.

    >>> plan_bands(GridLayout(5000, 65_536, 50_257), 4096)
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]

    Raises:
        BadInput: when ``band_rows`` is no multiple of ``layout.shard_rows``.
    """
    return chunks.plan_bands(layout.n_rows, layout.shard_rows if band_rows is None else band_rows, shard_rows=layout.shard_rows)


def write_band(path: Path, block: RowBlock, rows: NDArray[Any]) -> None:
    """Write the shards of one band. Doing it again gives the same bytes, whatever stood there before.

    Args:
        path: the array's folder, with its metadata.
        block: which rows; begins and ends where a shard does (see `plan_bands`).
        rows: (row, token) ids of any integer dtype.

    Raises:
        BadInput: when ``block`` is no band, or ``rows`` do not fit it or hold ids outside the vocabulary.
    """
    layout = GridReader(path).layout
    shards = layout.shards
    require_band(block, n_rows=layout.n_rows, shard_rows=shards.shard[0])
    ids = require_tokens(rows, block, row_tokens=layout.row_tokens, dtype=layout.dtype, vocab_size=layout.vocab_size)
    for row, column in np.ndindex(n_chunks((len(block), layout.row_tokens), shards.shard)):
        top, left = row * shards.shard[0], column * shards.shard[1]
        part = ids[top : top + shards.shard[0], left : left + shards.shard[1]]
        with publish(_shard_path(path, block.start // shards.shard[0] + row, column)) as draft, draft.open("wb") as out:
            out.writelines(encode_shard(part, shards, fill=layout.fill))


class GridReader:
    """Reads rectangles of a grid, without a cache; every id it returns is a token.

    Attributes:
        path: the array's folder.
        layout: shape of the array and its chunks.
        attributes: what the writer said of it.
        dtype: of the ids.
        shards: shape of the shard files.
        metadata: the bytes of its metadata file.
    """

    def __init__(self, path: Path, *, files: Files | None = None) -> None:
        """Read the metadata and nothing else: of the folder ``path``, or of ``files``, for which ``path`` is a name then.

        Raises:
            NotPublished: when there is no such array.
            CorruptFile: when the metadata is not this format's; says which field, what it is and what was expected.
        """
        self.path = path
        self._files = LocalFiles(path) if files is None else files
        self.metadata = read_metadata(self._files, METADATA, "token grid")
        document = ZarrJson.parse(self.metadata, where := self._files.where(METADATA))
        self.layout = _layout_of(document, where)
        self.attributes = document.attributes
        self.dtype = self.layout.dtype
        self.shards = self.layout.shards
        self._shards = ShardReader(self._files, self.shards, self.layout.shape, self.vocab_size)

    @property
    def n_rows(self) -> int:
        """Rows of the array."""
        return self.layout.n_rows

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        return self.layout.row_tokens

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        return self.layout.vocab_size

    @property
    def tokenizer(self) -> str:
        """Name of what the ids belong to."""
        return str(self.attributes.get("tokenizer", ""))

    @property
    def eot(self) -> int | None:
        """Id of end of text, where the writer said it."""
        found = self.attributes.get("eot")
        return found if isinstance(found, int) else None

    @property
    def chunk_shape(self) -> tuple[int, int]:
        """What `read_chunk` reads at once, rows × tokens."""
        return self.shards.inner

    def read_chunk(self, row: int, column: int) -> TokenArray:
        """Read one inner chunk, by its coordinates in the whole array; chunks at the edges are cut off there.

        Raises:
            CorruptFile: when it is missing, damaged, or holds an id outside the vocabulary; names array and chunk.
            NotPublished: when the whole array is gone.
        """
        whole = np.empty((1, *self.chunk_shape), self.dtype)
        self.read_chunks(row, range(column, column + 1), whole)
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        return whole[0, : self.n_rows - top, : self.row_tokens - left]

    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Read inner chunks that lie beside each other, with fill values where they reach beyond the array's edges.

        They go into ``out``: (chunk, row, token), of ``dtype``, C-contiguous. Raises: as `read_chunk` does.
        """
        self._shards.read(row, columns, out)

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of `dtype`.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile: see `read_chunk`.
        """
        row_span, token_span = span(rows, self.n_rows, "rows"), span(tokens, self.row_tokens, "tokens")
        return gather(self.read_chunk, row_span, token_span, chunk_shape=self.chunk_shape, dtype=self.dtype)

    def holes(self) -> list[str]:
        """Say of every shard that is missing or lacks inner chunks what is wrong; reads the indexes only.

        Empty for a grid that is whole; damage inside a chunk is found by reading it.
        """
        return [words for at in np.ndindex(n_chunks(self.layout.shape, self.shards.shard)) if (words := self._hole(*at))]

    def _hole(self, row: int, column: int) -> str:
        path = _shard_path(self.path, row, column)
        left = self.n_rows - row * self.shards.shard[0], self.row_tokens - column * self.shards.shard[1]
        try:
            lost = missing_inner(path, self.shards, n_chunks(self.shards.cut(left), self.shards.inner))
        except CorruptFile as error:
            return str(error)
        return f"{path}: inner chunks {lost} are missing" if lost else ""


def _shard_path(path: Path, row: int, column: int) -> Path:
    return path / "c" / str(row) / str(column)


def _own_attributes(layout: GridLayout, version: int = FORMAT_VERSION) -> dict[str, Any]:
    return {"format": FORMAT, "format_version": version, "row_tokens": layout.row_tokens, "vocab_size": layout.vocab_size}


def _layout_of(document: ZarrJson, path: str) -> GridLayout:
    """Rebuild the metadata from the few numbers that may differ between grids, and hold the file against it."""
    version = document.attributes.get("format_version")
    try:
        vocab_size = msgspec.convert(document.attributes.get("vocab_size"), int)
        shard_rows, shard_tokens = msgspec.convert(document.shard_shape, tuple[int, int])
        inner_rows, inner_tokens = msgspec.convert(document.inner_shape or (INNER_ROWS, INNER_TOKENS), tuple[int, int])
        sizes = {"shard_rows": shard_rows, "shard_tokens": shard_tokens, "inner_rows": inner_rows, "inner_tokens": inner_tokens}
        level = document.zstd_level
        layout = GridLayout(*document.shape, vocab_size, **sizes, zstd_level=ZSTD_LEVEL if level is None else level)
    except (msgspec.ValidationError, BadInput) as error:
        raise CorruptFile(f"{path}: not the metadata of a token grid: {error}") from error
    ours = _own_attributes(layout, version if version in READABLE_VERSIONS else FORMAT_VERSION)
    document.require_equal(_document(layout, {**document.attributes, **ours}), path)
    return layout


def _document(layout: GridLayout, attributes: dict[str, Any]) -> ZarrJson:
    return ZarrJson.of(layout.shape, layout.shards, fill=layout.fill, attributes=attributes)
