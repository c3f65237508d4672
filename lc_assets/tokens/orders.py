"""Orders and draws of documents: each depends on the document's own key and the seed alone.

A document's *priority* is its keyed hash, uniform on 64 bits; sorting by priority is a uniform
shuffle. Because each document has its own priority, three statements hold exactly, not only in
expectation:

* merging the sources' own orders gives the shuffle of their union;
* the shuffle of the union, restricted to one source, is that source's own order;
* adding, removing or re-reading one source never reorders the documents of the others.

Ties are broken by the smaller id within a source and by the smaller source number between sources;
the probability that any two of 10⁹ documents have equal priorities is below 3 %.

A merged order is two arrays of one length: the source of each row, and the row's number in its
source, ascending per source. `place_of` and `places_of` find rows in it.

Rolling: every row starts at a random token of its document and wraps around to the beginning.

A training window then shows each part of a document equally often at every depth of the context.
Row ``r`` of ``T`` tokens rolled by ``s`` is ``np.roll(r, s)``: the token of column ``c`` moves to
column ``(c + s) mod T``, and the document's first token to column ``s``.

Source: LongCrawl64 (Manifest AI, 2024), "rolled by a random amount".
"""

import bisect
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from lc_assets.arrays import Int64s, Integers, UInt16s, UInt32s, UInt64s
from lc_assets.randomness import keyed_u64

_STRETCH = 4096
"""Rows per read: 24 µs for two mapped arrays; they contain about 48 rows of each of 84
sources.
"""


def priorities(ids: Sequence[str], *, seed: int) -> UInt64s:
    """Priority of each document in the shuffle, uniform on 64 bits.

    >>> priorities(["a", "b"], seed=7)
    array([7580282201264629493,  911624666413390088], dtype=uint64)
    """
    return keyed_u64("shuffle", seed=seed, keys=ids)


def shifts(ids: Sequence[str], *, seed: int, row_tokens: int) -> Int64s:
    """Shift of each document's row: uniform on 0 to ``row_tokens`` - 1.

    Exactly uniform when ``row_tokens`` is a power of two; otherwise off by less than ``row_tokens``
    / 2⁶⁴.

    >>> shifts(["a", "b"], seed=7, row_tokens=65_536)
    array([31651, 14823])
    """
    return (keyed_u64("shift", seed=seed, keys=ids) % np.uint64(row_tokens)).astype(np.int64)


def interleave(
    priorities_by_source: Sequence[UInt64s],
) -> tuple[UInt16s, UInt32s]:
    """Merge the sources' own orders into the global one.

    Args:
        priorities_by_source: each source's priorities in that source's order, so ascending.

    Returns:
        For each row of the global order: the number of its source (uint16) and its number there
        (uint32).

    >>> interleave([np.array([2, 9], np.uint64), np.array([1, 2], np.uint64)])
    (array([1, 0, 1, 0], dtype=uint16), array([0, 0, 1, 1], dtype=uint32))
    """
    lengths = np.array([len(source) for source in priorities_by_source], np.int64)
    # NumPy's stable sort is timsort, which merges runs that are sorted already.
    order = np.argsort(
        np.concatenate([np.zeros(0, np.uint64), *priorities_by_source]), kind="stable"
    )
    source = np.repeat(np.arange(len(lengths), dtype=np.uint16), lengths)[order]
    first_row = np.cumsum(lengths) - lengths
    return source, (order - first_row[source]).astype(np.uint32)


def place_of(sources: Integers, items: Integers, source: int, item: int) -> int | None:
    """Position of one row of one source; None if there is none. Reads only a part of the arrays.

    Args:
        sources: source of each row.
        items: number of each row in its source; ascending within each source.
        source: the source.
        item: the row's number there.

    >>> place_of(np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2]), 1, 2)
    4
    """

    def next_place(begin: int) -> int | None:
        for start in range(begin, len(sources), _STRETCH):
            places = np.flatnonzero(sources[start : start + _STRETCH] == source)
            if len(places):
                return start + int(places[0])
        return None

    def is_behind(begin: int) -> bool:
        place = next_place(begin)
        return place is None or bool(items[place] >= item)

    place = next_place(bisect.bisect_left(range(len(sources)), True, key=is_behind))
    return place if place is not None and items[place] == item else None


def places_of(
    sources: Integers,
    items: Integers,
    source: int,
    chosen: Integers,
) -> Int64s:
    """Positions of many rows of one source, ascending; reads the whole arrays once.

    >>> places_of(np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2]), 1, np.array([2, 0]))
    array([1, 4])
    """
    places = np.flatnonzero(sources == source)
    return places[np.isin(items[places], chosen)]


Row: TypeAlias = UInt16s | UInt32s


def rolled_parts(target: Row, shift: int) -> tuple[Row, Row]:
    """The two parts of ``target`` that get the first and the last tokens of a row rolled right.

    >>> rolled_parts(np.array([7, 4, 21, 12, 5], np.uint16), 3)
    (array([12,  5], dtype=uint16), array([ 7,  4, 21], dtype=uint16))
    """
    right = shift % (len(target) or 1)
    return target[right:], target[:right]
