"""A band leaves out the shares that were asked for, and never parts equal values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import BadInput
from lc_assets.text.rules.rules import Shares, band

VALUES = st.lists(
    st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0, -4.0]) | st.floats(-1e9, 1e9),
    min_size=1,
    max_size=40,
)
SHARES = st.tuples(st.floats(0, 0.49), st.floats(0, 0.49)).filter(lambda pair: sum(pair) > 0)


@given(VALUES, SHARES, st.randoms(use_true_random=False))
def test_as_many_are_left_out_as_ties_allow(values, pair, random):
    """Never more than the share; exactly it where no two values are equal; in whatever order they
    come.
    """
    rule = band("gzip_ratio", np.array(values), Shares(low=pair[0], high=pair[1]))
    low = sum(value < rule.lowest for value in values)
    high = sum(value > rule.highest for value in values)
    allowed = [int(len(values) * share) for share in pair]
    assert low <= allowed[0]
    assert high <= allowed[1]
    if len(set(values)) == len(values):
        assert [low, high] == allowed
    random.shuffle(values)
    assert band("gzip_ratio", np.array(values), Shares(low=pair[0], high=pair[1])) == rule


def test_what_has_no_value_is_no_part_of_the_middle():
    rule = band(
        "mean_word_length:raw",
        np.array([np.nan, 3.0, 1.0, 2.0, np.nan]),
        Shares(low=0.34, high=0.0),
    )
    assert (rule.at_least, rule.at_most, rule.column) == (2.0, None, "mean_word_length:raw")


@pytest.mark.parametrize(
    "wrong", [(0, 0), (0.5, 0.5), (-0.1, 0.5), (1.0, 0.0), (float("nan"), 0.1)]
)
def test_shares_are_sound_from_birth(wrong):
    with pytest.raises(BadInput, match="two shares"):
        Shares(low=wrong[0], high=wrong[1])


def test_without_values_there_is_no_middle():
    with pytest.raises(BadInput, match="no document has a value of gzip_ratio"):
        band("gzip_ratio", np.array([np.nan]), Shares(low=0.1, high=0.1))
