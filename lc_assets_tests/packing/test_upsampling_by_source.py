"""Upsampling keeps every source's share to within one document, whatever the order of arrival."""

import numpy as np
from hypothesis import given, strategies as st

from lc_assets.packing.upsampling import upsampled
from lc_assets.randomness import keyed_u64


@st.composite
def document_sets(draw):
    """Documents of a few sources: with and without long ones, some empty."""
    n_docs = draw(st.integers(0, 40))
    lengths = draw(
        st.lists(st.sampled_from([0, 1, 3, 7, 20, 50, 51, 400]), min_size=n_docs, max_size=n_docs)
    )
    sources = draw(
        st.lists(st.sampled_from(["books", "code", "web"]), min_size=n_docs, max_size=n_docs)
    )
    settings = {
        "threshold": draw(st.sampled_from([1, 20, 51, 1000])),
        "keep_short": draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        "budget_tokens": draw(st.integers(0, 3 * sum(lengths) + 5)),
        "seed": draw(st.integers(0, 3)),
    }
    return np.array(lengths, np.int64), sources, [f"doc {n}" for n in range(n_docs)], settings


def plainly(lengths, sources, keys, *, threshold, keep_short, budget_tokens, seed):
    """Walk along each source's line, one document at a time."""
    rank = dict(
        zip(keys, keyed_u64("upsampling order", seed=seed, keys=keys).tolist(), strict=True)
    )
    chance = dict(zip(keys, keyed_u64("keep short", seed=seed, keys=keys).tolist(), strict=True))
    taken = [0] * len(keys)
    for source in sorted(set(sources)):
        line = sorted(
            (doc for doc in range(len(keys)) if sources[doc] == source and lengths[doc]),
            key=lambda doc: rank[keys[doc]],
        )
        long = [doc for doc in line if lengths[doc] >= threshold] or line
        kept = [doc for doc in line if doc in long or chance[keys[doc]] < keep_short * 2**64]
        left = budget_tokens * sum(int(lengths[doc]) for doc in line) // max(int(lengths.sum()), 1)
        going = iter(kept)
        while line:
            doc = next(going, None)
            if doc is None:
                going = iter(long)
            elif lengths[doc] > left:
                break
            else:
                taken[doc] += 1
                left -= int(lengths[doc])
    return taken


@given(document_sets())
def test_it_equals_taking_one_document_at_a_time(case):
    lengths, sources, keys, settings = case
    assert upsampled(lengths, sources, keys, **settings).tolist() == plainly(
        lengths, sources, keys, **settings
    )


@given(document_sets())
def test_each_source_keeps_its_share_within_one_document(case):
    """No source exceeds its budget, or lacks a document that it has."""
    lengths, sources, keys, settings = case
    taken = upsampled(lengths, sources, keys, **settings)
    total = max(int(lengths.sum()), 1)
    for source in set(sources):
        own = np.array([name == source for name in sources])
        budget = settings["budget_tokens"] * int(lengths[own].sum()) // total
        lacking = budget - int((lengths * taken)[own].sum())
        assert 0 <= lacking < max(int(lengths[own].max()), 1)


@given(document_sets(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(case, random):
    """Each document is taken as often wherever it stands."""
    lengths, sources, keys, settings = case
    places = list(range(len(keys)))
    random.shuffle(places)
    shuffled = upsampled(
        lengths[places], [sources[n] for n in places], [keys[n] for n in places], **settings
    )
    assert shuffled.tolist() == upsampled(lengths, sources, keys, **settings)[places].tolist()


@given(document_sets())
def test_a_larger_budget_only_adds(case):
    """And a short document is never taken twice where its source has a long one."""
    lengths, sources, keys, settings = case
    more = {**settings, "budget_tokens": settings["budget_tokens"] * 2 + 7}
    smaller, larger = (
        upsampled(lengths, sources, keys, **settings),
        upsampled(lengths, sources, keys, **more),
    )
    assert (smaller <= larger).all()
    with_long = {
        source for source, n in zip(sources, lengths, strict=True) if n >= settings["threshold"]
    }
    is_short = [
        n < settings["threshold"] and source in with_long
        for n, source in zip(lengths, sources, strict=True)
    ]
    assert (larger[np.array(is_short, bool)] <= 1).all()


def test_upsampling_by_source_and_globally_differ_as_the_paper_says():
    """Globally, the source with the long documents grows; by source, shares stay and each source's
    long documents grow.
    """
    lengths = np.array([1000] * 10 + [100] * 100 + [400] * 25, np.int64)
    sources = ["books"] * 10 + ["web"] * 125
    keys = [str(n) for n in range(135)]
    settings = {"threshold": 400, "keep_short": 0.1, "budget_tokens": 60_000, "seed": 64}
    by_source, everywhere = (
        lengths * upsampled(lengths, names, keys, **settings) for names in (sources, None)
    )
    # 100 tokens, the shortest document, are lacking.
    assert [int(part.sum()) // 1000 for part in (by_source[:10], by_source[10:])] == [20, 39]
    assert everywhere[:10].sum() > 25_000
    is_long = lengths[10:] >= 400
    assert by_source[10:][is_long].sum() > 3 * lengths[10:][is_long].sum()


def test_chances_are_those_asked_for():
    """One short document in ten, to within five standard deviations, when the budget does not end
    before.
    """
    n_docs = 20_000
    lengths = np.full(n_docs, 10, np.int64)
    lengths[0] = 1000
    taken = upsampled(
        lengths,
        None,
        [str(n) for n in range(n_docs)],
        threshold=1000,
        keep_short=0.1,
        budget_tokens=200_990,
        seed=1,
    )
    assert abs(int(taken[1:].sum()) - 2000) < 5 * (n_docs * 0.1 * 0.9) ** 0.5
