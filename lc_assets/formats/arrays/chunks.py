"""Arrays of token ids in chunks: the base class of the readers, and arithmetic of chunks.

How a chunk is stored: `formats.arrays.grid`, `formats.arrays.flat`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lc_assets.arrays import Array
from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.arrays.files import Files, LocalFiles, Piece
from lc_assets.publishing import publish

TokenArray: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Token ids: uint16 or uint32."""

ALL = slice(None)
"""All rows, or all tokens of the rows."""

largest_of = np.maximum.reduce
"""Without the method's layer in Python."""

MOST_METADATA_BYTES = 2**24
"""Maximum bytes of an array's metadata."""
MOST_NAMED = 1000
"""Maximum number of missing or damaged files that are named."""


class ChunkedArray(ABC):
    """A two-dimensional array of token ids that is read chunk by chunk, without a cache, and
    written file by file.

    Attributes:
        path: the array's folder; a name if its files are elsewhere.
        n_rows: rows of the array.
        row_tokens: tokens of a row.
        vocab_size: every id is below it.
        dtype: dtype of the ids.
        chunk_shape: rows × tokens that are decoded at once.
        file_shape: rows × tokens of a file.
        metadata: the bytes of its metadata file.
        tokenizer: name of the tokenizer; empty if the array does not state it.
        eot: id of end of text; None if the array does not state it.
        align_tokens: documents begin at multiples of it; 1 if the array does not state it.
    """

    METADATA: ClassVar[str]
    KIND: ClassVar[str]
    FILE: ClassVar[str]

    path: Path
    n_rows: int
    row_tokens: int
    vocab_size: int
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, int]
    file_shape: tuple[int, int]
    metadata: bytes
    tokenizer: str = ""
    eot: int | None = None
    align_tokens: int = 1

    def __init__(self, path: Path, files: Files | None) -> None:
        """Read the metadata from ``files``, by default from the folder ``path``.

        Raises:
            NotPublished: if there is no such array.
        """
        self.path = path
        self._files = LocalFiles(path) if files is None else files
        try:
            (self.metadata,) = self._files.read([Piece(self.METADATA, 0, MOST_METADATA_BYTES)])
        except FileNotFoundError as error:
            raise NotPublished(f"{self.where}: no {self.KIND} here (no {self.METADATA})") from error

    @property
    def where(self) -> str:
        """Path or URL of the array's folder."""
        return self._files.where("").rstrip("/")

    @abstractmethod
    def chunks(self, row: int, columns: range) -> Iterator[TokenArray]:
        """Adjacent chunks, one after the other: (row, token), of ``dtype``, perhaps read-only;
        beyond the array's edges they contain fill values.

        Raises:
            CorruptFile: if one is missing, damaged, or has an id outside the vocabulary; names
                array and chunk.
            NotPublished: if the whole array was withdrawn.
        """

    @abstractmethod
    def _encoded(self, ids: TokenArray) -> Iterable[bytes]:
        """The bytes of a file with these ids."""

    @abstractmethod
    def _damage(self, row: int, column: int) -> str:
        """What is wrong with a file, without decoding it; empty if nothing is."""

    def _require_published(self, error: CorruptFile) -> None:
        """Raise `NotPublished` where a chunk is damaged since the whole array was withdrawn."""
        try:
            self._files.n_bytes(self.METADATA)
        except FileNotFoundError:
            raise NotPublished(
                f"{self.where}: the array was withdrawn while it was read: open the data set again "
                f"and resume from the last state ({error})"
            ) from error

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array of ``dtype``.

        Raises:
            BadInput: if it is not inside the array.
            CorruptFile, NotPublished: as `chunks`.
        """
        return rectangle_of(self, rows, tokens)

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """Fill ``out``, (row, token), from row ``top`` and token ``left`` on; the rectangle must be
        inside the array. Raises: as `chunks`.
        """
        fill(out, top, left, self.chunk_shape, self.chunks)

    def write(self, block: range, rows: Array, tokens: slice = ALL) -> None:
        """Write the files of one band, or of some of its columns, replacing what exists. The same
        rows give the same bytes.

        Args:
            block: numbers of the rows; begins and ends where a file does, so that no other writer
                shares a file.
            rows: (row, token) ids of any integer dtype.
            tokens: the columns; begins and ends where a file does.

        Raises:
            BadInput: if ``block`` or ``tokens`` share a file with others, or ``rows`` do not fit
                them or have ids outside the vocabulary.
        """
        columns = span(tokens, self.row_tokens, "tokens")
        down, across = self.file_shape
        for own, n, step, what in (
            (block, self.n_rows, down, "rows"),
            (columns, self.row_tokens, across, "tokens"),
        ):
            whole = own.start % step == 0 and (own.stop % step == 0 or own.stop == n)
            if not (whole and 0 <= own.start < own.stop <= n):
                raise BadInput(
                    f"{what} {own.start:,} to {own.stop:,} are no band of {n:,} {what}: a band "
                    f"begins at a multiple of {step:,} and ends at one, or at the end of the array"
                )
        ids = self._tokens(block, len(columns), rows)
        for row, column in np.ndindex(n_chunks(ids.shape, self.file_shape)):
            part = ids[row * down : (row + 1) * down, column * across : (column + 1) * across]
            name = self._file(block.start // down + row, columns.start // across + column)
            with publish(self.path / name) as staging, staging.open("wb") as out:
                out.writelines(self._encoded(part))

    def _tokens(self, block: range, n_tokens: int, rows: Array) -> TokenArray:
        """Rows in the array's dtype, after checking that they belong in the array."""
        expected = (len(block), n_tokens)
        if rows.shape != expected or rows.dtype.kind not in "ui":
            raise BadInput(
                f"rows {block.start:,} to {block.stop:,} must be integers of shape {expected}, got "
                f"{rows.dtype} of {rows.shape}"
            )
        if rows.max() >= self.vocab_size or (rows.dtype.kind == "i" and rows.min() < 0):
            row, token = (int(at) for at in np.argwhere((rows >= self.vocab_size) | (rows < 0))[0])
            raise BadInput(
                f"row {block.start + row:,}, token {token:,} is id {rows[row, token]:,}: the "
                f"vocabulary has {self.vocab_size:,} ids"
            )
        return rows.astype(self.dtype.newbyteorder("<"), copy=False)

    def missing(self) -> list[str]:
        """What is missing or visibly damaged, without decoding chunks; empty for a whole array.

        At most `MOST_NAMED` files are named: the time is proportional to the number of files that
        exist, whatever the metadata claims.
        """
        shape = n_chunks((self.n_rows, self.row_tokens), self.file_shape)
        files = ((row, column) for row in range(shape[0]) for column in range(shape[1]))
        named = list(islice(filter(None, (self._damage(*file) for file in files)), MOST_NAMED))
        if len(named) == MOST_NAMED:
            named.append(f"{self.path}: further files were not checked")
        return named

    def _check(self, row: int, column: int, chunk: TokenArray) -> None:
        """Compare a decoded chunk with the vocabulary."""
        if largest_of(chunk, axis=None) < self.vocab_size:
            return
        largest = int(self._inside(chunk, row, column).max())
        if largest >= self.vocab_size:
            raise CorruptFile(
                f"{self._named(row, column)} holds id {largest:,}: the vocabulary has "
                f"{self.vocab_size:,} ids"
            )

    def _file(self, row: int, column: int) -> str:
        """Path of a file."""
        return self.FILE.format(row, column)

    def _named(self, row: int, column: int) -> str:
        """A chunk, for messages."""
        return f"{self._files.where(self._file(row, column))}: the chunk"

    def _inside(self, chunk: TokenArray, row: int, column: int) -> TokenArray:
        """The part of a whole chunk that is in the array."""
        top, left = row * self.chunk_shape[0], column * self.chunk_shape[1]
        return chunk[: self.n_rows - top, : self.row_tokens - left]


