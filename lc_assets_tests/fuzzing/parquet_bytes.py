"""Parquet written by hand, byte by byte: what a library refuses to write, a stranger does not."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

BYTE_ARRAY, INT64 = 6, 2
PLAIN, RLE_DICTIONARY, RLE = 0, 8, 3
OPTIONAL, REPEATED = 1, 2


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


class Long(int):
    """A number that the format stores as 64 bits."""


def thrift(value: Any) -> tuple[int, bytes]:
    """A value's type and its bytes: int, `Long`, bytes, list, or a struct as a dictionary by field
    number.
    """
    if isinstance(value, int):
        return 6 if isinstance(value, Long) else 5, varint(
            (value << 1) ^ (value >> 63) if value >= 0 else (-value << 1) - 1
        )
    if isinstance(value, bytes):
        return 8, varint(len(value)) + value
    if isinstance(value, Mapping):
        out = bytearray()
        for number, field in sorted(value.items()):
            kind, content = thrift(field)
            out += bytes([kind]) + varint(number << 1) + content
        return 12, bytes(out) + b"\0"
    parts = [thrift(item) for item in value]
    kind = parts[0][0] if parts else 12
    return 9, bytes([0xF0 | kind]) + varint(len(parts)) + b"".join(content for _, content in parts)


def encoded(fields: Mapping[int, Any]) -> bytes:
    return thrift(fields)[1]


class Page(NamedTuple):
    """A page: its content as it lies in the file, how long it says that is unpacked, and its
    header's own part.
    """

    content: bytes
    unpacked: int
    said: Mapping[int, Any]
    kind: int = 0

    @property
    def bytes(self) -> bytes:
        part = {0: 5, 2: 7}[self.kind]
        return (
            encoded({1: self.kind, 2: self.unpacked, 3: len(self.content), part: self.said})
            + self.content
        )


def data_page(content: bytes, n_values: int, *, unpacked: int = -1, encoding: int = PLAIN) -> Page:
    return Page(
        content,
        len(content) if unpacked < 0 else unpacked,
        {1: n_values, 2: encoding, 3: RLE, 4: RLE},
    )


def dictionary_page(content: bytes, n_values: int, *, unpacked: int = -1) -> Page:
    return Page(
        content, len(content) if unpacked < 0 else unpacked, {1: n_values, 2: PLAIN}, kind=2
    )


class Column(NamedTuple):
    """A column chunk: schema elements of one leaf, its pages, and how many values they promise."""

    elements: Sequence[Mapping[int, Any]]
    pages: Sequence[Page]
    n_values: int
    codec: int = 0


def flat(
    name: bytes,
    pages: Sequence[Page],
    n_values: int,
    *,
    kind: int = BYTE_ARRAY,
    codec: int = 0,
    optional: bool = False,
) -> Column:
    text = {6: 0} if kind == BYTE_ARRAY else {}
    return Column([{1: kind, 3: int(optional), 4: name, **text}], pages, n_values, codec)


def listed(
    name: bytes, pages: Sequence[Page], n_values: int, *, kind: int = BYTE_ARRAY, codec: int = 0
) -> Column:
    """A required list of required items: one repetition level and one definition level."""
    text = {6: 0} if kind == BYTE_ARRAY else {}
    elements = [
        {3: 0, 4: name, 5: 1, 6: 3},
        {3: REPEATED, 4: b"list", 5: 1},
        {1: kind, 3: 0, 4: b"element", **text},
    ]
    return Column(elements, pages, n_values, codec)


def levels(*runs: tuple[int, int]) -> bytes:
    """Levels of one bit as runs ``(how many, which)``, with their length before them."""
    content = b"".join(varint(count << 1) + bytes([level]) for count, level in runs)
    return struct.pack("<I", len(content)) + content


def parquet_bytes(columns: Sequence[Column], n_rows: int) -> bytes:
    """A file of one row group."""
    out, chunks = bytearray(b"PAR1"), []
    for column in columns:
        start, name = len(out), [element[4] for element in column.elements]
        places = []
        for page in column.pages:
            places.append((page.kind, len(out)))
            out += page.bytes
        data = next(place for kind, place in places if kind == 0)
        dictionary = {11: Long(places[0][1])} if places[0][0] == 2 else {}
        size = Long(len(out) - start)
        leaf = column.elements[-1][1]
        said = {
            1: leaf,
            2: [PLAIN],
            3: name,
            4: column.codec,
            5: Long(column.n_values),
            6: size,
            7: size,
            9: Long(data),
            **dictionary,
        }
        chunks.append({2: Long(start), 3: said})
    root = {4: b"schema", 5: len(columns)}
    schema = [root, *(element for column in columns for element in column.elements)]
    footer = encoded(
        {1: 1, 2: schema, 3: Long(n_rows), 4: [{1: chunks, 2: Long(len(out)), 3: Long(n_rows)}]}
    )
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"


def text(*words: bytes) -> bytes:
    """Strings as pages store them."""
    return b"".join(struct.pack("<I", len(word)) + word for word in words)
