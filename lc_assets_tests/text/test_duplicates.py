"""Clusters, pairs of a bucket, Jaccard indices and preferences: against plain loops and against
sets.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.text.duplicates.clusters import (
    ShingleSets,
    neighbours,
    similarities,
    star_pairs,
    unknown_pairs,
)
from lc_assets.text.duplicates.keys import (
    band_keys,
    canonical_url,
    containment,
    digest_key,
    text_key,
    url_key,
)
from lc_assets_tests.reference.duplicates import (
    clusters_of,
    plain_similarities,
    plain_stars,
    plain_unknown_pairs,
)
from lc_assets_tests.stages.deduplication.corpora import connected

NUMBERS = st.integers(0, 2**62)
HASHES = st.sets(st.integers(0, 60) | st.integers(0, 2**64 - 1), max_size=40)


def array(numbers):
    return np.array(list(numbers), dtype=np.int64)


@given(
    st.lists(st.tuples(st.integers(0, 30) | NUMBERS, st.integers(0, 30)), max_size=60), st.randoms()
)
def test_clusters_are_the_connected_components_in_any_order(pairs, shuffled):
    nodes, labels = clusters_of(array(a for a, _ in pairs), array(b for _, b in pairs))
    expected = {member: min(group) for group in connected(pairs) for member in group}
    assert dict(zip(nodes.tolist(), labels.tolist(), strict=True)) == expected
    again = [pair[::-1] for pair in pairs]
    shuffled.shuffle(again)
    assert all(
        map(
            np.array_equal,
            clusters_of(array(a for a, _ in again), array(b for _, b in again)),
            (nodes, labels),
        )
    )


def test_a_chain_of_a_million_is_one_cluster():
    chain = np.arange(1_000_000, dtype=np.int64)[::-1]
    assert (clusters_of(chain[:-1], chain[1:])[1] == 0).all()


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 5))
def test_stars_equal_the_reference(sizes, centres):
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    members = np.arange(starts[-1], dtype=np.int64) * 3
    ours = star_pairs(members, starts, centres)
    assert tuple(side.tolist() for side in ours) == plain_stars(members, starts, centres)


@given(st.integers(2, 9), st.integers(1, 4), st.data())
def test_unknown_pairs_equal_the_reference(n, most, data):
    pair = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True).map(frozenset)
    alike = data.draw(st.dictionaries(pair, st.sampled_from([0.0, 0.6, 0.8, 0.9]), max_size=30))
    of_each = lambda values: data.draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    keepers = [min(keeper, n) for keeper in of_each(st.integers(-1, 2 * n))]
    is_last, snapshots = of_each(st.booleans()), of_each(st.integers(0, 2))
    sides = np.array([sorted(pair) for pair in alike], np.int64).reshape(-1, 2)
    pairs = neighbours(sides[:, 0], sides[:, 1], np.array([*alike.values()], np.float64), n)
    marks = np.array(is_last), array(snapshots)
    found = unknown_pairs(pairs, array(keepers), marks, 0.8, most).tolist()
    assert sorted(map(tuple, found)) == sorted(
        plain_unknown_pairs(alike, keepers, is_last, snapshots, 0.8, most)
    )


@given(
    st.lists(HASHES, min_size=1, max_size=8), st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]), st.data()
)
def test_similarities_are_those_of_sets(sets, floor, data):
    values = np.array([value for found in sets for value in sorted(found)], np.uint64)
    starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    n_chars = array(data.draw(st.lists(st.integers(0, 2), min_size=len(sets), max_size=len(sets))))
    places = st.lists(st.integers(0, len(sets) - 1), min_size=4, max_size=4)
    ones, others = array(data.draw(places)), array(data.draw(places))
    expected = [
        len(a & b) / len(a | b) if a | b else 0.0
        for a, b in ((sets[i], sets[j]) for i, j in zip(ones, others, strict=True))
    ]
    expected = [found if found >= floor else 0.0 for found in expected]
    whole = ShingleSets(values, starts, n_chars)
    found = similarities(whole, ones, whole, others, floor)
    assert found.tolist() == plain_similarities(values, starts, ones, others, floor) == expected
    for i, j, contained in zip(
        ones, others, similarities(whole, ones, whole, others, floor, "containment"), strict=True
    ):
        shorter, longer = sorted((i, j), key=lambda n: (n_chars[n], -len(sets[n])))
        share = len(sets[longer] & sets[shorter]) / max(len(sets[shorter]), 1)
        assert contained == (share if share >= floor else 0.0)
        assert contained == 0 or share == containment(
            *(np.array(sorted(sets[n]), np.uint64) for n in (i, j)), int(n_chars[i] - n_chars[j])
        )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.org/x#y", "https://A.org:443/x", True),
        ("https://a.org/x/../y", "https://a.org/y", True),
        ("https://a.org/x", "https://a.org/x/", False),
        ("https://a.org/x", "http://a.org/x", False),
        ("https://a.org/?q=1", "https://a.org/?q=2", False),
    ],
)
def test_when_two_addresses_are_one(one, other, same):
    assert (url_key(one) == url_key(other)) is same


@pytest.mark.parametrize(
    "hostile", ["", "\ud800", "http://", "a\x00b", "https://[", "\u202e", "http://a" * 10_000]
)
def test_hostile_addresses_and_digests_do_no_harm(hostile):
    assert canonical_url(hostile) is None or isinstance(canonical_url(hostile), str)
    assert digest_key(hostile) == digest_key(hostile)


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 \udfff x",
        "a\x00b c",
        "e\u0301 é",
        "\U0001f600 " * 50,
        "x" * 100_000,
        "\u05d0\u05d1 \u05d2",
    ],
)
def test_hostile_texts_have_keys_that_differ_from_another_text(text):
    assert text_key(text) == text_key(f"  {text} ")
    assert text_key(text) != text_key(text + " more")


def test_a_band_is_equal_only_in_its_own_place():
    signatures = np.zeros((2, 3, 4), np.uint32)
    signatures[1, 2, 3] = 1
    keys = band_keys(signatures)
    assert (keys[0] == keys[1]).tolist() == [True, True, False]
    assert len(set(keys[0].tolist())) == 3
    assert (keys[0] & np.uint64(0xFFFF) == keys[1] & np.uint64(0xFFFF)).all(), (
        "the first row alone shapes the lowest bits"
    )
