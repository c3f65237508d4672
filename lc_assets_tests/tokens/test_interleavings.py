"""Places in an interleaving: found by steps as by a pass over everything."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.tokens import orders
from lc_assets.tokens.orders import place_of, places_of


def numbered(sources):
    """Each source's items, counted from 0 along the interleaving."""
    items = np.zeros(len(sources), np.int64)
    for source in np.unique(sources):
        items[sources == source] = np.arange((sources == source).sum())
    return items


@pytest.mark.parametrize("stretch", [1, 3, 4096])
@given(sources=st.lists(st.integers(0, 3), max_size=80), gaps=st.integers(1, 3))
def test_a_place_is_found_as_by_a_pass(stretch, sources, gaps):
    """Every item of every source, items that are none, sources that have none."""
    sources = np.array(sources, np.uint16)
    items = numbered(sources) * gaps
    before, orders._STRETCH = orders._STRETCH, stretch
    try:
        for source in range(5):
            for item in range(-1, len(sources) * gaps + 2):
                slow = np.flatnonzero((sources == source) & (items == item))
                assert place_of(sources, items, source, item) == (
                    int(slow[0]) if len(slow) else None
                )
    finally:
        orders._STRETCH = before


def test_a_source_may_be_in_one_part_only():
    """One source is only at the beginning, another only at the end."""
    sources = np.repeat(np.array([0, 1, 2], np.uint16), 30_000)
    items = numbered(sources)
    for source in range(3):
        for item in (0, 1, 15_000, 29_999):
            assert place_of(sources, items, source, item) == source * 30_000 + item
        assert place_of(sources, items, source, 30_000) is None


@given(st.lists(st.integers(0, 3), max_size=80), st.sets(st.integers(0, 20)))
def test_many_places_are_each_of_them(sources, chosen):
    sources = np.array(sources, np.uint16)
    items = numbered(sources)
    found = places_of(sources, items, 1, np.array(sorted(chosen), np.int64))
    singly = (place_of(sources, items, 1, item) for item in chosen)
    assert found.tolist() == sorted(place for place in singly if place is not None)
