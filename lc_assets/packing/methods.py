"""Methods of packing, by name: documents of given lengths, in an order, become rows.

===========  ======================================================================================
name         what it does
===========  ======================================================================================
``bestfit``  whole documents, the longest first, each into the fullest row that can hold it
             (`lc_assets.packing.bestfit`)
``concat``   documents end to end, cut at the ends of rows (`concatenate`)
``segment``  segments of a document in different rows (`lc_assets.packing.segments.dispatch`)
``reorder``  ``concat``, then the segments of each row in turns
             (`lc_assets.packing.segments.interleave`)
===========  ======================================================================================

A way of choosing documents, such as sampling or repeating them, returns an *order*: numbers of
documents, some of them several times or not at all. Every method takes one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Float64, Int64, Integer

from lc_assets.errors import BadInput
from lc_assets.packing.bestfit import best_fit
from lc_assets.packing.cutting import Ends
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    Pieces,
    numbered,
    require_lengths,
    require_tokens,
)
from lc_assets.packing.segments import dispatch, interleave

Documents: TypeAlias = Integer[np.ndarray, " document"]


def concatenate(lengths: Documents, *, row_tokens: int) -> Packing:
    """Put documents end to end, in their order, and cut them at the ends of rows.

    Only the last row has padding. A separator is the last token of its document: include it in the
    length.

    >>> packed = concatenate(np.array([3, 0, 7]), row_tokens=4)
    >>> packed.row.tolist(), packed.pieces.document.tolist(), packed.pieces.start.tolist(), packed.padding
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Length of rows, and maximum length of segments for the methods that cut them."""

    row_tokens: int
    segment_tokens: int = 4096


Method = Callable[[Int64[np.ndarray, " document"], Shape, Ends | None], Packing]

METHODS: Final[Mapping[str, Method]] = {
    "bestfit": lambda lengths, shape, _: best_fit(lengths, row_tokens=shape.row_tokens),
    "concat": lambda lengths, shape, _: concatenate(lengths, row_tokens=shape.row_tokens),
    "segment": lambda lengths, shape, ends: dispatch(
        lengths, row_tokens=shape.row_tokens, segment_tokens=shape.segment_tokens, ends=ends
    ),
    "reorder": lambda lengths, shape, ends: interleave(
        concatenate(lengths, row_tokens=shape.row_tokens), shape.segment_tokens, ends
    ),
}
CUT_AT_ENDS: Final = ("segment", "reorder")
"""Methods that cut documents into segments, so that ends of sentences are needed."""
KEEP_ORDER: Final = ("bestfit", "concat")
"""Methods that keep a group of documents together and in order."""


def pack(
    lengths: Documents,
    *,
    method: str,
    shape: Shape,
    ends: Ends | None = None,
    order: Integer[np.ndarray, " place"] | None = None,
) -> Packing:
    """Pack documents into rows.

    >>> packed = pack(np.array([4, 6]), method="concat", shape=Shape(row_tokens=5), order=np.array([1, 0, 1]))
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
        BadInput: if there is no such method, or a number is out of range.
    """
    if method not in METHODS:
        raise BadInput(f"no packing method {method!r}; expected one of {', '.join(METHODS)}")
    lengths = require_lengths(lengths)
    if order is None:
        return METHODS[method](lengths, shape, ends)
    return METHODS[method](
        lengths[order], shape, None if ends is None else ends.of_documents(order)
    ).of_documents(order)


def pack_groups(
    lengths: Documents,
    group: Documents,
    order_by: Documents | Float64[np.ndarray, " document"],
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
        method: one of `KEEP_ORDER`.
        shape: of rows.

    Raises:
        BadInput: if the method does not keep the order of documents, or a length is negative.
    """
    if method not in KEEP_ORDER:
        raise BadInput(
            f"method {method} does not keep the order of documents: take {' or '.join(KEEP_ORDER)}"
        )
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
