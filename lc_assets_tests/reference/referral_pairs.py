"""Referrals counted by looking at every pair."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise


def slow_counts(
    sentences_of: Mapping[str, Iterable[int]], edges: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Pairs, neighbours and concepts: within one sentence, then by bucket."""
    pairs, neighbours, concepts = ([0] * (len(edges) + 2) for _ in range(3))
    for sentences in map(sorted, sentences_of.values()):
        seen = set()
        for one, other in combinations(sentences, 2):
            bucket = bucket_of(other - one, edges)
            pairs[bucket] += 1
            seen.add(bucket)
        for one, other in pairwise(sentences):
            neighbours[bucket_of(other - one, edges)] += 1
        for bucket in seen:
            concepts[bucket] += 1
    return pairs, neighbours, concepts


def bucket_of(distance: int, edges: Sequence[int]) -> int:
    """0 for one sentence, 1 for the first bucket, and so on."""
    return sum(distance >= edge for edge in (1, *edges))
