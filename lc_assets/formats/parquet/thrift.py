"""The part of Thrift's compact protocol that Parquet's footers and page headers use: structs are
read as dictionaries keyed by field number.

Input is untrusted: a length or a count that reaches beyond the bytes is an error, and so is nesting
deeper than `MOST_DEPTH`. Time and memory are linear in the bytes.

Source: ``doc/specs/thrift-compact-protocol.md`` of apache/thrift.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from lc_assets.errors import CorruptFile

MOST_DEPTH: Final = 12
"""Parquet's own structs are nested seven deep."""

Shape: TypeAlias = Mapping[int, Any]
"""The fields of a struct that are kept, by number: of structs and lists of structs, which of
theirs; None for plain values.
"""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS: Final = (4, 5, 6)
_NOTHING: Final[Shape] = {}


def read_struct(
    content: bytes, at: int, shape: Shape, depth: int = 0
) -> tuple[dict[int, Any], int]:
    """Read a struct; return those of its fields that ``shape`` names, and where it ends.

    Integers come as int, strings as bytes, lists as lists, structs as dictionaries.

    >>> read_struct(bytes.fromhex("15 04 18 02 6869 00"), 0, {1: None, 2: None})
    ({1: 2, 2: b'hi'}, 7)

    Raises:
        CorruptFile: when the bytes are not such a struct.
    """
    if depth > MOST_DEPTH:
        raise CorruptFile("metadata is nested too deeply")
    found: dict[int, Any] = {}
    number = 0
    try:
        while head := content[at]:
            at += 1
            if head >> 4:
                number += head >> 4
            else:
                number, at = _integer(content, at)
            kind = head & 15
            if (
                kind in _INTEGERS
            ):  # nine fields in ten are integers and short strings: no call for them
                value: Any = content[at]
                at += 1
                if value < 0x80:
                    value = (value >> 1) ^ -(value & 1)
                else:
                    value, at = _integer(content, at - 1)
            elif kind == _BINARY and content[at] < 0x80:
                size = content[at]
                value = content[at + 1 : at + 1 + size]
                at = _within(content, at + 1 + size)
            else:
                value, at = _value(
                    content, at, kind, shape.get(number) or _NOTHING, depth, is_item=False
                )
            if number in shape:
                found[number] = value
    except IndexError as error:
        raise CorruptFile("metadata is cut short") from error
    return found, at + 1


def _value(  # noqa: PLR0911
    content: bytes, at: int, kind: int, shape: Shape, depth: int, *, is_item: bool
) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(content, at)
    if kind == _BINARY:
        size, at = _count(content, at)
        return content[at : at + size], at + size
    if kind == _STRUCT:
        return read_struct(content, at, shape, depth + 1)
    if kind in {_LIST, _SET}:
        return _list(content, at, shape, depth + 1)
    if kind in {_TRUE, _FALSE}:  # a field's type is its value; an item of a list has a byte
        return (content[at] == _TRUE, at + 1) if is_item else (kind == _TRUE, at)
    if kind == _BYTE:
        return content[at], at + 1
    if kind == _DOUBLE:
        return None, _within(content, at + 8)
    if kind == _MAP:
        return _map(content, at, depth + 1)
    raise CorruptFile(f"metadata contains a value of unknown type {kind}")


def _list(content: bytes, at: int, shape: Shape, depth: int) -> tuple[list[Any], int]:
    if depth > MOST_DEPTH:
        raise CorruptFile("metadata is nested too deeply")
    head = content[at]
    size, at = (head >> 4, at + 1) if head < 0xF0 else _count(content, at + 1)
    kind, items = head & 15, []
    for _ in range(size):
        item, at = _value(content, at, kind, shape, depth, is_item=True)
        items.append(item)
    return items, at


def _map(content: bytes, at: int, depth: int) -> tuple[None, int]:
    size, at = _count(content, at)
    if depth > MOST_DEPTH:
        raise CorruptFile("metadata is nested too deeply")
    kinds = content[at] if size else 0
    at += bool(size)
    for _ in range(size):
        for kind in (kinds >> 4, kinds & 15):
            _, at = _value(content, at, kind, _NOTHING, depth, is_item=True)
    return None, at


def _count(content: bytes, at: int) -> tuple[int, int]:
    """Number of bytes or items that follow. Each takes at least one byte, so there are at most as
    many as bytes.
    """
    size, at = _varint(content, at)
    if size > len(content) - at:
        raise CorruptFile(f"metadata states {size:,} bytes or items and ends before them")
    return size, at


def _within(content: bytes, at: int) -> int:
    if at > len(content):
        raise CorruptFile("metadata is cut short")
    return at


def _integer(content: bytes, at: int) -> tuple[int, int]:
    number = content[at]
    if number < 0x80:
        return (number >> 1) ^ -(number & 1), at + 1
    number, at = _varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise CorruptFile("metadata contains a number of more than 64 bits")
    if number >> 64:
        raise CorruptFile("metadata contains a number of more than 64 bits")
    return number, at
