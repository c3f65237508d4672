"""Best-fit decreasing: documents whole in rows, so that nothing is cut that a row could hold, and
hardly anything is padding.

Pieces come by falling length; each goes into the fullest row that has room for it, else into a new
one. Of rows with equally much room it is the one that came to it last. Documents longer than a row
are first cut into full rows and a remainder. Which rows have how much room is known from a binary
tree over all lengths up to a row's: a piece costs as many steps as that tree has levels, O(n log L)
in all.

Here: which row a piece goes to. Not here: the order of the rows, which is by their first piece's
    length (shuffle them before
training).
Source: Ding et al. 2024, "Fewer Truncations Improve Language Modeling", section 3 and appendix A.
"""

import bisect
from collections import defaultdict

import numpy as np
from jaxtyping import Int64, Integer

from lc_assets.compiling import COMPILED
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    cut_evenly,
    require_lengths,
    require_tokens,
    whole,
)

COMPILED_FROM = 20_000
"""Pieces from which compiled code is worth loading: numba takes half a second to import, the plain
twin 3 µs a piece.
"""


def best_fit(lengths: Integer[np.ndarray, " document"], *, row_tokens: int) -> Packing:
    """Pack documents into rows; the pieces of a row stand in the order of their documents.

    >>> packed = best_fit(np.array([3, 9, 5, 1]), row_tokens=8)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.padding
    ([0, 1, 1, 2, 2], [1, 0, 2, 1, 3], 6)

    Args:
        lengths: tokens of each document; one without a token is in no row.
        row_tokens: length of a row.

    Raises:
        BadInput: when a length is negative, or a row has no token or more than `MOST_ROW_TOKENS`.
    """
    require_tokens(row_tokens, "a row", MOST_ROW_TOKENS)
    pieces = cut_evenly(whole(require_lengths(lengths)), row_tokens)
    plain = not COMPILED or len(pieces) < COMPILED_FROM
    row, n_rows = (plain_fit if plain else compiled_fit)(pieces.lengths, row_tokens)
    return Packing.of(pieces, row, row_tokens=row_tokens, n_rows=n_rows)


def compiled_fit(
    lengths: Int64[np.ndarray, " piece"], row_tokens: int
) -> tuple[Int64[np.ndarray, " piece"], int]:
    """Row of each piece, and how many rows there are; lengths are 1 to ``row_tokens``."""
    # Numba takes half a second to import.
    from lc_assets.packing.kernels.fitting import fit  # noqa: PLC0415

    row = np.empty(len(lengths), np.int64)
    return row, int(fit(lengths, row_tokens, row))


def plain_fit(
    lengths: Int64[np.ndarray, " piece"], row_tokens: int
) -> tuple[Int64[np.ndarray, " piece"], int]:
    """`compiled_fit` with a sorted list of the rooms that there are and, for each, its rows."""
    row = np.empty(len(lengths), np.int64)
    rooms: list[int] = []
    rows_with: dict[int, list[int]] = defaultdict(list)
    n_rows = 0
    for piece in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[piece])
        at = bisect.bisect_left(rooms, length)
        if at < len(rooms):
            room = rooms[at]
            chosen = rows_with[room].pop()
            if not rows_with[room]:
                del rooms[at]
        else:
            room, chosen, n_rows = row_tokens, n_rows, n_rows + 1
        row[piece] = chosen
        left = room - length
        if left:
            if not rows_with[left]:
                bisect.insort(rooms, left)
            rows_with[left].append(chosen)
    return row, n_rows
