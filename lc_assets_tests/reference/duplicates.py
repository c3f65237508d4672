"""Plain reference of the kernels of `lc_assets.text.duplicates.clusters`."""

from itertools import pairwise

import numpy as np

from lc_assets.text.duplicates.clusters import Hashes, Numbers, cluster_roots


def clusters_of(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Documents of some pairs, ascending, and the least member of the cluster of each.

    >>> nodes, labels = clusters_of(np.array([4, 7, 1]), np.array([2, 9, 2]))
    >>> nodes.tolist(), labels.tolist()
    ([1, 2, 4, 7, 9], [1, 1, 1, 7, 7])
    """
    nodes = np.unique(np.concatenate([left, right]).astype(np.int64))
    return nodes, cluster_roots(nodes, [(left, right)])


def plain_stars(members: Numbers, starts: Numbers, centres: int) -> tuple[list[int], list[int]]:
    """See `star_pairs`."""
    pairs = [
        (bucket[centre], bucket[at])
        for bucket in (members[begin:end].tolist() for begin, end in pairwise(starts.tolist()))
        for at in range(1, len(bucket))
        for centre in range(min(at, centres))
    ]
    return [one for one, _ in pairs], [other for _, other in pairs]


def plain_similarities(
    values: Hashes, starts: Numbers, ones: Numbers, others: Numbers, floor: float
) -> list[float]:
    """See `similarities`."""
    sets = [set(values[begin:end].tolist()) for begin, end in pairwise(starts.tolist())]
    sides = [(sets[one], sets[other]) for one, other in zip(ones, others, strict=True)]
    indices = [len(a & b) / len(a | b) if a | b else 0.0 for a, b in sides]
    return [index if index >= floor else 0.0 for index in indices]
