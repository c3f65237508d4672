"""Packs of similar pages, for pages without links: each pack a tree of nearest neighbours, or a
path through them.

A pack begins with a page that is in none yet, and takes the ``neighbours`` most similar pages that
are in none either and still fit; then those of the first of these, and so on, in the order in which
pages were taken, until nothing fits or nothing is similar. Every page is in one pack, whole; a page
longer than a pack is a pack of its own. Which page a pack begins with, and which of two equally
similar ones comes first, a hash of the pages' keys says: so neither the order of arrival nor the
number of workers matters.

===========  =======================================================================================================
tree         SPLiCe: ``neighbours`` of each page, breadth first
path         in-context pretraining: one neighbour of the last page; a new pack goes on from the last page of the one
             before (theirs begins anew at the page with the fewest neighbours; here at the first in
             the hash's order)
===========  =======================================================================================================

Two pages that are nearly the same teach copying: neighbours more alike than ``most_alike`` are not
taken for each other.

Work: one look at every page that shares a term, for every page once; what is used is forgotten on
    the way. The commonest terms
do not count where that would be more than `EFFORT` looks a page. Memory: 12 bytes a term of every
page, and 50 a page.

Here: which page stands where. Not here: vectors (`lc_assets.packing.term_vectors`), texts, files.
Source: Staniszewski et al. 2023 (SPLiCe, "Structured packing"); Shi et al. 2023 ("In-context
    pretraining"), whose neighbours are
embeddings'.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Int16, Int32, Int64

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput
from lc_assets.packing.term_vectors import UNIT, TermVectors
from lc_assets.randomness import keyed_u64

EFFORT: Final = 1 << 16
"""Looks a page, on average: 10,000 pages that share all their terms take a second."""
MOST_NEIGHBOURS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What a neighbour is.

    Attributes:
        neighbours: that are looked for around each page.
        path: whether packs follow one path; it has one neighbour.
        least_alike: cosine below which a page is no neighbour; 0: it must share a term.
        most_alike: cosine above which it is the same page over again.

    Raises:
        BadInput: when a number cannot be meant.
    """

    neighbours: int = 3
    path: bool = False
    least_alike: float = 0.0
    most_alike: float = 0.95

    def __post_init__(self) -> None:
        if not 1 <= self.neighbours <= MOST_NEIGHBOURS:
            raise BadInput(
                f"a page has 1 to {MOST_NEIGHBOURS:,} neighbours, got {self.neighbours:,}"
            )
        if not 0 <= self.least_alike <= self.most_alike <= 1:
            raise BadInput(
                f"wanted 0 <= least_alike <= most_alike <= 1, got {self.least_alike} and "
                f"{self.most_alike}"
            )

    @property
    def bounds(self) -> tuple[int, int]:
        """The cosines as sums of products; rounding may make a page more like itself than 1."""
        most = 2**31 - 1 if self.most_alike == 1 else round(self.most_alike * UNIT**2)
        return max(1, round(self.least_alike * UNIT**2)), most


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimilarPacks:
    """Pages in packs.

    Attributes:
        order: int64, every page once, pack after pack.
        parents: int64, by place in ``order``: the page whose neighbour it was; -1 for the first of
            a pack.
        first: int64, ``(packs + 1,)``: where in ``order`` a pack begins.
    """

    order: Int64[np.ndarray, " page"]
    parents: Int64[np.ndarray, " page"]
    first: Int64[np.ndarray, " boundary"]

    def __len__(self) -> int:
        return len(self.first) - 1

    def depths(self) -> Int64[np.ndarray, " page"]:
        """By place in ``order``: how many neighbours away from the first of the pack."""
        depth = dict[int, int]()
        for page, parent in zip(self.order.tolist(), self.parents.tolist(), strict=True):
            depth[page] = depth[parent] + 1 if parent >= 0 else 0
        return np.array([depth[page] for page in self.order.tolist()], np.int64)

    def packs(self) -> list[list[int]]:
        """The pages of each pack."""
        return [self.order[begin:end].tolist() for begin, end in pairwise(self.first.tolist())]


def similar_packs(
    vectors: TermVectors,
    lengths: Int64[np.ndarray, " page"],
    keys: Sequence[str],
    *,
    max_tokens: int,
    likeness: Likeness,
    seed: int = 0,
) -> SimilarPacks:
    """Put pages into packs of similar ones.

    Args:
        vectors: of the pages.
        lengths: tokens of each, what parts it from the next counted in.
        keys: a name of each that no other has.
        max_tokens: of a pack.
        likeness: what a neighbour is.
        seed: of the hash that orders pages.

    >>> terms = np.array([1, 5, 1, 5], np.int32)
    >>> vectors = TermVectors(begins=np.arange(5), terms=terms, weights=np.full(4, UNIT, np.int16))
    >>> packs = similar_packs(vectors, np.full(4, 10), ["a", "b", "c", "d"], max_tokens=20, likeness=Likeness(most_alike=1.0))
    >>> sorted(sorted(pack) for pack in packs.packs())
    [[0, 2], [1, 3]]

    Raises:
        BadInput: when there is not a length and a key per page, two pages share a key, or a number
            cannot be meant.
    """
    _require_sensible(vectors, lengths, keys, max_tokens)
    ranks = keyed_u64("similar packs", seed=seed, keys=keys)
    by_rank = (
        np.lexsort((np.arange(len(keys)), ranks))
        if len(set(ranks.tolist())) == len(ranks)
        else _sorted_by_key(ranks, keys)
    )
    ranked = vectors.pages(by_rank)
    if COMPILED:
        placed = compiled_packs(ranked, lengths[by_rank], max_tokens, likeness)
    else:
        placed = plain_packs(ranked, lengths[by_rank], max_tokens, likeness)
    parents = np.where(placed.parents < 0, -1, by_rank[placed.parents])
    return SimilarPacks(order=by_rank[placed.order], parents=parents, first=placed.first)


