"""NumPy's legacy shuffle, exactly: the same order from the same state, and the same state
afterwards.

`numpy.random.RandomState.shuffle` walks from the last entry down and swaps each with one that a
Mersenne Twister names among those up to it; numbers that are too large are thrown away. It waits
for memory at every swap. Here numbers are drawn in blocks without a branch, their entries are
touched, all of them under way at once, and then swapped.

Here: the compiled loops. Their plain twin is NumPy's own; `lc_assets.mixing.shuffling` chooses.
Source: NumPy ``mtrand.pyx`` (``_shuffle_raw``), ``legacy-distributions.c``, ``mt19937.c``; NEP 19
    freezes the stream.
"""

from typing import Any

import numpy as np
from jaxtyping import UInt32

from lc_assets.compiling import compiled

WORDS = 624
"""Words in a state of MT19937."""
BLOCK = 1024
"""Swaps that are drawn before they are done: their cache lines, 64 kB, fit into the second cache.
"""

_SHIFT = 397
_UPPER, _LOWER, _TWIST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
_B, _C = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)
_1, _7, _11, _15, _18 = np.uint32(1), np.uint32(7), np.uint32(11), np.uint32(15), np.uint32(18)


@compiled
def shuffle(values: np.ndarray, state: UInt32[np.ndarray, "624"], position: int) -> int:
    """Shuffle ``values`` in place.

    Args:
        values: fewer than 2³² entries.
        state: the generator's words; changed in place.
        position: of the next word, as `numpy.random.RandomState.get_state` gives it.

    Returns:
        The position afterwards.
    """
    words, drawn = np.empty(WORDS, np.uint32), np.empty(BLOCK, np.uint32)
    _temper(state, words)
    top = len(values) - 1
    mask = 1
    while mask < top:
        mask = 2 * mask + 1
    while top > 0:
        wanted, n_drawn = min(BLOCK, top), 0
        while n_drawn < wanted:
            if position == WORDS:
                _next_state(state)
                _temper(state, words)
                position = 0
            bound = top - n_drawn
            if bound <= mask >> 1:
                mask >>= 1
            n_words = min(wanted - n_drawn, bound - (mask >> 1), WORDS - position)
            n_drawn = _draw(
                words[position : position + n_words], np.uint32(mask), top, drawn, n_drawn
            )
            position += n_words
        _swap(values, top, drawn[:wanted])
        top -= wanted
    return position


@compiled
def _draw(
    words: np.ndarray, mask: np.integer[Any], top: int, drawn: np.ndarray, n_drawn: int
) -> int:
    """Write the words that are small enough behind those drawn before: each is written, and the
    next one over it if not.
    """
    for word in words:
        value = word & mask
        drawn[n_drawn] = value
        n_drawn += int(np.int64(value) <= top - n_drawn)
    return n_drawn


@compiled
def _swap(values: np.ndarray, top: int, drawn: np.ndarray) -> None:
    touched = values[0] & 0
    for other in drawn:
        touched |= values[other]  # no swap waits for this, so the processor asks for many at once
    for other in drawn:
        kept = values[top]
        values[top] = values[other]
        values[other] = kept
        top -= 1
    drawn[0] = touched  # else the compiler would leave the touching out


@compiled
def _next_state(state: np.ndarray) -> None:
    for at in range(WORDS - _SHIFT):
        mixed = (state[at] & _UPPER) | (state[at + 1] & _LOWER)
        state[at] = state[at + _SHIFT] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)
    for at in range(WORDS - _SHIFT, WORDS - 1):
        mixed = (state[at] & _UPPER) | (state[at + 1] & _LOWER)
        state[at] = state[at + _SHIFT - WORDS] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)
    mixed = (state[WORDS - 1] & _UPPER) | (state[0] & _LOWER)
    state[WORDS - 1] = state[_SHIFT - 1] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)


@compiled
def _temper(state: np.ndarray, words: np.ndarray) -> None:
    for at in range(WORDS):
        word = state[at]
        word ^= word >> _11
        word ^= (word << _7) & _B
        word ^= (word << _15) & _C
        words[at] = word ^ (word >> _18)
