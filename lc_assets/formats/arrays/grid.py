"""The token grid: one split of one snapshot, rows × tokens, as one sharded Zarr v3 array.

Here: writing bands and reading rectangles. Not here: shapes and metadata (`formats.grid_layout`),
the bytes of a shard (`formats.shard`), shuffling and rolling (`lc_assets.tokens`), caching
(`loaders.cache`).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec. zarr-python >= 3 and
tensorstore read these arrays. Neither is needed here: docs/decisions/0006-own-shards.md.

==================  ================================================================================
path                what
==================  ================================================================================
``zarr.json``       metadata, below
``c/{i}/{j}``       shard: rows 2,048 i and up, tokens 65,536 j and up (see `formats.shard`)
==================  ================================================================================

==================  ================================================================================
metadata            value
==================  ================================================================================
shape               (rows, row_tokens); zero rows are allowed
data type           uint16 for vocabularies of up to 65,535 ids, else uint32
shard               2,048 × 65,536, and smaller where the array is smaller (`GridLayout`); readers
                    take it from here
inner chunk         64 × 1,024 by default: 128 KiB of uint16; readers take it from here
codecs              little-endian bytes, zstd level 4 with its checksum; no shuffle: ids are symbols
fill value          the data type's largest number, which is no token: rows that are missing read as
                    an id outside the vocabulary in any program, never as token 0
attributes          format ``lc-token-grid``, format_version 2, row_tokens, vocab_size, tokenizer,
                    and what the writer adds; version 1, with inner chunks of 64 × 2,048 in shards
                    of 2,048 × 2,048, zstd level 3, is read as well
==================  ================================================================================
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.chunks import (
    ChunkedArray,
    RowBlock,
    TokenArray,
    missing_files,
    n_chunks,
    plan_rows,
    require_band,
    require_tokens,
    unnamed_rest,
)
from lc_assets.formats.arrays.files import (
    Files,
    numbered,
    read_metadata,
    require_no_other,
    require_published,
)
from lc_assets.formats.arrays.grid_layout import (
    METADATA,
    GridLayout,
    encode_metadata,
    parse_metadata,
)
from lc_assets.formats.arrays.shard import ShardReader, encode_shard
from lc_assets.publishing import publish, publish_bytes


def create_grid(
    path: Path,
    layout: GridLayout,
    *,
    tokenizer: str = "gpt2",
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write an array's metadata. Its rows are then written by `write_band`, in any order, by any
    process.

    Args:
        path: the array's folder, such as ``train.zarr``.
        layout: its shape.
        tokenizer: name of the vocabulary that the ids belong to.
        attributes: further attributes, JSON-like values.

    Raises:
        BadInput: when ``path`` holds another array, or an attribute has the name of one of the
            format's own.
    """
    content = encode_metadata(layout, tokenizer, attributes or {})
    require_no_other(path / METADATA, content)
    publish_bytes(path / METADATA, content)


def plan_bands(layout: GridLayout) -> list[RowBlock]:
    """Cut a grid's rows into bands, one per row of shard files: each may be written by another
    process.

    >>> plan_bands(GridLayout(5000, 65_536, 50_257, shard_rows=4096))
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]
    """
    return plan_rows(layout.n_rows, layout.shard_rows)


def write_band(path: Path, block: RowBlock, rows: NDArray[Any]) -> None:
    """Write the shards of one band, replacing what is there. The same rows give the same bytes.

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
    down, across = shards.shard
    require_band(block, n_rows=layout.n_rows, shard_rows=down)
    ids = require_tokens(
        rows, block, row_tokens=layout.row_tokens, dtype=layout.dtype, vocab_size=layout.vocab_size
    )
    for row, column in np.ndindex(n_chunks(ids.shape, shards.shard)):
        part = ids[row * down : (row + 1) * down, column * across : (column + 1) * across]
        target = path / _shard_name(block.start // down + row, column)
        with publish(target) as draft, draft.open("wb") as out:
            out.writelines(encode_shard(part, shards, fill=layout.fill))


class GridReader(ChunkedArray):
    """Reads rectangles of a grid, without a cache; every id it returns is a token.

    Attributes:
        layout: shape of the array and its chunks.
        attributes: of the array, the format's own and the writer's.
    """

    def __init__(self, path: Path, *, files: Files | None = None) -> None:
        """Read the metadata and nothing else, from the folder ``path`` or from ``files``; ``path``
        is only a name then.

        Raises:
            NotPublished: when there is no such array.
            CorruptFile: when the metadata is not this format's; says which field, what it is and
                what was expected.
        """
        super().__init__(path, files)
        self.metadata = read_metadata(self._files, METADATA, "token grid")
        self.layout, self.attributes = parse_metadata(self.metadata, self._files.where(METADATA))
        self.n_rows, self.row_tokens = self.layout.shape
        self.vocab_size, self.dtype = self.layout.vocab_size, self.layout.dtype
        self.shards = self.layout.shards
        self.chunk_shape = self.shards.inner
        self._shards = ShardReader(self._files, self.shards, self.layout.shape, self.vocab_size)

    @property
    def tokenizer(self) -> str:
        """Name of the vocabulary that the ids belong to; empty when the writer did not state it."""
        return str(self.attributes.get("tokenizer", ""))

    @property
    def eot(self) -> int | None:
        """Id of end of text, where the writer stated it."""
        found = self.attributes.get("eot")
        return found if isinstance(found, int) else None

    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Decode adjacent inner chunks; see `ChunkedArray.read_chunks`."""
        try:
            self._shards.read(row, columns, out)
        except CorruptFile as error:
            require_published(self._files, METADATA, error)
            raise

    def missing(self) -> list[str]:
        """Say of every shard that is missing, damaged or lacks inner chunks what is wrong; empty
        for a whole grid.

        Reads the indexes only, so damage inside a chunk is not found. The first thousand missing
        shards are named: the time is proportional to the files there are, whatever the metadata
        claims.
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
        lost, n_lost = missing_files(shape, found)
        here = {at for at in found if at[0] < shape[0] and at[1] < shape[1]}
        lines = [self._missing_in(*at) for at in sorted(here.union(lost))]
        return [*filter(None, lines), *unnamed_rest(lost, n_lost, self.path)]

    def _missing_in(self, row: int, column: int) -> str:
        name, (down, across) = _shard_name(row, column), self.shards.shard
        inside = (
            min(down, self.n_rows - row * down),
            min(across, self.row_tokens - column * across),
        )
        try:
            lost = self._shards.missing(name, n_chunks(inside, self.chunk_shape))
        except CorruptFile as error:
            return str(error)
        return f"{self._files.where(name)}: inner chunks {lost} are missing" if lost else ""


def _shard_name(row: int, column: int) -> str:
    return f"c/{row}/{column}"