def compiled_packs(
    vectors: TermVectors, lengths: Int64[np.ndarray, " page"], max_tokens: int, likeness: Likeness
) -> SimilarPacks:
    """Pages in the order in which they become roots, into packs."""
    # Numba takes half a second to import.
    from lc_assets.packing.kernels.similarity import fill_postings, place_similar  # noqa: PLC0415

    n_pages = len(lengths)
    begins, ends, pages, weights = _postings(vectors)
    fill_postings(vectors.begins, vectors.terms, vectors.weights, ends, pages, weights)
    common = _too_common(begins, ends, n_pages)
    ends[common] = begins[common]
    order, parents, first = (
        np.empty(n_pages, np.int64),
        np.empty(n_pages, np.int64),
        np.empty(n_pages + 1, np.int64),
    )
    n_packs = place_similar(
        vectors.begins, vectors.terms, vectors.weights, begins, ends, pages, weights, lengths, max_tokens,
        1 if likeness.path else likeness.neighbours, likeness.path, *likeness.bounds, order, parents, first,
    )  # fmt: skip
    return SimilarPacks(order=order, parents=parents, first=first[: n_packs + 1].copy())


def plain_packs(
    vectors: TermVectors, lengths: Int64[np.ndarray, " page"], max_tokens: int, likeness: Likeness
) -> SimilarPacks:
    """The plain twin: compare each page with every other that is left."""
    dense = [
        dict(zip(vectors.terms[a:b].tolist(), vectors.weights[a:b].tolist(), strict=True))
        for a, b in pairwise(vectors.begins.tolist())
    ]
    sizes = np.bincount(vectors.terms)
    common = set(_too_common(np.zeros_like(sizes), sizes, len(lengths)).tolist())
    left, tokens = dict.fromkeys(range(len(lengths))), lengths.tolist()
    n_neighbours, (least, most) = 1 if likeness.path else likeness.neighbours, likeness.bounds

    def nearest(page: int, room: int) -> list[int]:
        scores = {
            other: sum(
                weight * dense[other].get(term, 0)
                for term, weight in dense[page].items()
                if term not in common
            )
            for other in left
        }
        fit = (
            other
            for other, score in scores.items()
            if least <= score <= most and tokens[other] <= room
        )
        return sorted(fit, key=lambda other: (-scores[other], other))[:n_neighbours]

    order, parents, first = list[int](), list[int](), list[int]()

    def place(page: int, parent: int) -> None:
        order.append(page)
        parents.append(parent)
        del left[page]

    while left:
        on_path = nearest(order[-1], max_tokens) if likeness.path and order else []
        at = len(order)
        first.append(at)
        place(on_path[0] if on_path else next(iter(left)), -1)
        room = max_tokens - tokens[order[at]]
        while at < len(order):
            for page in nearest(order[at], room):
                if tokens[page] <= room:
                    place(page, order[at])
                    room -= tokens[page]
            at += 1
    return SimilarPacks(
        order=np.array(order, np.int64),
        parents=np.array(parents, np.int64),
        first=np.array([*first, len(order)], np.int64),
    )


def _postings(
    vectors: TermVectors,
) -> tuple[
    Int64[np.ndarray, " term"],
    Int64[np.ndarray, " term"],
    Int32[np.ndarray, " entry"],
    Int16[np.ndarray, " entry"],
]:
    """Where each term's pages begin, and where they end while there are none; room for pages and
    weights.
    """
    sizes = np.bincount(vectors.terms)
    begins = np.cumsum(sizes) - sizes
    return (
        begins,
        begins.copy(),
        np.empty(len(vectors.terms), np.int32),
        np.empty(len(vectors.terms), np.int16),
    )


def _too_common(
    begins: Int64[np.ndarray, " term"], ends: Int64[np.ndarray, " term"], n_pages: int
) -> Int64[np.ndarray, " term"]:
    """The commonest terms, of which none may count: with those that are as common, looks would be
    more than `EFFORT` a page.
    """
    sizes = ends - begins
    by_size = np.bincount(sizes)
    looks = np.cumsum(by_size * np.arange(len(by_size)) ** 2)
    most = int(np.searchsorted(looks, EFFORT * max(n_pages, 1), side="right")) - 1
    common: Int64[np.ndarray, " term"] = np.flatnonzero(sizes > most)
    return common


def _sorted_by_key(ranks: np.ndarray, keys: Sequence[str]) -> Int64[np.ndarray, " page"]:
    if len(set(keys)) < len(keys):
        raise BadInput("two pages share a key; give every page a name of its own")
    return np.array(
        sorted(range(len(keys)), key=lambda page: (int(ranks[page]), keys[page])), np.int64
    )


def _require_sensible(
    vectors: TermVectors, lengths: Int64[np.ndarray, " page"], keys: Sequence[str], max_tokens: int
) -> None:
    if not len(vectors) == len(lengths) == len(keys):
        raise BadInput(
            f"wanted a length and a key for each of {len(vectors):,} pages, got {len(lengths):,} "
            f"and {len(keys):,}"
        )
    if max_tokens < 1:
        raise BadInput(f"a pack has at most so many tokens: at least 1, got {max_tokens:,}")
