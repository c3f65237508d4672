"""Referrals counted by looking at every pair."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lc_assets.text.referrals.referrals import KINDS, ReferralCounts


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


@dataclass(slots=True)
class Sums:
    """Sums of the figures of some documents, to be added up in an order that does not change.

    Attributes:
        n_documents: how many.
        n_tokens: of all of them.
        figures: by kind, sums of densities (of concepts: of counts): within one sentence, then by
            bucket.
    """

    n_documents: int = 0
    n_tokens: int = 0
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, counts: ReferralCounts, n_tokens: int) -> None:
        """Add a document."""
        self.n_documents += 1
        self.n_tokens += n_tokens
        for kind in KINDS:
            per = 1 if kind == "concepts" else n_tokens
            new = [count / per for count in getattr(counts, kind)]
            old = self.figures.get(kind, [0.0] * len(new))
            self.figures[kind] = [one + other for one, other in zip(old, new, strict=True)]

    def means(self) -> dict[str, list[float]]:
        """By kind: within one sentence, then by bucket; empty when there is no document."""
        return {
            kind: [figure / self.n_documents for figure in figures]
            for kind, figures in self.figures.items()
        }
