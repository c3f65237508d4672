"""Finding a place in an interleaving: where the row 17 of source 3 stands, without reading what
stands before it.

An interleaving is two arrays of one length: which source stands at a place, and which of its items.
The items of each source ascend along it, as in the global order and in a mix. So the place of one
is found by looking at a stretch where it should be, finding there items of the source, and going on
before or behind them in steps that grow.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

STRETCH: Final = 4096
"""Places that are looked at at once: 24 µs for two mapped arrays, and of 84 sources some 48 items
are among them.
"""


def place_of(
    sources: NDArray[np.integer],
    items: NDArray[np.integer],
    source: int,
    item: int,
    *,
    n_items: int = 0,
) -> int | None:
    """Where one item of one source stands; None when it stands nowhere.

    Args:
        sources: which source, per place.
        items: which of its items, per place; ascending within each source.
        source: the source.
        item: its item.
        n_items: how many items the source has, if that is known: they lie about evenly, so it is
            looked there first.

    >>> place_of(np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2]), 1, 2)
    4
    """
    begin, end = 0, len(sources)
    look = (item * end) // n_items - STRETCH // 2 if n_items else end // 2
    reach = STRETCH
    while begin < end:
        look = max(begin, min(look, end - 1))
        places = _next_of(sources, source, look, end)
        if not len(places) or item < items[places[0]]:
            # Not behind `look`: step back, further each time, until a stretch begins before the
            # item.
            end, look, reach = look, look - reach, 4 * reach
        elif item > items[places[-1]]:
            begin = int(places[-1]) + 1
            look, reach = begin + reach - STRETCH, 4 * reach
            if look >= end:
                look = (begin + end) // 2
        else:
            at = int(np.searchsorted(items[places], item))
            return int(places[at]) if items[places[at]] == item else None
    return None


def places_of(
    sources: NDArray[np.integer],
    items: NDArray[np.integer],
    source: int,
    wanted: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Where many items of one source stand, ascending, whatever their order along it: one pass over
    all places.

    >>> places_of(np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2]), 1, np.array([2, 0]))
    array([1, 4])
    """
    places = np.flatnonzero(sources == source)
    return places[np.isin(items[places], wanted)]


def _next_of(sources: NDArray[np.integer], source: int, begin: int, end: int) -> NDArray[np.int64]:
    """Places of a source in the first stretch from ``begin`` on that has any; none when there are
    none before ``end``.
    """
    length = STRETCH
    while begin < end:
        places = np.flatnonzero(sources[begin : min(begin + length, end)] == source)
        if len(places):
            return places + begin
        begin, length = begin + length, 2 * length
    return np.empty(0, np.int64)
