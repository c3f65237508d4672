"""Opening untrusted Parquet files, through a file object that checks every column chunk before
Arrow decodes it.

Nothing is read twice: Arrow reads a column chunk as a whole, and the headers of its pages are
checked in the bytes that it is about to receive. Columns that are not read cost nothing, and a file
in a bucket is fetched once.

`guarded` is for readers with a fixed number of rows per batch, `weighed` for readers that can
choose it. The limits are computed in `formats.parquet.pages`.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile
from lc_assets.formats.parquet.footer import Chunk, Footer, read_footer
from lc_assets.formats.parquet.pages import MOST_PAGE_BYTES, Pages, ReadAt, walk

MOST_TIMES: Final = 1000
"""Maximum ratio of a decoded file to its size; that of deflate is not much larger. A decoded file
may always have `FREELY` bytes.
"""

FREELY: Final = 4 << 30

MOST_BATCH_BYTES: Final = 1 << 30
"""Maximum decoded bytes of one column in one batch."""

SOME_BYTES: Final = 256 << 20
"""Maximum bytes of a batch in all columns together, if its number of rows can be chosen."""


class Bounded:
    """An open file, and how many bytes its rows may still take.

    Attributes:
        file: Arrow's.
    """

    def __init__(self, file: pq.ParquetFile, n_bytes: int, where: str) -> None:
        self.file = file
        self._where = where
        self._left = max(n_bytes * MOST_TIMES, FREELY)

    def batches(self, n_rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, ``n_rows`` at a time.

        Raises:
            CorruptFile: as `spend`.
        """
        for batch in self.file.iter_batches(n_rows, columns=columns):
            self.spend(batch.nbytes)
            yield batch

    def spend(self, n_bytes: int) -> None:
        """Count what was decoded.

        Raises:
            CorruptFile: when it exceeds `MOST_TIMES` the file's size, and `FREELY`.
        """
        self._left -= n_bytes
        if self._left < 0:
            raise CorruptFile(
                f"{self._where}: unpacks to more than {MOST_TIMES:,} times its size; it may be "
                "made to exhaust memory or time"
            )


@contextlib.contextmanager
def guarded(source: BinaryIO | Path, *, where: str, rows_at_once: int) -> Iterator[Bounded]:
    """Open a file whose columns are checked against limits as they are read; closed on exit.

    Args:
        source: the file; a stream must be able to seek.
        where: its name, for messages.
        rows_at_once: how many rows the caller decodes at a time.

    Raises:
        CorruptFile: when its footer, or a column that is read, states something impossible or
            beyond the limits; names ``where``.
    """
    with _opened(source) as file:
        footer = judged(file, where=where)
        with pq.ParquetFile(
            _Watched(file, footer, where, rows_at_once), pre_buffer=False
        ) as opened:
            yield Bounded(opened, footer.n_bytes, where)


def judged(file: BinaryIO, *, where: str) -> Footer:
    """The footer of a file, checked against limits.

    Raises:
        CorruptFile: see `guarded`.
    """
    try:
        return read_footer(file)
    except CorruptFile as error:
        raise CorruptFile(f"{where}: not a readable Parquet file: {error}") from error


def require_sound_footer(path: Path) -> None:
    """Check the footer of a file against limits, and nothing else: for files whose digest is known.

    Raises:
        CorruptFile: see `guarded`.
    """
    with path.open("rb") as file:
        judged(file, where=str(path))


@contextlib.contextmanager
def weighed(path: Path, *, most_rows: int) -> Iterator[tuple[Bounded, list[int]]]:
    """Open a file, with the number of rows of each row group that may be read at once so that they
    take no more than `SOME_BYTES`; at least 1.

    All columns are checked. Strings in lists are read as dictionary indices, because a row may name
    one of them any number of times.

    Raises:
        CorruptFile: see `guarded`.
    """
    with path.open("rb") as file:
        footer = judged(file, where=str(path))

        def read_at(at: int, n_bytes: int) -> bytes:
            file.seek(at)
            return file.read(n_bytes)

        groups = [_pages(group, read_at, most_rows, str(path)) for group in footer.groups]
    spelled = {each.chunk.leaf.name for group in groups for each in group if each.has_lengths}
    named = [
        leaf.name
        for leaf in footer.leaves
        if leaf.is_repeated and leaf.is_text and leaf.name not in spelled
    ]
    if (
        len({leaf.name for leaf in footer.leaves}) < len(footer.leaves) and named
    ):  # Arrow addresses columns by name
        raise CorruptFile(f"{path}: has two columns of one name, and lists; rename them")
    _require_bounded_lists(
        [each for group in groups for each in group], named, most_rows, str(path)
    )
    with pq.ParquetFile(path, pre_buffer=False, read_dictionary=named) as opened:
        yield (
            Bounded(opened, footer.n_bytes, str(path)),
            [_rows_of(group, most_rows) for group in groups],
        )


