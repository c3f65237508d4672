"""Rounding to eight decimal digits as Python's `round` does it, which `numpy.round` does not.

``round`` takes the exact value of the float and rounds it to the nearest multiple of 1e-8, ties to
even. Here the product with 1e8 is taken with its error (Dekker 1971), so that the comparison with a
half is exact, and the whole number that comes out is divided by 1e8, which IEEE 754 rounds to the
float that `round` would read from the digits.
"""

from math import floor
from typing import Final

from lc_assets.compiling import compiled

SCALE: Final = 1e8
SPLIT: Final = 134217729.0
"""Two to the 27th and one: parts a float in halves whose products are exact."""

SCALE_HIGH: Final = SPLIT * SCALE - (SPLIT * SCALE - SCALE)
SCALE_LOW: Final = SCALE - SCALE_HIGH

LARGEST: Final = 9e7
"""From here on the product does not have its half any more. Whole numbers, which need no rounding,
may be larger.
"""


@compiled
def round8(value: float) -> float:
    """Round a number from 0 to `LARGEST`, or any whole one.

    >>> round8(0.001953125), round8(2 / 3)
    (0.00195312, 0.66666667)
    """
    if value == floor(value):
        return value
    product = value * SCALE
    high = SPLIT * value - (SPLIT * value - value)
    error = ((high * SCALE_HIGH - product) + high * SCALE_LOW + (value - high) * SCALE_HIGH) + (
        value - high
    ) * SCALE_LOW
    below = floor(product)
    over_half = (product - below - 0.5) + error
    if over_half > 0 or (over_half == 0 and below % 2 == 1):
        below += 1
    return below / SCALE
