"""Methods of packing, by name: documents of given lengths, in an order, become rows.

===========  ======================================================================================
name         what it does
===========  ======================================================================================
``bestfit``  whole documents, the longest first, each into the fullest row that can hold it
             (`best_fit`)
``concat``   documents end to end, cut at the ends of rows (`concatenate`)
``segment``  segments of a document in different rows (`lc_assets.packing.segments.dispatch`)
``reorder``  ``concat``, then the segments of each row in turns
             (`lc_assets.packing.segments.interleave`)
===========  ======================================================================================

A way of choosing documents, such as sampling or repeating them, returns an *order*: numbers of
documents, some of them several times or not at all. Every method takes one.

Best fit: pieces are placed by descending length, each into the fullest row that has room for it,
else into a new row. Of rows with equal room, the last one to reach that room is taken. Documents
longer than a row are first cut into full rows and a remainder. A binary tree over all lengths up to
that of a row finds the row: O(n log L) in all. Rows are in the order of their first piece's length:
shuffle them before training.

Source: Ding et al. 2024, "Fewer Truncations Improve Language Modeling", section 3 and appendix A.
"""

from collections.abc import Callable, Mapping

import numpy as np

from lc_assets.arrays import Floats, Int64s, Integers
from lc_assets.compiling import compiled, interpreted
from lc_assets.packing.cutting import Ends
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    Pieces,
    cut_evenly,
    numbered,
    require_lengths,
    require_tokens,
    whole,
)
from lc_assets.packing.segments import dispatch, interleave
from lc_assets.records import record


