"""Shuffle as Megatron does, by NumPy's legacy stream, which is frozen, in an eighth of the time.

`numpy.random.RandomState.shuffle` goes from the last entry down and swaps each with one up to it,
drawn by a Mersenne Twister; numbers that are too large are rejected. It waits for memory at every
swap. Here, numbers are drawn in blocks without a branch, their entries are fetched, many at once,
and then swapped.

Source: NumPy ``mtrand.pyx`` (``_shuffle_raw``), ``legacy-distributions.c``, ``mt19937.c``; NEP 19
    freezes the stream.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

COMPILED_FROM = 200_000
"""Entries from which compiled code is worth loading: numba takes half a second to import."""
MOST = 2**32 - 1
"""Entries up to which NumPy draws 32-bit words; it shuffles longer arrays itself."""

_WORDS = 624
"""Words in the state of MT19937."""
_BLOCK = 1024
"""Swaps that are drawn at once: their cache lines, 64 kB, fit into the second-level cache."""
_SHIFT = 397
_UPPER, _LOWER, _TWIST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
_B, _C = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)
_1, _7, _11, _15, _18 = np.uint32(1), np.uint32(7), np.uint32(11), np.uint32(15), np.uint32(18)


def shuffle(values: np.ndarray, state: np.random.RandomState) -> None:
    """Shuffle an array of integers in place, exactly as ``state.shuffle(values)`` would.

    ``state`` is afterwards as that would leave it.

    >>> state, values = np.random.RandomState(1), np.arange(5, dtype=np.int32)
    >>> shuffle(values, state)
    >>> values
    array([2, 1, 4, 0, 3], dtype=int32)
    """
    if not COMPILED_FROM <= len(values) <= MOST:
        state.shuffle(values)
        return
    # Four or eight bytes, as signed: two compilations instead of one per dtype.
    same = values.view(np.int32 if values.itemsize == 4 else np.int64)
    now = state.get_state(legacy=False)
    now["state"]["pos"] = _shuffle(same, now["state"]["key"], now["state"]["pos"])
    state.set_state(now)


@compiled
def _shuffle(values: np.ndarray, state: NDArray[np.uint32], position: int) -> int:
    """Shuffle ``values`` in place.

    Args:
        values: fewer than 2³² entries.
        state: the generator's words; updated in place.
        position: index of the next word, as in `numpy.random.RandomState.get_state`.

    Returns:
        The new position.
    """
    words, drawn = np.empty(_WORDS, np.uint32), np.empty(_BLOCK, np.uint32)
    _temper(state, words)
    top = len(values) - 1
    mask = 1
    while mask < top:
        mask = 2 * mask + 1
    while top > 0:
        wanted, n_drawn = min(_BLOCK, top), 0
        while n_drawn < wanted:
            if position == _WORDS:
                _next_state(state)
                _temper(state, words)
                position = 0
            bound = top - n_drawn
            if bound <= mask >> 1:
                mask >>= 1
            n_words = min(wanted - n_drawn, bound - (mask >> 1), _WORDS - position)
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
    """Append the words that are small enough: each is written, and overwritten if it is not."""
    for word in words:
        value = word & mask
        drawn[n_drawn] = value
        n_drawn += int(np.int64(value) <= top - n_drawn)
    return n_drawn


@compiled
def _swap(values: np.ndarray, top: int, drawn: np.ndarray) -> None:
    touched = values[0] & 0
    for other in drawn:
        touched |= values[other]  # no swap waits for this, so many are fetched at once
    for other in drawn:
        kept = values[top]
        values[top] = values[other]
        values[other] = kept
        top -= 1
    drawn[0] = touched  # or the compiler would remove the fetching


@compiled
def _next_state(state: np.ndarray) -> None:
    for at in range(_WORDS - _SHIFT):
        mixed = (state[at] & _UPPER) | (state[at + 1] & _LOWER)
        state[at] = state[at + _SHIFT] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)
    for at in range(_WORDS - _SHIFT, _WORDS - 1):
        mixed = (state[at] & _UPPER) | (state[at + 1] & _LOWER)
        state[at] = state[at + _SHIFT - _WORDS] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)
    mixed = (state[_WORDS - 1] & _UPPER) | (state[0] & _LOWER)
    state[_WORDS - 1] = state[_SHIFT - 1] ^ (mixed >> _1) ^ ((mixed & _1) * _TWIST)


@compiled
def _temper(state: np.ndarray, words: np.ndarray) -> None:
    for at in range(_WORDS):
        word = state[at]
        word ^= word >> _11
        word ^= (word << _7) & _B
        word ^= (word << _15) & _C
        words[at] = word ^ (word >> _18)
