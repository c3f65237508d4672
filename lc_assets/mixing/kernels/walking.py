"""Cutting documents, laid end to end, into samples: one walk.

Here: the compiled loop. Its plain twin, and what the rows mean, are in
    `lc_assets.mixing.gpt_index`.
Source: Megatron-LM ``helpers.cpp`` (``build_sample_idx``).
"""

import numpy as np
from jaxtyping import Int32, Integer

from lc_assets.compiling import compiled

AHEAD = 1024
"""Lengths that are fetched before they are walked over: the processor asks for many at once."""


@compiled
def walk(
    lengths: Int32[np.ndarray, " all_documents"],
    order: Int32[np.ndarray, " place"],
    sequence_length: int,
    extra_token: int,
    out: Integer[np.ndarray, "boundary 2"],
) -> int:
    """Fill in the beginnings of whole samples, the first being the first token of all.

    Returns:
        How many rows were filled in: all, or those that whole samples begin or end at.
    """
    n_rows = len(out)
    row = 1
    out[0, 0] = out[0, 1] = 0
    ahead = sequence_length  # tokens from the beginning of the document to the next cut
    fetched = np.empty(AHEAD, np.int64)
    for start in range(0, len(order), AHEAD):
        # Seen as unsigned, so that no place can mean one from the end: that question takes two
        # thirds of the time.
        places = order[start : start + AHEAD].view(np.uint32)
        n_fetched = len(places)
        for at in range(n_fetched):
            fetched[at] = lengths[places[at]]
        for at in range(n_fetched):
            if row == n_rows:
                return row
            # Whether the next cut lies in a document is anybody's guess, so the row is written in
            # any case: 1.5 times as fast.
            out[row, 0], out[row, 1] = start + at, ahead
            cut_here = int(ahead + extra_token <= fetched[at])
            row += cut_here
            ahead += sequence_length * cut_here
            while ahead + extra_token <= fetched[at]:
                if row == n_rows:
                    return row
                out[row, 0], out[row, 1] = start + at, ahead
                row += 1
                ahead += sequence_length
            ahead -= fetched[at]
    return row