def plan_rows(n_rows: int, block_rows: int) -> list[range]:
    """Divide ``n_rows`` rows into blocks of ``block_rows``; the last one may be shorter.

    >>> plan_rows(5, 2), plan_rows(0, 2)
    ([range(0, 2), range(2, 4), range(4, 5)], [])
    """
    return [range(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]


def rectangle_of(source: Any, rows: slice, tokens: slice) -> TokenArray:
    """A new (row, token) array that the source's ``read_into`` filled.

    Raises:
        BadInput: if it is not inside the source.
    """
    down, across = span(rows, source.n_rows, "rows"), span(tokens, source.row_tokens, "tokens")
    rectangle: TokenArray = np.empty((len(down), len(across)), source.dtype)
    if rectangle.size:
        source.read_into(rectangle, down.start, across.start)
    return rectangle


def fill(
    out: TokenArray,
    top: int,
    left: int,
    chunk_shape: tuple[int, int],
    chunks_of: Callable[[int, range], Iterable[TokenArray]],
) -> None:
    """Fill ``out``, (row, token), with the tokens from row ``top`` and token ``left`` on.

    Args:
        out: the array; its shape determines how much is read.
        top: first row.
        left: first token.
        chunk_shape: rows × tokens of a chunk.
        chunks_of: reads adjacent chunks of a row of chunks, one by one or joined.
    """
    (down, across), (n_rows, n_tokens) = chunk_shape, out.shape
    columns = range(left // across, -(-(left + n_tokens) // across))
    for row in range(top // down, -(-(top + n_rows) // down)):
        above, before = row * down - top, columns.start * across - left
        into, of = slice(max(above, 0), above + down), slice(max(-above, 0), n_rows - above)
        for chunk in chunks_of(row, columns):
            end = before + chunk.shape[1]
            out[into, max(before, 0) : end] = chunk[of, max(-before, 0) : n_tokens - before]
            before = end
            del chunk  # the next one gets its memory, which the processor's cache has


def span(piece: slice, n: int, what: str) -> range:
    """A slice as a range within 0 to ``n``; unlike Python's slices, nothing is clipped.

    >>> span(slice(2, None), 5, "rows")
    range(2, 5)

    Raises:
        BadInput: if it is not inside, runs backwards or has a step.
    """
    start = 0 if piece.start is None else piece.start
    stop = n if piece.stop is None else piece.stop
    if not 0 <= start <= stop <= n or piece.step not in (None, 1):
        raise BadInput(
            f"{what} {start}:{stop} (step {piece.step}) cannot be read: expected 0 <= start <= "
            f"stop <= {n:,} and no step"
        )
    return range(start, stop)


def n_chunks(shape: tuple[int, int], chunk_shape: tuple[int, int]) -> tuple[int, int]:
    """Number of chunks that cover an array, along each axis.

    >>> n_chunks((5, 4), (4, 4))
    (2, 1)
    """
    return -(-shape[0] // chunk_shape[0]), -(-shape[1] // chunk_shape[1])


def padded(values: TokenArray, shape: tuple[int, int], fill: int) -> TokenArray:
    """``values`` as a contiguous array of ``shape``, with ``fill`` below and to the right."""
    if values.shape == shape:
        return np.ascontiguousarray(values)
    whole = np.full(shape, fill, values.dtype) if fill else np.zeros(shape, values.dtype)
    whole[: values.shape[0], : values.shape[1]] = values
    return whole


def require_no_other(metadata: Path, content: bytes) -> None:
    """Check, before an array is written, that its folder holds no other.

    Raises:
        BadInput: if the metadata file exists with other content.
    """
    if metadata.exists() and metadata.read_bytes() != content:
        raise BadInput(f"{metadata}: describes another array; write to a new folder or remove it")
