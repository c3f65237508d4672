"""The pages of a column chunk: their headers, the memory that decoding a number of rows may take,
and the strings of some rows.

Parsing a header takes about ten microseconds, reading its page a thousand. Pages of
strings stored by the differences of their lengths (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY) state
within themselves how many lengths there are, behind the levels and beneath the compression, and
Arrow allocates for that number: eight bytes can request eight gigabytes. Few writers make such
pages; they are decompressed here to check the number.

The number of rows per batch is chosen in `formats.parquet.opening`.
Source: ``Encodings.md`` and ``parquet.thrift`` of apache/parquet-format.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.footer import STRING, Chunk
from lc_assets.formats.parquet.thrift import number_of, read_struct, varint

MOST_PAGE_BYTES = 256 << 20
"""Writers end a page after the value that exceeds a megabyte. The longest document that is read has
this size.
"""

MOST_HEADER_BYTES = 1 << 16
_FIRST_BYTES = 256
"""Headers with statistics of short strings are shorter."""

_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)
_PLAIN = 0
_DICTIONARY_INDICES = (2, 8)
DELTA_LENGTH_STRINGS = 6
DELTA_STRINGS = 7

_NOT_COMPRESSED = 0
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}

Content = bytes | memoryview
ReadAt = Callable[[int, int], Content]
"""Reads bytes of a file, given an offset and a maximum size."""


class Pages(NamedTuple):
    """The contents of a chunk's page headers.

    Attributes:
        chunk: the column chunk.
        sizes: ``(values, bytes)`` of each page whose values are stored one by one.
        longest: maximum bytes of a value that shares them with another: by a dictionary index,
            or by storing the difference from the value before; 0 where there is none.
        has_lengths: whether strings of a page are stored after their lengths, which Arrow does not
            read as a dictionary.
    """

    chunk: Chunk
    sizes: list[tuple[int, int]]
    longest: int
    has_lengths: bool

    def bytes_of(self, n_rows: int) -> int:
        """Maximum bytes of ``n_rows`` consecutive rows. A row that may have several values is
        assumed to have all of them.
        """
        several = self.chunk.n_values - self.chunk.n_rows if self.chunk.leaf.is_repeated else 0
        return (n_rows + several) * self.longest + _widest(self.sizes, n_rows + several)


class _Page(NamedTuple):
    """A page's header: its kind, its size packed and unpacked, its values and their encoding; of
    the second version, how many bytes of levels precede the values, and whether these are packed.
    """

    kind: int
    unpacked: int
    packed: int
    n_values: int = 0
    encoding: int = 0
    level_bytes: int = 0
    is_packed: bool = True


def walk(read_at: ReadAt, chunk: Chunk, *, most_longest: int) -> Pages:
    """Read the header of each page of a chunk.

    Args:
        read_at: reads bytes of the file.
        chunk: the column chunk.
        most_longest: a dictionary that could hold a longer string is decompressed to find out;
            otherwise its longest string is assumed.

    Raises:
        CorruptFile: when a header is invalid, or states more bytes than `MOST_PAGE_BYTES` or than
            the chunk has, or more values; does not name the file.
    """
    at, end, left = chunk.start, chunk.start + chunk.n_bytes, chunk.n_values
    sizes: list[tuple[int, int]] = []
    dictionary = longest = 0
    has_lengths = False
    while left > 0:
        page, at = _read_page(read_at, at, end)
        if page.kind == _DICTIONARY:
            dictionary = _longest_entry(read_at, at, page, chunk, most_longest)
        elif page.kind in {_DATA, _DATA_2}:
            _require(
                page.n_values <= left,
                f"{page.n_values:,} values in a page, where {left:,} are left",
            )
            left -= page.n_values
            if page.encoding in {DELTA_STRINGS, DELTA_LENGTH_STRINGS}:
                _require_lengths(read_at(at, page.packed), page, chunk)
                has_lengths = True
            if page.encoding in _DICTIONARY_INDICES:
                longest = max(longest, dictionary)
            elif page.encoding == DELTA_STRINGS:
                longest = max(longest, page.unpacked)
            else:
                sizes.append((page.n_values, page.unpacked))
        at += page.packed
    return Pages(chunk, sizes, longest, has_lengths)


def strings_of(read_at: ReadAt, chunk: Chunk, rows: Sequence[int]) -> list[pa.Array] | None:
    """The strings of some ascending rows of a chunk, as bytes, an array for each page that holds
    any; others are not decompressed.

    Returns:
        None where the chunk is not as texts are written here: plain, in pages of the first version,
        one string in each row.

    Raises:
        CorruptFile: when a page is invalid; does not name the file.
    """
    found, row, at, end = list[pa.Array](), 0, chunk.start, chunk.start + chunk.n_bytes
    while row < chunk.n_rows:
        page, at = _read_page(read_at, at, end)
        own = rows[bisect_left(rows, row) : bisect_left(rows, row + page.n_values)]
        if (page.kind, page.encoding) != (_DATA, _PLAIN) or not chunk.leaf.is_optional:
            return None
        if own:
            content = _plain(read_at(at, page.packed), chunk.codec, page.unpacked)
            begin = 4 + int.from_bytes(content[:4], "little")
            levels, run = bytes(content[4:begin]), page.n_values << 1
            if levels[-1:] != b"\1" or varint(levels, 0) != (run, len(levels) - 1):  # of nulls
                return None
            strings = _plain_strings(memoryview(content), begin, [place - row for place in own])
            found.append(pa.array(strings, pa.binary()))
        row, at = row + page.n_values, at + page.packed
    return found


def _plain_strings(content: memoryview, at: int, places: Sequence[int]) -> Iterator[memoryview]:
    """Some of the strings that lie one behind the other, each after its length."""
    number = 0
    for place in places:
        while number <= place:
            begin = at + 4
            at = begin + int.from_bytes(content[at:begin], "little")
            number += 1
        _require(at <= len(content), "strings that are cut short")
        yield content[begin:at]


def _read_page(read_at: ReadAt, at: int, end: int) -> tuple[_Page, int]:
    """The header of a page, checked, and where it ends. A small piece is read first; statistics may
    make it long.
    """
    try:
        header, size = read_struct(read_at(at, min(_FIRST_BYTES, end - at)), 0)
    except CorruptFile:
        header, size = read_struct(read_at(at, min(MOST_HEADER_BYTES, end - at)), 0)
    at += size
    kind, unpacked, packed = (number_of(header, field) for field in (1, 2, 3))
    _require(
        unpacked <= MOST_PAGE_BYTES,
        f"a page of {unpacked:,} bytes; at most {MOST_PAGE_BYTES:,} are read",
    )
    _require(packed <= end - at, f"a page of {packed:,} bytes, where {end - at:,} are left")
    own = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}.get(kind, 0), {})
    _require(isinstance(own, dict), "a page without a header")
    if kind == _DATA_2:
        level_bytes = number_of(own, 5) + number_of(own, 6)
        _require(level_bytes <= min(unpacked, packed), "levels that are longer than their page")
        second = level_bytes, bool(own.get(7, True))
        return _Page(kind, unpacked, packed, number_of(own, 1), number_of(own, 4), *second), at
    if kind in {_DATA, _DICTIONARY}:
        return _Page(kind, unpacked, packed, number_of(own, 1), number_of(own, 2)), at
    return _Page(kind, unpacked, packed), at


def _longest_entry(read_at: ReadAt, at: int, page: _Page, chunk: Chunk, most_longest: int) -> int:
    """Maximum bytes of a dictionary's entry. Its strings are looked at only where one of them could
    be longer than ``most_longest``.
    """
    _require(page.n_values <= page.unpacked, "a dictionary with more entries than bytes")
    if chunk.leaf.type != STRING:
        return chunk.leaf.width
    most = max(page.unpacked - 4 * page.n_values, 0)
    if most <= most_longest or chunk.codec not in {*_CODECS, _NOT_COMPRESSED}:
        return most
    plain = _plain(read_at(at, page.packed), chunk.codec, page.unpacked)
    at = longest = 0
    while at + 4 <= len(plain):
        size = int.from_bytes(plain[at : at + 4], "little")
        at += 4 + size
        longest = max(longest, size)
    return min(longest, page.unpacked)


def _require_lengths(content: Content, page: _Page, chunk: Chunk) -> None:
    """Check that a page of strings after their lengths states no more lengths than it has values,
    nulls counted.
    """
    _require(
        page.encoding != DELTA_STRINGS or not chunk.leaf.is_repeated,
        "strings in lists, stored by their differences: these are not read",
    )
    try:
        values = _values(content, page, chunk)
        end = _lengths_end(values, 0, page.n_values)
        if page.encoding == DELTA_STRINGS:
            _lengths_end(values, end, page.n_values)
    except IndexError as error:
        raise CorruptFile("holds lengths of strings that are cut short") from error


def _values(content: Content, page: _Page, chunk: Chunk) -> Content:
    """The values of a page, after its levels."""
    if page.kind == _DATA_2:
        codec = chunk.codec if page.is_packed else _NOT_COMPRESSED
        return _plain(content[page.level_bytes :], codec, page.unpacked - page.level_bytes)
    plain, at = _plain(content, chunk.codec, page.unpacked), 0
    for _ in range(chunk.leaf.is_repeated + chunk.leaf.is_optional):
        at += 4 + int.from_bytes(plain[at : at + 4], "little")
    return plain[at:]


def _lengths_end(content: Content, at: int, n_values: int) -> int:
    """Where a stream of delta-encoded numbers ends; it may have at most ``n_values``."""
    block, at = varint(content, at)
    n_parts, at = varint(content, at)
    count, at = varint(content, at)
    _, at = varint(content, at)
    per_part = block // n_parts if n_parts else 0
    _require(
        count <= n_values and per_part >= 8 and n_parts <= len(content),
        f"lengths of {count:,} strings in {n_parts:,} parts of {per_part:,}, where there are "
        f"{n_values:,} values",
    )
    left = count - 1
    while left > 0:
        _, at = varint(content, at)
        widths, at = content[at : at + n_parts], at + n_parts
        for width in widths:
            if left <= 0:
                break
            at += width * per_part // 8
            left -= per_part
        if at > len(content):
            raise IndexError
    return at


def _plain(content: Content, codec: int, unpacked: int) -> Content:
    if codec == _NOT_COMPRESSED:
        return content
    _require(codec in _CODECS, f"strings of an encoding that is not read under compression {codec}")
    with library_errors_as_corrupt_file("a page", "does not decompress", system_errors_too=True):
        return memoryview(pa.Codec(_CODECS[codec]).decompress(content, unpacked)).cast("B")


def _widest(sizes: Sequence[tuple[int, int]], n_values: int) -> int:
    """Maximum bytes of the pages that contain ``n_values`` consecutive values: all but two of the
    values fill the pages between the first and the last.

    >>> _widest([(10, 100), (1, 5), (1, 7), (10, 9)], 3)
    116
    >>> _widest([(10, 100), (1, 5), (1, 7), (10, 9)], 4)
    121
    """
    filled = accumulate(sorted(count for count, _ in sizes))
    n_pages = 2 + sum(n <= n_values - 2 for n in filled)
    return sum(sorted((n_bytes for _, n_bytes in sizes), reverse=True)[:n_pages])


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise CorruptFile(f"holds {what}")
