"""What the pages of a Parquet file say of their size, before any is unpacked.

A page is unpacked whole, and takes the memory that its header states: a gigabyte of zeros is a page of 32 kB. A page of values
may also be numbers that point into one dictionary, so that a value of a megabyte stands in a million rows of a few bytes. So the
headers are walked through first, some 10 µs each, and nothing is unpacked of a file that states a page of more than
`MOST_PAGE_BYTES`; who reads rows asks how long a value of a dictionary can be.

Here: headers (Thrift's compact protocol). Not here: reading values, which is Arrow's.
Source: ``parquet.thrift`` (``PageHeader``: 1 type, 2 size unpacked, 3 size packed), Thrift's compact protocol.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile

MOST_PAGE_BYTES: Final = 512 << 20
"""Writers cut pages at about a megabyte; a page holds one value at least, and no document is read that is half as long."""

HEADER_BYTES: Final = 1 << 16
"""A longer header is that of no page; statistics are in it."""

MOST_BATCH_BYTES: Final = 256 << 20
"""What a batch of rows may take for each column where every row names the longest value that its dictionary can hold."""

_DICTIONARY: Final = 2
_BOOLS, _BYTE, _INTS, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, 12
_MOST_NESTED: Final = 16


class Pages(NamedTuple):
    """What the pages of a row group state.

    Attributes:
        largest: bytes of the largest page, unpacked.
        dictionary: of the largest page that is a dictionary; no value that it holds is longer.
    """

    largest: int = 0
    dictionary: int = 0


def bounded_batches(
    file: pq.ParquetFile,
    source: Path | BinaryIO,
    *,
    where: str,
    most_rows: Callable[[int, int], int],
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in batches that stay within `MOST_BATCH_BYTES`, whatever its pages hold.

    Args:
        file: the file, opened.
        source: the same, to look at its pages' headers.
        where: its name, for messages.
        most_rows: of a batch, by the rows of a group and the bytes that the footer states for them.
        columns: which to read; all by default.

    Raises:
        CorruptFile: when a page is larger than any, or its header is none.
    """
    for group, pages in enumerate(stated_pages(source, file.metadata, where=where)):
        size = file.metadata.row_group(group)
        n_rows = min(most_rows(size.num_rows, size.total_byte_size), MOST_BATCH_BYTES // max(pages.dictionary, 1))
        yield from file.iter_batches(max(n_rows, 1), row_groups=[group], columns=columns)


def stated_pages(source: Path | BinaryIO, metadata: Any, *, where: str) -> list[Pages]:
    """What the pages of each row group state.

    Args:
        source: the file.
        metadata: its footer, as `pyarrow.parquet.ParquetFile.metadata` has it.
        where: its name, for messages.

    Raises:
        CorruptFile: when a page is larger than any, or its header is none.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        return [_of_group(stream, metadata.row_group(group), where) for group in range(metadata.num_row_groups)]


def _of_group(stream: BinaryIO, group: Any, where: str) -> Pages:
    found = Pages()
    for number in range(group.num_columns):
        chunk = group.column(number)
        begins = [place for place in (chunk.dictionary_page_offset, chunk.data_page_offset) if place]
        start = min(begins, default=0)
        for kind, size in _headers(stream, start, start + chunk.total_compressed_size, where):
            if not 0 <= size <= MOST_PAGE_BYTES:
                said = f"{chunk.path_in_schema}: a page states {size:,} bytes, more than {MOST_PAGE_BYTES:,}"
                raise CorruptFile(f"{where}: {said}; write the file again with pages of a megabyte")
            found = Pages(max(found.largest, size), max(found.dictionary, size if kind == _DICTIONARY else 0))
    return found


def _headers(stream: BinaryIO, start: int, stop: int, where: str) -> Iterator[tuple[int, int]]:
    """Kind and size, unpacked, of each page that lies in a stretch of a file."""
    while start < stop:
        try:
            stream.seek(start)
            fields, n_bytes = _numbers(stream.read(HEADER_BYTES))
            kind, size, packed = fields[1], fields[2], fields[3]
        except (IndexError, KeyError, ValueError, OverflowError) as error:
            raise CorruptFile(f"{where}: not readable Parquet: no header of a page at byte {start:,}") from error
        if packed < 0:
            raise CorruptFile(f"{where}: not readable Parquet: a page of {packed:,} bytes at byte {start:,}")
        yield kind, size
        start += n_bytes + packed


def _numbers(content: bytes) -> tuple[dict[int, int], int]:
    """The whole numbers of a struct by their fields, and how many bytes it takes.

    >>> _numbers(bytes([0x15, 4, 0x15, 200, 1, 0x15, 6, 0x4C, 0x15, 2, 0, 0]))
    ({1: 2, 2: 100, 3: 3}, 12)
    """
    found, at, field = dict[int, int](), 0, 0
    while kind := content[at]:
        field, at = _field(content, at, field)
        if kind & 15 in _INTS:
            value, at = _varint(content, at)
            found[field] = value >> 1 ^ -(value & 1)
        else:
            at = _behind(content, at, kind & 15, 0)
    return found, at + 1


def _field(content: bytes, at: int, before: int) -> tuple[int, int]:
    """Number of a field, and where its value begins."""
    step = content[at] >> 4
    if step:
        return before + step, at + 1
    value, at = _varint(content, at + 1)
    return value >> 1 ^ -(value & 1), at


def _behind(content: bytes, at: int, kind: int, depth: int) -> int:
    """Where what stands behind a value begins."""
    if depth > _MOST_NESTED:
        raise ValueError("nested too deeply")
    if kind in _BOOLS:
        return at
    if kind in _INTS:
        return _varint(content, at)[1]
    if kind in {_BYTE, _DOUBLE}:
        return at + (1 if kind == _BYTE else 8)
    if kind == _BINARY:
        n_bytes, at = _varint(content, at)
        return at + n_bytes
    if kind == _STRUCT:
        return _behind_struct(content, at, depth)
    raise ValueError("headers of pages hold no lists")


def _behind_struct(content: bytes, at: int, depth: int) -> int:
    while kind := content[at]:
        _, at = _field(content, at, 0)
        at = _behind(content, at, kind & 15, depth + 1)
    return at + 1


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, least first, and the place behind it."""
    value = shift = 0
    while content[at] > 127:
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > 63:
            raise ValueError("no number")
    return value | content[at] << shift, at + 1
