"""Best-fit decreasing: documents stay whole if a row can hold them, with next to no padding.

Pieces are placed by descending length, each into the fullest row that has room for it, else into a
new row. Of rows with equal room, the last one to reach that room is taken. Documents longer than a
row are first cut into full rows and a remainder. A binary tree over all lengths up to that of a
row finds the row: O(n log L) in all.

Rows are in the order of their first piece's length: shuffle them before training.
Source: Ding et al. 2024, "Fewer Truncations Improve Language Modeling", section 3 and appendix A.
"""

import numpy as np
from jaxtyping import Int64, Integer

from lc_assets.compiling import compiled, interpreted
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    cut_evenly,
    require_lengths,
    require_tokens,
    whole,
)


def best_fit(lengths: Integer[np.ndarray, " document"], *, row_tokens: int) -> Packing:
    """Pack documents into rows; within a row, pieces are in the order of their documents.

    >>> packed = best_fit(np.array([3, 9, 5, 1]), row_tokens=8)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.padding
    ([0, 1, 1, 2, 2], [1, 0, 2, 1, 3], 6)

    Args:
        lengths: tokens of each document; an empty document is in no row.
        row_tokens: length of a row.

    Raises:
        BadInput: if a length is negative, or a row has no token or more than `MOST_ROW_TOKENS`.
    """
    require_tokens(row_tokens, "a row", MOST_ROW_TOKENS)
    pieces = cut_evenly(whole(require_lengths(lengths)), row_tokens)
    row = np.empty(len(pieces), np.int64)
    # The interpreter needs 10 µs a piece, and importing numba 0.8 s.
    with interpreted(10 * len(pieces) + row_tokens < 200_000):
        n_rows = int(_fit(pieces.lengths, row_tokens, row))
    return Packing.of(pieces, row, row_tokens=row_tokens, n_rows=n_rows)


@compiled
def _fit(
    lengths: Int64[np.ndarray, " piece"], row_tokens: int, row: Int64[np.ndarray, " piece"]
) -> int:
    """Write the row of each piece into ``row``, and return the number of rows."""
    size = 1
    while size <= row_tokens:
        size *= 2
    # Node size + c is set if any row has room for exactly c tokens; an inner node if a child is.
    tree = np.zeros(2 * size, np.bool_)
    last_with = np.full(row_tokens + 1, -1, np.int64)  # the last row to reach this room
    before = np.empty(len(lengths), np.int64)  # the row that reached the same room before it
    n_rows = 0
    for piece in _longest_first(lengths, row_tokens):
        length = lengths[piece]
        room = _least_room(tree, size, length)
        if room < 0:
            chosen, left = n_rows, row_tokens - length
            n_rows += 1
        else:
            chosen, left = last_with[room], room - length
            last_with[room] = before[chosen]
            if last_with[room] < 0:
                _clear(tree, size + room)
        row[piece] = chosen
        if left:
            before[chosen] = last_with[left]
            if last_with[left] < 0:
                _mark(tree, size + left)
            last_with[left] = chosen
    return n_rows


@compiled
def _longest_first(
    lengths: Int64[np.ndarray, " piece"], row_tokens: int
) -> Int64[np.ndarray, " piece"]:
    """Pieces by descending length; ties keep their order."""
    place = np.zeros(row_tokens + 2, np.int64)
    for length in lengths:
        place[length] += 1
    total = 0
    for length in range(row_tokens, -1, -1):
        count = place[length]
        place[length] = total
        total += count
    order = np.empty(len(lengths), np.int64)
    for piece in range(len(lengths)):
        order[place[lengths[piece]]] = piece
        place[lengths[piece]] += 1
    return order


@compiled
def _least_room(tree: np.ndarray, size: int, length: int) -> int:
    """The smallest room of any row that holds ``length`` tokens; -1 if there is none."""
    node = size + length
    while not tree[node]:
        # From a right child, or the root, the next larger room hangs from further up.
        while node & 1:
            node >>= 1
        if not node:
            return -1
        node += 1
    while node < size:
        node *= 2
        if not tree[node]:
            node += 1
    return node - size


@compiled
def _mark(tree: np.ndarray, node: int) -> None:
    while node and not tree[node]:
        tree[node] = True
        node >>= 1


@compiled
def _clear(tree: np.ndarray, node: int) -> None:
    tree[node] = False
    node >>= 1
    while node and not (tree[2 * node] or tree[2 * node + 1]):
        tree[node] = False
        node >>= 1
