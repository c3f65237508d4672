"""Hash functions for kernels, and a set of words to look up in.

`absorb` and `slot_of` serve hash tables. A table's hashes begin with a number that each process
draws anew, so no text can be made whose words collide. Results never depend on it: where hashes
are equal, the values are compared. `mix64` is SplitMix64's finalizer; hashes made with it are the
same on every machine and may be stored.
"""

from collections.abc import Collection
from functools import cache
from secrets import randbits
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

MASK64: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
"""2⁶⁴ divided by the golden ratio: the base of rolling hashes, and the step of SplitMix64."""
FNV_BASIS: Final = 0xCBF29CE484222325
FNV_PRIME: Final = 0x100000001B3

_MULTIPLIER: Final = np.uint64(GOLDEN)
_SHIFT: Final = np.uint64(29)
_WIDTH: Final = np.uint64(64)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SLOTS_PER_WORD: Final = 4

Integers = TypeVar("Integers", int, NDArray[np.uint64])


@cache
def hash_seed() -> np.uint64:
    """The number that this process's hash tables begin their hashes with."""
    return np.uint64(randbits(64))


def mix64(value: Integers) -> Integers:
    """SplitMix64's finalizer: every bit of a 64-bit number changes every bit of the result."""
    mixed: Any = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK64
    result: Integers = mixed ^ (mixed >> 31)
    return result


@compiled
def mix64_kernel(value: np.uint64) -> np.uint64:
    """`mix64`, for kernels."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@compiled
def absorb(state: np.uint64, code: np.uint64) -> np.uint64:
    """Take one more character into a hash."""
    state = (state ^ code) * _MULTIPLIER
    return state ^ (state >> _SHIFT)


@compiled
def slot_of(state: np.uint64, n_bits: int) -> np.int64:
    """Slot of a hash in a table of ``2**n_bits`` slots."""
    return np.int64((state * _MULTIPLIER) >> (_WIDTH - np.uint64(n_bits)))


@compiled
def bits_of(n_slots: int) -> int:
    """The least ``n_bits`` for which a table of ``2**n_bits`` slots has ``n_slots``."""
    n_bits = 0
    while 1 << n_bits < n_slots:
        n_bits += 1
    return n_bits


@compiled
def whole(number: np.integer[Any]) -> int:
    """Convert to int64, in which arithmetic neither wraps nor turns into floats."""
    return np.int64(number)  # type: ignore[return-value]


def code_points(text: str) -> NDArray[np.uint32]:
    """The code points of a text, lone surrogates included; uint32, read-only."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class WordSet(NamedTuple):
    """Words to look up by their hashes.

    Attributes:
        slots: int32[2**n_bits], number of a word from 1, in the order given; 0 in an empty slot.
        hashes: uint64[n], hash of each word.
        starts: int64[n + 1], where each word begins in ``codes``.
        codes: uint32, the words' characters, one word after another.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    codes: NDArray[np.uint32]


def word_set(words: Collection[str]) -> WordSet:
    """Make a set of distinct words."""
    encoded = list(map(code_points, words))
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    codes = np.concatenate([np.zeros(0, np.uint32), *encoded])
    slots = np.zeros(1 << max(4, (_SLOTS_PER_WORD * len(encoded)).bit_length()), np.int32)
    hashes = np.zeros(len(encoded), np.uint64)
    _fill(slots, hashes, starts, codes, hash_seed())
    return WordSet(slots, hashes, starts, codes)


@compiled
def _fill(
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    starts: NDArray[np.int64],
    codes: NDArray[np.uint32],
    seed: np.uint64,
) -> None:
    """Hash the words and write their numbers into the slots."""
    n_bits = bits_of(slots.size)
    for word in range(hashes.size):
        state = seed
        for i in range(starts[word], starts[word + 1]):
            state = absorb(state, np.uint64(codes[i]))
        hashes[word] = state
        slot = slot_of(state, n_bits)
        while slots[slot]:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = word + 1


@compiled
def find_word(
    codes: NDArray[np.uint32], start: int, stop: int, state: np.uint64, words: WordSet
) -> int:
    """Number from 1 of the word ``codes[start:stop]`` in a set; 0 when it is not there.

    Args:
        codes: a text's characters.
        start: of the word.
        stop: after its last character.
        state: its hash.
        words: the set.
    """
    slots, hashes, starts, known = words
    slot = slot_of(state, bits_of(slots.size))
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


@compiled
def number_pairs(
    starts: NDArray[np.int32],
    grams: NDArray[np.int32],
    n_left: int,
    table: NDArray[np.int32],
    n_bits: int,
    kept: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    seed: np.uint64,
) -> tuple[int, int]:
    """Number the pairs of neighbouring n-grams in the order of first occurrence, in place.

    Args:
        starts: first word of each n-gram, ascending; then of each pair.
        grams: the n-grams' numbers; then the pairs'.
        n_left: how many n-grams.
        table: zeros, ``2**n_bits`` or more.
        n_bits: of the hash table.
        kept: filled with each distinct pair's key and count.
        firsts: filled with the first word of each distinct pair's first occurrence.
        seed: of hashes.

    Returns:
        How many distinct pairs there are, and how many pairs.
    """
    mask = (1 << n_bits) - 1
    n_grams = n_pairs = 0
    for at in range(n_left - 1):
        if starts[at + 1] != starts[at] + 1:
            continue
        key = np.uint64(grams[at]) << np.uint64(32) | np.uint64(grams[at + 1])
        slot = slot_of(absorb(seed, key), n_bits)
        while table[slot] and kept[table[slot] - 1, 0] != key:
            slot = (slot + 1) & mask
        gram = table[slot] - 1
        if gram < 0:
            gram = n_grams
            table[slot] = gram + 1
            kept[gram, 0] = key
            kept[gram, 1] = 0
            firsts[gram] = starts[at]
            n_grams += 1
        kept[gram, 1] += np.uint64(1)
        starts[n_pairs] = starts[at]
        grams[n_pairs] = gram
        n_pairs += 1
    return n_grams, n_pairs
