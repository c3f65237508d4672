"""The part of Thrift's compact protocol that Parquet's footers and page headers use: structs are
read as dictionaries keyed by field number.

Input is untrusted: a length or a count that reaches beyond the bytes is an error, and so is nesting
deeper than `MOST_DEPTH`. Time and memory are linear in the bytes.

Source: ``doc/specs/thrift-compact-protocol.md`` of apache/thrift.
"""

from typing import Any, TypeAlias

from lc_assets.errors import CorruptFile

MOST_DEPTH = 12
"""Parquet's own structs are nested seven deep."""

Fields: TypeAlias = dict[int, Any]
"""Integers are int, strings bytes, lists lists, structs dictionaries; floating point numbers are
left out.
"""

_TRUE, _FALSE, _BYTE, _DOUBLE, _STRING, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12
_INTEGERS = (4, 5, 6)


def read_struct(content: bytes | memoryview, at: int, depth: int = 0) -> tuple[Fields, int]:
    """Read a struct; return its fields, and where it ends.

    >>> read_struct(bytes.fromhex("15 04 18 02 6869 00"), 0)
    ({1: 2, 2: b'hi'}, 7)

    Raises:
        CorruptFile: when the bytes are not such a struct.
    """
    if depth > MOST_DEPTH:
        raise CorruptFile("metadata is nested too deeply")
    fields: Fields = {}
    number = 0
    try:
        while head := content[at]:
            at += 1
            if head >> 4:
                number += head >> 4
            else:
                number, at = _integer(content, at)
            kind = head & 15
            if kind in _INTEGERS:
                fields[number], at = _integer(content, at)
            elif kind in {_TRUE, _FALSE}:  # the type of a field is its value
                fields[number] = kind == _TRUE
            else:
                fields[number], at = _value(content, at, kind, depth)
    except IndexError as error:
        raise CorruptFile("metadata is cut short") from error
    return fields, at + 1


def _value(content: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(content, at)
    if kind == _STRING:
        size, at = _count(content, at)
        return content[at : at + size], at + size
    if kind == _STRUCT:
        return read_struct(content, at, depth + 1)
    if kind == _LIST:
        return _list(content, at, depth + 1)
    if kind in {_TRUE, _FALSE, _BYTE}:
        return content[at], at + 1
    if kind == _DOUBLE:
        return None, at + 8
    raise CorruptFile(f"metadata contains a value of unknown type {kind}")


def _list(content: bytes | memoryview, at: int, depth: int) -> tuple[list[Any], int]:
    if depth > MOST_DEPTH:
        raise CorruptFile("metadata is nested too deeply")
    head, items = content[at], []
    size, at = (head >> 4, at + 1) if head < 0xF0 else _count(content, at + 1)
    for _ in range(size):
        item, at = _value(content, at, head & 15, depth)
        items.append(item)
    return items, at


def _count(content: bytes | memoryview, at: int) -> tuple[int, int]:
    """Number of bytes or items that follow. Each takes at least one byte, so there are at most as
    many as bytes.
    """
    size, at = varint(content, at)
    if size > len(content) - at:
        raise CorruptFile(f"metadata states {size:,} bytes or items and ends before them")
    return size, at


def _integer(content: bytes | memoryview, at: int) -> tuple[int, int]:
    number = content[at]
    if number < 0x80:  # nine in ten
        return (number >> 1) ^ -(number & 1), at + 1
    number, at = varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def varint(content: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read a number of up to 70 bits, the lowest first; return it, and where it ends."""
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return number, at


def number_of(fields: Fields, number: int, default: int | None = None) -> int:
    """A field that is a size or a number of values.

    Raises:
        CorruptFile: when it is missing without a default, negative, or not an integer.
    """
    value = fields.get(number, default)
    if not isinstance(value, int) or value < 0:
        raise CorruptFile(f"holds {value!r} where a size or a number of values belongs")
    return value
