"""Counting referrals: pairs of mentions of one concept, by the distance of their sentences.

==========  ================================================================================
pairs       all pairs of mentions of a concept: ``n (n - 1) / 2`` for ``n`` mentions
neighbours  pairs without a third mention between: ``n - 1``
concepts    concepts that have a pair in the bucket
==========  ================================================================================

Each is counted by **buckets** of distance, the difference of two sentences' numbers: half-open
ranges ``[1, 32)``, ``[32, 128)``, ``[128, 512)`` and ``[512, ∞)`` by default. Pairs within one
sentence are in none of them and are counted first. Time is linear in the mentions of a concept for
each bucket.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), sections 3.1 and
C.1. Its buckets are adjacent, and it does not specify the bucket of a pair within one sentence.
`lc_assets.text.referrals.concepts` finds mentions.

A density is what was counted divided by the document's **tokens**; concepts are counted **per
document**. A figure of several documents is the mean of theirs. The paper groups by tokens of
GPT-like vocabularies and says "K"; here K is 1,024.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.errors import BadInput

DISTANCES: Final = (32, 128, 512)
"""Lower ends of the buckets after the first, which begins at 1: the paper's."""


@dataclass(frozen=True, slots=True, eq=False)
class Mentions:
    """Where a text's concepts are mentioned.

    >>> found = Mentions.of(40, {"cat": [35, 0, 3], "hat": [7]})
    >>> found.n_concepts, found.sentences.tolist(), found.ends.tolist()
    (2, [0, 3, 35, 7], [0, 3, 4])

    Attributes:
        n_sentences: of the text.
        sentences: int32[mention], the sentence of each mention, from 0; ascending within a concept.
        ends: int64[concept + 1]; concept ``c`` is mentioned in ``sentences[ends[c]:ends[c + 1]]``.
    """

    n_sentences: int
    sentences: NDArray[np.int32]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, n_sentences: int, sentences_of: Mapping[str, Iterable[int]]) -> Self:
        """Make one of each concept's sentences, in any order.

        Raises:
            BadInput: when a sentence is not of the text.
        """
        lists = [sorted(sentences) for sentences in sentences_of.values()]
        flat = np.fromiter((sentence for one in lists for sentence in one), np.int64)
        if flat.size and not 0 <= flat.min() <= flat.max() < n_sentences:
            raise BadInput(
                f"a text of {n_sentences:,} sentences has no mention in sentences {flat.min():,} "
                f"to {flat.max():,}"
            )
        ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return cls(n_sentences, flat.astype(np.int32), ends)

    @property
    def n_concepts(self) -> int:
        """How many concepts are mentioned."""
        return len(self.ends) - 1

    def within(self, document_of: NDArray[np.int32]) -> "Mentions":
        """The same mentions, with a concept of its own for each document that one is mentioned in.

        Args:
            document_of: int32[sentence], which of several documents in the text a sentence belongs
                to, from 0.
        """
        n_documents = int(document_of.max(initial=0)) + 1
        concepts = np.repeat(np.arange(self.n_concepts), np.diff(self.ends))
        keys = concepts * n_documents + document_of[self.sentences]
        order = np.argsort(
            keys, kind="stable"
        )  # linear where a document is one stretch: the keys ascend already
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        return Mentions(self.n_sentences, self.sentences[order], np.append(begins, len(keys)))


@dataclass(frozen=True, slots=True)
class ReferralCounts:
    """Counts of one text.

    Attributes:
        n_sentences: of the text.
        n_concepts: mentioned in it.
        n_mentions: of all concepts.
        pairs: pairs within one sentence, then those of each bucket.
        neighbours: the same of neighbouring mentions.
        concepts: concepts with a pair within one sentence, then with one in each bucket.
    """

    n_sentences: int
    n_concepts: int
    n_mentions: int
    pairs: tuple[int, ...]
    neighbours: tuple[int, ...]
    concepts: tuple[int, ...]


def bucket_names(edges: Sequence[int] = DISTANCES) -> list[str]:
    """Names of the buckets, after that of the pairs within one sentence.

    >>> bucket_names((32, 128))
    ['same sentence', '1-32', '32-128', '128-']
    """
    lower = [1, *edges]
    return [
        "same sentence",
        *(f"{low}-{high}" for low, high in zip(lower, [*edges, ""], strict=True)),
    ]


def require_edges(edges: Sequence[int]) -> None:
    """Check the edges of buckets.

    Raises:
        BadInput: when they do not ascend, or the first is not above 1.
    """
    if any(low >= high for low, high in zip([1, *edges], edges, strict=False)):
        raise BadInput(
            f"buckets {','.join(map(str, edges))}: wanted ascending numbers above 1, such as "
            "32,128,512"
        )


