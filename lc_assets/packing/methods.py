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
from jaxtyping import Int64, Integer

from lc_assets.errors import BadInput
from lc_assets.packing.bestfit import best_fit
from lc_assets.packing.concat import concatenate
from lc_assets.packing.cutting import Ends
from lc_assets.packing.pieces import Packing, require_lengths
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
