"""A mix that changes mid-run keeps what was consumed, and every source goes on where it was."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import (
    blend,
    continued_blend,
    largest_without_repeats,
    normalise,
    tempered,
)
from lc_assets.mixing.gpt_index import build_gpt_index, lengthened

WEIGHTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=6)


@given(WEIGHTS, WEIGHTS, st.integers(0, 80), st.integers(0, 80))
def test_a_continued_blend_is_the_old_and_then_the_new_one(old, new, after, rest):
    """The first samples are the old blend's, the order behind them is the new weights', and no
    sample of a source is lost or repeated.
    """
    before, behind = blend(normalise(old), after + 5), blend(normalise(new), rest)
    datasets, samples = continued_blend(before, after, behind)
    assert datasets.tolist() == [*before[0][:after].tolist(), *behind[0].tolist()]
    assert samples[:after].tolist() == before[1][:after].tolist()
    for dataset in range(max(len(old), len(new))):
        assert samples[datasets == dataset].tolist() == list(range((datasets == dataset).sum()))
    assert (datasets.dtype, samples.dtype) == (np.int16, np.int64)


@pytest.mark.parametrize("after", [-1, 4])
def test_no_more_is_kept_than_there_is(after):
    with pytest.raises(BadInput, match="samples of a mix of 3"):
        continued_blend(blend(normalise([1]), 3), after, blend(normalise([1]), 3))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
    st.none() | st.integers(0, 30),
    st.integers(0, 80),
)
def test_a_lengthened_index_serves_the_old_samples_first(
    lengths, sequence_length, seed, before, more
):
    """Bit for bit; then every new sample once, over whole epochs of the same documents."""
    lengths = np.array(lengths)
    how = {"sequence_length": sequence_length, "seed": seed}
    old = build_gpt_index(lengths, n_samples=before, **how)
    new = lengthened(old, lengths, n_samples=old.n_samples + more, **how)
    assert new.n_samples >= old.n_samples + more
    n_old = old.n_samples
    np.testing.assert_array_equal(new.shuffle_index[:n_old], old.shuffle_index)
    np.testing.assert_array_equal(new.sample_index[: n_old + 1], old.sample_index)
    np.testing.assert_array_equal(new.document_index[: len(old.document_index)], old.document_index)
    assert sorted(new.shuffle_index.tolist()) == list(range(new.n_samples))
    assert len(set(np.bincount(new.document_index, minlength=len(lengths)).tolist())) == 1
    if more == 0:
        assert new is old


def test_an_index_of_other_documents_is_not_lengthened():
    index = build_gpt_index(np.array([5, 6]), sequence_length=2, seed=1)
    with pytest.raises(BadInput, match="only over the documents"):
        lengthened(index, np.array([5, 6, 7]), sequence_length=2, seed=1, n_samples=100)
    with pytest.raises(BadInput, match="only over the documents"):
        lengthened(index, np.array([5, 6]), sequence_length=3, seed=1, n_samples=100)


def test_added_epochs_are_other_shuffles():
    """Else the same documents would follow each other again."""
    lengths = np.full(50, 9)
    old = build_gpt_index(lengths, sequence_length=9, seed=1)
    new = lengthened(old, lengths, sequence_length=9, seed=1, n_samples=60)
    newer = lengthened(new, lengths, sequence_length=9, seed=1, n_samples=120)
    epochs = newer.document_index.reshape(-1, 50).tolist()
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs) == 3


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=8), st.floats(1, 50))
def test_a_temperature_brings_weights_nearer_to_each_other(sizes, temperature):
    """Their order stays."""
    proportional, cooler = tempered(sizes, 1.0), tempered(sizes, temperature)
    assert max(cooler) / min(cooler) <= max(proportional) / min(proportional) * (1 + 1e-9)
    assert np.argsort(sizes, kind="stable").tolist() == sorted(
        range(len(sizes)), key=lambda one: (sizes[one], one)
    )


@given(WEIGHTS, st.data())
def test_the_longest_blend_without_repeats_is_that(weights, data):
    """One more would repeat."""
    shares = normalise(weights)
    available = data.draw(
        st.lists(st.integers(1, 30), min_size=len(weights), max_size=len(weights))
    )
    size = largest_without_repeats(shares, available)
    for length, repeats in ((size, False), (size + 1, True)):
        taken = np.bincount(blend(shares, length)[0], minlength=len(weights))
        assert bool((taken > available).any()) == repeats
