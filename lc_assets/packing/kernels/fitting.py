"""Best fit, decreasing: the compiled loop. Its plain twin, and what it does, are in
`lc_assets.packing.bestfit`.
"""

import numpy as np
from jaxtyping import Int64

from lc_assets.compiling import compiled


@compiled
def fit(
    lengths: Int64[np.ndarray, " piece"], row_tokens: int, row: Int64[np.ndarray, " piece"]
) -> int:
    """Write the row of each piece.

    Args:
        lengths: tokens of each piece, 1 to ``row_tokens``.
        row_tokens: length of a row.
        row: filled in.

    Returns:
        How many rows there are.
    """
    size = 1
    while size <= row_tokens:
        size *= 2
    # Node ``size`` + c says whether a row has room for c tokens, a node above whether any of the
    # two below it does.
    tree = np.zeros(2 * size, np.bool_)
    last_with = np.full(row_tokens + 1, -1, np.int64)  # the row that came to this room last
    before = np.empty(len(lengths), np.int64)  # the row that came to the same room before it
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
    """Pieces by falling length, those of one length in their order."""
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
    """The least room of any row that holds ``length`` tokens; -1 when there is none."""
    node = size + length
    while not tree[node]:
        while (
            node & 1
        ):  # a right child, or the root: what lies to the right hangs from further up, or is not there
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
