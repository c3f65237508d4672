"""Turns by blocks over tables are the turns one after another, however large a block is."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lc_assets.packing.longpack import KEPT, Offer, Rules, TurnState, take_turns
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.longpack.dealing import HELD_TABLE, OFFERS_TABLE, Deal, deal


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    with queries(tmp_path_factory.mktemp("dealing") / "duckdb", 10**9) as opened:
        yield opened


def lay(asked, offers, rooms):
    lines = [offer._asdict() | {"room": rooms[offer.root]} for offer in offers]
    asked.do(f"CREATE OR REPLACE TABLE offers {OFFERS_TABLE}")
    table = pa.Table.from_pylist(
        lines, schema=pa.schema([(name, pa.int64()) for name in (*Offer._fields, "room")])
    )
    asked.connection.register("given", table)
    asked.do("INSERT INTO offers SELECT * FROM given")
    asked.connection.unregister("given")


def dealt(asked, rounds, rules, tail):
    """What tables say of some rounds: which offers are kept in each, and how many are not, by
    why.
    """
    asked.do(f"CREATE OR REPLACE TABLE held {HELD_TABLE}")
    found = []
    for number, (offers, rooms) in enumerate(rounds, start=1):
        lay(asked, offers, rooms)
        counts = deal(Deal(asked=asked, rules=rules, round=number, at_once=tail))
        lines = [line for line in asked.lines("SELECT * FROM held") if line["round"] == number]
        kept = {Offer(*(line[name] for name in Offer._fields)) for line in lines}
        found.append((kept, counts))
    return found


def taken(rounds, rules):
    """The same, one root after another."""
    state, found = TurnState(), []
    for number, (offers, rooms) in enumerate(rounds):
        told = take_turns(offers, rooms, rules, state, first_round=number == 0)
        found.append(
            (
                {offer for offer, why in told if why == KEPT},
                dict(Counter(sorted(why for _, why in told if why != KEPT))),
            )
        )
    return found


@st.composite
def some_rounds(draw):
    """A round or two over 8 roots and 14 pages; contents repeat; rooms are tight."""
    n_pages = 14
    contents = draw(st.lists(st.integers(0, n_pages - 1), min_size=n_pages, max_size=n_pages))
    found = []
    for _ in range(draw(st.integers(1, 2))):
        offers = []
        for root in range(8):
            pages = draw(
                st.lists(
                    st.integers(0, n_pages - 1), max_size=7, unique_by=lambda page: contents[page]
                )
            )
            offers += [
                Offer(root, place, page, contents[page], draw(st.integers(1, 20)))
                for place, page in enumerate(pages)
                if contents[page] != contents[root]
            ]
        found.append(
            (draw(st.permutations(offers)), {root: draw(st.integers(0, 50)) for root in range(8)})
        )
    return found


def only_of(roots, rounds):
    """Only roots that hold something go on to the second round."""
    return [
        rounds[0],
        *(
            ([offer for offer in offers if offer.root in roots], rooms)
            for offers, rooms in rounds[1:]
        ),
    ]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_rounds(), st.integers(1, 3), st.booleans(), st.sampled_from([0, 3, 1000]))
def test_tables_say_what_turns_say(asked, rounds, repetitions, consume, tail):
    rules = Rules(repetitions=repetitions, consume=consume)
    rounds = only_of({offer.root for offer in taken(rounds[:1], rules)[0][0]}, rounds)
    assert dealt(asked, rounds, rules, tail) == taken(rounds, rules)


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_many_offers_in_several_blocks(asked, consume, repetitions):
    """A crawl's shape: a few pages that everybody points at, in blocks of one root or of some."""
    rng = np.random.default_rng(7)
    n_roots, n_pages = 160, 500
    offers = []
    for root in range(n_roots):
        pages = np.unique((n_pages ** rng.random(12)).astype(int) * 7 % n_pages)
        rng.shuffle(pages)
        seen = {root % 400}
        for place, page in enumerate(pages.tolist()):
            if page % 400 not in seen:
                seen.add(page % 400)
                offers.append(Offer(root, place, page, page % 400, 1 + page % 37))
    rooms = {root: 40 + root % 90 for root in range(n_roots)}
    rules = Rules(repetitions=repetitions, consume=consume)
    wanted = taken([(offers, rooms)], rules)
    assert dealt(asked, [(offers, rooms)], rules, 50 * consume) == wanted
