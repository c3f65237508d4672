"""The token grid: one split of one snapshot, rows × tokens, as one sharded Zarr v3 array.

Here: the array's metadata, writing bands, reading rectangles. Not here: the bytes of a shard
(`formats.shard`), shuffling and rolling (`lc_assets.tokens`), caching (`loaders.cache`).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec. zarr-python >= 3 and
    tensorstore read
these arrays; nothing of them is needed here, because reading through a general library cost 3.7
times the decoding itself (2 virtual cores, zarr-python 3.1.6) and answers a missing chunk with a
token.

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

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats import chunks
from lc_assets.formats.chunks import (
    ALL,
    RowBlock,
    TokenArray,
    gather,
    missing,
    n_chunks,
    require_band,
    require_tokens,
    rest_of,
    span,
)
from lc_assets.formats.files import Files, LocalFiles, numbered, read_metadata
from lc_assets.formats.grid_layout import (
    INNER_ROWS,
    INNER_TOKENS,
    ZSTD_LEVEL,
    GridLayout,
    grid_dtype,
)
from lc_assets.formats.shard import encode_shard, missing_inner
from lc_assets.formats.shard_reader import ShardReader
from lc_assets.formats.zarr_json import METADATA, ZarrJson
from lc_assets.publishing import publish, publish_bytes

__all__ = ["GridLayout", "GridReader", "create_grid", "grid_dtype", "plan_bands", "write_band"]

FORMAT: Final = "lc-token-grid"
FORMAT_VERSION: Final = 2
READABLE_VERSIONS: Final = (1, 2)


def create_grid(
    path: Path,
    layout: GridLayout,
    *,
    tokenizer: str = "gpt2",
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write an array's metadata: its rows are then written by `write_band`, in any order, by any
    process.

    Args:
        path: the array's folder, such as ``train.zarr``.
        layout: its shape.
        tokenizer: name of what the ids belong to.
        attributes: whatever else is to be said of it, as JSON-like values.

    Raises:
        BadInput: when another array stands there, or an attribute has the name of one of the
            format's own.
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
    """Deal a grid's rows into bands that share no file, so that each may be written by another
    process.

    Args:
        layout: the grid's.
        band_rows: rows of a band, a multiple of ``layout.shard_rows``; by default just that.

    >>> plan_bands(GridLayout(5000, 65_536, 50_257), 4096)
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]

    Raises:
        BadInput: when ``band_rows`` is no multiple of ``layout.shard_rows``.
    """
    return chunks.plan_bands(
        layout.n_rows,
        layout.shard_rows if band_rows is None else band_rows,
        shard_rows=layout.shard_rows,
    )


def write_band(path: Path, block: RowBlock, rows: NDArray[Any]) -> None:
    """Write the shards of one band. Doing it again gives the same bytes, whatever stood there
    before.

    Args:
        path: the array's folder, with its metadata.
        block: which rows; begins and ends where a shard does (see `plan_bands`).
        rows: (row, token) ids of any integer dtype.

    Raises:
        BadInput: when ``block`` is no band, or ``rows`` do not fit it or hold ids outside the
            vocabulary.
    """
    layout = GridReader(path).layout
    shards = layout.shards
    require_band(block, n_rows=layout.n_rows, shard_rows=shards.shard[0])
    ids = require_tokens(
        rows, block, row_tokens=layout.row_tokens, dtype=layout.dtype, vocab_size=layout.vocab_size
    )
    for row, column in np.ndindex(n_chunks((len(block), layout.row_tokens), shards.shard)):
        top, left = row * shards.shard[0], column * shards.shard[1]
        part = ids[top : top + shards.shard[0], left : left + shards.shard[1]]
        with (
            publish(_shard_path(path, block.start // shards.shard[0] + row, column)) as draft,
            draft.open("wb") as out,
        ):
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
        """Read the metadata and nothing else: of the folder ``path``, or of ``files``, for which
        ``path`` is a name then.

        Raises:
            NotPublished: when there is no such array.
            CorruptFile: when the metadata is not this format's; says which field, what it is and
                what was expected.
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
    def where(self) -> str:
        """Where the array lies: its folder's path, or a URL."""
        return self._files.where("").rstrip("/")

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
        """Read one inner chunk, by its coordinates in the whole array; chunks at the edges are cut
        off there.

        Raises:
            CorruptFile: when it is missing, damaged, or holds an id outside the vocabulary; names
                array and chunk.
            NotPublished: when the whole array is gone.
        """
        whole = np.empty((1, *self.chunk_shape), self.dtype)
        self.read_chunks(row, range(column, column + 1), whole)
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        return whole[0, : self.n_rows - top, : self.row_tokens - left]

    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Read inner chunks that lie beside each other, with fill values where they reach beyond
        the array's edges.

        They go into ``out``: (chunk, row, token), of ``dtype``, C-contiguous. Raises: as
        `read_chunk` does.
        """
        self._shards.read(row, columns, out)

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of `dtype`.

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
        """Say of every shard that is missing or lacks inner chunks what is wrong; reads the indexes
        only.

        Empty for a grid that is whole; damage inside a chunk is found by reading it. Of shards that
        are missing the first thousand are
        named: it takes as long as there are files, whatever the metadata promise.
        """
        folder = self.path / "c"
        found = [
            (int(row), int(column))
            for row in numbered(folder)
            if "." not in row
            for column in numbered(folder / row)
            if "." not in column
        ]
        shape = n_chunks(self.layout.shape, self.shards.shard)
        lost, n_lost = missing(shape, found)
        here = {at for at in found if at[0] < shape[0] and at[1] < shape[1]}
        return [words for at in sorted(here.union(lost)) if (words := self._hole(*at))] + rest_of(
            lost, n_lost, self.path
        )

    def _hole(self, row: int, column: int) -> str:
        path = _shard_path(self.path, row, column)
        left = (
            self.n_rows - row * self.shards.shard[0],
            self.row_tokens - column * self.shards.shard[1],
        )
        try:
            lost = missing_inner(
                path, self.shards, n_chunks(self.shards.cut(left), self.shards.inner)
            )
        except CorruptFile as error:
            return str(error)
        return f"{path}: inner chunks {lost} are missing" if lost else ""


def _shard_path(path: Path, row: int, column: int) -> Path:
    return path / "c" / str(row) / str(column)


def _own_attributes(layout: GridLayout, version: int = FORMAT_VERSION) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": version,
        "row_tokens": layout.row_tokens,
        "vocab_size": layout.vocab_size,
    }


def _layout_of(document: ZarrJson, path: str) -> GridLayout:
    """Rebuild the metadata from the few numbers that may differ between grids, and hold the file
    against it.
    """
    version = document.attributes.get("format_version")
    try:
        vocab_size = msgspec.convert(document.attributes.get("vocab_size"), int)
        shard_rows, shard_tokens = msgspec.convert(document.shard_shape, tuple[int, int])
        inner_rows, inner_tokens = msgspec.convert(
            document.inner_shape or (INNER_ROWS, INNER_TOKENS), tuple[int, int]
        )
        sizes = {
            "shard_rows": shard_rows,
            "shard_tokens": shard_tokens,
            "inner_rows": inner_rows,
            "inner_tokens": inner_tokens,
        }
        level = document.zstd_level
        layout = GridLayout(
            *document.shape, vocab_size, **sizes, zstd_level=ZSTD_LEVEL if level is None else level
        )
    except (msgspec.ValidationError, BadInput) as error:
        raise CorruptFile(f"{path}: not the metadata of a token grid: {error}") from error
    ours = _own_attributes(layout, version if version in READABLE_VERSIONS else FORMAT_VERSION)
    document.require_equal(_document(layout, {**document.attributes, **ours}), path)
    return layout


def _document(layout: GridLayout, attributes: dict[str, Any]) -> ZarrJson:
    return ZarrJson.of(layout.shape, layout.shards, fill=layout.fill, attributes=attributes)
