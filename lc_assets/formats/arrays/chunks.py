"""Chunk arithmetic, and what arrays of chunks have in common.

Here: which chunks a rectangle of rows × tokens touches, blocks of rows, and the base class of the
readers. Not here: how a chunk is stored (`formats.shard`, `formats.flat`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.files import Files, LocalFiles

TokenArray: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Token ids: uint16 or uint32."""

Name = TypeVar("Name")

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
    """Cut ``n_rows`` rows into blocks of ``block_rows``; the last one may be shorter.

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


class ChunkedArray(ABC):
    """A two-dimensional array of token ids that is read chunk by chunk, without a cache.

    Attributes:
        path: the array's folder; a name where its files lie elsewhere.
        n_rows: rows of the array.
        row_tokens: tokens of a row.
        vocab_size: every id is below it.
        dtype: of the ids.
        chunk_shape: rows × tokens that are decoded at once.
        metadata: the bytes of its metadata file.
    """

    path: Path
    n_rows: int
    row_tokens: int
    vocab_size: int
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, int]
    metadata: bytes

    def __init__(self, path: Path, files: Files | None) -> None:
        """Read from ``files``, by default from the folder ``path``."""
        self.path = path
        self._files = LocalFiles(path) if files is None else files

    @property
    def where(self) -> str:
        """Path or URL of the array's folder."""
        return self._files.where("").rstrip("/")

    @abstractmethod
    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Decode adjacent chunks; beyond the array's edges they hold fill values.

        Args:
            row: of the chunks, counted in chunks.
            columns: of the chunks.
            out: receives them: (chunk, row, token), of ``dtype``, C-contiguous.

        Raises:
            CorruptFile: when one is missing, damaged, or holds an id outside the vocabulary; names
                array and chunk.
            NotPublished: when the whole array is gone.
        """

    def read_chunk(self, row: int, column: int) -> TokenArray:
        """Read one chunk, cut off at the array's edges. Raises: as `read_chunks` does."""
        whole = np.empty((1, *self.chunk_shape), self.dtype)
        self.read_chunks(row, range(column, column + 1), whole)
        return self._inside(whole[0], row, column)

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of ``dtype``.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile, NotPublished: as `read_chunks` does.
        """
        down = span(rows, self.n_rows, "rows")
        across = span(tokens, self.row_tokens, "tokens")
        rectangle = np.empty((len(down), len(across)), self.dtype)
        for row, in_rows, out_rows in _pieces(down, self.chunk_shape[0]):
            for column, in_tokens, out_tokens in _pieces(across, self.chunk_shape[1]):
                chunk = self.read_chunk(row, column)
                rectangle[out_rows, out_tokens] = chunk[in_rows, in_tokens]
        return rectangle

    def _inside(self, chunk: TokenArray, row: int, column: int) -> TokenArray:
        """The part of a whole chunk that lies in the array."""
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        return chunk[: self.n_rows - top, : self.row_tokens - left]


def copy_out(band: TokenArray, top: int, left: int, out: TokenArray) -> None:
    """Fill ``out`` from a row of chunks.

    Args:
        band: adjacent chunks, (chunk, row, token).
        top: first row that is copied, counted within the chunks.
        left: first token that is copied, counted from the first chunk's first token.
        out: a (row, token) array; its shape says how much is copied.
    """
    n_rows, n_tokens = out.shape
    across = band.shape[2]
    if len(band) == 1:
        out[...] = band[0, top : top + n_rows, left : left + n_tokens]
    elif left == 0 and n_tokens == len(band) * across and out.flags.c_contiguous:
        out.reshape(n_rows, len(band), across)[...] = band[:, top : top + n_rows].swapaxes(0, 1)
    else:
        for i, chunk in enumerate(band[:, top : top + n_rows]):
            begin, end = max(i * across, left), min((i + 1) * across, left + n_tokens)
            out[:, begin - left : end - left] = chunk[:, begin - i * across : end - i * across]


def span(piece: slice, n: int, what: str) -> range:
    """Return a slice as a range within 0 to ``n``; unlike Python's slices, nothing is clipped.

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


