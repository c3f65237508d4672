"""Rolling equals NumPy's."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from lc_assets.tokens.orders import rolled_parts

ROWS = hnp.arrays(np.uint16, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7))


@st.composite
def rows_and_shifts(draw):
    """Rows of any shape, with a shift each: zero, whole turns and negative ones too."""
    rows = draw(ROWS)
    return rows, draw(hnp.arrays(np.int64, len(rows), elements=st.integers(-20, 20)))


@given(rows_and_shifts())
def test_the_parts_of_a_rolled_row_are_numpys(case):
    for row, shift in zip(*case, strict=True):
        target = np.empty_like(row)
        first, last = rolled_parts(target, int(shift))
        first[:], last[:] = row[: len(first)], row[len(first) :]
        np.testing.assert_array_equal(target, np.roll(row, shift))
