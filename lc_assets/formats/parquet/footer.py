"""The footer of a Parquet file: the byte ranges of its column chunks and their numbers of values,
checked against limits.

Refused are footers that are outside their file or longer than `MOST_FOOTER_BYTES`, chunks that
overlap, are outside the file or in other files, schemas nested deeper than `MOST_NESTED`, more rows
than the file's bytes allow (`VALUES_OF_A_BYTE`), and a list that could hold more items than its
chunk has bytes and than `MOST_ITEMS`.
"""

import os
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO, Final, NamedTuple

from lc_assets.errors import CorruptFile
from lc_assets.formats.parquet.thrift import Shape, read_struct

MAGIC: Final = b"PAR1"
TAIL_BYTES: Final = 64 << 10
"""Bytes of the first read from a file's end. They cover most footers, and all of a small file,
which a server may send only as a whole.
"""

MOST_FOOTER_BYTES: Final = 16 << 20
MOST_NESTED: Final = 32
"""Maximum nesting of groups; a list of structs has three."""

MOST_ITEMS: Final = 1 << 24
"""Maximum items in a row of a small chunk, and maximum rows of a small file."""

VALUES_OF_A_BYTE: Final = 8
"""Maximum rows per byte of a large file: a flag takes a bit."""

BYTE_ARRAY: Final = 6
FIXED_BYTE_ARRAY: Final = 7
_REQUIRED: Final = 0
_REPEATED: Final = 2

_SCHEMA: Final[Shape] = {1: None, 2: None, 3: None, 4: None, 5: None}
_CHUNK: Final[Shape] = {
    1: None,
    3: {1: None, 4: None, 5: None, 6: None, 7: None, 9: None, 11: None},
}
_FOOTER: Final[Shape] = {2: _SCHEMA, 3: None, 4: {1: _CHUNK, 3: None}}


class Leaf(NamedTuple):
    """A column of values.

    Attributes:
        name: its path, with dots.
        type: its number in ``parquet.thrift``.
        width: bytes of a value, where they are stated (`FIXED_BYTE_ARRAY`); else 0.
        is_repeated: whether a row may hold several.
        is_optional: whether a row may hold none.
    """

    name: str
    type: int
    width: int
    is_repeated: bool
    is_optional: bool

    @property
    def is_text(self) -> bool:
        """Whether a value may be long."""
        return self.type in {BYTE_ARRAY, FIXED_BYTE_ARRAY}


class Chunk(NamedTuple):
    """The pages of one leaf in one row group: ``n_bytes`` from ``start`` on, which hold
    ``n_values``, nulls included.
    """

    leaf: Leaf
    start: int
    n_bytes: int
    n_values: int
    n_rows: int
    codec: int


class Footer(NamedTuple):
    """The footer of a file of ``n_bytes``; ``groups`` are its row groups, a chunk for each leaf."""

    leaves: list[Leaf]
    groups: list[list[Chunk]]
    n_rows: int
    n_bytes: int


def read_footer(file: BinaryIO) -> Footer:
    """Read and check a file's footer; the file's position stays where it is.

    Raises:
        CorruptFile: when there is none, or it states something impossible; does not name the file.
    """
    place = file.tell()
    try:
        n_bytes = file.seek(0, os.SEEK_END)
        return _footer(file, n_bytes)
    finally:
        file.seek(place)


def _footer(file: BinaryIO, n_bytes: int) -> Footer:
    if n_bytes < 12:
        raise CorruptFile(f"{n_bytes:,} bytes are no Parquet")
    tail = _last(file, n_bytes, min(n_bytes, TAIL_BYTES))
    (size,) = struct.unpack("<I", tail[-8:-4])
    if tail[-4:] != MAGIC:
        raise CorruptFile("does not end as Parquet does")
    if size > min(n_bytes - 12, MOST_FOOTER_BYTES):
        raise CorruptFile(
            f"states a footer of {size:,} bytes; at most {min(n_bytes - 12, MOST_FOOTER_BYTES):,} "
            "are read"
        )
    if size + 8 > len(tail):
        tail = _last(file, n_bytes, size + 8)
    found, _ = read_struct(tail[-8 - size : -8], 0, _FOOTER)
    leaves = list(_leaves(_typed(found.get(2), list)))
    groups = [_chunks(group, leaves) for group in _structs(found.get(4, []))]
    n_rows = sum(_number(group, 3) for group in found.get(4, []))
    if n_rows != _number(found, 3):
        raise CorruptFile(f"promises {_number(found, 3):,} rows, and {n_rows:,} in its row groups")
    _bound([chunk for group in groups for chunk in group], n_rows, n_bytes, n_bytes - 8 - size)
    return Footer(leaves, groups, n_rows, n_bytes)


