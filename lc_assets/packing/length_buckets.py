"""Documents by their length: buckets between edges, what is in each, and how packing moved it.

A document of as many tokens as an edge is in the bucket above it. Here: counting. Not here: files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Int64

from lc_assets.errors import BadInput
from lc_assets.vocabulary import KIBI

EDGES: Final = (4 * KIBI, 8 * KIBI, 16 * KIBI, 32 * KIBI, 64 * KIBI, 128 * KIBI)
"""LongPack's, figure 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketCount:
    """What is in one bucket.

    Attributes:
        name: such as ``4K-8K``.
        n_docs: documents.
        n_tokens: theirs.
        share: of all tokens.
    """

    name: str
    n_docs: int
    n_tokens: int
    share: float


def bucket_of(
    lengths: Int64[np.ndarray, " doc"], edges: Sequence[int] = EDGES
) -> Int64[np.ndarray, " doc"]:
    """Number of each document's bucket.

    >>> bucket_of(np.array([1, 4095, 4096, 10**6])).tolist()
    [0, 0, 1, 6]

    Raises:
        BadInput: when the edges do not rise.
    """
    require_edges(edges)
    found: Int64[np.ndarray, " doc"] = np.searchsorted(
        np.array(edges, np.int64), lengths, side="right"
    )
    return found


def bucket_names(edges: Sequence[int] = EDGES) -> list[str]:
    """Names of the buckets, in order.

    >>> bucket_names((4096, 10_000))
    ['0-4K', '4K-10000', '10000-']

    Raises:
        BadInput: when the edges do not rise.
    """
    require_edges(edges)
    shown = ["0", *map(_shown, edges), ""]
    return [f"{low}-{high}" for low, high in pairwise(shown)]


def bucket_counts(
    lengths: Int64[np.ndarray, " doc"], edges: Sequence[int] = EDGES
) -> list[BucketCount]:
    """Count documents and tokens by bucket.

    >>> [(count.name, count.n_docs, count.share) for count in bucket_counts(np.array([1000, 3000, 12_000]), (4096, 8192))]
    [('0-4K', 2, 0.25), ('4K-8K', 0, 0.0), ('8K-', 1, 0.75)]

    Raises:
        BadInput: when the edges do not rise.
    """
    buckets, total = bucket_of(lengths, edges), int(lengths.sum())
    return [
        BucketCount(
            name=name,
            n_docs=len(own),
            n_tokens=int(own.sum()),
            share=int(own.sum()) / max(total, 1),
        )
        for number, name in enumerate(bucket_names(edges))
        for own in [lengths[buckets == number]]
    ]


def require_edges(edges: Sequence[int]) -> None:
    """Refuse edges that are none.

    Raises:
        BadInput: when there is none, one is below 1, or they do not rise.
    """
    if not edges or edges[0] < 1 or any(low >= high for low, high in pairwise(edges)):
        raise BadInput(
            "edges of buckets are numbers of tokens that rise, at least 1; got "
            f"{', '.join(map(str, edges)) or 'none'}"
        )


def _shown(edge: int) -> str:
    return f"{edge // KIBI}K" if edge % KIBI == 0 else str(edge)
