"""The pages of a column chunk: their headers, and the memory that decoding a number of rows may
take.

Parsing a header takes about ten microseconds, reading its page a thousand. Pages of
strings stored by the differences of their lengths (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY) state
within themselves how many lengths there are, behind the levels and beneath the compression, and
Arrow allocates for that number: eight bytes can request eight gigabytes. Few writers make such
pages; they are decompressed here to check the number.

The number of rows per batch is chosen in `formats.parquet.opening`.
Source: ``Encodings.md`` of apache/parquet-format.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.footer import BYTE_ARRAY, Chunk
from lc_assets.formats.parquet.thrift import Shape, read_struct

DELTA_LENGTH_STRINGS: Final = 6
DELTA_STRINGS: Final = 7


def require_lengths(values: bytes, encoding: int, n_values: int) -> None:
    """Check that a page states no more lengths than it has values.

    Args:
        values: the page, unpacked, from where its levels end.
        encoding: `DELTA_LENGTH_STRINGS` or `DELTA_STRINGS`.
        n_values: values of the page, nulls counted.

    Raises:
        CorruptFile: when it states more lengths than values; does not name the file.
    """
    try:
        end = _stream(values, 0, n_values)
        if encoding == DELTA_STRINGS:
            _stream(values, end, n_values)
    except IndexError as error:
        raise CorruptFile("holds lengths of strings that are cut short") from error


def _stream(content: bytes, at: int, n_values: int) -> int:
    """Where a stream of delta-encoded numbers ends; it may have at most ``n_values``."""
    block, at = _varint(content, at)
    n_parts, at = _varint(content, at)
    count, at = _varint(content, at)
    _, at = _varint(content, at)
    per_part = block // n_parts if n_parts else 0
    if count > n_values or per_part < 8 or n_parts > len(content):
        raise CorruptFile(
            f"holds lengths of {count:,} strings in {n_parts:,} parts of {per_part:,}, where "
            f"there are {n_values:,} values"
        )
    left = count - 1
    while left > 0:
        _, at = _varint(content, at)
        widths, at = content[at : at + n_parts], at + n_parts
        for width in widths:
            if left <= 0:
                break
            at += width * per_part // 8
            left -= per_part
        if at > len(content):
            raise IndexError
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return number, at


MOST_PAGE_BYTES: Final = 256 << 20
"""Writers end a page after the value that exceeds a megabyte. The longest document that is read has
this size.
"""

MOST_HEADER_BYTES: Final = 1 << 16
_FIRST_BYTES: Final = 256
"""Headers with statistics of short strings are shorter."""

_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)
_NAMED: Final = (2, 8)
"""Encodings whose values are indices into a dictionary."""

_CODECS: Final = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_PAGE: Final[Shape] = {
    1: None,
    2: None,
    3: None,
    5: {1: None, 2: None},
    7: {1: None, 2: None},
    8: {1: None, 4: None, 5: None, 6: None, 7: None},
}

ReadAt = Callable[[int, int], bytes]
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
        header, at = _header(read_at, at, end)
        unpacked, packed, said = _sizes(header, end - at)
        kind = header.get(1)
        if kind == _DICTIONARY:
            n_entries = _number(said, 1)
            _require(n_entries <= unpacked, "a dictionary with more entries than bytes")
            dictionary = (
                max(unpacked - 4 * n_entries, 0)
                if chunk.leaf.type == BYTE_ARRAY
                else chunk.leaf.width
            )
            if dictionary > most_longest and chunk.leaf.type == BYTE_ARRAY:
                dictionary = _longest(read_at(at, packed), chunk.codec, unpacked)
        elif kind in {_DATA, _DATA_2}:
            n_values = _number(said, 1)
            _require(n_values <= left, f"{n_values:,} values in a page, where {left:,} are left")
            left -= n_values
            encoding = _number(said, 2 if kind == _DATA else 4)
            if encoding in {DELTA_STRINGS, DELTA_LENGTH_STRINGS}:
                _require(
                    encoding != DELTA_STRINGS or not chunk.leaf.is_repeated,
                    "strings in lists, stored by their differences: these are not read",
                )
                require_lengths(_values(read_at(at, packed), header, chunk), encoding, n_values)
                has_lengths = True
            if encoding in _NAMED:
                longest = max(longest, dictionary)
            elif encoding == DELTA_STRINGS:
                longest = max(longest, unpacked)
            else:
                sizes.append((n_values, unpacked))
        at += packed
    return Pages(chunk, sizes, longest, has_lengths)


def _header(read_at: ReadAt, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of a page and where it ends. A small piece is read first; statistics may make it
    long.
    """
    for most in (_FIRST_BYTES, MOST_HEADER_BYTES):
        content = read_at(at, min(most, end - at))
        try:
            header, size = read_struct(content, 0, _PAGE)
        except CorruptFile:
            if most == MOST_HEADER_BYTES or len(content) < most:
                raise
        else:
            return header, at + size
    raise AssertionError  # the last try returns or raises


