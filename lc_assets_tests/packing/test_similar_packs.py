"""Packs of similar pages: compiled code equals the reference, every page once, whatever the order
of arrival; and topics come together.
"""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.packing import similarity as module, term_vectors as term_vectors_module
from lc_assets.packing.similarity import Similarity, similar_packs
from lc_assets.packing.term_vectors import UNIT, PageTerms, term_vectors
from lc_assets_tests.reference import packing as reference


@st.composite
def counted_pages(draw):
    """Pages of a few terms, of which many are shared, some by all and some by none."""
    page = st.dictionaries(
        st.sampled_from([0, 1, 2, 3, 5, 8, 13, 1048575]),
        st.sampled_from([1, 2, 9, 5000]),
        max_size=6,
    )
    return draw(st.lists(page, max_size=14))


def counts_of(pages):
    """As arrays."""
    return reference.page_terms(
        (
            np.array(sorted(page), np.int32),
            np.array([page[term] for term in sorted(page)], np.int32),
        )
        for page in pages
    )


def vectors_of(pages, **more):
    """As vectors."""
    return term_vectors(counts_of(pages), **more)


SIMILARITY = st.builds(
    Similarity,
    neighbours=st.integers(1, 4),
    path=st.booleans(),
    min_similarity=st.sampled_from([0.0, 0.3]),
    max_similarity=st.sampled_from([0.7, 0.95, 1.0]),
)
CASES = st.tuples(
    counted_pages(), SIMILARITY, st.sampled_from([1, 10, 25, 1000]), st.integers(0, 5)
)


def listed(packs):
    """The pages of each pack."""
    return [pack.tolist() for pack in np.split(packs.order, packs.first[1:-1])]


@given(CASES, st.sampled_from([1, 10, module.EFFORT]))
def test_the_inverted_index_finds_what_comparing_all_pages_finds(case, effort):
    """Also when the commonest terms do not count, because they would cost too much."""
    pages, similarity, max_tokens, step = case
    vectors = vectors_of(pages)
    lengths = np.array([1 + (place * step) % 17 for place in range(len(pages))], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "EFFORT", effort)
        fast = module._placed(vectors, lengths, max_tokens, similarity)
    slow = reference.place_similar(vectors, lengths, max_tokens, similarity, effort)
    for name in ("order", "first"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()


@given(CASES, st.randoms(use_true_random=False))
def test_every_page_is_in_one_pack_whatever_the_order_of_arrival(case, random):
    """Packs hold whole pages within the limit."""
    pages, similarity, max_tokens, step = case
    keys = [f"page {place}" for place in range(len(pages))]
    lengths = np.array([1 + (place * step) % 17 for place in range(len(pages))], np.int64)
    packs = similar_packs(
        vectors_of(pages), lengths, keys, max_tokens=max_tokens, similarity=similarity
    )
    assert sorted(packs.order.tolist()) == list(range(len(pages)))
    assert all(len(pack) == 1 or lengths[pack].sum() <= max_tokens for pack in listed(packs))
    places = list(range(len(pages)))
    random.shuffle(places)
    shuffled = similar_packs(
        vectors_of([pages[n] for n in places]),
        lengths[places],
        [keys[n] for n in places],
        max_tokens=max_tokens,
        similarity=similarity,
    )
    assert [[keys[places[n]] for n in pack] for pack in listed(shuffled)] == [
        [keys[n] for n in pack] for pack in listed(packs)
    ]
    assert shuffled.first.tolist() == packs.first.tolist()


@given(counted_pages(), st.integers(1, 4))
def test_vectors_are_tf_idf_to_the_rounding(pages, most_terms):
    """The heaviest terms of those that two pages share, of length one."""
    n_pages, pages_with = len(pages), Counter(term for page in pages for term in page)
    vectors = vectors_of(pages, most_terms=most_terms)
    for place, page in enumerate(pages):
        begin, end = vectors.begins[place : place + 2]
        got = dict(
            zip(
                vectors.terms[begin:end].tolist(),
                (vectors.weights[begin:end] / UNIT).tolist(),
                strict=True,
            )
        )
        value = {
            term: (1 + math.log(min(count, 4096))) * math.log(n_pages / pages_with[term])
            for term, count in page.items()
            if pages_with[term] > 1 and pages_with[term] < n_pages
        }
        length = math.sqrt(sum(value.get(term, 0) ** 2 for term in got))
        assert got == pytest.approx({term: value[term] / length for term in got}, abs=2e-3)
        left_out = sorted(value.keys() - got.keys(), key=value.get)
        assert len(got) == min(most_terms, len(value))
        assert not left_out or value[left_out[-1]] <= min(value[term] for term in got) + 5e-3


def test_pages_weighed_apart_are_weighed_together(monkeypatch):
    """The vectors do not depend on how many pages are weighed at once."""
    pages = [{1: 2, 2: 1}, {1: 1, 3: 1}, {3: 4, 2: 2}, {9: 1}]
    whole = vectors_of(pages)
    monkeypatch.setattr(term_vectors_module, "AT_ONCE", 2)
    parts = vectors_of(pages)
    for name in ("begins", "terms", "weights"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


def test_topics_come_together():
    """Ten topics of eight pages each, with common words between them: no pack mixes two."""
    pages = [
        {**dict.fromkeys(range(100 * topic, 100 * topic + 20), 3), 7777: 5, 8000 + page % 3: 1}
        for topic in range(10)
        for page in range(8)
    ]
    vectors = vectors_of(pages)
    for similarity in (Similarity(max_similarity=1.0), Similarity(path=True, max_similarity=1.0)):
        packs = similar_packs(
            vectors,
            np.full(80, 10),
            [str(n) for n in range(80)],
            max_tokens=80,
            similarity=similarity,
        )
        assert len(packs) == 10
        assert all(len({page // 8 for page in pack}) == 1 for pack in listed(packs))


def test_copies_are_not_each_others_neighbours():
    """Unless the limits allow it."""
    pages = [{1: 1, 2: 1}, {1: 1, 2: 1}, {1: 1, 3: 1}, {3: 1, 4: 1}, {2: 4, 4: 1}]
    keys = [str(n) for n in range(5)]
    for most, together in ((0.95, False), (1.0, True)):
        found = similar_packs(
            vectors_of(pages),
            np.full(5, 1),
            keys,
            max_tokens=2,
            similarity=Similarity(max_similarity=most),
        )
        packs = listed(found)
        assert any({0, 1} <= set(pack) for pack in packs) == together


def test_common_terms_cost_no_more_than_the_effort():
    """Twenty thousand pages that all share two hundred terms would be looked at 80 thousand million
    times.
    """
    n_pages, shared = 20_000, np.arange(200, dtype=np.int32)
    own = np.arange(n_pages, dtype=np.int32) // 2 + 1000
    terms = np.concatenate([np.tile(shared, (n_pages, 1)), own[:, np.newaxis]], axis=1).astype(
        np.int32
    )
    weights = np.full(terms.shape, 1000, np.int16)
    vectors = PageTerms(
        begins=np.arange(n_pages + 1, dtype=np.int64) * 201,
        terms=terms.reshape(-1),
        weights=weights.reshape(-1),
    )
    packs = similar_packs(
        vectors,
        np.full(n_pages, 1),
        [str(n) for n in range(n_pages)],
        max_tokens=2,
        similarity=Similarity(),
    )
    assert all(pack[0] // 2 == pack[1] // 2 for pack in listed(packs))
