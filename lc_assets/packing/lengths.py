"""Lengths of documents: buckets of lengths, and how much packing along links lengthens documents.

A document with as many tokens as an edge is in the bucket above it.

Two statistics are called growth, and differ by a factor: the mean of the documents' ratios, which a
few short pages with long children dominate, and the ratio of the sums of tokens. Both are given,
and the median. All are over roots that hold something.
Source: LongPack (ICLR 2025), section 5.2 and figure 5.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.records import record
from lc_assets.vocabulary import KIBI

EDGES = (4 * KIBI, 8 * KIBI, 16 * KIBI, 32 * KIBI, 64 * KIBI, 128 * KIBI)
"""Edges of LongPack, figure 5."""


@record
class BucketCount:
    """Documents and tokens of one bucket.

    Attributes:
        name: such as ``4K-8K``.
        n_docs: documents.
        n_tokens: their tokens.
        share: their share of all tokens.
    """

    name: str
    n_docs: int
    n_tokens: int
    share: float


def bucket_of(lengths: Int64s) -> Int64s:
    """Number of each document's bucket.

    >>> bucket_of(np.array([1, 4095, 4096, 10**6])).tolist()
    [0, 0, 1, 6]
    """
    return np.searchsorted(EDGES, lengths, side="right")


def bucket_names(edges: Sequence[int] = EDGES) -> list[str]:
    """Names of the buckets, in order.

    >>> bucket_names((4096, 10_000))
    ['0-4K', '4K-10000', '10000-']
    """
    shown = ["0", *map(_shown, edges), ""]
    return [f"{low}-{high}" for low, high in pairwise(shown)]


def bucket_counts(lengths: Int64s) -> list[BucketCount]:
    """Count documents and tokens by bucket.

    >>> counts = bucket_counts(np.array([1000, 3000, 12_000]))
    >>> [(count.name, count.n_docs, count.share) for count in counts[:3]]
    [('0-4K', 2, 0.25), ('4K-8K', 0, 0.0), ('8K-16K', 1, 0.75)]
    """
    buckets, total = bucket_of(lengths), int(lengths.sum())
    return [
        BucketCount(
            name=name,
            n_docs=len(own),
            n_tokens=int(own.sum()),
            share=int(own.sum()) / max(total, 1),
        )
        for number, name in enumerate(bucket_names())
        for own in [lengths[buckets == number]]
    ]


def _shown(edge: int) -> str:
    return f"{edge // KIBI}K" if edge % KIBI == 0 else str(edge)


@record
class Growth:
    """How packing changed the lengths of roots.

    Attributes:
        n_roots: all roots.
        n_packed: roots that hold something.
        hit_rate: their share of all roots.
        mean_of_ratios: mean over documents of tokens after by tokens before.
        ratio_of_sums: tokens of packed documents by tokens of their roots.
        median_ratio: median over documents of tokens after by tokens before.
    """

    n_roots: int
    n_packed: int
    hit_rate: float
    mean_of_ratios: float
    ratio_of_sums: float
    median_ratio: float


PAPER = Growth(
    n_roots=5_000_000,
    n_packed=585_000,
    hit_rate=0.117,
    mean_of_ratios=32.7,
    ratio_of_sums=13.0,
    median_ratio=float("nan"),
)
"""The paper's figures, over roots of RefinedWeb; it gives no median."""


def growth(before: Int64s, after: Int64s, *, n_roots: int) -> Growth:
    """Statistics of the growth of roots.

    Args:
        before: tokens of each root that holds something; none counts as one.
        after: tokens of its packed document.
        n_roots: all roots, including those that hold nothing.

    >>> found = growth(np.array([10, 100]), np.array([510, 300]), n_roots=8)
    >>> found.hit_rate, found.mean_of_ratios, round(found.ratio_of_sums, 2), found.median_ratio
    (0.25, 27.0, 7.36, 27.0)
    """
    whole = np.maximum(before, 1)
    # Zeros where nothing is packed.
    ratios = after / whole if len(before) else np.zeros(1)
    return Growth(
        n_roots=n_roots,
        n_packed=len(before),
        hit_rate=len(before) / max(n_roots, 1),
        mean_of_ratios=float(ratios.mean()),
        ratio_of_sums=float(after.sum() / max(int(whole.sum()), 1)),
        median_ratio=float(np.median(ratios)),
    )
