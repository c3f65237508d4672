"""Turns over tables are the turns over lists, in one round and in several."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lc_assets.packing.longpack import KEPT, Offer, Rules, TurnState, take_turns
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.longpack.dealing import HELD_TABLE, deal

N_PAGES = 500


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with queries(tmp_path_factory.mktemp("dealing") / "duckdb", 10**9) as opened:
        yield opened


def dealt(database, rounds, rules):
    """Offers kept in each round over tables, and how many are not, by reason."""
    database.do(f"CREATE OR REPLACE TABLE held {HELD_TABLE}")
    state, found = TurnState(N_PAGES), []
    schema = pa.schema([(name, pa.int64()) for name in Offer._fields])
    for number, offers in enumerate(rounds, start=1):
        table = pa.Table.from_pylist([offer._asdict() for offer in offers], schema=schema)
        database.connection.register("given", table)
        database.do("CREATE OR REPLACE TABLE offers AS SELECT * FROM given")
        database.connection.unregister("given")
        counts = deal(database, rules, state, number)
        lines = [tuple(line.values()) for line in database.lines("SELECT * FROM held")]
        found.append(({line[:5] for line in lines if line[5] == number}, counts))
    return found


def taken(rounds, rules):
    """The same over lists."""
    state, found = TurnState(N_PAGES), []
    for number, offers in enumerate(rounds):
        outcomes = list(take_turns(sorted(offers), rules, state, first_round=number == 0))
        found.append(
            (
                {offer[:5] for offer, why in outcomes if why == KEPT},
                dict(Counter(sorted(why for _, why in outcomes if why != KEPT))),
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
            room = draw(st.integers(0, 50))
            pages = draw(
                st.lists(
                    st.integers(0, n_pages - 1), max_size=7, unique_by=lambda page: contents[page]
                )
            )
            offers += [
                Offer(root, place, page, contents[page], draw(st.integers(1, 20)), room)
                for place, page in enumerate(pages)
                if contents[page] != contents[root]
            ]
        found.append(draw(st.permutations(offers)))
    return found


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_rounds(), st.integers(1, 3), st.booleans())
def test_turns_over_tables_are_those_over_lists(database, rounds, repetitions, consume):
    """Only roots that hold something have offers in the second round."""
    rules = Rules(repetitions=repetitions, consume=consume)
    roots = {root for root, *_ in taken(rounds[:1], rules)[0][0]}
    rounds = rounds[:1] + [[offer for offer in some if offer.root in roots] for some in rounds[1:]]
    assert dealt(database, rounds, rules) == taken(rounds, rules)


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_many_offers(database, consume, repetitions):
    """A crawl's shape: a few pages that all roots link to."""
    rng = np.random.default_rng(7)
    offers = []
    for root in range(160):
        pages = np.unique((N_PAGES ** rng.random(12)).astype(int) * 7 % N_PAGES)
        rng.shuffle(pages)
        seen = {root % 400}
        for place, page in enumerate(pages.tolist()):
            if page % 400 not in seen:
                seen.add(page % 400)
                offers.append(Offer(root, place, page, page % 400, 1 + page % 37, 40 + root % 90))
    rules = Rules(repetitions=repetitions, consume=consume)
    assert dealt(database, [offers], rules) == taken([offers], rules)
