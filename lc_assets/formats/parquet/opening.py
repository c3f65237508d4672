"""Opening untrusted Parquet files, with every column chunk checked before Arrow decodes it.

`guarded` is for readers with a fixed number of rows per batch. Nothing is read twice: Arrow reads a
column chunk as a whole, and the headers of its pages are checked in the bytes that it is about to
receive. Columns that are not read cost nothing, and a file in a bucket is fetched once.

`weighed` is for readers of local files that can choose the number of rows. The limits are computed
in `formats.parquet.pages`.
"""

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import NOT_PARQUET
from lc_assets.formats.parquet.footer import FIXED_STRING, STRING, Chunk, Footer, read_footer
from lc_assets.formats.parquet.pages import MOST_PAGE_BYTES, Pages, ReadAt, strings_of, walk
from lc_assets.formats.unpacking import Allowance

ROW_BYTES = 256
"""What a row counts for besides its values: a small file may promise millions of empty ones."""

MOST_BATCH_BYTES = 1 << 30
"""Maximum decoded bytes of one column in one batch."""

SOME_BYTES = 256 << 20
"""Maximum bytes of a batch in all columns together, if its number of rows can be chosen."""


LARGE_BYTES = 32 << 20
"""Bytes of a row group above which it holds a long text."""

BYTES_TOGETHER = 1 << 21
FEWEST_TOGETHER, MOST_TOGETHER = 32, 1 << 12
"""Of lines that are read together; but at least, and at most, so many lines are."""


