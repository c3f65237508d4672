"""Compiled loops of near duplicates: joining pairs into clusters, pairing the members of a bucket,
comparing sorted sets.

Plain twins stand in `lc_assets.text.duplicates`; here is nothing that is not a loop over numbers.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Similarities = NDArray[np.float64]


@compiled
def join(parents: Numbers, left: Numbers, right: Numbers) -> None:
    """Join the trees of ``left[i]`` and ``right[i]`` for every i; a root is always the least of its
    tree.

    Args:
        parents: ``(n,)`` a forest, changed in place; at first each node is its own parent.
        left: ``(m,)`` nodes.
        right: ``(m,)`` nodes.
    """
    for at in range(len(left)):
        one, other = left[at], right[at]
        while parents[one] != one:
            parents[one] = parents[parents[one]]
            one = parents[one]
        while parents[other] != other:
            parents[other] = parents[parents[other]]
            other = parents[other]
        if one < other:
            parents[other] = one
        else:
            parents[one] = other


@compiled
def flatten(parents: Numbers) -> None:
    """Make every node's root its parent; a parent is never greater than its child, so one pass
    upwards does.
    """
    for node in range(len(parents)):
        parents[node] = parents[parents[node]]


@compiled
def stars(members: Numbers, starts: Numbers, centres: int, left: Numbers, right: Numbers) -> int:
    """Pair each member of a bucket with the first ``centres`` members before it; return how many
    pairs that made.

    Args:
        members: ``(n,)`` documents, ascending within a bucket.
        starts: ``(k + 1,)`` where each bucket begins; the last is n.
        centres: how many of a bucket's members all others are paired with.
        left: ``(m,)`` takes the centre of each pair.
        right: ``(m,)`` takes the other.
    """
    made = 0
    for bucket in range(len(starts) - 1):
        first = starts[bucket]
        for at in range(first + 1, starts[bucket + 1]):
            for centre in range(first, min(at, first + centres)):
                left[made] = members[centre]
                right[made] = members[at]
                made += 1
    return made


@compiled
def similarities(
    left: Hashes,
    left_starts: Numbers,
    left_ends: Numbers,
    right: Hashes,
    right_starts: Numbers,
    right_ends: Numbers,
    floor: float,
    out: Similarities,
) -> None:
    """Jaccard index of pairs of sorted sets; 0 for a pair that cannot reach ``floor``.

    Args:
        left: all sets of one store, one after the other; ascending within a set, without repeats.
        left_starts: ``(m,)`` where the i-th pair's set begins in ``left``.
        left_ends: ``(m,)`` where it ends.
        right: the other store.
        right_starts: as above.
        right_ends: as above.
        floor: what is below need not be known.
        out: ``(m,)`` takes the indices.
    """
    for pair in range(len(out)):
        i, i_end, j, j_end = (
            left_starts[pair],
            left_ends[pair],
            right_starts[pair],
            right_ends[pair],
        )
        n_both = (i_end - i) + (j_end - j)
        # J = s / (n - s) >= f means s >= n f / (1 + f): how many misses that leaves on either side.
        wanted = n_both * floor / (1.0 + floor)
        shared = 0
        while i < i_end and j < j_end:
            one, other = left[i], right[j]
            shared += one == other
            i += one <= other
            j += other <= one
            if one != other and shared + min(i_end - i, j_end - j) < wanted - 1e-6:
                break
        found = shared / (n_both - shared) if n_both > shared else (1.0 if n_both else 0.0)
        out[pair] = found if found >= floor else 0.0