def _pages(group: list[Chunk], read_at: ReadAt, most_rows: int, where: str) -> list[Pages]:
    try:
        return [
            walk(
                read_at,
                chunk,
                most_longest=_most_longest(chunk, most_rows)
                if chunk.leaf.is_repeated
                else MOST_PAGE_BYTES,
            )
            for chunk in group
        ]
    except CorruptFile as error:
        raise CorruptFile(f"{where}: not a readable Parquet file: {error}") from error


def _most_longest(chunk: Chunk, n_rows: int) -> int:
    """Length of the longest string that each value of some rows may refer to."""
    return MOST_BATCH_BYTES // max(chunk.n_values - chunk.n_rows + min(n_rows, chunk.n_rows), 1)


def _require_bounded_lists(
    pages: list[Pages], named: list[str], most_rows: int, where: str
) -> None:
    """One row may hold all values of a chunk, except those that stay in a dictionary."""
    for each in pages:
        taken = (
            sum(n_bytes for _, n_bytes in each.sizes)
            if each.chunk.leaf.name in named
            else each.bytes_of(most_rows)
        )
        if each.chunk.leaf.is_repeated and taken > MOST_BATCH_BYTES:
            raise _too_much(each.chunk, where)


def _rows_of(pages: list[Pages], most_rows: int) -> int:
    flat = [each for each in pages if not each.chunk.leaf.is_repeated]
    n_rows = most_rows
    while n_rows > 1 and sum(each.bytes_of(n_rows) for each in flat) > SOME_BYTES:
        n_rows //= 2
    return n_rows


def _too_much(chunk: Chunk, where: str) -> CorruptFile:
    return CorruptFile(
        f"{where}: {chunk.leaf.name} may unpack to more than {MOST_BATCH_BYTES:,} bytes in a few "
        "rows; rewrite it with smaller row groups"
    )


class _Watched:
    """A file object for Arrow that checks the pages of each column chunk when it is read."""

    def __init__(self, file: BinaryIO, footer: Footer, where: str, rows_at_once: int) -> None:
        self._file = file
        self._where = where
        self._rows = rows_at_once
        self._waiting = {chunk.start: chunk for group in footer.groups for chunk in group}
        self.closed = False

    def read(self, n_bytes: int = -1) -> bytes:
        place = self._file.tell()
        content = self._file.read(n_bytes)
        self._look(place, memoryview(content))
        return content

    def read_buffer(self, n_bytes: int) -> pa.Buffer:
        if not hasattr(self._file, "read_buffer"):
            return pa.py_buffer(self.read(n_bytes))
        place = self._file.tell()
        content = self._file.read_buffer(n_bytes)
        self._look(place, memoryview(content))
        return content

    def _look(self, place: int, content: memoryview) -> None:
        chunk = self._waiting.pop(place, None)
        if chunk is None:
            return
        rows = min(self._rows, chunk.n_rows)

        def read_at(at: int, n_bytes: int) -> bytes:
            return bytes(content[at - chunk.start : at - chunk.start + n_bytes])

        try:
            pages = walk(read_at, chunk, most_longest=_most_longest(chunk, rows))
        except CorruptFile as error:
            raise CorruptFile(
                f"{self._where}: not a readable Parquet file: {chunk.leaf.name} {error}"
            ) from error
        if pages.bytes_of(rows) > MOST_BATCH_BYTES:
            raise _too_much(chunk, self._where)

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Leave the file open: the caller closes it."""
        self.closed = True


@contextlib.contextmanager
def _opened(source: Any) -> Iterator[BinaryIO]:
    if isinstance(
        source, Path
    ):  # Arrow's own memory: through Python's bytes, reading costs a sixth more
        with source.open("rb"), pa.OSFile(str(source)) as file:
            yield file
    else:
        yield source
