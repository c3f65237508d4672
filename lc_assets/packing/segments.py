"""Move references between distant parts of documents, for comparison with plain packing.

* `dispatch` deals the segments of a document to different rows, so that no reference is longer than
  a segment. It is the ablation of document length.
* `interleave` takes the first segments of all pieces of a row, then the second ones, and so on. No
  token leaves its row, so no pair of mentions is lost; their distances grow.

Source: LongPack, section 3.2 and table 7: RULER 53.1, dispatched 33.2, interleaved 71.6. The latter
    is LongSkywork's "chunk interleave".
"""

import heapq

import numpy as np

from lc_assets.arrays import Int64s, Integers
from lc_assets.compiling import compiled
from lc_assets.packing.cutting import Ends, cut_into_segments
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    Pieces,
    numbered,
    require_lengths,
    require_tokens,
    whole,
)

MOST_TRIES = 6
"""Numbers of rows that are tried: the last is off by a 64th of the first difference."""


def dispatch(
    lengths: Integers,
    *,
    row_tokens: int,
    segment_tokens: int,
    ends: Ends | None = None,
) -> Packing:
    """Cut documents into segments and deal those of each document to different rows.

    Documents with the longest segments come first. Each takes the emptiest rows, one per segment,
    the longest segment into the emptiest row; a segment that does not fit there gets a new row. So
    rows fill evenly, and the padding of a row is less than a segment. A document with more segments
    than there are rows adds rows, mostly padding.

    >>> packed = dispatch(np.array([8, 6]), row_tokens=8, segment_tokens=4)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.pieces.start.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 4, 4])

    Args:
        lengths: tokens of each document.
        row_tokens: length of a row.
        segment_tokens: maximum length of a segment.
        ends: where segments should end, if possible.

    Raises:
        BadInput: if a length is negative, a row or a segment has no token, or a segment is longer
            than a row.
    """
    require_tokens(row_tokens, "a row", MOST_ROW_TOKENS)
    require_tokens(segment_tokens, "a segment", row_tokens)
    segments = cut_into_segments(whole(require_lengths(lengths)), segment_tokens, ends)
    order, first = _documents_with_long_segments_first(segments.document, segments.lengths)
    dealt, n_rows = _fewest_rows(segments.lengths[order], first, row_tokens)
    row = np.empty(len(segments), np.int64)
    row[order] = dealt
    return Packing.of(segments, row, row_tokens=row_tokens, n_rows=n_rows)


def interleave(packing: Packing, segment_tokens: int, ends: Ends | None = None) -> Packing:
    """Cut the pieces of every row into segments, and take these in turns.

    >>> from lc_assets.packing.methods import concatenate
    >>> turns = interleave(concatenate(np.array([5, 3]), row_tokens=8), 2)
    >>> turns.pieces.document.tolist(), turns.pieces.start.tolist()
    ([0, 1, 0, 1, 0], [0, 0, 2, 2, 4])

    Raises:
        BadInput: if ``segment_tokens`` is below 1.
    """
    segments = cut_into_segments(packing.pieces, segment_tokens, ends)
    piece, turn = numbered(_segments_of(packing.pieces, segments))
    row = packing.row[piece]
    order = np.lexsort((piece, turn, row))
    return Packing(
        row_tokens=packing.row_tokens,
        n_rows=packing.n_rows,
        row=row[order],
        pieces=segments.take(order),
    )


def _segments_of(pieces: Pieces, segments: Pieces) -> Int64s:
    """Number of segments of each piece; both are the same tokens in the same order."""
    edges = np.concatenate([[0], np.cumsum(pieces.lengths)])
    return np.diff(np.searchsorted(np.cumsum(segments.lengths), edges, side="right"))


def _documents_with_long_segments_first(document: Int64s, lengths: Int64s) -> tuple[Int64s, Int64s]:
    """Order segments by the longest segment of their document, then by length, descending.

    Returns:
        The order, and where in it each document begins.
    """
    _, begins, counts = np.unique(document, return_index=True, return_counts=True)
    longest = np.repeat(np.maximum.reduceat(lengths, begins), counts) if len(begins) else lengths
    # The document's number breaks ties, so that a document's segments stay together.
    order = np.lexsort((-lengths, document, -longest))
    first = np.flatnonzero(np.diff(document[order], prepend=-1))
    return order, np.append(first, len(document))


def _fewest_rows(lengths: Int64s, first: Int64s, row_tokens: int) -> tuple[Int64s, int]:
    """Deal segments into close to the fewest rows that hold them; see `_deal`.

    Rows that fill evenly are full all at once, and then every further segment adds a row of its
    own. So the number of rows to begin with is found by bisection between it and the number of rows
    in the end, with at most `MOST_TRIES` tries.
    """

    def deal(n_rows: int) -> tuple[Int64s, int]:
        row = np.empty(len(lengths), np.int64)
        return row, int(_deal(lengths, first, n_rows, row_tokens, row))

    too_few = -(-int(lengths.sum()) // row_tokens) - 1
    best = deal(too_few + 1)
    enough = best[1]
    for _ in range(MOST_TRIES):
        if enough - too_few <= 1:
            break
        begun = (too_few + enough) // 2
        found = deal(begun)
        best = min(best, found, key=lambda dealt: dealt[1])
        too_few, enough = (too_few, begun) if found[1] <= begun else (begun, min(enough, found[1]))
    return best


@compiled
def _deal(
    lengths: Int64s,
    first: Int64s,
    n_rows: int,
    row_tokens: int,
    row: Int64s,
) -> int:
    """Write the row of each segment.

    Args:
        lengths: tokens of each segment, 1 to ``row_tokens``; those of a document are adjacent, the
            longest first.
        first: index of each document's first segment; then the number of segments.
        n_rows: rows to begin with.
        row_tokens: length of a row.
        row: filled in.

    Returns:
        The number of rows in the end.
    """
    rows = [(0, number) for number in range(n_rows)]  # a heap: the emptiest first, then by number
    for document in range(len(first) - 1):
        # Take as many of the emptiest rows as there are segments.
        n_waiting = min(first[document + 1] - first[document], len(rows))
        taken = [heapq.heappop(rows) for _ in range(n_waiting)]
        # Give each segment the next of them, or a new row.
        at = 0
        for segment in range(first[document], first[document + 1]):
            length = lengths[segment]
            if at < n_waiting and taken[at][0] + length <= row_tokens:
                used, chosen = taken[at]
                taken[at] = (used + length, chosen)
                at += 1
            else:
                chosen = n_rows
                taken.append((length, chosen))
                n_rows += 1
            row[segment] = chosen
        # Put all of them back.
        for each in taken:
            heapq.heappush(rows, each)
    return n_rows
