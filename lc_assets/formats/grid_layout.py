"""Shapes of a token grid: of the array, its shard files and their inner chunks, and which are
refused.

Here: the numbers and their defaults. Not here: metadata and bytes (`formats.grid`,
    `formats.shard`), why the defaults are
what they are (docs/chunking.md).
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.shard import ShardShape

SHARD_ROWS: Final = 2048
SHARD_TOKENS: Final = 65_536
INNER_ROWS: Final = 64
"""Rows of an inner chunk: what a walk with long contexts must keep, in 84 riffled arrays 84 times
(docs/chunking.md).
"""
INNER_TOKENS: Final = 1024
"""Tokens of an inner chunk: contexts of as many are decoded once, of half as many twice."""
ZSTD_LEVEL: Final = 4
"""zstd goes by the size of what it packs: up to 128 KiB it looks for matches of two ids from level
4 on, as above at level 3.
"""
MOST_INNER_BYTES: Final = 2**26
"""Largest inner chunk that is read or written; a reader holds one at least."""
MOST_INNER: Final = 2**16
"""Most inner chunks of a shard: an index of a megabyte."""


def grid_dtype(vocab_size: int) -> np.dtype[Any]:
    """Data type of a grid's ids: uint16 while its largest number is no token of the vocabulary
    (docs/decisions/0005).

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
        shard_rows: rows of one file, at most ``inner_rows`` or a multiple of it. Grids of fewer
            rows have smaller
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
            raise BadInput(
                f"a grid has no negative rows and at least one token per row, got {self.n_rows:,} "
                f"× {self.row_tokens:,}"
            )
        if not 1 <= self.vocab_size < 2**32:
            raise BadInput(
                f"vocab_size must be 1 to {2**32 - 1:,}, so that the fill value is no token; got "
                f"{self.vocab_size:,}"
            )
        for axis in ("rows", "tokens"):
            shard, inner = getattr(self, f"shard_{axis}"), getattr(self, f"inner_{axis}")
            if inner < 1 or shard < 1 or (shard > inner and shard % inner):
                raise BadInput(
                    f"shard_{axis} must be at most inner_{axis}, {inner:,}, or a multiple of it, "
                    f"got {shard:,}"
                )
        if not 1 <= self.zstd_level <= 22:
            raise BadInput(f"zstd_level must be 1 to 22, got {self.zstd_level}")
        shards = self.shards
        if shards.inner_bytes > MOST_INNER_BYTES or math.prod(shards.grid) > MOST_INNER:
            raise BadInput(
                f"inner chunks have at most {MOST_INNER_BYTES:,} bytes, shards {MOST_INNER:,} of "
                "them;"
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
