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
_HALF: Final = np.uint64(32)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SLOTS_PER_WORD: Final = 4
_FIRST_SLOTS: Final = 1 << 10
_KEY_BYTES: Final = 16
_MASKS: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""That leave so many bytes of a number."""

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


def utf8_of(text: str) -> NDArray[np.uint8]:
    """A text's UTF-8, lone surrogates in three bytes; read-only."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


class WordSet(NamedTuple):
    """Words to look up by their hashes.

    Attributes:
        slots: int32[2**n_bits], number of a word from 1, in the order given; 0 in an empty slot.
        hashes: uint64[n], hash of each word.
        starts: int64[n + 1], where each word begins in ``codes``.
        codes: the words' characters, or bytes of UTF-8, one word after another.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    codes: NDArray[Any]


def word_set(words: Collection[str], *, utf8: bool = False) -> WordSet:
    """Make a set of distinct words, to be found in the code points of a text, or in its UTF-8."""
    points = list(map(code_points, words))
    encoded: list[NDArray[Any]] = list(map(utf8_of, words)) if utf8 else points
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    codes = np.concatenate([(utf8_of if utf8 else code_points)(""), *encoded])
    slots = np.zeros(1 << max(4, (_SLOTS_PER_WORD * len(encoded)).bit_length()), np.int32)
    hashes = np.array([hash_codes(word, hash_seed()) for word in points], np.uint64)
    _fill(slots, hashes, len(hashes))
    return WordSet(slots, hashes, starts, codes)


@compiled
def hash_codes(codes: NDArray[np.uint32], seed: np.uint64) -> np.uint64:
    """Hash of a word, by which a `WordSet` finds it: its code points, one after the other."""
    state = seed
    for code in codes:
        state = absorb(state, np.uint64(code))
    return state


@compiled
def _fill(slots: NDArray[np.int32], hashes: NDArray[np.uint64], n: int) -> None:
    """Write the numbers of the first ``n`` hashes, from 1, into empty slots."""
    for word in range(n):
        slot = slot_in(slots, hashes[word])
        while slots[slot]:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = word + 1


@compiled
def slot_in(slots: NDArray[np.int32], state: np.uint64) -> np.int64:
    """Slot of a hash in a table whose size is a power of two."""
    return np.int64((state * _MULTIPLIER) >> _HALF) & (slots.size - 1)


@compiled
def find_word(codes: NDArray[Any], start: int, stop: int, state: np.uint64, words: WordSet) -> int:
    """Number from 1 of the word ``codes[start:stop]`` in a set; 0 when it is not there.

    Args:
        codes: a text's characters, or bytes, as in the set.
        start: of the word.
        stop: after its last character.
        state: its hash, see `hash_codes`.
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


