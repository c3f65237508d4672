"""What the orders promise: uniform, each document by itself, and the riffle is the shuffle of the
union.
"""

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.randomness import shuffled
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.tokens.orders import interleave, priorities, shifts
from lc_assets_tests.reference.riffle import slow_riffle

SEEDS = st.integers(0, 2**63)
IDS = st.lists(st.text(max_size=4), unique=True, max_size=30)
CHI_SQUARE_23 = 71.2
"""A uniform draw over 24 permutations exceeds this once in a million tests; the seeds are fixed, so
this test passes always or never.
"""


@st.composite
def sources(draw):
    """Up to five sources without a document in common; some may be empty."""
    ids = draw(IDS)
    cuts = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=4)))
    return [ids[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(ids)])]


CHI_SQUARE_119 = 207.5
"""The same for 120 permutations."""


def own_order(ids, seed):
    """A source's ids in its own order, and their priorities."""
    priority = priorities(ids, seed=seed)
    order = shuffled(priority, ids)
    return [ids[document] for document in order], priority[order]


def global_order(groups, seed):
    """Ids of all sources in the order of the riffle."""
    orders = [own_order(ids, seed) for ids in groups]
    source, row = interleave([priority for _, priority in orders])
    return [
        orders[number][0][index]
        for number, index in zip(source.tolist(), row.tolist(), strict=True)
    ]


@given(sources(), SEEDS)
def test_the_riffle_is_the_shuffle_of_the_union(groups, seed):
    """Merging shuffled sources or shuffling everything at once: the same order."""
    everything = [identity for ids in groups for identity in ids]
    assert global_order(groups, seed) == own_order(everything, seed)[0]


@given(sources(), SEEDS)
def test_the_riffle_restricted_to_a_source_is_its_own_order(groups, seed):
    """A snapshot read alone comes in the order it has in the whole."""
    whole = global_order(groups, seed)
    for ids in groups:
        assert [identity for identity in whole if identity in set(ids)] == own_order(ids, seed)[0]


@given(sources(), st.lists(st.integers(), max_size=8, unique=True), SEEDS)
def test_a_new_source_never_reorders_the_others(groups, new, seed):
    """Wherever the new one is put, first or last."""
    added = [f"new {number}" for number in new]
    before = global_order(groups, seed)
    for after in (global_order([*groups, added], seed), global_order([added, *groups], seed)):
        assert [identity for identity in after if not identity.startswith("new ")] == before


@given(IDS, SEEDS, st.randoms())
def test_the_shuffle_does_not_depend_on_how_documents_arrive(ids, seed, random):
    """Shards may finish in any order."""
    rearranged = random.sample(ids, len(ids))
    assert own_order(ids, seed)[0] == own_order(rearranged, seed)[0]


@given(
    st.lists(
        st.lists(st.integers(0, 5) | st.integers(2**64 - 3, 2**64 - 1), max_size=8).map(sorted),
        max_size=5,
    )
)
def test_the_riffle_is_a_merge(keys):
    """The reference merges one by one; equal priorities go to the smaller source, then the smaller
    row.
    """
    priorities_by_source = [np.array(source, np.uint64) for source in keys]
    source, row = interleave(priorities_by_source)
    assert (source.dtype, row.dtype) == (np.uint16, np.uint32)
    assert list(zip(source.tolist(), row.tolist(), strict=True)) == slow_riffle(
        priorities_by_source
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), unique=True, max_size=12))
def test_equal_priorities_go_by_id(pairs):
    """The order of (priority, id), as Python sorts it."""
    order = shuffled(
        np.array([key for key, _ in pairs], np.uint64), [identity for _, identity in pairs]
    )
    assert [pairs[document] for document in order] == sorted(pairs)


def test_every_order_of_four_documents_is_equally_likely():
    """Chi-square over 24 permutations and 4,800 seeds."""
    ids = [f"2023-06/0000/en_head.json.gz/{line}" for line in range(4)]
    counts = Counter(
        tuple(shuffled(priorities(ids, seed=seed), ids).tolist()) for seed in range(4_800)
    )
    assert len(counts) == 24
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < CHI_SQUARE_23


def test_every_order_of_riffled_documents_is_equally_likely():
    """Chi-square over 120 permutations: five documents of three sources, each source in its own
    order, riffled by 6,000 seeds.
    """
    groups = [["a", "b"], ["c", "d"], ["e"]]
    counts = Counter(tuple(global_order(groups, seed)) for seed in range(6_000))
    assert len(counts) == 120
    assert sum((count - 50) ** 2 / 50 for count in counts.values()) < CHI_SQUARE_119


def test_every_shift_is_equally_likely_and_says_nothing_of_the_order():
    """Chi-square over the priority's rest by four × six shifts (24 cells): one number for both
    would leave half of them empty.
    """
    ids = [str(number) for number in range(48_000)]
    rest = (priorities(ids, seed=3) % np.uint64(4)).astype(int)
    counts = np.bincount(rest * 6 + shifts(ids, seed=3, row_tokens=6), minlength=24)
    assert ((counts - 2_000) ** 2 / 2_000).sum() < CHI_SQUARE_23


@given(IDS, SEEDS, st.integers(1, 2**17))
def test_shifts_lie_within_the_row(ids, seed, row_tokens):
    """int64, from 0, below the row's length."""
    drawn = shifts(ids, seed=seed, row_tokens=row_tokens)
    assert drawn.dtype == np.int64
    assert all(0 <= shift < row_tokens for shift in drawn.tolist())


def held(keys, seed, fraction):
    return held_out(keys, GriddingSettings(seed=seed, heldout_fraction=fraction))


@given(IDS, SEEDS, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_fraction_holds_out_a_superset(keys, seed, one, other):
    """So a held-out set can grow without giving a document back."""
    smaller, larger = (held(keys, seed, fraction) for fraction in sorted((one, other)))
    assert not (smaller & ~larger).any()


def test_zero_and_one_are_exact():
    """Nothing, and everything."""
    keys = [str(number) for number in range(2_000)]
    assert not held(keys, 1, 0.0).any()
    assert held(keys, 1, 1.0).all()


def test_the_held_out_share_is_the_fraction():
    """100,000 keys at 1/128: a count six standard deviations (27.8 each) from 781.25 comes once in
    a billion tests.
    """
    n_heldout = int(held([str(number) for number in range(100_000)], 1, 1 / 128).sum())
    assert abs(n_heldout - 781.25) < 6 * 27.8
