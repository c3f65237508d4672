"""Hash functions for kernels, and a set of words to look up in.

`absorb` and `slot_of` serve hash tables. A table's hashes begin with a number that each process
draws anew, so no text can be constructed whose words collide. Results never depend on it: where
hashes are equal, the values are compared. `mix64` is SplitMix64's finalizer; hashes made with it
are the same on every machine and may be stored.
"""

from collections.abc import Callable, Collection
from functools import cache
from secrets import randbits
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lc_assets.arrays import Array, Bytes, Int32s, Int64s, UInt32s, UInt64s
from lc_assets.compiling import borrowing, compiled

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
"""2⁶⁴ divided by the golden ratio: the base of rolling hashes, and the step of SplitMix64."""
FNV_BASIS = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3

_MULTIPLIER = np.uint64(GOLDEN)
_SHIFT = np.uint64(29)
_WIDTH = np.uint64(64)
_HALF = np.uint64(32)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SLOTS_PER_WORD = 4

Hashed = TypeVar("Hashed", int, UInt64s)


@cache
def hash_seed() -> np.uint64:
    """The number that this process's hash tables begin their hashes with."""
    return np.uint64(randbits(64))


def mix64(value: Hashed) -> Hashed:
    """SplitMix64's finalizer: every bit of a 64-bit number changes every bit of the result."""
    mixed: Any = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK64
    result: Hashed = mixed ^ (mixed >> 31)
    return result


@compiled
def mix64_kernel(value: np.uint64) -> np.uint64:
    """`mix64`, for kernels."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@compiled
def absorb(state: np.uint64, code: np.uint64) -> np.uint64:
    """Add a character to a hash."""
    state = (state ^ code) * _MULTIPLIER
    return state ^ (state >> _SHIFT)


@compiled
def slot_of(state: np.uint64, n_bits: int) -> np.int64:
    """Slot of a hash in a table of ``2**n_bits`` slots."""
    return np.int64((state * _MULTIPLIER) >> (_WIDTH - np.uint64(n_bits)))


@compiled
def bits_of(n_slots: int) -> int:
    """The smallest ``n_bits`` for which a table of ``2**n_bits`` slots has ``n_slots``."""
    n_bits = 0
    while 1 << n_bits < n_slots:
        n_bits += 1
    return n_bits


@compiled
def whole(number: np.integer[Any]) -> int:
    """Convert to int64, in which arithmetic neither wraps nor turns into floats."""
    return np.int64(number)  # type: ignore[return-value]


def code_points(text: str) -> UInt32s:
    """The code points of a text, lone surrogates included; uint32, read-only."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def utf8_of(text: str) -> Bytes:
    """A text's UTF-8, lone surrogates in three bytes; read-only."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


class WordSet(NamedTuple):
    """A set of words, found by their hashes.

    Attributes:
        slots: int32[2**n_bits], number of a word from 1, in the order given; 0 in an empty slot.
        hashes: uint64[n], hash of each word.
        starts: int64[n + 1], where each word begins in ``codes``.
        codes: the words' characters, or bytes of UTF-8, one word after another.
    """

    slots: Int32s
    hashes: UInt64s
    starts: Int64s
    codes: Array


@compiled
def hash_codes(codes: UInt32s, seed: np.uint64) -> np.uint64:
    """Hash of a word's code points, one after the other."""
    state = seed
    for code in codes:
        state = absorb(state, np.uint64(code))
    return state


def word_set(
    words: Collection[str],
    encode: Callable[[str], Array] = code_points,
    hash_of: Callable[..., np.uint64] = hash_codes,
) -> WordSet:
    """Make a set of distinct words, to be found in the code points of a text; or in what another
    function makes of it, by the hash that ``hash_of`` gives for that and a seed.
    """
    encoded = list(map(encode, words))
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    slots = np.zeros(1 << max(4, (_SLOTS_PER_WORD * len(encoded)).bit_length()), np.int32)
    hashes = np.array([hash_of(word, hash_seed()) for word in encoded], np.uint64)
    fill_slots(slots, hashes, len(hashes))
    return WordSet(slots, hashes, starts, np.concatenate([encode(""), *encoded]))


@borrowing
def fill_slots(slots: Int32s, hashes: UInt64s, n: int) -> None:
    """Write the numbers of the first ``n`` hashes, from 1, into empty slots."""
    for word in range(n):
        slot = slot_in(slots, hashes[word])
        while slots[slot]:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = word + 1


@borrowing
def slot_in(slots: Int32s, state: np.uint64) -> np.int64:
    """Slot of a hash in a table whose size is a power of two."""
    return np.int64((state * _MULTIPLIER) >> _HALF) & (slots.size - 1)


@borrowing
def find_word(codes: Array, start: int, stop: int, state: np.uint64, words: WordSet) -> int:
    """Number from 1 of the word ``codes[start:stop]`` in a set; 0 when it is not there.

    Args:
        codes: a text's characters, or bytes, as in the set.
        start: first character of the word.
        stop: after its last character.
        state: its hash.
        words: the set.
    """
    slots, hashes, starts, known = words
    slot = slot_in(slots, state)
    while slots[slot]:
        word = slots[slot] - 1
        if hashes[word] == state and starts[word + 1] - starts[word] == stop - start:
            i, j = start, starts[word]
            while i < stop and codes[i] == known[j]:
                i += 1
                j += 1
            if i == stop:
                return whole(word) + 1
        slot = (slot + 1) & (slots.size - 1)
    return 0
