"""Dealing out segments of documents to different rows: compiled. The plain twin, and the rule, are
in `lc_assets.packing.segments`.
"""

import numpy as np
from jaxtyping import Int64

from lc_assets.compiling import compiled


@compiled
def deal(
    lengths: Int64[np.ndarray, " segment"],
    first: Int64[np.ndarray, " boundary"],
    n_rows: int,
    row_tokens: int,
    row: Int64[np.ndarray, " segment"],
) -> int:
    """Write the row of each segment.

    Args:
        lengths: tokens of each segment, 1 to ``row_tokens``; a document's stand together, the
            longest first.
        first: of each document, its first segment; then how many segments there are.
        n_rows: rows that there are to begin with.
        row_tokens: length of a row.
        row: filled in.

    Returns:
        How many rows there are in the end.
    """
    used = np.zeros(n_rows + len(lengths), np.int64)
    heap = np.arange(
        n_rows + len(lengths)
    )  # of row numbers, the emptiest on top; all are empty, so any order is a heap
    n_heap = n_rows
    taken = np.empty(2 * len(lengths), np.int64)  # rows that were looked at, then new ones
    for document in range(len(first) - 1):
        n_segments = first[document + 1] - first[document]
        n_waiting = n_all = min(n_segments, n_heap)
        for place in range(n_waiting):
            taken[place] = _pop(heap, n_heap, used)
            n_heap -= 1
        n_taken = 0
        for segment in range(first[document], first[document + 1]):
            if n_taken < n_waiting and used[taken[n_taken]] + lengths[segment] <= row_tokens:
                chosen = taken[n_taken]
                n_taken += 1
            else:
                chosen = n_rows
                taken[n_all] = chosen
                n_all += 1
                n_rows += 1
            row[segment] = chosen
            used[chosen] += lengths[segment]
        for place in range(n_all):
            _push(heap, n_heap, used, taken[place])
            n_heap += 1
    return n_rows


@compiled
def _before(used: Int64[np.ndarray, " row"], one: int, other: int) -> bool:
    """Whether one row is emptier than another, or as empty and the first."""
    return bool(used[one] < used[other] or (used[one] == used[other] and one < other))


@compiled
def _pop(heap: Int64[np.ndarray, " row"], n_heap: int, used: Int64[np.ndarray, " row"]) -> int:
    top, moved = heap[0], heap[n_heap - 1]
    place, n_left = 0, n_heap - 1
    while 2 * place + 1 < n_left:
        below = 2 * place + 1
        if below + 1 < n_left and _before(used, heap[below + 1], heap[below]):
            below += 1
        if not _before(used, heap[below], moved):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = moved
    return int(top)


@compiled
def _push(
    heap: Int64[np.ndarray, " row"], n_heap: int, used: Int64[np.ndarray, " row"], row: int
) -> None:
    place = n_heap
    while place and _before(used, row, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = row
