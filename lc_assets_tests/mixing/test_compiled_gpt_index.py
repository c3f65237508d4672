"""The compiled sample index equals the reference, and the shuffle that of NumPy."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from lc_assets.mixing import shuffling
from lc_assets.mixing.gpt_index import build_gpt_index, sample_index
from lc_assets_tests.reference import mixing as reference


@pytest.fixture(autouse=True)
def everything_is_compiled():
    """Short arrays, too, are shuffled by compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffling, "COMPILED_FROM", 0)
        yield


@given(
    st.integers(0, 5000) | st.sampled_from([1023, 1024, 1025, 1026, 2049]),
    st.integers(0, 2**32 - 1),
    st.integers(0, 1400),
    st.sampled_from(["i4", "u4", "i8"]),
)
def test_a_compiled_shuffle_is_numpys(n_values, seed, drawn_before, dtype):
    """The same order from any state, and the same state afterwards."""
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    for state in (ours, theirs):
        state.bytes(4 * drawn_before)
    shuffled, wanted = np.arange(n_values).astype(dtype), np.arange(n_values).astype(dtype)
    shuffling.shuffle(shuffled, ours)
    theirs.shuffle(wanted)
    np.testing.assert_array_equal(shuffled, wanted, strict=True)
    assert ours.randint(2**31) == theirs.randint(2**31)
    assert ours.random_sample() == theirs.random_sample()


@given(
    st.lists(st.integers(0, 9) | st.integers(0, 60), min_size=1, max_size=40),
    st.integers(1, 12) | st.integers(1, 200),
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
)
def test_a_sample_index_equals_the_reference(lengths, sequence_length, seed, epochs):
    """Empty documents, documents of many samples, samples of many documents, more than one fetch of
    lengths.
    """
    lengths = np.array(lengths)
    assume(lengths.sum())
    order = np.random.RandomState(seed).permutation(
        np.tile(np.arange(len(lengths), dtype=np.int32), epochs)
    )
    made = [
        make(lengths, order, sequence_length, epochs * int(lengths.sum()))
        for make in (reference.sample_index, sample_index)
    ]
    np.testing.assert_array_equal(*made, strict=True)


def test_lengths_at_an_odd_address_are_walked():
    """As those of a mapped .idx, which begin at byte 34."""
    content = b"\0\0" + np.arange(1, 50, dtype="<i4").tobytes()
    lengths = np.frombuffer(content, "<i4", offset=2)
    order = np.arange(49, dtype=np.int32)
    np.testing.assert_array_equal(
        sample_index(lengths, order, 7, int(lengths.sum())),
        reference.sample_index(lengths, order, 7, int(lengths.sum())),
    )


@pytest.mark.parametrize("n_samples", [None, 300, 500])
def test_an_index_is_the_same_by_either_way(monkeypatch, n_samples):
    """All three arrays, one epoch, several, the last apart."""
    lengths = np.random.default_rng(1).integers(0, 50, 100)
    made = []
    for threshold in (0, 10**9):
        monkeypatch.setattr(shuffling, "COMPILED_FROM", threshold)
        made.append(build_gpt_index(lengths, sequence_length=16, seed=5, n_samples=n_samples))
    for name in ("document_index", "sample_index", "shuffle_index"):
        np.testing.assert_array_equal(*(getattr(index, name) for index in made), strict=True)
