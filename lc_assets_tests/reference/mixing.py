"""Blends and sample indices in NumPy: what the compiled loops must give."""

import numpy as np
from numpy.typing import NDArray

from lc_assets.mixing.blending import Blend
from lc_assets.mixing.gpt_index import SampleIndex, n_whole


def blend(weights: NDArray[np.float64], limits: NDArray[np.int64], size: int) -> Blend:
    """Megatron's rule in NumPy, one sample after the other."""
    taken, behind = np.zeros(len(weights)), np.empty(len(weights))
    chosen = np.empty(size, np.int16)
    for n in range(size):
        # Two calls, each rounding on its own: one fused step would give another order. argmax
        # returns the first largest.
        np.multiply(weights, float(max(n, 1)), out=behind)
        np.subtract(behind, taken, out=behind)
        chosen[n] = dataset = int(behind.argmax())
        taken[dataset] += 1
        if taken[dataset] >= limits[dataset]:
            taken[dataset] = np.inf  # used up: never behind again
    return chosen, occurrence(chosen)


def occurrence(chosen: NDArray[np.int16]) -> NDArray[np.int64]:
    """Number of earlier entries with the same value.

    >>> occurrence(np.array([4, 4, 1, 4], np.int16))
    array([0, 1, 0, 2])
    """
    order = np.argsort(chosen, kind="stable")
    counts = np.bincount(chosen) if len(chosen) else np.zeros(0, np.int64)
    first = np.cumsum(counts) - counts
    found = np.empty(len(chosen), np.int64)
    found[order] = np.arange(len(chosen)) - np.repeat(first, counts)
    return found


def sample_index(
    lengths: NDArray[np.integer],
    order: NDArray[np.int32],
    sequence_length: int,
    n_tokens: int,
) -> SampleIndex:
    """The sample index by binary search in the cumulative lengths."""
    ends = np.cumsum(lengths[order], dtype=np.int64)
    n_samples = n_whole(n_tokens, sequence_length)
    begins = np.arange(n_samples + 1, dtype=np.int64) * sequence_length
    # A sample begins in the first document that reaches past its beginning.
    place = np.searchsorted(ends, begins + 1, side="left")
    offset = begins - (ends - lengths[order])[place]
    place[0] = offset[0] = 0
    return np.stack([place, offset], axis=1).astype(np.int32)