@compiled
def eight_bytes(data: NDArray[np.uint8], at: int) -> np.uint64:
    """Eight bytes as a number; LLVM makes it one load."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << np.uint64(8)
        | np.uint64(data[at + 2]) << np.uint64(16)
        | np.uint64(data[at + 3]) << np.uint64(24)
        | np.uint64(data[at + 4]) << np.uint64(32)
        | np.uint64(data[at + 5]) << np.uint64(40)
        | np.uint64(data[at + 6]) << np.uint64(48)
        | np.uint64(data[at + 7]) << np.uint64(56)
    )


@compiled
def _some_bytes(data: NDArray[np.uint8], start: int, n_bytes: int) -> np.uint64:
    """One to seven bytes as a little-endian number."""
    if start + 8 <= len(data):
        return eight_bytes(data, start) & ((np.uint64(1) << np.uint64(8 * n_bytes)) - np.uint64(1))
    number = np.uint64(0)
    for i in range(n_bytes):
        number |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return number


@compiled
def hash_bytes(data: NDArray[np.uint8], start: int, end: int, seed: np.uint64) -> np.uint64:
    """Hash a stretch of bytes."""
    state = absorb(seed, np.uint64(end - start))
    i = start
    while i + 8 <= end:
        state = absorb(state, eight_bytes(data, i))
        i += 8
    return state if i == end else absorb(state, _some_bytes(data, i, end - i))


@compiled
def are_equal(data: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    """Whether two stretches hold the same bytes."""
    i = 0
    while i + 8 <= length:
        if eight_bytes(data, one + i) != eight_bytes(data, other + i):
            return False
        i += 8
    return i == length or _some_bytes(data, one + i, length - i) == _some_bytes(
        data, other + i, length - i
    )


@compiled
def number_pieces(
    data: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    seed: np.uint64,
    numbers: NDArray[np.int32],
    firsts: NDArray[np.int32],
) -> int:
    """Give equal pieces of ``data`` equal numbers, in the order of first occurrence.

    Args:
        data: bytes.
        starts: of the pieces.
        ends: of the pieces.
        seed: of hashes.
        numbers: filled, one per piece.
        firsts: as long; gets the first piece of each number.

    Returns:
        How many distinct pieces there are.
    """
    n_pieces, n_slots, n_known, piece = len(numbers), _FIRST_SLOTS, 0, 0
    hashes, keys = np.empty(n_pieces, np.uint64), np.empty((n_pieces, 3), np.uint64)
    while True:
        # The table is small while few distinct pieces are known, so that it stays in the cache.
        slots = np.zeros(n_slots, np.int32)
        _fill(slots, hashes, n_known)
        piece, n_known = _number_some(
            data, starts, ends, seed, numbers, hashes, keys, firsts, slots, piece, n_known
        )
        if piece == n_pieces:
            return n_known
        n_slots *= 4


@compiled
def _number_some(
    data: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    seed: np.uint64,
    numbers: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    slots: NDArray[np.int32],
    piece: int,
    n_known: int,
) -> tuple[int, int]:
    """Go on from ``piece`` until all have their numbers or half of the slots are taken; return the
    next piece, and how many distinct ones are known. Of each of these, ``hashes`` gets its hash,
    ``keys`` its first sixteen bytes and its length, and ``firsts`` its first occurrence.
    """
    while piece < len(numbers) and 2 * n_known < slots.size:
        start, length = whole(starts[piece]), whole(ends[piece]) - whole(starts[piece])
        low, high = first_bytes(data, start, length)
        size = np.uint64(length)
        state = absorb(absorb(absorb(seed, size), low), high)
        if length > _KEY_BYTES:
            state = hash_bytes(data, start + _KEY_BYTES, start + length, state)
        slot = slot_in(slots, state)
        while slots[slot]:
            known = slots[slot] - 1
            if keys[known, 0] == low and keys[known, 1] == high and keys[known, 2] == size:
                if length <= _KEY_BYTES:
                    break
                if hashes[known] == state and are_equal(
                    data, whole(starts[firsts[known]]), start, length
                ):
                    break
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot]:
            numbers[piece] = slots[slot] - 1
        else:
            hashes[n_known], firsts[n_known] = state, piece
            keys[n_known, 0], keys[n_known, 1], keys[n_known, 2] = low, high, size
            numbers[piece] = n_known
            n_known += 1
            slots[slot] = n_known
        piece += 1
    return piece, n_known


@compiled
def first_bytes(data: NDArray[np.uint8], start: int, length: int) -> tuple[np.uint64, np.uint64]:
    """The first sixteen bytes of a piece as two numbers, zeros behind its end. Without branches on
    its length, which cannot be predicted.
    """
    n_low, n_high = min(length, 8), min(max(length - 8, 0), 8)
    if start + _KEY_BYTES <= len(data):
        return (
            eight_bytes(data, start) & _MASKS[n_low],
            eight_bytes(data, start + 8) & _MASKS[n_high],
        )
    low = high = np.uint64(0)
    for i in range(n_low):
        low |= np.uint64(data[start + i]) << np.uint64(8 * i)
    for i in range(n_high):
        high |= np.uint64(data[start + 8 + i]) << np.uint64(8 * i)
    return low, high


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
