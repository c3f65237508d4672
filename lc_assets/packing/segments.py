"""Segments dispatched to different rows, and segments of a row taken in turns: two ways to move
referrals, for comparison.

* `dispatch`: no two segments of a document stand in one row, so that nothing refers further than a
  segment. What long documents are worth can be measured by taking their length away.
* `interleave`: the first segments of all pieces of a row, then the second ones, and so on. No token
  leaves its row, so every pair of mentions stays a pair; their distances grow.

Here: where segments go. Not here: where they are cut (`lc_assets.packing.cutting`).
Source: LongPack, section 3.2 and table 7: RULER 53.1, dispatched 33.2, interleaved 71.6. The latter
    is LongSkywork's "chunk interleave".
"""

import heapq
from typing import Final

import numpy as np
from jaxtyping import Int64, Integer

from lc_assets.compiling import COMPILED
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

COMPILED_FROM = 20_000
"""Segments from which compiled code is worth loading."""
MOST_TRIES: Final = 6
"""Numbers of rows that are tried: the last is off by a 64th of the first difference."""


def dispatch(
    lengths: Integer[np.ndarray, " document"],
    *,
    row_tokens: int,
    segment_tokens: int,
    ends: Ends | None = None,
) -> Packing:
    """Cut documents into segments and deal those of each document out to different rows.

    Documents with the longest segments come first. Each takes the emptiest rows, as many as it has
    segments, the longest segment into the emptiest row; where a segment does not fit there, into a
    new row. So rows fill evenly, and what they lack in the end is a part of a segment; with how
    many it begins, see `fewest_rows`. A document of more segments than there are rows makes new
    rows, mostly padding.

    >>> packed = dispatch(np.array([8, 6]), row_tokens=8, segment_tokens=4)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.pieces.start.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 4, 4])

    Args:
        lengths: tokens of each document.
        row_tokens: length of a row.
        segment_tokens: longest segment.
        ends: where segments had better end.

    Raises:
        BadInput: when a length is negative, a row or a segment has no token, or a segment is longer
            than a row.
    """
    require_tokens(row_tokens, "a row", MOST_ROW_TOKENS)
    require_tokens(segment_tokens, "a segment", row_tokens)
    segments = cut_into_segments(whole(require_lengths(lengths)), segment_tokens, ends)
    order, first = _documents_with_long_segments_first(segments.document, segments.lengths)
    dealt, n_rows = fewest_rows(segments.lengths[order], first, row_tokens)
    row = np.empty(len(segments), np.int64)
    row[order] = dealt
    return Packing.of(segments, row, row_tokens=row_tokens, n_rows=n_rows)


def interleave(packing: Packing, segment_tokens: int, ends: Ends | None = None) -> Packing:
    """Cut the pieces of every row into segments and take them in turns: all first ones, all second
    ones, ...

    >>> from lc_assets.packing.concat import concatenate
    >>> turns = interleave(concatenate(np.array([5, 3]), row_tokens=8), 2)
    >>> turns.pieces.document.tolist(), turns.pieces.start.tolist()
    ([0, 1, 0, 1, 0], [0, 0, 2, 2, 4])

    Raises:
        BadInput: when a segment could not hold a token.
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


def _segments_of(pieces: Pieces, segments: Pieces) -> Int64[np.ndarray, " piece"]:
    """How many segments each piece gave: both are the same tokens in the same order."""
    edges = np.concatenate([[0], np.cumsum(pieces.lengths)])
    return np.diff(np.searchsorted(np.cumsum(segments.lengths), edges, side="right"))


def _documents_with_long_segments_first(
    document: Int64[np.ndarray, " segment"], lengths: Int64[np.ndarray, " segment"]
) -> tuple[Int64[np.ndarray, " segment"], Int64[np.ndarray, " boundary"]]:
    """Segments by falling longest segment of their document, a document's own by falling length;
    and where documents begin.
    """
    if not len(document):
        return np.empty(0, np.int64), np.zeros(1, np.int64)
    begins = np.flatnonzero(np.concatenate([[True], document[1:] != document[:-1]]))
    counts = np.diff(np.concatenate([begins, [len(document)]]))
    longest = np.repeat(np.maximum.reduceat(lengths, begins), counts)
    order = np.lexsort((np.arange(len(document)), -lengths, document, -longest))
    # Ties between documents are settled by their number, so a document's segments stay together.
    changes = np.flatnonzero(document[order][1:] != document[order][:-1]) + 1
    return order, np.concatenate([[0], changes, [len(document)]])


def fewest_rows(
    lengths: Int64[np.ndarray, " segment"], first: Int64[np.ndarray, " boundary"], row_tokens: int
) -> tuple[Int64[np.ndarray, " segment"], int]:
    """Deal segments into about as few rows as hold them; takes what `compiled_deal` takes.

    Rows that fill evenly are full all at once, and then every further segment makes a row of its
    own. So with how many rows to begin is found by halving the difference to the number that came
    of it, `MOST_TRIES` times at most.
    """
    deal = plain_deal if not COMPILED or len(lengths) < COMPILED_FROM else compiled_deal
    too_few = -(-int(lengths.sum()) // row_tokens) - 1
    best = deal(lengths, first, too_few + 1, row_tokens)
    enough = best[1]
    for _ in range(MOST_TRIES):
        if enough - too_few <= 1:
            break
        begun = (too_few + enough) // 2
        found = deal(lengths, first, begun, row_tokens)
        best = min(best, found, key=lambda dealt: dealt[1])
        too_few, enough = (too_few, begun) if found[1] <= begun else (begun, min(enough, found[1]))
    return best


def compiled_deal(
    lengths: Int64[np.ndarray, " segment"],
    first: Int64[np.ndarray, " boundary"],
    n_rows: int,
    row_tokens: int,
) -> tuple[Int64[np.ndarray, " segment"], int]:
    """Row of each segment, and how many rows there are in the end; a document's segments stand
    together, the longest first.
    """
    # Numba takes half a second to import.
    from lc_assets.packing.kernels.dealing import deal  # noqa: PLC0415

    row = np.empty(len(lengths), np.int64)
    return row, int(deal(lengths, first, n_rows, row_tokens, row))


def plain_deal(
    lengths: Int64[np.ndarray, " segment"],
    first: Int64[np.ndarray, " boundary"],
    n_rows: int,
    row_tokens: int,
) -> tuple[Int64[np.ndarray, " segment"], int]:
    """`compiled_deal` with the standard library's heap of rows, the emptiest on top, of equals the
    first.
    """
    row = np.empty(len(lengths), np.int64)
    rows = [(0, number) for number in range(n_rows)]
    for start, stop in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        waiting = [heapq.heappop(rows) for _ in range(min(stop - start, len(rows)))][::-1]
        taken: list[tuple[int, int]] = []
        for segment in range(start, stop):
            length = int(lengths[segment])
            if waiting and waiting[-1][0] + length <= row_tokens:
                used, chosen = waiting.pop()
            else:
                used, chosen, n_rows = 0, n_rows, n_rows + 1
            taken.append((used + length, chosen))
            row[segment] = chosen
        for each in (*waiting, *taken):
            heapq.heappush(rows, each)
    return row, n_rows
