"""Plain reference of the kernels of `lc_assets.text.duplicates.clusters`."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.duplicates.clusters import Clusters, Hashes, Numbers, Sets, Similarities


def clusters_of(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Documents of some pairs, ascending, and the least member of the cluster of each.

    >>> nodes, labels = clusters_of(np.array([4, 7, 1]), np.array([2, 9, 2]))
    >>> nodes.tolist(), labels.tolist()
    ([1, 2, 4, 7, 9], [1, 1, 1, 7, 7])
    """
    clusters = Clusters(np.unique(np.concatenate([left, right]).astype(np.int64)))
    clusters.add(left, right)
    return clusters.nodes, clusters.labels()


def plain_stars(
    members: Numbers, starts: Numbers, centres: int, left: Numbers, right: Numbers
) -> int:
    """See `star_pairs`."""
    pairs = [
        (bucket[centre], bucket[at])
        for bucket in (members[begin:end].tolist() for begin, end in pairwise(starts.tolist()))
        for at in range(1, len(bucket))
        for centre in range(min(at, centres))
    ]
    left[:], right[:] = [one for one, _ in pairs], [other for _, other in pairs]
    return len(pairs)


def plain_similarities(
    left: Sets, ones: Numbers, right: Sets, others: Numbers, *, floor: float, out: Similarities
) -> None:
    """See `similarities`."""
    for pair, (one, other) in enumerate(zip(ones.tolist(), others.tolist(), strict=True)):
        a = set(left.values[left.starts[one] : left.starts[one + 1]].tolist())
        b = set(right.values[right.starts[other] : right.starts[other + 1]].tolist())
        found = len(a & b) / len(a | b) if a | b else 0.0
        out[pair] = found if found >= floor else 0.0


def plain_are_among(keys: Hashes, others: Hashes) -> NDArray[np.bool_]:
    """See `are_among`."""
    known = set(others.tolist())
    return np.array([key in known for key in keys.tolist()], np.bool_)