def _sizes(header: dict[int, Any], left: int) -> tuple[int, int, dict[int, Any]]:
    unpacked, packed = _number(header, 2), _number(header, 3)
    _require(
        unpacked <= MOST_PAGE_BYTES,
        f"a page of {unpacked:,} bytes; at most {MOST_PAGE_BYTES:,} are read",
    )
    _require(packed <= left, f"a page of {packed:,} bytes, where {left:,} are left")
    said = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}.get(_number(header, 1), 0), {})
    _require(isinstance(said, dict), "a page without a header")
    if header.get(1) == _DATA_2:
        levels = _number(said, 5) + _number(said, 6)
        _require(levels <= min(unpacked, packed), "levels that are longer than their page")
    return unpacked, packed, said


def _values(content: bytes, header: dict[int, Any], chunk: Chunk) -> bytes:
    """The values of a page, after its levels."""
    unpacked = _number(header, 2)
    if header[1] == _DATA_2:
        said = header[8]
        levels = _number(said, 5) + _number(said, 6)
        return _plain(content[levels:], chunk.codec if said.get(7, True) else 0, unpacked - levels)
    plain, at = _plain(content, chunk.codec, unpacked), 0
    for _ in range(chunk.leaf.is_repeated + chunk.leaf.is_optional):
        at += 4 + int.from_bytes(plain[at : at + 4], "little")
    return plain[at:]


def _plain(content: bytes, codec: int, unpacked: int) -> bytes:
    if not codec:
        return content
    _require(codec in _CODECS, f"strings of an encoding that is not read under compression {codec}")
    with library_errors_as_corrupt_file("a page", "does not decompress", system_errors_too=True):
        return bytes(pa.Codec(_CODECS[codec]).decompress(content, unpacked, asbytes=True))


def _longest(content: bytes, codec: int, unpacked: int) -> int:
    """Length of the longest string of a dictionary; all of it where it cannot be decompressed
    here.
    """
    if codec not in _CODECS and codec:
        return unpacked
    plain = _plain(content, codec, unpacked)
    at = longest = 0
    while at + 4 <= len(plain):
        size = int.from_bytes(plain[at : at + 4], "little")
        at += 4 + size
        longest = max(longest, size)
    return min(longest, unpacked)


def _widest(sizes: Sequence[tuple[int, int]], n_values: int) -> int:
    """Maximum bytes of the pages that contain ``n_values`` consecutive values.

    >>> _widest([(10, 100), (1, 5), (1, 7), (10, 9)], 3)
    112
    >>> _widest([(10, 100), (1, 5), (1, 7), (10, 9)], 4)
    121
    """
    most = now = inner = first = 0
    for place, (count, n_bytes) in enumerate(sizes):
        now += n_bytes
        inner += count
        # All but two of the values fill the pages between the first and the last.
        while first < place and inner - sizes[first][0] - count > n_values - 2:
            now -= sizes[first][1]
            inner -= sizes[first][0]
            first += 1
        most = max(most, now)
    return most


def _number(fields: dict[int, Any], number: int) -> int:
    value = fields.get(number)
    _require(
        isinstance(value, int) and value >= 0,
        f"{value!r} where a size or a number of values belongs",
    )
    return int(value)  # type: ignore[arg-type]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise CorruptFile(f"holds {what}")
