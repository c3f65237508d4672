"""Shuffling as Megatron does: by NumPy's legacy stream, which is frozen, and in an eighth of the
time.

Here: which way an array is shuffled, and the generator's state in and out. Not here: the loops
    (`lc_assets.mixing.kernels`).
"""

import numpy as np

from lc_assets.compiling import COMPILED

COMPILED_FROM = 200_000
"""Entries from which compiled code is worth loading: numba takes half a second to import."""
MOST = 2**32 - 1
"""Entries up to which NumPy draws 32-bit words; longer arrays are left to it."""


def shuffle(values: np.ndarray, state: np.random.RandomState) -> None:
    """Shuffle a row of integers in place, exactly as ``state.shuffle(values)`` would, and leave
    ``state`` as that would.

    >>> state, values = np.random.RandomState(1), np.arange(5, dtype=np.int32)
    >>> shuffle(values, state)
    >>> values
    array([2, 1, 4, 0, 3], dtype=int32)
    """
    if not COMPILED or not COMPILED_FROM <= len(values) <= MOST:
        state.shuffle(values)
        return
    compiled_shuffle(values, state)


def compiled_shuffle(values: np.ndarray, state: np.random.RandomState) -> None:
    """`shuffle` of fewer than 2³² integers in compiled code, however few they are."""
    # Numba takes half a second to import.
    from lc_assets.mixing.kernels.shuffling import shuffle as swap_all  # noqa: PLC0415

    # Four bytes or eight, whatever their sign: two compilations instead of one for every dtype.
    same = values.view(np.int32 if values.itemsize == 4 else np.int64)
    now = state.get_state(legacy=False)
    now["state"]["pos"] = swap_all(same, now["state"]["key"], now["state"]["pos"])
    state.set_state(now)