class Bounded(Allowance):
    """An open file, and how many bytes its rows may still take; each counts `ROW_BYTES` from the
    beginning.

    Attributes:
        file: Arrow's.

    Raises:
        CorruptFile: when it promises too many rows.
    """

    def __init__(self, file: pq.ParquetFile, n_bytes: int, where: object) -> None:
        super().__init__(n_bytes, where)
        self.file = file
        self.spend(ROW_BYTES * file.metadata.num_rows)

    def batches(self, n_rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, ``n_rows`` at a time.

        Raises:
            CorruptFile: as `spend`.
        """
        for batch in self.file.iter_batches(n_rows, columns=columns):
            for column in batch.columns:
                is_folded = pa.types.is_dictionary(column.type)
                self.spend((column.dictionary_decode() if is_folded else column).nbytes)
            yield batch


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
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        footer = checked_footer(file, where)
        watched = _Watched(file, footer, where, rows_at_once)
        opened = stack.enter_context(pq.ParquetFile(watched, pre_buffer=False))
        yield Bounded(opened, footer.n_bytes, where)


def checked_footer(file: BinaryIO, where: object) -> Footer:
    """The footer of a file, checked against limits.

    Raises:
        CorruptFile: see `guarded`.
    """
    with _naming(where):
        return read_footer(file)


def require_sound_footer(path: Path) -> None:
    """Check the footer of a file against limits, and nothing else: for files whose digest is known.

    Raises:
        CorruptFile: see `guarded`.
    """
    with path.open("rb") as file:
        checked_footer(file, path)


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
        footer = checked_footer(file, path)

        def read_at(at: int, n_bytes: int) -> bytes:
            file.seek(at)
            return file.read(n_bytes)

        with _naming(path):
            groups = [
                [_pages(chunk, read_at, most_rows) for chunk in group] for group in footer.groups
            ]
    pages = [each for group in groups for each in group]
    in_dictionaries = {
        leaf.name
        for leaf in footer.leaves
        if leaf.is_repeated and leaf.type in {STRING, FIXED_STRING}
    } - {each.chunk.leaf.name for each in pages if each.has_lengths}
    names = {leaf.name for leaf in footer.leaves}
    if in_dictionaries and len(names) < len(footer.leaves):  # Arrow addresses columns by name
        raise CorruptFile(f"{path}: has two columns of one name, and lists; rename them")
    for each in pages:
        stored = sum(n_bytes for _, n_bytes in each.sizes)
        is_indices = each.chunk.leaf.name in in_dictionaries
        if each.chunk.leaf.is_repeated:  # one row may hold all values of the chunk
            _require_bounded(each, stored if is_indices else each.bytes_of(most_rows), path)
    with pq.ParquetFile(path, pre_buffer=False, read_dictionary=sorted(in_dictionaries)) as opened:
        yield (
            Bounded(opened, footer.n_bytes, path),
            [_rows_at_once(group, most_rows) for group in groups],
        )


def _pages(chunk: Chunk, read_at: ReadAt, most_rows: int) -> Pages:
    most = _most_longest(chunk, most_rows) if chunk.leaf.is_repeated else MOST_PAGE_BYTES
    return walk(read_at, chunk, most_longest=most)


def _most_longest(chunk: Chunk, n_rows: int) -> int:
    """Length of the longest string that each value of some rows may refer to."""
    return MOST_BATCH_BYTES // max(chunk.n_values - chunk.n_rows + min(n_rows, chunk.n_rows), 1)


def _rows_at_once(pages: list[Pages], most_rows: int) -> int:
    flat = [each for each in pages if not each.chunk.leaf.is_repeated]
    n_rows = most_rows
    while n_rows > 1 and sum(each.bytes_of(n_rows) for each in flat) > SOME_BYTES:
        n_rows //= 2
    return n_rows


def _require_bounded(pages: Pages, n_bytes: int, where: object) -> None:
    if n_bytes > MOST_BATCH_BYTES:
        raise CorruptFile(
            f"{where}: {pages.chunk.leaf.name} may unpack to more than {MOST_BATCH_BYTES:,} bytes "
            "in a few rows; rewrite it with smaller row groups"
        )


@contextlib.contextmanager
def _naming(where: object) -> Iterator[None]:
    try:
        yield
    except CorruptFile as error:
        raise CorruptFile(f"{where}: {NOT_PARQUET}: {error}") from error


class _Watched:
    """A file object for Arrow that checks the pages of each column chunk when it is read."""

    def __init__(self, file: BinaryIO, footer: Footer, where: str, rows_at_once: int) -> None:
        self._file, self._where, self._rows = file, where, rows_at_once
        self._unread = {chunk.start: chunk for group in footer.groups for chunk in group}
        self.closed = False
        self.seek, self.tell = file.seek, file.tell

    def read(self, n_bytes: int = -1) -> bytes:
        at = self._file.tell()
        content: bytes = self._file.read(n_bytes)
        chunk = self._unread.pop(at, None)
        if chunk is not None:
            self._check(chunk, content)
        return content

    def _check(self, chunk: Chunk, content: bytes) -> None:
        rows = min(self._rows, chunk.n_rows)

        def read_at(at: int, n_bytes: int) -> bytes:
            return content[at - chunk.start : at - chunk.start + n_bytes]

        with _naming(f"{self._where}, {chunk.leaf.name}"):
            pages = walk(read_at, chunk, most_longest=_most_longest(chunk, rows))
        _require_bounded(pages, pages.bytes_of(rows), self._where)

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


def batches_of(
    file: pq.ParquetFile, group: int, n_lines: int | None, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """The lines of a row group, so many at a time; by default some `BYTES_TOGETHER`."""
    if n_lines is None:
        facts = file.metadata.row_group(group)
        n_lines = BYTES_TOGETHER * facts.num_rows // max(facts.total_byte_size, 1)
        n_lines = min(max(n_lines, FEWEST_TOGETHER), MOST_TOGETHER)
    # Threads would take twice the CPU time for batches so small.
    batches = file.iter_batches(n_lines, row_groups=[group], columns=columns, use_threads=False)
    n_bytes = file.metadata.row_group(group).total_byte_size
    if n_bytes <= LARGE_BYTES:
        yield from batches
        return
    found = deque(batches)  # all, for their reader holds a long text three times
    release(n_bytes)
    while found:
        yield found.popleft()


def rows_of(
    path: Path, file: pq.ParquetFile, group: int, rows: Sequence[int], columns: Sequence[str]
) -> pa.RecordBatch:
    """Some ascending rows of a row group of an open table, whose footer is checked. Of its texts, a
    column of strings that is the last, only pages are decompressed that hold one of these.
    """
    *others, name = columns
    read = partial(file.read_row_group, group, use_threads=False)
    wanted = pa.array(rows, pa.int64())
    arrays = [column.take(wanted) for column in read(columns=others).columns]
    with pa.memory_map(str(path)) as mapped, _naming(path):
        chunks = read_footer(mapped).groups[group]
        (chunk,) = (chunk for chunk in chunks if chunk.leaf.name == name)
        strings = strings_of(partial(_view, mapped), chunk, rows)
    if strings is None:
        arrays.append(read(columns=[name])[name].take(wanted))
    else:
        arrays.append(pa.chunked_array([array.view(pa.string()) for array in strings]))
    (batch,) = pa.table(arrays, [*others, name]).combine_chunks().to_batches()
    return batch


def _view(mapped: pa.MemoryMappedFile, at: int, n_bytes: int) -> memoryview:
    """Bytes of a file, which are not copied: new memory would take longer than to decode them."""
    mapped.seek(at)
    return memoryview(mapped.read_buffer(n_bytes)).cast("B")


def release(n_bytes: int) -> None:
    """Give memory that Arrow does not need any more back, if it may be as much as a long text's."""
    if n_bytes > LARGE_BYTES:
        pa.default_memory_pool().release_unused()
