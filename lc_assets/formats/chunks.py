"""Chunk arithmetic: which chunks a rectangle of rows × tokens touches, and how rows are dealt to
writers.

Here: index arithmetic and the copy out of chunks. Not here: how a chunk is stored (`formats.shard`,
`formats.flat`), nor where.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput

TokenArray: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Token ids, uint16 or uint32."""

ALL: Final = slice(None)
"""All rows, or all tokens of the rows."""


@dataclass(frozen=True, slots=True, order=True)
class RowBlock:
    """Rows ``start`` to ``stop`` (exclusive) of an array."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise BadInput(
                f"rows {self.start:,} to {self.stop:,} are not a block: wanted 0 <= start < stop"
            )

    def __len__(self) -> int:
        return self.stop - self.start


def plan_rows(n_rows: int, block_rows: int) -> list[RowBlock]:
    """Cut ``n_rows`` rows into blocks of ``block_rows``; the last one is what is left.

    >>> plan_rows(5, 2)
    [RowBlock(start=0, stop=2), RowBlock(start=2, stop=4), RowBlock(start=4, stop=5)]
    >>> plan_rows(0, 2)
    []

    Raises:
        BadInput: when a block has no rows.
    """
    if block_rows < 1:
        raise BadInput(f"a block has at least one row, got block_rows {block_rows:,}")
    return [
        RowBlock(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)
    ]


def plan_bands(n_rows: int, band_rows: int, *, shard_rows: int) -> list[RowBlock]:
    """Deal ``n_rows`` rows into bands that share no file, so that each may be written by another
    process.

    Args:
        n_rows: rows of the array.
        band_rows: rows of a band; a multiple of ``shard_rows``.
        shard_rows: rows of one file.

    >>> plan_bands(5000, 4096, shard_rows=2048)
    [RowBlock(start=0, stop=4096), RowBlock(start=4096, stop=5000)]

    Raises:
        BadInput: when a band would share a file with the next.
    """
    if band_rows < 1 or band_rows % shard_rows:
        raise BadInput(
            f"band_rows must be a multiple of {shard_rows:,}, the rows of one file, got "
            f"{band_rows:,}"
        )
    return plan_rows(n_rows, band_rows)


class Tile(NamedTuple):
    """The part of a rectangle that lies in one chunk: the chunk's coordinates, and where in it and
    where in the rectangle.
    """

    chunk: tuple[int, int]
    inside: tuple[slice, slice]
    outside: tuple[slice, slice]


def tiles(rows: range, tokens: range, chunk_shape: tuple[int, int]) -> Iterator[Tile]:
    """Yield the tiles of a rectangle, in C order of their chunks.

    >>> for tile in tiles(range(3, 5), range(0, 4), (4, 4)):
    ...     print(tile.chunk, tile.inside[0], tile.outside[0])
    (0, 0) slice(3, 4, None) slice(0, 1, None)
    (1, 0) slice(0, 1, None) slice(1, 2, None)
    """
    across = _pieces(tokens, chunk_shape[1])
    for row, in_row, out_row in _pieces(rows, chunk_shape[0]):
        for column, in_token, out_token in across:
            yield Tile((row, column), (in_row, in_token), (out_row, out_token))


def gather(
    read_chunk: Callable[[int, int], TokenArray],
    rows: range,
    tokens: range,
    *,
    chunk_shape: tuple[int, int],
    dtype: np.dtype[Any],
) -> TokenArray:
    """Copy a rectangle out of the chunks that ``read_chunk(row, column)`` returns; a new array each
    time.
    """
    rectangle = np.empty((len(rows), len(tokens)), dtype)
    for tile in tiles(rows, tokens, chunk_shape):
        rectangle[tile.outside] = read_chunk(*tile.chunk)[tile.inside]
    return rectangle


def copy_out(band: TokenArray, top: int, left: int, out: TokenArray) -> None:
    """Copy as many rows and tokens as ``out`` has out of a band (chunk, row, token), from a row and
    a column on.
    """
    n_rows, n_tokens = out.shape
    across = band.shape[2]
    if len(band) == 1:
        out[...] = band[0, top : top + n_rows, left : left + n_tokens]
    elif left == 0 and n_tokens == len(band) * across and out.flags.c_contiguous:
        out.reshape(n_rows, len(band), across)[...] = band[:, top : top + n_rows].swapaxes(0, 1)
    else:
        for number, chunk in enumerate(band[:, top : top + n_rows]):
            begin, end = max(number * across, left), min((number + 1) * across, left + n_tokens)
            out[:, begin - left : end - left] = chunk[
                :, begin - number * across : end - number * across
            ]


def span(piece: slice, n: int, what: str) -> range:
    """Return a slice as a range within 0 to ``n``; unlike Python's slices it never clips.

    >>> span(slice(2, None), 5, "rows")
    range(2, 5)

    Raises:
        BadInput: when it reaches outside, runs backwards or has a step.
    """
    start = 0 if piece.start is None else piece.start
    stop = n if piece.stop is None else piece.stop
    if not 0 <= start <= stop <= n or piece.step not in (None, 1):
        raise BadInput(
            f"{what} {start}:{stop} (step {piece.step}) cannot be read: wanted 0 <= start <= stop "
            f"<= {n:,} and no step"
        )
    return range(start, stop)


def n_chunks(shape: tuple[int, int], chunk_shape: tuple[int, int]) -> tuple[int, int]:
    """How many chunks cover an array, along each axis.

    >>> n_chunks((5, 4), (4, 4))
    (2, 1)
    """
    return -(-shape[0] // chunk_shape[0]), -(-shape[1] // chunk_shape[1])


def missing(
    shape: tuple[int, int], found: Iterable[tuple[int, int]], most: int = 1000
) -> tuple[list[tuple[int, int]], int]:
    """Which of ``shape`` files, rows × columns, are not among those found: the first ``most``, and
    how many there are in all.

    Takes no longer than in proportion to what was found and ``most``, whatever ``shape`` promises.

    >>> missing((2**62, 2), [(0, 0), (1, 1), (7, 9)], most=2)
    ([(0, 1), (1, 0)], 9223372036854775806)
    """
    here = {at for at in found if at[0] < shape[0] and at[1] < shape[1]}
    n_missing = shape[0] * shape[1] - len(here)
    names = ((row, column) for row in count() for column in range(shape[1]))
    return list(islice((at for at in names if at not in here), min(n_missing, most))), n_missing


def rest_of(lost: Sequence[tuple[int, int]], n_lost: int, where: object) -> list[str]:
    """A line for the files that are missing and were not named, if there are any."""
    return (
        [f"{where}: and {n_lost - len(lost):,} files more are missing"]
        if n_lost > len(lost)
        else []
    )


def padded(values: TokenArray, shape: tuple[int, int], fill: int) -> TokenArray:
    """Return ``values`` as one contiguous array of ``shape``, filled up below and to the right."""
    if values.shape == shape:
        return np.ascontiguousarray(values)
    whole = np.full(shape, fill, values.dtype)
    whole[: values.shape[0], : values.shape[1]] = values
    return whole


def require_tokens(
    rows: NDArray[Any], block: RowBlock, *, row_tokens: int, dtype: np.dtype[Any], vocab_size: int
) -> TokenArray:
    """Return rows in the array's dtype, or refuse those that do not belong into it.

    Args:
        rows: (row, token) ids of any integer dtype.
        block: which rows they are.
        row_tokens: tokens of a row.
        dtype: the array's.
        vocab_size: ids are 0 to ``vocab_size`` - 1.

    Raises:
        BadInput: when the shape differs, the ids are no integers, or one is outside the vocabulary;
            says which row and token.
    """
    if rows.shape != (len(block), row_tokens) or rows.dtype.kind not in "ui":
        wanted = (len(block), row_tokens)
        raise BadInput(
            f"rows {block.start:,} to {block.stop:,} must be integers of shape {wanted}, got "
            f"{rows.dtype} of {rows.shape}"
        )
    if int(rows.max()) >= vocab_size or int(rows.min()) < 0:
        row, token = (int(at) for at in np.argwhere((rows >= vocab_size) | (rows < 0))[0])
        raise BadInput(
            f"row {block.start + row:,}, token {token:,} is id {rows[row, token]:,}: the "
            f"vocabulary has {vocab_size:,} ids"
        )
    return rows.astype(dtype, copy=False)


def require_band(block: RowBlock, *, n_rows: int, shard_rows: int) -> None:
    """Refuse a band that another writer could share a file with.

    Raises:
        BadInput: when it does not begin and end where a file does, or lies outside the array.
    """
    if (
        block.start % shard_rows
        or (block.stop % shard_rows and block.stop != n_rows)
        or block.stop > n_rows
    ):
        raise BadInput(
            f"rows {block.start:,} to {block.stop:,} are no band of {n_rows:,} rows: bands begin "
            f"at a multiple of {shard_rows:,} rows"
            " and end at one or at the last row (see plan_bands)"
        )


def _pieces(whole: range, chunk: int) -> list[tuple[int, slice, slice]]:
    pieces = []
    start = whole.start
    while start < whole.stop:
        index, inside = divmod(start, chunk)
        n = min(chunk - inside, whole.stop - start)
        outside = start - whole.start
        pieces.append((index, slice(inside, inside + n), slice(outside, outside + n)))
        start += n
    return pieces
