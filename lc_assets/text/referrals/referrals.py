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
from dataclasses import dataclass
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