def missing_files(
    shape: tuple[int, int], found: Iterable[tuple[int, int]], most: int = 1000
) -> tuple[list[tuple[int, int]], int]:
    """Which of ``shape`` files, rows × columns, are not among those found: the first ``most``, and
    how many in all.

    The time is proportional to the number found plus ``most``, whatever ``shape`` claims.

    >>> missing_files((2**62, 2), [(0, 0), (1, 1), (7, 9)], most=2)
    ([(0, 1), (1, 0)], 9223372036854775806)
    """
    here = {at for at in found if at[0] < shape[0] and at[1] < shape[1]}
    n_missing = shape[0] * shape[1] - len(here)
    names = ((row, column) for row in count() for column in range(shape[1]))
    return list(islice((at for at in names if at not in here), min(n_missing, most))), n_missing


def unnamed_rest(named: Sequence[tuple[int, int]], n_missing: int, where: object) -> list[str]:
    """A line that counts the missing files beyond those that were named; none when there are
    none.
    """
    n_more = n_missing - len(named)
    return [f"{where}: {n_more:,} more files are missing"] if n_more else []


def padded(values: TokenArray, shape: tuple[int, int], fill: int) -> TokenArray:
    """Return ``values`` as a contiguous array of ``shape``, with ``fill`` below and to the
    right.
    """
    if values.shape == shape:
        return np.ascontiguousarray(values)
    whole = np.full(shape, fill, values.dtype)
    whole[: values.shape[0], : values.shape[1]] = values
    return whole


def require_tokens(
    rows: NDArray[Any], block: RowBlock, *, row_tokens: int, dtype: np.dtype[Any], vocab_size: int
) -> TokenArray:
    """Return rows in the array's dtype after checking that they belong in the array.

    Args:
        rows: (row, token) ids of any integer dtype.
        block: which rows they are.
        row_tokens: tokens of a row.
        dtype: the array's.
        vocab_size: ids are 0 to ``vocab_size`` - 1.

    Raises:
        BadInput: when the shape differs, the dtype is no integer, or an id is outside the
            vocabulary; says which row and token.
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


def require_vocabulary(
    ids: TokenArray, vocab_size: int, where: Callable[[Name], str], chunk: Name
) -> None:
    """Check that ids that were read are below ``vocab_size``.

    Args:
        ids: of a chunk.
        vocab_size: of the array.
        where: describes the chunk in a message.
        chunk: what ``where`` is called with.

    Raises:
        CorruptFile: when an id is not below it.
    """
    largest = int(ids.max())
    if largest >= vocab_size:
        raise CorruptFile(
            f"{where(chunk)} holds id {largest:,}: the vocabulary has {vocab_size:,} ids"
        )


def require_band(
    block: RowBlock | range, *, n_rows: int, shard_rows: int, what: str = "rows"
) -> None:
    """Check that no other writer can share a file with the one of these rows, or columns.

    Raises:
        BadInput: when the block does not begin and end where a file does, or lies outside the
            array.
    """
    if (
        block.start % shard_rows
        or (block.stop % shard_rows and block.stop != n_rows)
        or block.stop > n_rows
    ):
        raise BadInput(
            f"{what} {block.start:,} to {block.stop:,} are no band of {n_rows:,} {what}: a band "
            f"begins at a multiple of {shard_rows:,} and ends at one, or at the end of the array"
        )


def _pieces(whole: range, chunk: int) -> list[tuple[int, slice, slice]]:
    """Parts of a range by chunk: the chunk's number, the part's place in it and in the range."""
    pieces = []
    start = whole.start
    while start < whole.stop:
        index, inside = divmod(start, chunk)
        n = min(chunk - inside, whole.stop - start)
        outside = start - whole.start
        pieces.append((index, slice(inside, inside + n), slice(outside, outside + n)))
        start += n
    return pieces