def _last(file: BinaryIO, n_bytes: int, wanted: int) -> bytes:
    file.seek(n_bytes - wanted)
    return file.read(wanted)


def _leaves(elements: list[Any]) -> Iterator[Leaf]:
    """Walk the schema, a tree in depth-first order: an element states how many of the following are
    its children.
    """
    open_groups: list[list[Any]] = []  # children to come, whether repeated, whether optional, name
    for place, element in enumerate(_structs(elements)):
        while open_groups and not open_groups[-1][0]:
            open_groups.pop()
        if place and not open_groups:
            raise CorruptFile("its schema has more elements than its root says")
        if open_groups:
            open_groups[-1][0] -= 1
        name = _name(element)
        is_repeated = bool(place) and (
            element.get(3) == _REPEATED or bool(open_groups and open_groups[-1][1])
        )
        is_optional = bool(place) and (
            element.get(3) != _REQUIRED or bool(open_groups and open_groups[-1][2])
        )
        n_children = _number(element, 5, 0)
        if n_children > 0 or not place:
            open_groups.append([n_children, is_repeated, is_optional, name])
            if len(open_groups) > MOST_NESTED:
                raise CorruptFile(f"its schema is nested deeper than {MOST_NESTED} groups")
        else:
            path = ".".join([*(group[3] for group in open_groups[1:]), name])
            yield Leaf(path, _number(element, 1), _number(element, 2, 0), is_repeated, is_optional)
    if any(left for left, *_ in open_groups):
        raise CorruptFile("its schema lacks elements")


def _name(element: dict[int, Any]) -> str:
    try:
        return str(_typed(element.get(4, b""), bytes), "utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFile("a column's name is not UTF-8") from error


def _chunks(group: dict[int, Any], leaves: list[Leaf]) -> list[Chunk]:
    columns, n_rows = _structs(group.get(1, [])), _number(group, 3)
    if len(columns) != len(leaves):
        raise CorruptFile(f"a row group has {len(columns):,} columns, the schema {len(leaves):,}")
    return [_chunk(column, leaf, n_rows) for column, leaf in zip(columns, leaves, strict=True)]


def _chunk(column: dict[int, Any], leaf: Leaf, n_rows: int) -> Chunk:
    said = _typed(column.get(3), dict)
    if 1 in column or _number(said, 1) != leaf.type:
        raise CorruptFile(
            f"{leaf.name}: lies in another file, or has another type than the schema says"
        )
    data, dictionary = _number(said, 9), _number(said, 11, 0)
    chunk = Chunk(
        leaf,
        min(data, dictionary) if dictionary else data,
        _number(said, 7),
        _number(said, 5),
        n_rows,
        _number(said, 4),
    )
    most = max(MOST_ITEMS, chunk.n_bytes) if leaf.is_repeated else 0
    if not n_rows <= chunk.n_values <= n_rows + most:
        raise CorruptFile(
            f"{leaf.name}: promises {chunk.n_values:,} values for {n_rows:,} rows; write it in "
            "smaller row groups"
        )
    return chunk


def _bound(chunks: list[Chunk], n_rows: int, n_bytes: int, end: int) -> None:
    most = max(MOST_ITEMS, n_bytes * VALUES_OF_A_BYTE)
    if n_rows > most:
        raise CorruptFile(
            f"promises {n_rows:,} rows in {n_bytes:,} bytes; at most {most:,} are read"
        )
    spans = sorted(
        (chunk.start, chunk.start + chunk.n_bytes) for chunk in chunks if chunk.n_values
    )  # others are at 0
    if (spans and spans[0][0] < len(MAGIC)) or any(
        chunk.start + chunk.n_bytes > end for chunk in chunks
    ):
        raise CorruptFile("a column lies outside the file")
    if any(before[1] > behind[0] for before, behind in pairwise(spans)):
        raise CorruptFile("two columns lie in the same place")


def _structs(items: Any) -> list[dict[int, Any]]:
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise CorruptFile("its metadata are not Parquet's")
    return items


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise CorruptFile("its metadata are not Parquet's")
    return value


def _number(fields: dict[int, Any], number: int, default: int | None = None) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int) or value < 0:
        raise CorruptFile(
            f"its metadata state {value!r} where a size or a number of values belongs"
        )
    return value
