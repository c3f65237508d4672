"""A test for uniform draws whose false-alarm rate is known for every number of points.

The Kolmogorov distance between the points' distribution and the uniform one exceeds e with
probability at most ``2 exp(-2 n e²)`` (Dvoretzky, Kiefer and Wolfowitz 1956, with Massart's
constant of 1990). The bound holds for any n and for discrete draws; a chi-square tail would need a
statistics package.
"""

import math

import numpy as np
from numpy.typing import NDArray

FALSE_ALARM = 1e-6
"""How often, at most, a sound draw is called unsound: once in a million builds."""


def uniform_on_a_line(points: NDArray[np.floating]) -> float:
    """Bound the p-value of the hypothesis that ``points``, float64 in [0, 1), are drawn uniformly.

    >>> uniform_on_a_line((np.arange(4096) + 0.5) / 4096)
    1.0
    >>> uniform_on_a_line(np.zeros(4096)) < FALSE_ALARM
    True
    >>> uniform_on_a_line(np.array([]))
    1.0
    """
    n = len(points)
    if n == 0:
        return 1.0
    ordered = np.sort(points)
    steps = np.arange(n + 1) / n
    distance = float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))
    return min(1.0, 2 * math.exp(-2 * n * distance**2))
