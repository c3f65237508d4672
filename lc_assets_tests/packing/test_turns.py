"""Turns: the first root keeps a page, what does not fit stays free, a consumed page occurs once;
what grows with repetitions.
"""

from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from lc_assets.packing.longpack import (
    HELD,
    KEPT,
    NO_ROOM,
    Offer,
    Rules,
    TurnState,
    root_ranks,
    take_turns,
)
from lc_assets.randomness import within

N_ROOTS, N_PAGES = 6, 12
"""Pages 0 to 5 are roots; a page's content is its number modulo 8, so some pages have the same."""


@st.composite
def rounds(draw, *, most_room=60):
    """Offers of one round, no content twice for a root nor its own; and rooms."""
    offers = []
    for root in range(N_ROOTS):
        pages = draw(
            st.lists(st.integers(0, N_PAGES - 1), max_size=6, unique_by=lambda page: page % 8)
        )
        costs = draw(st.lists(st.integers(1, 30), min_size=len(pages), max_size=len(pages)))
        offers += [
            Offer(root, place, page, page % 8, cost, 0)
            for place, (page, cost) in enumerate(zip(pages, costs, strict=True))
            if page % 8 != root
        ]
    rooms = {root: draw(st.integers(0, most_room)) for root in range(N_ROOTS)}
    return draw(st.permutations(offers)), rooms


def turns(offers, rooms, rule, state=None, *, first_round=True):
    """The outcome of every offer, with the rooms of their roots."""
    offers = sorted(offer._replace(room=rooms[offer.root]) for offer in offers)
    return list(take_turns(offers, rule, state or TurnState(N_PAGES), first_round=first_round))


def kept(outcomes):
    return [offer for offer, why in outcomes if why == KEPT]


def rules():
    return st.builds(Rules, repetitions=st.integers(1, 3), consume=st.booleans())


@given(rounds(), rules())
def test_what_is_kept_keeps_every_promise(made, rule):
    offers, rooms = made
    outcomes = turns(offers, rooms, rule)
    assert sorted(offer[:5] for offer, _ in outcomes) == sorted(offer[:5] for offer in offers)
    found = kept(outcomes)
    assert max(Counter(offer.cluster for offer in found).values(), default=0) <= rule.repetitions
    for root, room in rooms.items():
        assert sum(offer.cost for offer in found if offer.root == root) <= room
    if rule.consume:
        assert max(Counter(offer.page for offer in found).values(), default=0) <= 1
        assert not {offer.page for offer in found} & {offer.root for offer in found}


@given(rounds(), rules())
def test_no_root_could_have_more(made, rule):
    """After all turns no root has room for something that is free: one pass is the fixed point."""
    offers, rooms = made
    state = TurnState(N_PAGES)
    outcomes = turns(offers, rooms, rule, state)
    left = {
        root: room - sum(offer.cost for offer in kept(outcomes) if offer.root == root)
        for root, room in rooms.items()
    }
    took = {offer.root for offer in kept(outcomes)}
    refused = [
        offer
        for offer, why in outcomes
        if why in (HELD, NO_ROOM) and (offer.root in took or not rule.consume)
    ]
    assert kept(turns(refused, left, rule, state, first_round=False)) == []


@given(rounds())
def test_the_first_root_keeps_a_page(made):
    """Without a limit, each content goes to the smallest of the roots that point at it: a minimum
    per cluster.
    """
    offers, _ = made
    outcomes = turns(offers, dict.fromkeys(range(N_ROOTS), 10**6), Rules())
    first = {}
    for offer in offers:
        first[offer.cluster] = min(first.get(offer.cluster, N_ROOTS), offer.root)
    assert {(offer.cluster, offer.root) for offer in kept(outcomes)} == set(first.items())


@given(rounds(), st.integers(1, 4))
def test_more_repetitions_never_take_a_hit_away(made, repetitions):
    """Without a limit: with k + 1 every root holds at least what it holds with k."""
    offers, _ = made
    rooms = dict.fromkeys(range(N_ROOTS), 10**6)
    fewer, more = (
        set(kept(turns(offers, rooms, Rules(repetitions=k))))
        for k in (repetitions, repetitions + 1)
    )
    assert fewer <= more


@given(rounds(), st.sets(st.integers(0, 7), max_size=3))
def test_without_some_targets_no_root_holds_more(made, portals):
    """A filter of targets takes away and gives nobody anything; without a limit."""
    offers, _ = made
    rooms = dict.fromkeys(range(N_ROOTS), 10**6)
    filtered = [offer for offer in offers if offer.cluster not in portals]
    every, fewer = (set(kept(turns(some, rooms, Rules()))) for some in (offers, filtered))
    assert fewer <= every


def test_a_root_that_was_taken_has_no_turn():
    """0 takes 1, so what 1 points at is free for 2; and 2, which holds something, is nobody's
    child, unlike 3, which does not.
    """
    offers = [
        Offer(0, 0, 1, 1, 1, 0),
        Offer(1, 0, 9, 9, 1, 0),
        Offer(2, 0, 9, 9, 1, 0),
        Offer(3, 0, 9, 9, 1, 0),
        Offer(4, 0, 2, 2, 1, 0),
        Offer(5, 0, 3, 3, 1, 0),
    ]
    rooms = dict.fromkeys(range(6), 10)
    outcomes = turns(offers, rooms, Rules(consume=True))
    assert [(offer.root, why) for offer, why in outcomes] == [
        (0, KEPT),
        (1, "its root is held by another"),
        (2, KEPT),
        (3, HELD),
        (4, HELD),
        (5, KEPT),
    ]
    assert [offer.root for offer in kept(turns(offers, rooms, Rules()))] == [
        0,
        1,
        4,
        5,
    ]


def test_ranks_belong_to_pages_and_a_larger_share_has_all_roots_of_a_smaller():
    keys = [f"example.org/{number}" for number in range(500)]
    ranks = root_ranks(keys, 64)
    np.testing.assert_array_equal(root_ranks(keys[::-1], 64)[::-1], ranks)
    few, many, every = (within(ranks, share) for share in (0.1, 0.5, 1))
    assert not (few & ~many).any()
    assert every.all()
    assert 20 < few.sum() < 90
    assert not within(ranks, 0).any()
    assert (root_ranks(keys, 65) != ranks).all()
