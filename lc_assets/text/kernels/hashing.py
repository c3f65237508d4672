"""Hashing words, and a set of words to look up in.

A hash begins with a number that each process draws anew, so no text can be made up whose words fall
into one place. Nothing that is counted depends on it: equal hashes are always compared character by
character.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from secrets import randbits
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
STIR: Final = np.uint64(29)
WIDTH: Final = np.uint64(64)
LOAD: Final = 4
"""A set has at least so many slots per word."""


@cache
def hash_seed() -> np.uint64:
    """What hashes of this process begin with."""
    return np.uint64(randbits(64))


@compiled
def stirred(state: np.uint64, code: np.uint64) -> np.uint64:
    """Take one more character into a hash."""
    state = (state ^ code) * MULTIPLIER
    return state ^ (state >> STIR)


@compiled
def slot_of(state: np.uint64, n_bits: int) -> np.int64:
    """Place of a hash in a table of ``2**n_bits`` slots."""
    return np.int64((state * MULTIPLIER) >> (WIDTH - np.uint64(n_bits)))


@compiled
def bits_of(size: int) -> int:
    """Whose power of two the size of a table is."""
    n_bits = 0
    while 1 << n_bits < size:
        n_bits += 1
    return n_bits


@dataclass(frozen=True, slots=True, eq=False)
class WordSet:
    """Words to look up, by their hashes.

    Attributes:
        slots: int32[2**n_bits], number of a word from 1, in the order given; 0 where there is none.
        hashes: uint64 of each word.
        places: int64[n + 1], where each word begins in ``codes``.
        codes: uint32, the words' characters one after the other.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    places: NDArray[np.int64]
    codes: NDArray[np.uint32]


def word_set(words: Collection[str]) -> WordSet:
    """Make a set of distinct words."""
    encoded = [
        np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32) for word in words
    ]
    places = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum([len(word) for word in encoded], dtype=np.int64)]
    )
    codes = np.concatenate([np.zeros(0, np.uint32), *encoded])
    slots = np.zeros(1 << max(4, (LOAD * len(encoded)).bit_length()), np.int32)
    hashes = np.zeros(len(encoded), np.uint64)
    fill(slots, hashes, places, codes, hash_seed())
    return WordSet(slots, hashes, places, codes)


@compiled
def fill(
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    codes: NDArray[np.uint32],
    seed: np.uint64,
) -> None:
    """Hash the words and put their numbers into the slots."""
    n_bits = bits_of(slots.size)
    for word in range(hashes.size):
        state = seed
        for place in range(places[word], places[word + 1]):
            state = stirred(state, np.uint64(codes[place]))
        hashes[word] = state
        slot = slot_of(state, n_bits)
        while slots[slot]:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = word + 1
