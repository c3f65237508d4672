"""Which of some ascending keys stand among others: one pass over both, so old keys are only passed
by, never sorted again.

Here: the marks, and the plain twin of the compiled loop. Not here: what keys are of
    (`lc_assets.text.duplicate_keys`).
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED

Keys = NDArray[np.uint64]
Marks = NDArray[np.bool_]


def standing_among(keys: Keys, asked: Keys) -> Marks:
    """Mark the keys that are asked for; ``(n,)`` bool.

    Linear in both, however they lie among each other.

    Args:
        keys: ``(n,)`` uint64, ascending; a key may stand several times.
        asked: ``(m,)`` uint64, ascending; likewise.

    >>> standing_among(np.array([1, 4, 4, 9], np.uint64), np.array([4, 5, 9], np.uint64)).tolist()
    [False, True, True, True]
    """
    if COMPILED:
        # Numba takes half a second to import.
        from lc_assets.text.kernels.key_matches import mark  # noqa: PLC0415

        marks = np.zeros(len(keys), np.bool_)
        mark(keys, asked, marks)
        return marks
    return plain_standing_among(keys, asked)


def plain_standing_among(keys: Keys, asked: Keys) -> Marks:
    """The plain twin: see `standing_among`."""
    known = set(asked.tolist())
    return np.array([key in known for key in keys.tolist()], np.bool_)
