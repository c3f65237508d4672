"""Find similar pages through an inverted index, and place them in packs: the compiled loops of
`lc_assets.packing.similarity`.
"""

from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Int16, Int32, Int64

from lc_assets.compiling import compiled

Boundaries: TypeAlias = Int64[np.ndarray, " boundary"]
Terms: TypeAlias = Int32[np.ndarray, " entry"]
Weights: TypeAlias = Int16[np.ndarray, " entry"]
TermColumn: TypeAlias = Int64[np.ndarray, " term"]
Lengths: TypeAlias = Int64[np.ndarray, " page"]
Pages: TypeAlias = Int32[np.ndarray, " page"]


@compiled
def fill_postings(
    begins: Boundaries,
    terms: Terms,
    weights: Weights,
    ends: TermColumn,
    pages: Terms,
    page_weights: Weights,
) -> None:
    """Write the inverted index: the pages with each term, ascending, and their weights.

    Args:
        begins, terms, weights: vectors of all pages.
        ends: where each term's pages begin; afterwards, where they end.
        pages, page_weights: filled in.
    """
    for page in range(len(begins) - 1):
        for at in range(begins[page], begins[page + 1]):
            place = ends[terms[at]]
            pages[place] = page
            page_weights[place] = weights[at]
            ends[terms[at]] = place + 1


@compiled
def _nearest(
    page: int,
    begins: Boundaries,
    terms: Terms,
    weights: Weights,
    term_begins: TermColumn,
    term_ends: TermColumn,
    pages: Terms,
    page_weights: Weights,
    used: Bool[np.ndarray, " page"],
    lengths: Lengths,
    room: int,
    least: int,
    most: int,
    scores: Pages,
    touched: Pages,
    found: Int32[np.ndarray, " neighbour"],
) -> int:
    """Find the most similar pages that are unused and fit; used pages are removed from the index.

    Args:
        page: the page whose neighbours are wanted.
        begins, terms, weights: vectors of all pages.
        term_begins, term_ends, pages, page_weights: the inverted index.
        used: pages that must not be found.
        lengths: tokens of each page.
        room: maximum tokens of a page that is found.
        least, most: bounds of the similarity, inclusive.
        scores: zeros, and zeros again afterwards.
        touched: scratch space, one entry per page.
        found: filled with pages by descending similarity, then by number.

    Returns:
        The number of pages found.
    """
    # Sum the products with every unused page that shares a term, and compact the index.
    n_touched = 0
    for at in range(begins[page], begins[page + 1]):
        term = terms[at]
        weight = np.int32(weights[at])
        kept = term_begins[term]
        for place in range(term_begins[term], term_ends[term]):
            other = pages[place]
            if used[other]:
                continue
            pages[kept] = other
            page_weights[kept] = page_weights[place]
            kept += 1
            if scores[other] == 0:
                touched[n_touched] = other
                n_touched += 1
            scores[other] += weight * np.int32(page_weights[place])
        term_ends[term] = kept
    # Insert those within the bounds into a short sorted list.
    n_found = 0
    for number in range(n_touched):
        other = touched[number]
        score = scores[other]
        if least <= score <= most and lengths[other] <= room:
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
def place_similar(
    begins: Boundaries,
    terms: Terms,
    weights: Weights,
    term_begins: TermColumn,
    term_ends: TermColumn,
    pages: Terms,
    page_weights: Weights,
    lengths: Lengths,
    max_tokens: int,
    n_neighbours: int,
    path: bool,
    least: int,
    most: int,
    order: Lengths,
    parents: Lengths,
    first: Boundaries,
) -> int:
    """Place every page in a pack.

    Args:
        begins, terms, weights: vectors; pages are in the order in which they begin packs.
        term_begins, term_ends, pages, page_weights: the inverted index; consumed.
        lengths: tokens of each page.
        max_tokens: maximum length of a pack.
        n_neighbours: neighbours to find for each page.
        path: whether a pack begins with the page nearest to the last one of the pack before.
        least, most: bounds of the similarity of neighbours, inclusive.
        order: filled with the pages as they are placed.
        parents: filled with the page whose neighbour each was, -1 for the first of a pack.
        first: filled with where in ``order`` each pack begins, and the end of the last.

    Returns:
        The number of packs.
    """
    n_pages = len(lengths)
    used: Bool[np.ndarray, " page"] = np.zeros(n_pages, np.bool_)
    scores: Pages = np.zeros(n_pages, np.int32)
    touched: Pages = np.empty(n_pages, np.int32)
    found: Int32[np.ndarray, " neighbour"] = np.empty(n_neighbours, np.int32)
    shortest = lengths.min() if n_pages else 0
    n_placed, n_packs, next_root = 0, 0, 0
    while n_placed < n_pages:
        # Begin a pack.
        n_found = 0
        if path and n_placed:
            n_found = _nearest(
                order[n_placed - 1], begins, terms, weights, term_begins, term_ends, pages, page_weights,
                used, lengths, max_tokens, least, most, scores, touched, found,
            )  # fmt: skip
        while used[next_root]:
            next_root += 1
        root = np.int64(found[0]) if n_found else np.int64(next_root)
        first[n_packs] = at = n_placed
        n_packs += 1
        order[n_placed], parents[n_placed], used[root] = root, -1, True
        n_placed += 1
        room = max_tokens - lengths[root]
        # Fill it with neighbours of its pages, breadth first.
        while at < n_placed < n_pages and room >= shortest:
            n_found = _nearest(
                order[at], begins, terms, weights, term_begins, term_ends, pages, page_weights,
                used, lengths, room, least, most, scores, touched, found,
            )  # fmt: skip
            for number in range(n_found):
                page = found[number]
                if lengths[page] <= room:
                    order[n_placed], parents[n_placed], used[page] = page, order[at], True
                    n_placed += 1
                    room -= lengths[page]
            at += 1
    first[n_packs] = n_placed
    return n_packs
