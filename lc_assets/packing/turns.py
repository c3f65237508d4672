"""Turns: which root holds which page, when many point at the same one.

Roots take their turns in the order of their rank, and take from what they point at, in order of
appearance, whatever is free and fits whole. So the first root that points at a page keeps it, as in
the paper; and what did not fit stays free for the next one, so a claim counts only for content that
is written.

* A content (the pages of one cluster) is held by at most ``repetitions`` roots; the paper holds it
  once.
* ``consume``: a page occurs once. A root that another one took is no root any more and has no turn;
  a root that took something is nobody's child.
* Without it, as in the paper, a root may be another one's child too.

Of several rounds, each is a pass over all roots: what the pages of the round before point at, in
the same order of roots, within what is left of each root's room.

Roots, pages and clusters are numbers; a root's number is its place among the roots by (rank, id),
and its number as a page. This is the definition; `lc_assets.stages.longpacking` gives the same
result for tables larger than memory, and hands small remainders to it. Source: LongPack (ICLR
2025), section 4, "we only keep the hyper-link and its content in the first one".
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lc_assets.errors import BadInput

KEPT: Final = ""
HELD: Final = "held already"
NO_ROOM: Final = "no room"
ROOT_GONE: Final = "its root is held by another"


class Offer(NamedTuple):
    """A page that a root points at, directly or through a page of the round before.

    Attributes:
        root: number of the root.
        place: orders the root's offers of this round.
        page: number of the page.
        cluster: number of its content.
        cost: tokens that it takes in the document (`lc_assets.packing.longpack.part_cost`).
    """

    root: int
    place: int
    page: int
    cluster: int
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How pages are taken; see the module."""

    repetitions: int = 1
    consume: bool = False

    def __post_init__(self) -> None:
        if self.repetitions < 1:
            raise BadInput(f"a content is held at least once, got repetitions = {self.repetitions}")


@dataclass(frozen=True, slots=True)
class Standing:
    """What has been taken so far; `take_turns` goes on from it and adds to it.

    Attributes:
        taken: how many roots hold a content, by cluster.
        gone: pages that nobody may take: those that are held, and roots that hold something. Only
            where pages are consumed.
    """

    taken: Counter[int] = field(default_factory=Counter)
    gone: set[int] = field(default_factory=set)


def take_turns(
    offers: Iterable[Offer],
    rooms: Mapping[int, int],
    rules: Rules,
    standing: Standing,
    *,
    first_round: bool = True,
) -> list[tuple[Offer, str]]:
    """Let every root take its turn.

    Args:
        offers: of one round, in any order; a root has at most one of each content.
        rooms: tokens that a root's children of this round may take together, by root.
        rules: how pages are taken.
        standing: what has been taken before; changed.
        first_round: whether roots may still stop being roots.

    Returns:
        Every offer by (root, place), with `KEPT` or why it was not.

    >>> both = [Offer(0, 0, 7, 7, 5), Offer(1, 0, 7, 7, 5), Offer(1, 1, 8, 8, 9), Offer(2, 0, 8, 8, 9)]
    >>> [why or "kept" for _, why in take_turns(both, {0: 9, 1: 8, 2: 9}, Rules(), Standing())]
    ['kept', 'held already', 'no room', 'kept']
    """
    told: list[tuple[Offer, str]] = []
    for root, turn in itertools.groupby(sorted(offers), key=lambda offer: offer.root):
        if first_round and root in standing.gone:
            told += [(offer, ROOT_GONE) for offer in turn]
            continue
        room, n_kept = rooms[root], 0
        for offer in turn:
            why = _why_not(offer, room, rules, standing)
            told.append((offer, why))
            if why == KEPT:
                room -= offer.cost
                n_kept += 1
                _hold(offer, rules, standing)
        if rules.consume and n_kept:
            standing.gone.add(root)
    return told


def _why_not(offer: Offer, room: int, rules: Rules, standing: Standing) -> str:
    if offer.page in standing.gone or standing.taken[offer.cluster] >= rules.repetitions:
        return HELD
    return NO_ROOM if offer.cost > room else KEPT


def _hold(offer: Offer, rules: Rules, standing: Standing) -> None:
    standing.taken[offer.cluster] += 1
    if rules.consume:
        standing.gone.add(offer.page)


def first_fit(
    roots: Int64[np.ndarray, " offer"],
    costs: Int64[np.ndarray, " offer"],
    rooms: Int64[np.ndarray, " offer"],
) -> Bool[np.ndarray, " offer"]:
    """Which offers fit, taken in their order, each root's room for itself.

    Args:
        roots: of each offer; those of one root stand together, in the order in which they are
            tried.
        costs: of each offer.
        rooms: of each offer's root.

    >>> first_fit(np.array([3, 3, 3, 4]), np.array([5, 9, 2, 9]), np.array([8, 8, 8, 9]))
    array([ True, False,  True,  True])
    """
    if not len(roots):
        return np.zeros(0, np.bool_)
    starts = np.flatnonzero(np.concatenate([[True], roots[1:] != roots[:-1]]))
    stops = np.append(starts[1:], len(roots))
    all_fit = np.add.reduceat(costs, starts) <= rooms[starts]
    fits = np.repeat(all_fit, stops - starts)
    for start, stop in zip(starts[~all_fit].tolist(), stops[~all_fit].tolist(), strict=True):
        room = int(rooms[start])
        for place, cost in enumerate(costs[start:stop].tolist(), start=start):
            if cost <= room:
                room -= cost
                fits[place] = True
    return fits
