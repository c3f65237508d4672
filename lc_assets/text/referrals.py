"""Counting referrals: pairs of mentions of one concept, by how many sentences lie between them.

Here: where concepts are mentioned, and what is counted of that. Not here: finding concepts
    (`lc_assets.text.concepts`).

===========  ==========================================================================================================
counted      is
===========  ==========================================================================================================
pairs        all pairs of mentions of a concept: ``n (n - 1) / 2`` for ``n`` mentions
neighbours   pairs without a third mention between: ``n - 1``
concepts     concepts that have a pair in the bucket
===========  ==========================================================================================================

Each of them falls into **buckets** of distance, the difference of two sentences' numbers: half-open
ranges ``[1, 32)``, ``[32, 128)``, ``[128, 512)`` and ``[512, ∞)`` by default. Pairs within one
sentence stand apart, before the first bucket, and belong to none. No pair is enumerated: of a
concept with ``n`` mentions each bucket costs ``O(log n)`` per mention.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), sections 3.1 and
    C.1. Its buckets touch
each other, and it does not say where a pair within one sentence goes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
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
    """What was counted in one text.

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
    """Refuse edges that cut no buckets.

    Raises:
        BadInput: when they do not ascend, or the first is not above 1.
    """
    if any(low >= high for low, high in zip([1, *edges], edges, strict=False)):
        raise BadInput(
            f"buckets {','.join(map(str, edges))}: wanted ascending numbers above 1, such as "
            "32,128,512"
        )


def count_referrals(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> ReferralCounts:
    """Count everything at once, compiled where there is a compiler.

    Raises:
        BadInput: as `require_edges`.
    """
    require_edges(edges)
    if COMPILED:
        # Numba takes half a second.
        from lc_assets.text.kernels.referrals import counted  # noqa: PLC0415

        pairs, neighbours, concepts = counted(
            mentions.sentences, mentions.ends, np.array([1, *edges], np.int64)
        )
    else:
        pairs, neighbours, concepts = (
            pair_counts(mentions, edges),
            neighbour_counts(mentions, edges),
            concept_counts(mentions, edges),
        )
    found = (tuple(counts.tolist()) for counts in (pairs, neighbours, concepts))
    return ReferralCounts(
        mentions.n_sentences, mentions.n_concepts, len(mentions.sentences), *found
    )


def pair_counts(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> NDArray[np.int64]:
    """Pairs of mentions: within one sentence, then by bucket.

    >>> pair_counts(Mentions.of(600, {"cat": [0, 0, 31, 32, 599]})).tolist()
    [1, 3, 2, 0, 4]

    Returns:
        int64[len(edges) + 2]
    """
    return np.array([int(column.sum()) for column in _pairs_from_each(mentions, edges)], np.int64)


def neighbour_counts(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> NDArray[np.int64]:
    """Neighbouring pairs: within one sentence, then by bucket.

    >>> neighbour_counts(Mentions.of(600, {"cat": [0, 0, 31, 32, 599]})).tolist()
    [1, 2, 0, 0, 1]

    Returns:
        int64[len(edges) + 2]
    """
    distances = np.diff(mentions.sentences)
    within = np.ones(len(distances), np.bool_)
    borders = mentions.ends[1:-1] - 1
    within[borders[(borders >= 0) & (borders < len(distances))]] = False
    return np.bincount(
        np.searchsorted([1, *edges], distances[within], side="right"), minlength=len(edges) + 2
    ).astype(np.int64)


def concept_counts(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> NDArray[np.int64]:
    """Concepts with at least one pair: within one sentence, then by bucket.

    >>> concept_counts(Mentions.of(600, {"cat": [0, 0, 31, 32, 599], "hat": [2, 40]})).tolist()
    [1, 1, 2, 0, 1]

    Returns:
        int64[len(edges) + 2]
    """
    sums = [
        np.diff(np.cumsum(np.append(0, column))[mentions.ends])
        for column in _pairs_from_each(mentions, edges)
    ]
    return np.array([int((total > 0).sum()) for total in sums], np.int64)


def _pairs_from_each(mentions: Mentions, edges: Sequence[int]) -> list[NDArray[np.int64]]:
    """Of each mention, how many later ones of its concept are in the same sentence, and how many in
    each bucket.
    """
    concepts = np.repeat(np.arange(mentions.n_concepts, dtype=np.int64), np.diff(mentions.ends))
    # Concepts lie so far apart that none reaches into the next.
    keys = concepts * (mentions.n_sentences + max(edges, default=1) + 1) + mentions.sentences
    here = np.arange(1, len(keys) + 1)
    below = [np.searchsorted(keys, keys + edge) - here for edge in (1, *edges)]
    every = mentions.ends[concepts + 1] - here
    return list(np.diff([np.zeros(len(keys), np.int64), *below, every], axis=0))
