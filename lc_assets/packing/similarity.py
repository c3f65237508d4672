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
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Int64

from lc_assets.errors import BadInput
from lc_assets.packing.similarity_kernels import fill_postings, place_similar
from lc_assets.packing.term_vectors import UNIT, TermVectors
from lc_assets.randomness import keyed_u64

PageColumn: TypeAlias = Int64[np.ndarray, " page"]

EFFORT: Final = 1 << 16
"""Comparisons per page, on average: 10,000 pages that share all their terms take a second."""
MOST_NEIGHBOURS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """What a neighbour is.

    Attributes:
        neighbours: neighbours to find for each page.
        path: whether packs follow one path, with one neighbour per page.
        min_similarity: cosine below which a page is no neighbour; 0 requires a shared term.
        max_similarity: cosine above which a page is a copy, not a neighbour.

    Raises:
        BadInput: if a number is out of range.
    """

    neighbours: int = 3
    path: bool = False
    min_similarity: float = 0.0
    max_similarity: float = 0.95

    def __post_init__(self) -> None:
        if not 1 <= self.neighbours <= MOST_NEIGHBOURS:
            raise BadInput(f"neighbours must be 1 to {MOST_NEIGHBOURS:,}, got {self.neighbours:,}")
        if not 0 <= self.min_similarity <= self.max_similarity <= 1:
            raise BadInput(
                f"expected 0 <= min_similarity <= max_similarity <= 1, got {self.min_similarity} "
                "and "
                f"{self.max_similarity}"
            )

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
        parents: int64, parallel to ``order``: the page whose neighbour it was; -1 for the first of
            a pack.
        first: int64, ``(packs + 1,)``: where in ``order`` each pack begins.
    """

    order: PageColumn
    parents: PageColumn
    first: Int64[np.ndarray, " boundary"]

    def __len__(self) -> int:
        return len(self.first) - 1

    def depths(self) -> PageColumn:
        """Parallel to ``order``: distance from the first page of the pack."""
        depth = dict[int, int]()
        for page, parent in zip(self.order.tolist(), self.parents.tolist(), strict=True):
            depth[page] = depth[parent] + 1 if parent >= 0 else 0
        return np.array([depth[page] for page in self.order.tolist()], np.int64)

    def packs(self) -> list[list[int]]:
        """The pages of each pack."""
        return [self.order[begin:end].tolist() for begin, end in pairwise(self.first.tolist())]


def similar_packs(
    vectors: TermVectors,
    lengths: PageColumn,
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
        similarity: what a neighbour is.
        seed: seed of the hash that orders pages.

    >>> terms = np.array([1, 5, 1, 5], np.int32)
    >>> vectors = TermVectors(begins=np.arange(5), terms=terms, weights=np.full(4, UNIT, np.int16))
    >>> packs = similar_packs(vectors, np.full(4, 10), ["a", "b", "c", "d"], max_tokens=20, similarity=Similarity(max_similarity=1.0))
    >>> sorted(sorted(pack) for pack in packs.packs())
    [[0, 2], [1, 3]]

    Raises:
        BadInput: if there is not a length and a key per page, two pages share a key, or a number
            is out of range.
    """
    _require_sensible(vectors, lengths, keys, max_tokens)
    ranks = keyed_u64("similar packs", seed=seed, keys=keys)
    by_rank = (
        np.lexsort((np.arange(len(keys)), ranks))
        if len(set(ranks.tolist())) == len(ranks)
        else _sorted_by_key(ranks, keys)
    )
    ranked = vectors.pages(by_rank)
    placed = _placed(ranked, lengths[by_rank], max_tokens, similarity)
    parents = np.where(placed.parents < 0, -1, by_rank[placed.parents])
    return SimilarPacks(order=by_rank[placed.order], parents=parents, first=placed.first)


def _placed(
    vectors: TermVectors,
    lengths: PageColumn,
    max_tokens: int,
    similarity: Similarity,
) -> SimilarPacks:
    """Put pages into packs; they are given in the order in which they begin packs."""
    n_pages = len(lengths)
    # An inverted index: where each term's pages begin and end; the pages and their weights.
    sizes = np.bincount(vectors.terms)
    begins = np.cumsum(sizes) - sizes
    ends = begins.copy()
    pages = np.empty(len(vectors.terms), np.int32)
    weights = np.empty(len(vectors.terms), np.int16)
    fill_postings(vectors.begins, vectors.terms, vectors.weights, ends, pages, weights)
    common = _too_common(sizes, n_pages)
    ends[common] = begins[common]
    order, parents, first = (
        np.empty(n_pages, np.int64),
        np.empty(n_pages, np.int64),
        np.empty(n_pages + 1, np.int64),
    )
    n_packs = place_similar(
        vectors.begins, vectors.terms, vectors.weights, begins, ends, pages, weights, lengths, max_tokens,
        1 if similarity.path else similarity.neighbours, similarity.path, *similarity.bounds, order, parents, first,
    )  # fmt: skip
    return SimilarPacks(order=order, parents=parents, first=first[: n_packs + 1].copy())


def _too_common(sizes: Int64[np.ndarray, " term"], n_pages: int) -> Int64[np.ndarray, " term"]:
    """The most common terms, which are ignored to keep within `EFFORT`."""
    by_size = np.bincount(sizes)
    looks = np.cumsum(by_size * np.arange(len(by_size)) ** 2)
    most = int(np.searchsorted(looks, EFFORT * max(n_pages, 1), side="right")) - 1
    common: Int64[np.ndarray, " term"] = np.flatnonzero(sizes > most)
    return common


def _sorted_by_key(ranks: np.ndarray, keys: Sequence[str]) -> PageColumn:
    if len(set(keys)) < len(keys):
        raise BadInput("two pages have the same key: give every page a unique one")
    return np.array(
        sorted(range(len(keys)), key=lambda page: (int(ranks[page]), keys[page])), np.int64
    )


def _require_sensible(
    vectors: TermVectors, lengths: PageColumn, keys: Sequence[str], max_tokens: int
) -> None:
    if not len(vectors) == len(lengths) == len(keys):
        raise BadInput(
            f"expected a length and a key for each of {len(vectors):,} pages, got "
            f"{len(lengths):,} and {len(keys):,}"
        )
    if max_tokens < 1:
        raise BadInput(f"max_tokens must be at least 1, got {max_tokens:,}")
