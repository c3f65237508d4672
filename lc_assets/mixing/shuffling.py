"""NumPy's shuffle by its legacy stream, in a fifth of the time.

`numpy.random.RandomState.shuffle` goes from the last entry down and swaps each with one up to it,
drawn by a Mersenne Twister; numbers that are too large are rejected. It waits for memory at every
swap. Here, NumPy draws the words in blocks, numbers are taken from them without a branch, their
entries are fetched, many at once, and then swapped.

Source: NumPy ``mtrand.pyx`` (``_shuffle_raw``), ``legacy-distributions.c``; NEP 19 freezes the
    stream.
"""

import numpy as np

from lc_assets.arrays import Array, Integers, UInt32s
from lc_assets.compiling import compiled

COMPILED_FROM = 200_000
"""Entries from which compiled code is worth loading: numba takes half a second to import."""
MOST_SHUFFLED = 2**32 - 1
"""Entries up to which NumPy draws 32-bit words; it shuffles longer arrays itself."""
_WORDS = 1 << 16
"""Words that are drawn at once."""
_SWAPS = 1024
"""Swaps that are done at once: their cache lines, 64 kB, fit into the second-level cache."""


def shuffle(values: Integers, state: np.random.RandomState) -> None:
    """Shuffle an array of integers in place, exactly as ``state.shuffle(values)`` would.

    ``state`` is afterwards as that would leave it.

    >>> state, values = np.random.RandomState(1), np.arange(5, dtype=np.int32)
    >>> shuffle(values, state)
    >>> values
    array([2, 1, 4, 0, 3], dtype=int32)
    """
    if not COMPILED_FROM <= len(values) <= MOST_SHUFFLED:
        state.shuffle(values)
        return
    # Four or eight bytes, as signed: two compilations instead of one per dtype.
    same: Array = values.view(np.int32 if values.itemsize == 4 else np.int64)
    top, n_used, before = len(values) - 1, 0, state.get_state()
    while top > 0:
        before = state.get_state()
        words = state.randint(2**32, size=_WORDS, dtype=np.uint32)
        top, n_used = _swap_down(same, top, words)
    # Draw the last words again, but only those that were used.
    state.set_state(before)
    state.randint(2**32, size=n_used, dtype=np.uint32)


@compiled
def _swap_down(values: Integers, top: int, words: UInt32s) -> tuple[int, int]:
    """Swap the entries from ``top`` down, until all words are used or all entries are swapped.

    Returns:
        The last entry that is not swapped yet, and the number of words used.
    """
    drawn = np.empty(_SWAPS, np.uint32)
    mask, n_used = 1, 0
    while mask < top:
        mask = 2 * mask + 1
    while top > 0 and n_used < len(words):
        most, n_drawn = min(_SWAPS, top), 0
        while n_drawn < most and n_used < len(words):
            bound = top - n_drawn
            if bound <= mask >> 1:
                mask >>= 1
            n_words = min(most - n_drawn, bound - (mask >> 1), len(words) - n_used)
            # Every word is written, and overwritten if it is too large.
            for word in words[n_used : n_used + n_words]:
                value = word & np.uint32(mask)
                drawn[n_drawn] = value
                n_drawn += int(np.int64(value) <= top - n_drawn)
            n_used += n_words
        _swap(values, top, drawn[:n_drawn])
        top -= n_drawn
    return top, n_used


@compiled
def _swap(values: Integers, top: int, drawn: UInt32s) -> None:
    touched = values[0] & 0
    for other in drawn:
        touched |= values[other]  # no swap waits for this, so many are fetched at once
    for other in drawn:
        kept = values[top]
        values[top] = values[other]
        values[other] = kept
        top -= 1
    if len(drawn):
        drawn[0] = touched  # or the compiler would remove the fetching