def concatenate(lengths: Integers, *, row_tokens: int) -> Packing:
    """Put documents end to end, in their order, and cut them at the ends of rows.

    Only the last row has padding. A separator is the last token of its document: include it in the
    length.

    >>> packed = concatenate(np.array([3, 0, 7]), row_tokens=4)
    >>> columns = packed.row, packed.pieces.document, packed.pieces.start
    >>> *(column.tolist() for column in columns), packed.padding
    ([0, 0, 1, 2], [0, 2, 2, 2], [0, 0, 1, 5], 2)

    Raises:
        BadInput: if a length is negative, or a row has no token or more than `MOST_ROW_TOKENS`.
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


def best_fit(lengths: Integers, *, row_tokens: int) -> Packing:
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
    # The longest first; ties keep their order. NumPy sorts numbers of two bytes by their digits.
    room = (row_tokens - pieces.lengths).astype(np.uint16 if row_tokens <= 2**16 else np.int64)
    order = np.argsort(room, kind="stable")
    # The interpreter needs 10 µs a piece, and importing numba 0.8 s.
    with interpreted(10 * len(pieces) + row_tokens < 200_000):
        n_rows = int(_fit(pieces.lengths, order, row_tokens, row))
    return Packing.of(pieces, row, row_tokens=row_tokens, n_rows=n_rows)


@compiled
def _fit(
    lengths: Int64s,
    order: Int64s,
    row_tokens: int,
    row: Int64s,
) -> int:
    """Write the row of each piece into ``row``, piece by piece in an order; return the number of
    rows.
    """
    size = 1
    while size <= row_tokens:
        size *= 2
    # Node size + c is set if any row has room for exactly c tokens; an inner node if a child is.
    tree = np.zeros(2 * size, np.bool_)
    last_with = np.full(row_tokens + 1, -1, np.int64)  # the last row to reach this room
    before = np.empty(len(lengths), np.int64)  # the row that reached the same room before it
    n_rows = 0
    for piece in order:
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
def _least_room(tree: np.ndarray, size: int, length: int) -> int:
    """The smallest room of any row that holds ``length`` tokens; -1 if there is none."""
    node = size + length
    while not tree[node]:
        # From a right child, or the root, the next larger room is below an ancestor.
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


@record
class Shape:
    """Length of rows, and maximum length of segments for the methods that cut them."""

    row_tokens: int
    segment_tokens: int = 4096


Method = Callable[[Int64s, Shape, Ends | None], Packing]

METHODS: Mapping[str, Method] = {
    "bestfit": lambda lengths, shape, _: best_fit(lengths, row_tokens=shape.row_tokens),
    "concat": lambda lengths, shape, _: concatenate(lengths, row_tokens=shape.row_tokens),
    "segment": lambda lengths, shape, ends: dispatch(
        lengths, row_tokens=shape.row_tokens, segment_tokens=shape.segment_tokens, ends=ends
    ),
    "reorder": lambda lengths, shape, ends: interleave(
        concatenate(lengths, row_tokens=shape.row_tokens), shape.segment_tokens, ends
    ),
}
CUT_AT_ENDS = ("segment", "reorder")
"""Methods that cut documents into segments, so that ends of sentences are needed."""


def pack(
    lengths: Integers,
    *,
    method: str,
    shape: Shape,
    ends: Ends | None = None,
    order: Integers | None = None,
) -> Packing:
    """Pack documents into rows.

    >>> order, shape = np.array([1, 0, 1]), Shape(row_tokens=5)
    >>> packed = pack(np.array([4, 6]), method="concat", shape=shape, order=order)
    >>> packed.pieces.document.tolist(), packed.row.tolist()
    ([1, 1, 0, 1, 1], [0, 1, 1, 2, 3])

    Args:
        lengths: tokens of each document, including a separator after it.
        method: one of `METHODS`.
        shape: of rows and segments.
        ends: where segments of each document should end, if possible.
        order: numbers of the documents to pack, in order; a document may come several times. All
            documents by default.

    Raises:
        BadInput: if a number is out of range.
    """
    lengths = require_lengths(lengths)
    if order is None:
        return METHODS[method](lengths, shape, ends)
    return METHODS[method](
        lengths[order], shape, None if ends is None else ends.of_documents(order)
    ).of_documents(order)


def pack_groups(
    lengths: Integers,
    group: Integers,
    order_by: Integers | Floats,
    *,
    method: str,
    shape: Shape,
) -> Packing:
    """Concatenate the documents of each group, and pack the groups as if each were one document.

    >>> columns = np.array([3, 2, 4]), np.array([1, 0, 1]), np.array([8, 1, 7])
    >>> packed = pack_groups(*columns, method="concat", shape=Shape(row_tokens=5))
    >>> packed.pieces.document.tolist(), packed.row.tolist(), packed.places.tolist()
    ([1, 2, 2, 0], [0, 0, 1, 1], [0, 2, 0, 1])

    Args:
        lengths: tokens of each document.
        group: number of each document's group; groups are packed in ascending order.
        order_by: orders the documents of a group, ascending; ties keep the order given.
        method: ``bestfit`` or ``concat``, which keep documents in order.
        shape: of rows.

    Raises:
        BadInput: if a length is negative, or a row has no token or too many.
    """
    lengths = require_lengths(lengths)
    order = np.lexsort((order_by, group))
    stops = np.cumsum(lengths[order])
    starts = stops - lengths[order]
    first = np.flatnonzero(np.diff(group[order], prepend=np.min(group, initial=0) - 1))
    packed = METHODS[method](np.diff(np.append(starts[first], stops[-1:])), shape, None)
    pieces = packed.pieces
    # Cut every piece of a group where its documents end, in tokens of all groups end to end.
    offset = starts[first][pieces.document]
    begin, end = offset + pieces.start, offset + pieces.stop
    first_document = np.searchsorted(stops, begin, side="right")
    whose, nth = numbered(np.searchsorted(stops, end) + 1 - first_document)
    document = first_document[whose] + nth
    cut = Pieces(
        order[document],
        np.maximum(begin[whose], starts[document]) - starts[document],
        np.minimum(end[whose], stops[document]) - starts[document],
    )
    held = np.flatnonzero(cut.lengths)
    return Packing(
        row_tokens=packed.row_tokens,
        n_rows=packed.n_rows,
        row=packed.row[whose[held]],
        pieces=cut.take(held),
    )
