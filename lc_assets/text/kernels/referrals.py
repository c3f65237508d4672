"""Compiled counting of referrals: one pass over each concept's mentions, a pointer per edge.

Its twin is the NumPy in `lc_assets.text.referrals`. Not here: finding mentions.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled


@compiled
def counted(
    sentences: NDArray[np.int32], ends: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Count pairs, neighbours and concepts, each by bucket.

    Args:
        sentences: as in `lc_assets.text.referrals.Mentions`.
        ends: as there.
        edges: lower ends of the buckets, ascending, the first of them 1.

    Returns:
        Three arrays int64[len(edges) + 1]: within one sentence, then by bucket.
    """
    n_edges = len(edges)
    pairs, neighbours, concepts = (
        np.zeros(n_edges + 1, np.int64),
        np.zeros(n_edges + 1, np.int64),
        np.zeros(n_edges + 1, np.int64),
    )
    pointers, own = np.zeros(n_edges, np.int64), np.zeros(n_edges + 1, np.int64)
    for concept in range(len(ends) - 1):
        begin, end = ends[concept], ends[concept + 1]
        if end - begin < 2:
            continue
        own[:] = 0
        pointers[:] = begin
        for place in range(begin, end):
            sentence = np.int64(sentences[place])
            before = place + 1
            for number in range(n_edges):
                pointer = pointers[number]
                limit = sentence + edges[number]
                while pointer < end and sentences[pointer] < limit:
                    pointer += 1
                pointers[number] = pointer
                own[number] += pointer - before
                before = pointer
            own[n_edges] += end - before
            if place + 1 < end:
                distance = sentences[place + 1] - sentence
                bucket = 0
                while bucket < n_edges and distance >= edges[bucket]:
                    bucket += 1
                neighbours[bucket] += 1
        for number in range(n_edges + 1):
            pairs[number] += own[number]
            concepts[number] += own[number] > 0
    return pairs, neighbours, concepts
