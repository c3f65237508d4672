"""Cutting pieces at the ends of sentences: compiled. The plain twin, and the rule, are in
`lc_assets.packing.cutting`.
"""

import numpy as np
from jaxtyping import Int64

from lc_assets.compiling import compiled


@compiled
def count_segments(
    document: Int64[np.ndarray, " piece"],
    start: Int64[np.ndarray, " piece"],
    stop: Int64[np.ndarray, " piece"],
    segment_tokens: int,
    first: Int64[np.ndarray, " boundary"],
    token: Int64[np.ndarray, " end"],
    counts: Int64[np.ndarray, " piece"],
) -> int:
    """Write how many segments each piece gives; returns their sum."""
    total = 0
    for piece in range(len(document)):
        own = token[first[document[piece]] : first[document[piece] + 1]]
        at, n_segments = start[piece], 1
        while stop[piece] - at > segment_tokens:
            at = _until(own, at, segment_tokens)
            n_segments += 1
        counts[piece] = n_segments
        total += n_segments
    return total


@compiled
def write_segments(
    document: Int64[np.ndarray, " piece"],
    start: Int64[np.ndarray, " piece"],
    stop: Int64[np.ndarray, " piece"],
    segment_tokens: int,
    first: Int64[np.ndarray, " boundary"],
    token: Int64[np.ndarray, " end"],
    starts: Int64[np.ndarray, " segment"],
    stops: Int64[np.ndarray, " segment"],
) -> None:
    """Write where each segment begins and ends."""
    place = 0
    for piece in range(len(document)):
        own = token[first[document[piece]] : first[document[piece] + 1]]
        at = start[piece]
        while stop[piece] - at > segment_tokens:
            until = _until(own, at, segment_tokens)
            starts[place], stops[place] = at, until
            at = until
            place += 1
        starts[place], stops[place] = at, stop[piece]
        place += 1


@compiled
def _until(own: Int64[np.ndarray, " end"], at: int, segment_tokens: int) -> int:
    """Where a segment that begins at ``at``, and cannot take all that is left, ends."""
    below = np.searchsorted(own, at + segment_tokens, side="right")
    if below and own[below - 1] >= at + (segment_tokens + 1) // 2:
        return int(own[below - 1])
    return at + segment_tokens