def count_referrals(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> ReferralCounts:
    """Count pairs, neighbours and concepts of a text.

    Raises:
        BadInput: as `require_edges`.
    """
    require_edges(edges)
    counts = _count(mentions.sentences, mentions.ends, np.array([1, *edges], np.int64))
    pairs, neighbours, concepts = (tuple(column.tolist()) for column in counts)
    return ReferralCounts(
        mentions.n_sentences,
        mentions.n_concepts,
        len(mentions.sentences),
        pairs,
        neighbours,
        concepts,
    )


@compiled
def _count(
    sentences: NDArray[np.int32], ends: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Count pairs, neighbours and concepts by bucket, with a pointer per edge into a concept's
    mentions.

    Args:
        sentences: of `Mentions`.
        ends: of `Mentions`.
        edges: lower ends of the buckets, ascending, the first of them 1.

    Returns:
        Three arrays int64[len(edges) + 1]: within one sentence, then by bucket.
    """
    n_edges = len(edges)
    counts = np.zeros((3, n_edges + 1), np.int64)
    pairs, neighbours, concepts = counts[0], counts[1], counts[2]
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


KINDS: Final = ("pairs", "neighbours", "concepts")

_Table = dict[str, tuple[float, float, float, float]]


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
        """Add a document.

        Raises:
            BadInput: when it has no tokens.
        """
        if n_tokens < 1:
            raise BadInput("a document without tokens has no density")
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


PAPER: Final[Mapping[str, Mapping[str, _Table]]] = {
    "pairs": {
        "RefinedWeb": {
            "0-4K": (0.57, 0.41, 0.02, 0),
            "4K-8K": (1.15, 2.03, 0.79, 5.08e-3),
            "8K-16K": (1.72, 3.98, 4.93, 0.25),
            "16K-32K": (1.70, 4.35, 10.72, 4.66),
            "32K-64K": (1.62, 4.26, 12.57, 10.73),
        },
        "Packed": {
            "0-4K": (0.54, 0.33, 8.23e-3, 0),
            "4K-8K": (0.97, 1.48, 0.41, 1.50e-4),
            "8K-16K": (1.25, 2.59, 2.76, 0.04),
            "16K-32K": (1.13, 2.60, 5.82, 1.51),
            "32K-64K": (1.31, 3.37, 11.52, 27.65),
        },
    },
    "neighbours": {
        "RefinedWeb": {
            "0-4K": (0.10, 7.61e-3, 8.61e-5, 0),
            "4K-8K": (0.15, 0.02, 2.30e-3, 1.84e-6),
            "8K-16K": (0.18, 0.03, 8.63e-3, 9.12e-5),
            "16K-32K": (0.17, 0.03, 1.29e-2, 1.20e-3),
            "32K-64K": (0.17, 0.03, 1.54e-2, 6.16e-3),
        },
        "Packed": {
            "0-4K": (0.11, 7.24e-3, 5.21e-5, 0),
            "4K-8K": (0.14, 0.02, 1.93e-3, 2.25e-7),
            "8K-16K": (0.16, 0.03, 7.85e-3, 3.72e-5),
            "16K-32K": (0.15, 0.03, 1.24e-2, 1.02e-3),
            "32K-64K": (0.17, 0.03, 1.56e-2, 6.52e-3),
        },
    },
    "concepts": {
        "RefinedWeb": {
            "0-4K": (49.8, 20.9, 0.8, 0),
            "4K-8K": (151.9, 115.0, 44.9, 0.07),
            "8K-16K": (248.9, 198.9, 169.2, 8.6),
            "16K-32K": (324.0, 253.8, 272.0, 121.4),
            "32K-64K": (518.7, 370.8, 413.7, 409.1),
        },
        "Packed": {
            "0-4K": (57.2, 22.0, 0.57, 0),
            "4K-8K": (164.2, 116.9, 40.7, 0.009),
            "8K-16K": (266.4, 201.5, 164.6, 4.3),
            "16K-32K": (345.3, 257.7, 273.0, 107.3),
            "32K-64K": (554.1, 391.7, 437.6, 447.5),
        },
    },
}
"""Tables 4, 5 and 6 by kind, set and group of lengths, for the distances ``[0, 32)``, ``[32,
128)``, ``[128, 512)``, ``[512, ∞)``. The sets are natural documents, and LongPack's.
"""


def paper_figures(
    kind: str, paper_set: str, group: str, *, edges: Sequence[int]
) -> tuple[float, ...] | None:
    """The paper's figures of a group; None where it has none, or uses other buckets.

    >>> paper_figures("pairs", "Packed", "32K-64K", edges=(32, 128, 512))
    (1.31, 3.37, 11.52, 27.65)
    >>> paper_figures("pairs", "Packed", "64K-128K", edges=(32, 128, 512))
    """
    return PAPER[kind][paper_set].get(group) if tuple(edges) == (32, 128, 512) else None
