"""The footer of a Parquet file: the byte ranges of its column chunks and their numbers of values,
checked against limits before Arrow reads it: its accessors of a footer's numbers end the process
where these contradict each other.

Refused are footers that are outside their file or longer than `MOST_FOOTER_BYTES`, chunks that
overlap, are outside the file or in other files, schemas nested deeper than `MOST_NESTED`, more rows
than the file's bytes allow (`VALUES_OF_A_BYTE`), and a list that could hold more items than its
chunk has bytes and than `MOST_ITEMS`.
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

from lc_assets.errors import CorruptFile
from lc_assets.formats.parquet.thrift import Fields, number_of, read_struct

MAGIC = b"PAR1"
TAIL_BYTES = 64 << 10
"""Bytes of the first read from a file's end. They cover most footers, and all of a small file,
which a server may send only as a whole.
"""

MOST_FOOTER_BYTES = 16 << 20
REMEMBERED_BYTES = 16 << 10
REMEMBERED = 1024
"""Footers that are kept, about 10 kB each, and how long they may be: a stage opens a table several
times, and the next stage opens those of all shards again.
"""

MOST_NESTED = 32
"""Maximum nesting of groups; a list of structs has three."""

MOST_ITEMS = 1 << 24
"""Maximum items in a row of a small chunk, and maximum rows of a small file."""

VALUES_OF_A_BYTE = 8
"""Maximum rows per byte of a large file: a flag takes a bit."""

STRING = 6
FIXED_STRING = 7
_REQUIRED = 0
_REPEATED = 2


class Leaf(NamedTuple):
    """A column of values.

    Attributes:
        name: its path, with dots.
        type: its number in ``parquet.thrift``.
        width: bytes of a value, where they are stated (`FIXED_STRING`); else 0.
        is_repeated: whether a row may hold several.
        is_optional: whether a row may hold none.
    """

    name: str
    type: int
    width: int
    is_repeated: bool
    is_optional: bool


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
    n_bytes: int


def read_footer(file: BinaryIO) -> Footer:
    """Read and check a file's footer; the file's position stays where it is.

    Raises:
        CorruptFile: when there is none, or it states something impossible; does not name the file.
    """
    place = file.tell()
    try:
        return _footer(file, file.seek(0, os.SEEK_END))
    finally:
        file.seek(place)


def _footer(file: BinaryIO, n_bytes: int) -> Footer:
    most = min(n_bytes - 12, MOST_FOOTER_BYTES)
    tail = _last(file, n_bytes, min(n_bytes, TAIL_BYTES))
    size = int.from_bytes(tail[-8:-4], "little")
    if most < 0 or tail[-4:] != MAGIC:
        raise CorruptFile("does not end as Parquet does")
    if size > most:
        raise CorruptFile(f"states a footer of {size:,} bytes; at most {most:,} are read")
    if size + 8 > len(tail):
        tail = _last(file, n_bytes, size + 8)
    content = tail[-8 - size : -8]
    return _again(content, n_bytes) if size <= REMEMBERED_BYTES else _checked(content, n_bytes)


def _checked(content: bytes, n_bytes: int) -> Footer:
    """The footer with this content, of a file of ``n_bytes``."""
    fields, _ = read_struct(content, 0)
    leaves, groups = list(_leaves(_structs(fields, 2))), _structs(fields, 4)
    n_rows, stated = sum(number_of(group, 3) for group in groups), number_of(fields, 3)
    if n_rows != stated:
        raise CorruptFile(f"promises {stated:,} rows, and {n_rows:,} in its row groups")
    most_rows = max(MOST_ITEMS, n_bytes * VALUES_OF_A_BYTE)
    if n_rows > most_rows:
        raise CorruptFile(
            f"promises {n_rows:,} rows in {n_bytes:,} bytes; at most {most_rows:,} are read"
        )
    chunks = [_chunks(group, leaves) for group in groups]
    _require_apart([chunk for group in chunks for chunk in group], n_bytes - 8 - len(content))
    return Footer(leaves, chunks, n_bytes)


_again = lru_cache(maxsize=REMEMBERED)(_checked)


def _last(file: BinaryIO, n_bytes: int, n_last: int) -> bytes:
    file.seek(n_bytes - n_last)
    return file.read(n_last)


def _leaves(elements: list[Fields]) -> Iterator[Leaf]:
    """Walk the schema, a tree in depth-first order: an element states how many of the following are
    its children.
    """
    open_groups: list[list[Any]] = []  # children to come, whether repeated, whether optional, name
    for place, element in enumerate(elements):
        while open_groups and not open_groups[-1][0]:
            open_groups.pop()
        if place and not open_groups:
            raise CorruptFile("its schema has more elements than its root says")
        is_repeated = bool(place) and (element.get(3) == _REPEATED or open_groups[-1][1])
        is_optional = bool(place) and (element.get(3) != _REQUIRED or open_groups[-1][2])
        if place:
            open_groups[-1][0] -= 1
        name = _typed(element, 4, bytes).decode("utf-8")
        n_children = number_of(element, 5, 0)
        if n_children > 0 or not place:
            open_groups.append([n_children, is_repeated, is_optional, name])
            if len(open_groups) > MOST_NESTED:
                raise CorruptFile(f"its schema is nested deeper than {MOST_NESTED} groups")
        else:
            path = ".".join([*(group[3] for group in open_groups[1:]), name])
            width = number_of(element, 2, 0)
            yield Leaf(path, number_of(element, 1), width, is_repeated, is_optional)
    if any(left for left, *_ in open_groups):
        raise CorruptFile("its schema lacks elements")


def _chunks(group: Fields, leaves: list[Leaf]) -> list[Chunk]:
    columns, n_rows = _structs(group, 1), number_of(group, 3)
    if len(columns) != len(leaves):
        raise CorruptFile(f"a row group has {len(columns):,} columns, the schema {len(leaves):,}")
    return [_chunk(column, leaf, n_rows) for column, leaf in zip(columns, leaves, strict=True)]


def _chunk(column: Fields, leaf: Leaf, n_rows: int) -> Chunk:
    stated = _typed(column, 3, dict)
    if 1 in column or number_of(stated, 1) != leaf.type:
        raise CorruptFile(
            f"{leaf.name}: lies in another file, or has another type than the schema says"
        )
    data, dictionary = number_of(stated, 9), number_of(stated, 11, 0)
    start = min(data, dictionary or data)
    n_bytes, n_values = number_of(stated, 7), number_of(stated, 5)
    most = max(MOST_ITEMS, n_bytes) if leaf.is_repeated else 0
    if not n_rows <= n_values <= n_rows + most:
        raise CorruptFile(
            f"{leaf.name}: promises {n_values:,} values for {n_rows:,} rows; write it in smaller "
            "row groups"
        )
    return Chunk(leaf, start, n_bytes, n_values, n_rows, number_of(stated, 4))


def _require_apart(chunks: list[Chunk], end: int) -> None:
    spans = sorted(
        (chunk.start, chunk.start + chunk.n_bytes) for chunk in chunks if chunk.n_values
    )  # others are at 0
    if (spans and spans[0][0] < len(MAGIC)) or any(
        chunk.start + chunk.n_bytes > end for chunk in chunks
    ):
        raise CorruptFile("a column lies outside the file")
    if any(before[1] > behind[0] for before, behind in pairwise(spans)):
        raise CorruptFile("two columns lie in the same place")


def _structs(fields: Fields, number: int) -> list[Fields]:
    items: list[Fields] = _typed(fields, number, list)
    if not all(isinstance(item, dict) for item in items):
        raise CorruptFile("its metadata are not Parquet's")
    return items


def _typed(fields: Fields, number: int, kind: type) -> Any:
    value = fields.get(number, kind())
    if not isinstance(value, kind):
        raise CorruptFile("its metadata are not Parquet's")
    return value
