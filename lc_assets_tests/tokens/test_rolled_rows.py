"""Rolling equals NumPy's, and can be undone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lc_assets.errors import BadInput
from lc_assets.tokens.orders import roll_into, roll_rows, unroll_rows

ROWS = hnp.arrays(np.uint16, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7))


@st.composite
def rows_and_shifts(draw):
    """Rows of any shape, with a shift each: zero, whole turns and negative ones too."""
    rows = draw(ROWS)
    return rows, draw(hnp.arrays(np.int64, len(rows), elements=st.integers(-20, 20)))


@given(rows_and_shifts())
def test_rolling_is_numpys_row_by_row(case):
    """The reference is `np.roll` of each row."""
    rows, shifts = case
    slow = [np.roll(row, shift) for row, shift in zip(rows, shifts.tolist(), strict=True)]
    np.testing.assert_array_equal(
        roll_rows(rows, shifts), np.array(slow, np.uint16).reshape(rows.shape)
    )


@given(rows_and_shifts())
def test_unrolling_undoes_rolling(case):
    """And the input is left as it was."""
    rows, shifts = case
    before = rows.copy()
    np.testing.assert_array_equal(unroll_rows(roll_rows(rows, shifts), shifts), rows)
    np.testing.assert_array_equal(rows, before)


def test_one_shift_per_row():
    """A shift too few would leave rows unrolled, or roll them all alike."""
    with pytest.raises(BadInput, match="one shift per row"):
        roll_rows(np.zeros((3, 4), np.uint16), np.array([1]))


def test_a_row_is_rolled_into_a_place_of_its_own_length_only():
    with pytest.raises(BadInput, match=r"\(3,\) for \(4,\)"):
        roll_into(np.zeros(3, np.uint16), np.zeros(4, np.uint16), 1)
