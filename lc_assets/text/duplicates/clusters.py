"""Near duplicates as arrays: pairs, their similarities, and clusters made of pairs."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Bytes, Floats, Int64s, UInt64s
from lc_assets.compiling import compiled

Numbers = Int64s
Hashes = UInt64s
Similarities = Floats
Measure = Literal["jaccard", "containment"]
"""Of similarity; see `similarities`."""


def cluster_roots(nodes: Numbers, pairs: Iterable[tuple[Numbers, Numbers]]) -> Numbers:
    """The smallest member of each node's cluster; ``(n,)`` int64.

    Memory is 16 bytes per node, however many pairs there are. Time is a little more than linear
    (union by least member, with path halving).

    Args:
        nodes: ``(n,)`` int64, ascending, without repeats: all documents of all pairs.
        pairs: batches of pairs: for every i, ``left[i]`` and ``right[i]`` are in one cluster.
    """
    roots: Numbers = np.arange(len(nodes), dtype=np.int64)
    for sides in pairs:
        _join(roots, *(np.searchsorted(nodes, side) for side in sides))
    while not np.array_equal(roots, above := roots[roots]):
        roots = above
    return nodes[roots]


@compiled
def _join(parents: Numbers, left: Numbers, right: Numbers) -> None:
    """Join the trees of ``left[i]`` and ``right[i]`` for every i; a root is always the least of its
    tree.

    Args:
        parents: ``(n,)`` a forest, changed in place; at first each node is its own parent.
        left: ``(m,)`` nodes.
        right: ``(m,)`` nodes.
    """
    for i in range(len(left)):
        one, other = left[i], right[i]
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


class Neighbours(NamedTuple):
    """Pairs of n documents, each from both sides.

    Attributes:
        starts: ``(n + 1,)`` int64: where the pairs of each document begin.
        others: the other document of each pair, the most similar first.
        similarities: of the pairs.
    """

    starts: Numbers
    others: Numbers
    similarities: Similarities


def neighbours(left: Numbers, right: Numbers, similarities: Similarities, n: int) -> Neighbours:
    """Pairs of documents below ``n``, in any order, as `Neighbours`."""
    ours, others = np.concatenate([left, right]), np.concatenate([right, left])
    alike = np.concatenate([similarities, similarities])
    order = np.lexsort([others, -alike, ours])
    starts = np.searchsorted(ours[order], np.arange(n + 1))
    return Neighbours(starts, others[order], alike[order])


@compiled
def remove_similar(
    pairs: Neighbours,
    marks: tuple[Booleans, Bytes, Int64s],
    least: tuple[float, float],
    is_metric: bool,
    kept: Numbers,
    similarities: Similarities,
) -> Booleans:
    """Go through documents in their order: each that stays removes later ones that are similar.

    Of two documents that are like a third, 1 minus the similarity is a distance (Lipkus, 1999), so
    they are at least as similar as both similarities together, minus 1. Thus the members of a
    great bucket, which are compared with its first ones only, are removed for any of them.

    Args:
        pairs: of documents.
        marks: ``(n,)`` each: who removes none; who is held out (1), or trained on (0); the snapshot
            of a document, which brings none together that are of older ones.
        least: similarity of near duplicates, and of pairs of which one is held out and the other
            trained on.
        is_metric: whether similarities are Jaccard indices.
        kept: ``(n,)`` the document that each was removed for before, else -1; changed in place.
        similarities: ``(n,)`` filled with that of each that is removed, a lower bound where the two
            were not compared.

    Returns:
        Who is removed only because one is held out and the other trained on.
    """
    (is_last, held, snapshots), (near, floor) = marks, least
    across, done = np.zeros(len(kept), np.bool_), pairs.starts.copy()
    for ours in range(len(kept)):
        if kept[ours] >= 0 or is_last[ours]:
            continue
        for at in range(pairs.starts[ours], pairs.starts[ours + 1]):
            other, alike = pairs.others[at], pairs.similarities[at]
            if alike >= near:
                goes = kept[other] < 0 or across[other]
            else:
                goes = alike >= floor and held[ours] + held[other] == 1 and kept[other] < 0
            if goes and other > ours:
                kept[other], across[other], similarities[other] = ours, alike < near, alike
        for at in range(pairs.starts[ours], pairs.starts[ours + 1]):
            third, distance = pairs.others[at], 1.0 - pairs.similarities[at]
            if not is_metric or pairs.similarities[at] < near:
                break
            # What was passed before has been decided, so each pair is met once.
            while done[third] < pairs.starts[third + 1]:
                other, alike = pairs.others[done[third]], pairs.similarities[done[third]] - distance
                if alike < near:
                    break
                done[third] += 1
                is_known = snapshots[third] <= max(snapshots[ours], snapshots[other])
                if other > ours and is_known and (kept[other] < 0 or across[other]):
                    kept[other], across[other], similarities[other] = ours, False, alike
    return across


def unknown_pairs(
    pairs: Neighbours, keepers: Numbers, marks: tuple[Booleans, Int64s], near: float, most: int
) -> Numbers:
    """Pairs of documents that were not compared, though both are like a third one, and of which the
    first stays and the other was not removed for it, nor for one before it.

    Of the documents that are like one, the first ``most`` that stay are paired with the others: at
    most ``most`` times as many pairs as are known.

    Args:
        pairs: all that were compared.
        keepers: ``(n,)`` the one that each was removed for as a near duplicate; n if it stays, -1
            if it goes for another reason.
        marks: ``(n,)`` each: who removes none, and snapshots, as in `remove_similar`.
        near: least similarity of two that are alike.
        most: see above.

    Returns:
        ``(m, 2)`` int64, the lesser first.
    """
    found: Numbers = np.empty((0, 2), np.int64)
    found = np.empty((_meet(pairs, keepers, marks, near, most, found), 2), np.int64)
    _meet(pairs, keepers, marks, near, most, found)
    return found


@compiled
def _meet(
    pairs: Neighbours,
    keepers: Numbers,
    marks: tuple[Booleans, Int64s],
    near: float,
    most: int,
    found: Numbers,
) -> int:
    """Fill ``found`` with as many of `unknown_pairs` as it has room for; how many there are."""
    (is_last, snapshots), n, n_found = marks, len(keepers), 0
    firsts, met = np.zeros(n, np.int64), np.full(n, -1)
    for ours in range(n):
        if keepers[ours] < n or is_last[ours]:
            continue
        begin, end = pairs.starts[ours], pairs.starts[ours + 1]
        met[pairs.others[begin:end]] = ours
        for at in range(begin, end):
            third = pairs.others[at]
            if pairs.similarities[at] < near:
                break
            if firsts[third] == most:
                continue
            firsts[third] += 1
            for place in range(pairs.starts[third], pairs.starts[third + 1]):
                other = pairs.others[place]
                if pairs.similarities[place] < near:
                    break
                is_known = snapshots[third] <= max(snapshots[ours], snapshots[other])
                if other > ours and keepers[other] > ours and met[other] != ours and is_known:
                    met[other] = ours
                    if n_found < len(found):
                        found[n_found, 0], found[n_found, 1] = ours, other
                    n_found += 1
    return n_found


@compiled
def star_pairs(members: Numbers, starts: Numbers, centres: int) -> tuple[Numbers, Numbers]:
    """Pair each member of a bucket with the first ``centres`` members before it.

    A bucket of at most ``centres + 1`` members gives all its pairs, a larger one ``centres`` pairs
    per member: the work is linear in the members.

    Args:
        members: ``(n,)`` int64, documents, bucket after bucket, ascending within a bucket.
        starts: ``(k + 1,)`` int64: where each bucket begins; the last is n.
        centres: how many of a bucket's members all others are paired with.

    Returns:
        Two arrays ``(m,)`` int64; the left of each pair is the lesser.

    >>> [pairs.tolist() for pairs in star_pairs(np.array([1, 5, 7, 9]), np.array([0, 4]), 2)]
    [[1, 1, 5, 1, 5], [5, 7, 7, 9, 9]]
    """
    n_pairs = 0
    for bucket in range(len(starts) - 1):
        size = starts[bucket + 1] - starts[bucket]
        n_centres = min(size, centres)
        n_pairs += n_centres * (n_centres - 1) // 2 + (size - n_centres) * n_centres
    left, right = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    made = 0
    for bucket in range(len(starts) - 1):
        first = starts[bucket]
        for at in range(first + 1, starts[bucket + 1]):
            for centre in range(first, min(at, first + centres)):
                left[made] = members[centre]
                right[made] = members[at]
                made += 1
    return left, right


class ShingleSets(NamedTuple):
    """Shingles of some documents.

    Attributes:
        hashes: uint64, set after set, ascending within each, without repeats.
        starts: ``(n + 1,)`` int64: where each set begins; the last is the length of ``hashes``.
        n_chars: ``(n,)`` int64, characters of each text.
    """

    hashes: Hashes
    starts: Numbers
    n_chars: Numbers


def similarities(
    left: ShingleSets,
    ones: Numbers,
    right: ShingleSets,
    others: Numbers,
    floor: float,
    measure: Measure = "jaccard",
) -> Similarities:
    """How similar ``left``'s set ``ones[i]`` and ``right``'s set ``others[i]`` are, for every i.

    A pair below ``floor`` is 0, mostly found without reading its sets to the end. Two empty sets
    are 0.

    Args:
        left: some sets.
        ones: numbers of sets of ``left``.
        right: some sets.
        others: as many numbers of sets of ``right``.
        floor: the least similarity of interest.
        measure: ``jaccard``, the share of the shingles of both that they share; ``containment``,
            that of the shorter text's; of texts of one length, of the larger set.

    >>> values = np.array([1, 2, 3, 2, 3, 4, 5], np.uint64)
    >>> sets = ShingleSets(values, np.array([0, 3, 7]), np.array([60, 80]))
    >>> ones, others = np.array([0, 0]), np.array([1, 0])
    >>> similarities(sets, ones, sets, others, 0.0).tolist()
    [0.4, 1.0]
    >>> similarities(sets, ones, sets, others, 0.5, "containment").tolist()
    [0.6666666666666666, 1.0]
    """
    mine, theirs = (
        sets.starts[places + 1] - sets.starts[places]
        for sets, places in ((left, ones), (right, others))
    )
    if measure == "containment":
        longer = left.n_chars[ones] - right.n_chars[others]
        whole = np.where(longer < 0, mine, np.where(longer > 0, theirs, np.maximum(mine, theirs)))
        shared = _shared(left, ones, right, others, whole * floor)
    else:
        # J = s / (n - s) >= f means s >= n f / (1 + f).
        shared = _shared(left, ones, right, others, (mine + theirs) * (floor / (1.0 + floor)))
        whole = mine + theirs - shared
    found = shared / np.maximum(whole, 1)
    return np.where(found >= floor, found, 0.0)


@compiled
def _shared(
    left: ShingleSets, ones: Numbers, right: ShingleSets, others: Numbers, least: Floats
) -> Numbers:
    """How many hashes sets share, ``(n,)``; where these are fewer than ``least[i]``, a number below
    that. For the other arguments see `similarities`.
    """
    out = np.zeros(len(ones), np.int64)
    for pair in range(len(out)):
        i, i_end = left.starts[ones[pair]], left.starts[ones[pair] + 1]
        j, j_end = right.starts[others[pair]], right.starts[others[pair] + 1]
        shared = 0
        while i < i_end and j < j_end:
            one, other = left.hashes[i], right.hashes[j]
            shared += one == other
            i += one <= other
            j += other <= one
            if one != other and shared + min(i_end - i, j_end - j) < least[pair] - 1e-6:
                break
        out[pair] = shared
    return out
