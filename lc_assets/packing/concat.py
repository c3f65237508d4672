"""Concatenate and chunk: documents laid end to end and cut every so many tokens. No padding but in
the last row; much is cut.

Here: the cuts. Not here: which documents, how often and in which order: that is a method's own
    business, and an ``order`` is
all that it has to hand over (`lc_assets.packing.methods`). A separator is the last token of its
document: count it in.
"""

import numpy as np
from jaxtyping import Integer

from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    Pieces,
    numbered,
    require_lengths,
    require_tokens,
)


def concatenate(lengths: Integer[np.ndarray, " document"], *, row_tokens: int) -> Packing:
    """Lay documents end to end, in their order, and cut them at the ends of rows.

    >>> packed = concatenate(np.array([3, 0, 7]), row_tokens=4)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.pieces.start.tolist(), packed.padding
    ([0, 0, 1, 2], [0, 2, 2, 2], [0, 0, 1, 5], 2)

    Args:
        lengths: tokens of each document, in the order that they stand in.
        row_tokens: length of a row.

    Raises:
        BadInput: when a length is negative, or a row has no token or more than `MOST_ROW_TOKENS`.
    """
    require_tokens(row_tokens, "a row", MOST_ROW_TOKENS)
    lengths = require_lengths(lengths)
    ends = np.cumsum(lengths)
    begins = ends - lengths
    first_row = begins // row_tokens
    document, nth = numbered(np.where(lengths > 0, (ends - 1) // row_tokens - first_row + 1, 0))
    row = first_row[document] + nth
    start = np.maximum(row * row_tokens - begins[document], 0)
    stop = np.minimum((row + 1) * row_tokens - begins[document], lengths[document])
    return Packing(
        row_tokens=row_tokens,
        n_rows=int(row[-1]) + 1 if len(row) else 0,
        row=row,
        pieces=Pieces(document, start, stop),
    )
