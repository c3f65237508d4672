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


def plain_unknown_pairs(
    alike: dict[frozenset[int], float],
    keepers: list[int],
    is_last: list[bool],
    snapshots: list[int],
    near: float,
    most: int,
) -> set[tuple[int, int]]:
    """See `unknown_pairs`; ``alike`` are the similarities of known pairs."""
    n = len(keepers)
    found = set()
    for third in range(n):
        ours = [d for d in range(n) if alike.get(frozenset((third, d)), 0.0) >= near]
        firsts = [d for d in ours if keepers[d] == n and not is_last[d]][:most]
        found |= {
            (one, other)
            for one in firsts
            for other in ours
            if other > one and keepers[other] > one and frozenset((one, other)) not in alike
            if snapshots[third] <= max(snapshots[one], snapshots[other])
        }
    return found


def plain_similarities(
    values: Hashes, starts: Numbers, ones: Numbers, others: Numbers, floor: float
) -> list[float]:
    """See `similarities`."""
    sets = [set(values[begin:end].tolist()) for begin, end in pairwise(starts.tolist())]
    sides = [(sets[one], sets[other]) for one, other in zip(ones, others, strict=True)]
    indices = [len(a & b) / len(a | b) if a | b else 0.0 for a, b in sides]
    return [index if index >= floor else 0.0 for index in indices]
