"""Counting referrals: pairs of mentions of one concept, by the distance of their sentences.

==========  ================================================================================
pairs       all pairs of mentions of a concept: ``n (n - 1) / 2`` for ``n`` mentions
neighbours  pairs without a third mention between: ``n - 1``
concepts    concepts that have a pair in the bucket
==========  ================================================================================

Each is counted by **buckets** of distance, the difference of two sentences' numbers: half-open
ranges ``[1, 32)``, ``[32, 128)``, ``[128, 512)`` and ``[512, ∞)`` by default. Pairs within one
sentence are in none of them and are counted first. Time is nearly linear in the mentions, for each
bucket.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), sections 3.1 and
C.1. Its buckets are adjacent, and it does not specify the bucket of a pair within one sentence.
`lc_assets.text.referrals.concepts` finds mentions.

A density is what was counted divided by the document's **tokens**; concepts are counted **per
document**. A figure of several documents is the mean of theirs. The paper groups by tokens of
GPT-like vocabularies and says "K"; here K is 1,024.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from lc_assets.arrays import Int32s, Int64s
from lc_assets.errors import BadInput
from lc_assets.records import distinct, frozen

DISTANCES = (32, 128, 512)
"""Lower ends of the buckets after the first, which begins at 1: the paper's."""
AT_ONCE = 1 << 16
"""Mentions whose pairs are counted together, to bound the memory."""


@distinct
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
    sentences: Int32s
    ends: Int64s

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

    def within(self, document_of: Int32s) -> "Mentions":
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


@frozen
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
            f"buckets {','.join(map(str, edges))}: expected ascending numbers above 1, such as "
            "32,128,512"
        )


def count_referrals(mentions: Mentions, edges: Sequence[int] = DISTANCES) -> ReferralCounts:
    """Count pairs, neighbours and concepts of a text.

    Raises:
        BadInput: as `require_edges`.
    """
    require_edges(edges)
    n_sentences, n_mentions = mentions.n_sentences, len(mentions.sentences)
    concepts = np.repeat(np.arange(mentions.n_concepts, dtype=np.int32), np.diff(mentions.ends))
    # All mentions as one ascending sequence, in which each concept has a range of its own.
    places = concepts.astype(np.int64) * n_sentences
    places += mentions.sentences
    pairs, neighbours = np.zeros((2, len(edges) + 2), np.int64)
    has_pair = np.zeros((len(edges) + 2, mentions.n_concepts), np.bool_)
    for start in range(0, n_mentions, AT_ONCE):
        own = slice(start, start + AT_ONCE)
        following = np.arange(start + 1, min(start + AT_ONCE, n_mentions) + 1)
        begins, sentences = (
            values.astype(np.int64) for values in (concepts[own], mentions.sentences[own])
        )
        begins *= n_sentences
        first = following
        for bucket, edge in enumerate((1, *edges, n_sentences)):
            limits = begins + np.minimum(sentences + edge, n_sentences)
            last = np.maximum(np.searchsorted(places, limits), following)
            pairs[bucket] += (last - first).sum()
            neighbours[bucket] += ((first == following) & (last > first)).sum()
            has_pair[bucket, concepts[own][last > first]] = True
            first = last
    counts = (tuple(of.tolist()) for of in (pairs, neighbours, has_pair.sum(axis=1)))
    return ReferralCounts(n_sentences, mentions.n_concepts, n_mentions, *counts)


KINDS = ("pairs", "neighbours", "concepts")
