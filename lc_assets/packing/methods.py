"""Ways of packing, by name: documents of some lengths, in an order, become rows.

===========  ===========================================================================================================
name         what it does
===========  ===========================================================================================================
``bestfit``  whole documents, the longest first, each into the fullest row that holds it
(`lc_assets.packing.bestfit`)
``concat``   documents end to end, cut at the ends of rows (`lc_assets.packing.concat`)
``segment``  segments of a document dealt out to different rows (`lc_assets.packing.segments`)
``reorder``  ``concat``, and then the segments of each row in turns (`lc_assets.packing.segments`)
===========  ===========================================================================================================

A way of choosing documents (sampling them by length, repeating them) is a function that returns an
*order*: numbers of documents, some of them several times or not at all. Whatever packs takes it.

Here: names and what they share. Not here: drawing an order, files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, Integer

from lc_assets.errors import BadInput
from lc_assets.packing.bestfit import best_fit
from lc_assets.packing.concat import concatenate
from lc_assets.packing.cutting import Ends
from lc_assets.packing.pieces import Packing, Pieces, numbered, require_lengths
from lc_assets.packing.segments import dispatch, interleave


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How long rows and segments are.

    Attributes:
        row_tokens: of a row.
        segment_tokens: of a segment at most; for the methods that cut documents into such.
    """

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
"""By name."""
CUT_AT_ENDS: Final = ("segment", "reorder")
"""Methods that cut documents of their own accord, so that ends of sentences are worth knowing."""
KEEP_ORDER: Final = ("bestfit", "concat")
"""Methods that keep a group of documents together and in order."""


def pack(
    lengths: Integer[np.ndarray, " document"],
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
        lengths: tokens of each document, a separator that stands behind it counted in.
        method: one of `METHODS`.
        shape: of rows and segments.
        ends: where segments had better end, of each document.
        order: the documents that are packed, in the order that they come in; one that is named
            twice is there twice. By default all in their own.

    Raises:
        BadInput: when there is no such method, or a number cannot be meant.
    """
    if method not in METHODS:
        raise BadInput(f"no way of packing is called {method!r}; there are {', '.join(METHODS)}")
    lengths = require_lengths(lengths)
    if order is None:
        return METHODS[method](lengths, shape, ends)
    return METHODS[method](
        lengths[order], shape, None if ends is None else ends.of_documents(order)
    ).of_documents(order)


def pack_groups(
    lengths: Integer[np.ndarray, " document"],
    group: Integer[np.ndarray, " document"],
    order_by: Integer[np.ndarray, " document"] | Float64[np.ndarray, " document"],
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
