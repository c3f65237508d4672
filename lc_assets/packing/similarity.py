"""Packs of similar pages, for pages without links: each a tree of nearest neighbours, or a path.

A pack begins with a page that is in no pack yet, and takes those of its ``neighbours`` most similar
pages that are in no pack either and still fit; then those of the first of these, and so on, in the
order in which pages were taken, until nothing fits or nothing is similar. Every page is in one
pack, whole; a page longer than a pack is a pack of its own. A hash of the pages' keys decides which
page begins a pack, and which of two equally similar pages comes first, so the result depends on
neither the order of pages nor the number of workers.

====  ==============================================================================================
tree  SPLiCe: ``neighbours`` of each page, breadth first
path  in-context pretraining: one neighbour of the last page; a new pack continues from the last
      page of the pack before. (The paper's begins with the page with the fewest neighbours, here
      the first in the order of the hash.)
====  ==============================================================================================

Two pages that are nearly the same teach copying, so pages more similar than ``max_similarity`` are
not neighbours.

Work: every page is compared once with every page that shares a term; pages in packs are removed
    from the index on the way. The most common terms are ignored if they would cost more than
    `EFFORT` comparisons per page. Memory: 12 bytes per term of every page, and 50 per page.
Source: Staniszewski et al. 2023 (SPLiCe, "Structured packing"); Shi et al. 2023 ("In-context
    pretraining"), whose neighbours are those of embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Int16s, Int32s, Int64s
from lc_assets.compiling import compiled
from lc_assets.packing.term_vectors import UNIT, PageTerms
from lc_assets.randomness import keyed_u64, shuffled
from lc_assets.records import record

EFFORT = 1 << 16
"""Comparisons per page, on average: 10,000 pages that share all their terms take a second."""


@record
class Similarity:
    """Criteria for neighbours.

    Attributes:
        neighbours: neighbours to find for each page.
        path: whether packs follow one path, with one neighbour per page.
        min_similarity: cosine below which a page is not a neighbour; 0 requires a shared term.
        max_similarity: cosine above which a page is a copy, not a neighbour.
    """

    neighbours: int = 3
    path: bool = False
    min_similarity: float = 0.0
    max_similarity: float = 0.95

    @property
    def bounds(self) -> tuple[int, int]:
        """The cosines as sums of products; with rounding, a page's own may exceed 1."""
        most = 2**31 - 1 if self.max_similarity == 1 else round(self.max_similarity * UNIT**2)
        return max(1, round(self.min_similarity * UNIT**2)), most


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimilarPacks:
    """Pages in packs.

    Attributes:
        order: int64, every page once, pack after pack.
        first: int64, ``(packs + 1,)``: where in ``order`` each pack begins.
    """

    order: Int64s
    first: Int64s

    def __len__(self) -> int:
        return len(self.first) - 1


def similar_packs(
    vectors: PageTerms,
    lengths: Int64s,
    keys: Sequence[str],
    *,
    max_tokens: int,
    similarity: Similarity,
    seed: int = 0,
) -> SimilarPacks:
    """Put pages into packs of similar ones.

    Args:
        vectors: a vector per page.
        lengths: tokens of each page, including what separates it from the next.
        keys: a unique name of each page.
        max_tokens: maximum length of a pack.
        similarity: criteria for neighbours.
        seed: seed of the hash that orders pages.

    >>> terms = np.array([1, 5, 1, 5], np.int32)
    >>> vectors = PageTerms(begins=np.arange(5), terms=terms, weights=np.full(4, UNIT, np.int16))
    >>> settings = {"max_tokens": 20, "similarity": Similarity(max_similarity=1.0)}
    >>> packs = similar_packs(vectors, np.full(4, 10), list("abcd"), **settings)
    >>> sorted(sorted(pack.tolist()) for pack in np.split(packs.order, packs.first[1:-1]))
    [[0, 2], [1, 3]]
    """
    by_rank = shuffled(keyed_u64("similar packs", seed=seed, keys=keys), keys)
    placed = _placed(vectors.pages(by_rank), lengths[by_rank], max_tokens, similarity)
    return SimilarPacks(order=by_rank[placed.order], first=placed.first)


class _Index(NamedTuple):
    """Vectors of all pages; and for each term the pages with it and their weights, from
    ``term_begins`` to ``term_ends``, from which pages are removed when they are met again.
    """

    begins: Int64s
    terms: Int32s
    weights: Int16s
    term_begins: Int64s
    term_ends: Int64s
    pages: Int32s
    page_weights: Int16s
    lengths: Int64s


class _Limits(NamedTuple):
    """Tokens of a pack, bounds of a similarity, and whether packs follow a path."""

    max_tokens: int
    least: int
    most: int
    path: bool


class _Scratch(NamedTuple):
    """Pages in packs; sums of products, zero between calls; pages with such a sum; neighbours."""

    used: Booleans
    scores: Int32s
    touched: Int32s
    found: Int32s


