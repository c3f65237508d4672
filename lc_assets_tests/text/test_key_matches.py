"""Marks of ascending keys: the compiled loop, its reference, and sets agree."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.text.duplicates.clusters import are_among
from lc_assets_tests.reference.duplicates import plain_are_among

KEYS = st.lists(
    st.integers(0, 12) | st.integers(0, 2**64 - 1) | st.just(2**64 - 1), max_size=40
).map(lambda keys: np.array(sorted(keys), dtype=np.uint64))


@given(KEYS, KEYS)
def test_marks_are_those_of_sets(keys, asked):
    expected = [key in set(asked.tolist()) for key in keys.tolist()]
    assert are_among(keys, asked).tolist() == expected
    assert plain_are_among(keys, asked).tolist() == expected


def test_mapped_keys_do_as_well(tmp_path):
    """As bands are: read-only, and a row of a matrix."""
    np.save(tmp_path / "keys.npy", np.arange(12, dtype=np.uint64).reshape(2, 6))
    keys = np.load(tmp_path / "keys.npy", mmap_mode="r")[1]
    assert are_among(keys, np.array([7, 20], np.uint64)).tolist() == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]
