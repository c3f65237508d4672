"""Segments: pieces cut every so many tokens, or a little before, where a sentence or a paragraph
ends.

A model should not be asked to go on from a torn sentence. So a segment ends at the last end that
leaves it at least half as long as it may be; where there is none, it is as long as it may be.

Here: the cuts, given the ends. Not here: finding ends in ids (`lc_assets.packing.ends`), where
    segments go
(`lc_assets.packing.segments`).
Source: LongPack, section 3.2: segments of 4,096 tokens, "not too small", so that torn borders teach
    nothing.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, Integer

from lc_assets.compiling import COMPILED
from lc_assets.packing.pieces import Pieces, cut_evenly, numbered, require_tokens

COMPILED_FROM = 20_000
"""Pieces from which compiled code is worth loading."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Where sentences or paragraphs of documents end, in tokens of the document.

    Attributes:
        first: of each document, its first end among all; then how many there are.
        token: the token behind each end, rising within a document.
    """

    first: Int64[np.ndarray, " boundary"]
    token: Int64[np.ndarray, " end"]

    def of_documents(self, order: Integer[np.ndarray, " place"]) -> "Ends":
        """Ends of the documents that stand at the places of an order."""
        counts = np.diff(self.first)[order]
        place, nth = numbered(counts)
        return Ends(
            first=np.concatenate([[0], np.cumsum(counts)]),
            token=self.token[self.first[order][place] + nth],
        )


def cut_into_segments(pieces: Pieces, segment_tokens: int, ends: Ends | None = None) -> Pieces:
    """Cut pieces into segments of at most ``segment_tokens``, at ends where these are given.

    >>> ends = Ends(first=np.array([0, 3]), token=np.array([2, 3, 9]))
    >>> cut_into_segments(Pieces(*np.array([[0], [0], [10]])), 4, ends).stop.tolist()
    [3, 7, 10]

    Raises:
        BadInput: when a segment could not hold a token.
    """
    if ends is None:
        return cut_evenly(pieces, segment_tokens)
    require_tokens(segment_tokens, "a segment")
    cut = plain_cut if not COMPILED or len(pieces) < COMPILED_FROM else compiled_cut
    return cut(pieces, segment_tokens, ends)


def compiled_cut(pieces: Pieces, segment_tokens: int, ends: Ends) -> Pieces:
    """`cut_into_segments` in compiled code."""
    # Numba takes half a second to import.
    from lc_assets.packing.kernels.cutting import count_segments, write_segments  # noqa: PLC0415

    given = (pieces.document, pieces.start, pieces.stop, segment_tokens, ends.first, ends.token)
    counts = np.empty(len(pieces), np.int64)
    cut = np.empty((2, count_segments(*given, counts)), np.int64)
    write_segments(*given, cut[0], cut[1])
    return Pieces(np.repeat(pieces.document, counts), cut[0], cut[1])


def plain_cut(pieces: Pieces, segment_tokens: int, ends: Ends) -> Pieces:
    """`cut_into_segments`, piece by piece."""
    cut: list[tuple[int, int, int]] = []
    for document, start, stop in zip(
        pieces.document.tolist(), pieces.start.tolist(), pieces.stop.tolist(), strict=True
    ):
        own = ends.token[ends.first[document] : ends.first[document + 1]].tolist()
        at = start
        while stop - at > segment_tokens:
            fitting = [
                end for end in own if at + -(-segment_tokens // 2) <= end <= at + segment_tokens
            ]
            until = max(fitting, default=at + segment_tokens)
            cut.append((document, at, until))
            at = until
        cut.append((document, at, stop))
    return Pieces(*np.array(cut, np.int64).reshape(-1, 3).T)