def _placed(
    vectors: PageTerms, lengths: Int64s, max_tokens: int, similarity: Similarity
) -> SimilarPacks:
    """Put pages into packs; they are given in the order in which they begin packs."""
    n_pages = len(lengths)
    by_term = np.argsort(vectors.terms, kind="stable")
    page = np.repeat(np.arange(n_pages, dtype=np.int32), np.diff(vectors.begins))
    sizes = np.bincount(vectors.terms)
    begins, ends = np.cumsum(sizes) - sizes, np.cumsum(sizes)
    common = _too_common(sizes, n_pages)
    ends[common] = begins[common]
    index = _Index(
        begins=vectors.begins,
        terms=vectors.terms,
        weights=vectors.weights,
        term_begins=begins,
        term_ends=ends,
        pages=page[by_term],
        page_weights=vectors.weights[by_term],
        lengths=lengths,
    )
    scratch = _Scratch(
        used=np.zeros(n_pages, np.bool_),
        scores=np.zeros(n_pages, np.int32),
        touched=np.empty(n_pages, np.int32),
        found=np.empty(1 if similarity.path else similarity.neighbours, np.int32),
    )
    limits = _Limits(max_tokens, *similarity.bounds, similarity.path)
    order, first = np.empty(n_pages, np.int64), np.empty(n_pages + 1, np.int64)
    n_packs = _place(index, limits, scratch, order, first)
    return SimilarPacks(order=order, first=first[: n_packs + 1].copy())


def _too_common(sizes: Int64s, n_pages: int) -> Int64s:
    """The most common terms, which are ignored to keep within `EFFORT`."""
    by_size = np.bincount(sizes)
    looks = np.cumsum(by_size * np.arange(len(by_size)) ** 2)
    most = int(np.searchsorted(looks, EFFORT * max(n_pages, 1), side="right")) - 1
    return np.asarray(np.flatnonzero(sizes > most))


@compiled
def _nearest(page: int, room: int, index: _Index, limits: _Limits, scratch: _Scratch) -> int:
    """Write the most similar pages that are unused and have ``room`` tokens at most into
    ``scratch.found``, by descending similarity, then by number, and return how many there are.
    """
    used, scores, touched, found = scratch
    # Sum the products with every unused page that shares a term, and compact the index.
    n_touched = 0
    for at in range(index.begins[page], index.begins[page + 1]):
        term = index.terms[at]
        weight = np.int32(index.weights[at])
        kept = index.term_begins[term]
        for place in range(index.term_begins[term], index.term_ends[term]):
            other = index.pages[place]
            if used[other]:
                continue
            index.pages[kept] = other
            index.page_weights[kept] = index.page_weights[place]
            kept += 1
            if scores[other] == 0:
                touched[n_touched] = other
                n_touched += 1
            scores[other] += weight * np.int32(index.page_weights[place])
        index.term_ends[term] = kept
    # Insert those within the limits into a short sorted list.
    n_found = 0
    for number in range(n_touched):
        other = touched[number]
        score = scores[other]
        if limits.least <= score <= limits.most and index.lengths[other] <= room:
            place = n_found
            while place > 0 and (
                score > scores[found[place - 1]]
                or (score == scores[found[place - 1]] and other < found[place - 1])
            ):
                place -= 1
            if place < len(found):
                n_found = min(n_found + 1, len(found))
                for later in range(n_found - 1, place, -1):
                    found[later] = found[later - 1]
                found[place] = other
    for number in range(n_touched):
        scores[touched[number]] = 0
    return n_found


@compiled
def _place(
    index: _Index,
    limits: _Limits,
    scratch: _Scratch,
    order: Int64s,
    first: Int64s,
) -> int:
    """Place every page in a pack: fill ``order`` and ``first``, as `SimilarPacks` has them, and
    return the number of packs.
    """
    used, lengths, found = scratch.used, index.lengths, scratch.found
    n_pages = len(lengths)
    shortest = lengths.min() if n_pages else 0
    n_placed, n_packs, next_root = 0, 0, 0
    while n_placed < n_pages:
        # Begin a pack.
        n_found = 0
        if limits.path and n_placed:
            n_found = _nearest(order[n_placed - 1], limits.max_tokens, index, limits, scratch)
        while used[next_root]:
            next_root += 1
        root = np.int64(found[0]) if n_found else np.int64(next_root)
        first[n_packs] = at = n_placed
        n_packs += 1
        order[n_placed], used[root] = root, True
        n_placed += 1
        room = limits.max_tokens - lengths[root]
        # Fill it with neighbours of its pages, breadth first.
        while at < n_placed < n_pages and room >= shortest:
            n_found = _nearest(order[at], room, index, limits, scratch)
            for number in range(n_found):
                page = found[number]
                if lengths[page] <= room:
                    order[n_placed], used[page] = page, True
                    n_placed += 1
                    room -= lengths[page]
            at += 1
    first[n_packs] = n_placed
    return n_packs
