"""Bottom-k sketches: which documents are at least so similar, without comparing all of them.

A sketch holds the 32 smallest hashes of a document's distinct shingles. Of two documents of Jaccard
index J each of the 32 smallest hashes of their union is in both sketches with probability J. They
share fewer than `least_shared` of them with a probability of at most `MISSED`, and none with
(1 - J)³²: 2.3e-10 at 0.5. Sketches that are not full hold all hashes.

Source: Broder (1997), "On the resemblance and containment of documents".
"""

from collections.abc import Iterator
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Int64s, UInt64s
from lc_assets.compiling import compiled
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import PUBLISHED_SHINGLES, Shingles, shingles_each
from lc_assets.text.folding import normalized_utf8

SKETCH_HASHES = 32
"""Hashes of a sketch."""
MISSED = 1e-6
"""Greatest probability that two documents of the least similarity are not found."""
NONE = np.uint64(2**64 - 1)
"""Fills a sketch of fewer hashes."""
MATCHES_AT_ONCE = 1 << 24


def sketch(text: str | bytes, shingles: Shingles = PUBLISHED_SHINGLES) -> UInt64s:
    """The sketch of a text, or of its UTF-8, ``(32,)`` uint64, ascending; of one shorter than a
    shingle it is empty.

    >>> [int((sketch("word " * n) != NONE).sum()) for n in (12, 13, 99)]
    [0, 1, 1]
    """
    normalized = normalized_utf8(text)
    hashes = shingles_each(normalized, np.array([len(normalized)]), shingles)
    found: UInt64s = sketches_each(*hashes)[0]
    return found


def sketches_each(hashes: Hashes, ends: Int64s) -> UInt64s:
    """The sketches of some texts, ``(texts, 32)`` uint64, by the hashes of their shingles and where
    those of each text end, as `shingles_each` gives them.
    """
    found = np.full((len(ends), SKETCH_HASHES), NONE)
    _least(hashes, ends, found)
    return found


@compiled
def _least(hashes: Hashes, ends: Int64s, out: UInt64s) -> None:
    """Insert the least hashes of each text into its sketch, which is ascending; each once. Of *n*
    hashes in any order some 32 ln *n* are inserted.
    """
    begin = 0
    for text in range(len(ends)):
        least = out[text]
        for at in range(begin, ends[text]):
            value = hashes[at]
            if value < least[-1]:
                place = len(least) - 1
                while place > 0 and least[place - 1] > value:
                    place -= 1
                if place == 0 or least[place - 1] != value:
                    for later in range(len(least) - 1, place, -1):
                        least[later] = least[later - 1]
                    least[place] = value
        begin = ends[text]


@cache
def least_shared(floor: float) -> int:
    """How many hashes full sketches of documents of this Jaccard index share, except with a
    probability of at most `MISSED`; at least one.

    >>> [least_shared(floor) for floor in (0.1, 0.5, 0.8)]
    [1, 3, 13]
    """
    missed, shared = 0.0, 0
    while missed <= MISSED and shared <= SKETCH_HASHES:
        ways = comb(SKETCH_HASHES, shared)
        missed += ways * floor**shared * (1 - floor) ** (SKETCH_HASHES - shared)
        shared += 1
    return max(1, shared - 1)


class SketchIndex(NamedTuple):
    """Hashes of some sketches, ascending; the number of each one's sketch; how many hashes each
    sketch has; and which last bits hashes have, by bits: a power of two, eight for a hash at least.
    """

    hashes: UInt64s
    whose: Int64s
    sizes: Int64s
    bits: Booleans


def index_sketches(sketches: UInt64s) -> SketchIndex:
    """The index of some sketches, ``(n, 32)``."""
    is_hash = sketches != NONE
    hashes, whose = sketches[is_hash], np.nonzero(is_hash)[0]
    order = np.argsort(hashes, kind="stable")
    bits = np.zeros(1 << (8 * len(hashes)).bit_length(), np.bool_)
    bits[hashes & np.uint64(len(bits) - 1)] = True
    return SketchIndex(hashes[order], whose[order], is_hash.sum(axis=1), bits)


def similar_sketches(
    sketches: UInt64s, index: SketchIndex, floor: float
) -> Iterator[tuple[Int64s, Int64s]]:
    """Pairs, of a sketch of ``(n, 32)`` and one of an index, that may have a Jaccard index of at
    least ``floor``: their numbers, some at a time.

    >>> texts = [" ".join(f"{at}" for at in range(start, start + 99)) for start in (0, 20, 90)]
    >>> sketches = np.array([sketch(text) for text in texts])
    >>> [[ours.tolist(), others.tolist()]
    ...  for ours, others in similar_sketches(sketches[1:], index_sketches(sketches[:1]), 0.5)]
    [[[0], [0]]]
    """
    values = sketches.ravel()
    low, counts = np.zeros((2, len(values)), np.int64)
    # Most values are no index's: the bits say so at a sixth of the cost of a search.
    known = np.flatnonzero(index.bits[values & np.uint64(len(index.bits) - 1)] & (values != NONE))
    low[known] = np.searchsorted(index.hashes, values[known], "left")
    counts[known] = np.searchsorted(index.hashes, values[known], "right") - low[known]
    sizes, ends = (
        (sketches != NONE).sum(axis=1),
        np.cumsum(counts.reshape(len(sketches), -1).sum(1)),
    )
    start = 0
    while start < len(sketches):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + MATCHES_AT_ONCE, "right")))
        part = slice(start * SKETCH_HASHES, stop * SKETCH_HASHES)
        n = counts[part]
        first = np.repeat(low[part] - np.cumsum(n) + n, n)
        others = index.whose[first + np.arange(n.sum())]
        ours = np.repeat(np.arange(part.start, part.stop) // SKETCH_HASHES, n)
        pairs, shared = np.unique(ours * len(index.sizes) + others, return_counts=True)
        ours, others = np.divmod(pairs, max(1, len(index.sizes)))
        least = np.ceil(floor * np.maximum(sizes[ours], index.sizes[others]) - 1e-6)
        found = shared >= np.minimum(least_shared(floor), least)
        yield ours[found], others[found]
        start = stop
