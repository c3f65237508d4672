"""Packing in plain Python: what the compiled loops must give."""

import bisect
import heapq
from collections import defaultdict
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lc_assets.packing.cutting import Ends
from lc_assets.packing.pieces import Packing, Pieces
from lc_assets.packing.similarity import Similarity, SimilarPacks
from lc_assets.packing.term_vectors import PageTerms


def fit(lengths: NDArray[np.int64], row_tokens: int) -> tuple[NDArray[np.int64], int]:
    """Best fit with a sorted list of the rooms that there are and, for each, its rows."""
    row = np.empty(len(lengths), np.int64)
    rooms: list[int] = []
    rows_with: dict[int, list[int]] = defaultdict(list)
    n_rows = 0
    for piece in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[piece])
        at = bisect.bisect_left(rooms, length)
        if at < len(rooms):
            room = rooms[at]
            chosen = rows_with[room].pop()
            if not rows_with[room]:
                del rooms[at]
        else:
            room, chosen, n_rows = row_tokens, n_rows, n_rows + 1
        row[piece] = chosen
        left = room - length
        if left:
            if not rows_with[left]:
                bisect.insort(rooms, left)
            rows_with[left].append(chosen)
    return row, n_rows


def cut(pieces: Pieces, segment_tokens: int, ends: Ends) -> Pieces:
    """Cut pieces into segments at ends, one piece after the other."""
    segments: list[tuple[int, int, int]] = []
    for document, start, stop in zip(
        pieces.document.tolist(), pieces.start.tolist(), pieces.stop.tolist(), strict=True
    ):
        own = ends.token[ends.first[document] : ends.first[document + 1]].tolist()
        at = start
        while stop - at > segment_tokens:
            fitting = [
                end for end in own if at + -(-segment_tokens // 2) <= end <= at + segment_tokens
            ]
            until = max(fitting, default=at + segment_tokens)
            segments.append((document, at, until))
            at = until
        segments.append((document, at, stop))
    return Pieces(*np.array(segments, np.int64).reshape(-1, 3).T)


def deal(
    lengths: NDArray[np.int64],
    first: NDArray[np.int64],
    n_rows: int,
    row_tokens: int,
) -> tuple[NDArray[np.int64], int]:
    """Deal segments to rows with the standard library's heap: the emptiest row, then the first."""
    row = np.empty(len(lengths), np.int64)
    rows = [(0, number) for number in range(n_rows)]
    for start, stop in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        waiting = [heapq.heappop(rows) for _ in range(min(stop - start, len(rows)))][::-1]
        taken: list[tuple[int, int]] = []
        for segment in range(start, stop):
            length = int(lengths[segment])
            if waiting and waiting[-1][0] + length <= row_tokens:
                used, chosen = waiting.pop()
            else:
                used, chosen, n_rows = 0, n_rows, n_rows + 1
            taken.append((used + length, chosen))
            row[segment] = chosen
        for each in (*waiting, *taken):
            heapq.heappush(rows, each)
    return row, n_rows


def too_common(sizes: NDArray[np.int64], most: int) -> list[int]:
    """The most common terms, which would cost more than ``most`` comparisons with the others."""
    looks = 0
    for size in range(int(sizes.max(initial=0)) + 1):
        looks += int((sizes == size).sum()) * size**2
        if looks > most:
            return np.flatnonzero(sizes >= size).tolist()
    return []


def place_similar(
    vectors: PageTerms,
    lengths: NDArray[np.int64],
    max_tokens: int,
    similarity: Similarity,
    effort: int,
) -> SimilarPacks:
    """Compare each page with every other that is left."""
    dense = [
        dict(zip(vectors.terms[a:b].tolist(), vectors.weights[a:b].tolist(), strict=True))
        for a, b in pairwise(vectors.begins.tolist())
    ]
    sizes = np.bincount(vectors.terms)
    common = set(too_common(sizes, effort * len(lengths)))
    left, tokens = dict.fromkeys(range(len(lengths))), lengths.tolist()
    n_neighbours, (least, most) = 1 if similarity.path else similarity.neighbours, similarity.bounds

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

    order, first = list[int](), list[int]()

    def place(page: int) -> None:
        order.append(page)
        del left[page]

    while left:
        on_path = nearest(order[-1], max_tokens) if similarity.path and order else []
        at = len(order)
        first.append(at)
        place(on_path[0] if on_path else next(iter(left)))
        room = max_tokens - tokens[order[at]]
        while at < len(order):
            for page in nearest(order[at], room):
                if tokens[page] <= room:
                    place(page)
                    room -= tokens[page]
            at += 1
    return SimilarPacks(
        order=np.array(order, np.int64),
        first=np.array([*first, len(order)], np.int64),
    )


def used(packing: Packing) -> NDArray[np.int64]:
    """Tokens of each row that are not padding."""
    tokens = np.bincount(packing.row, packing.pieces.lengths, packing.n_rows)
    return tokens.astype(np.int64)


def page_terms(pages, weight=np.int32) -> PageTerms:
    """The terms and weights of pages, put together."""
    found = list(pages)
    return PageTerms(
        begins=np.cumsum([0, *(len(terms) for terms, _ in found)], dtype=np.int64),
        terms=np.concatenate([np.empty(0, np.int32), *(terms for terms, _ in found)]),
        weights=np.concatenate([np.empty(0, weight), *(weights for _, weights in found)]),
    )
