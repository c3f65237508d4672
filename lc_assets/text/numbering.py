"""Numbering equal pieces of a text, and n-grams of numbered words, by first occurrence.

Numbers are exact: where hashes are equal, bytes are compared. In the innermost loops indices are
unsigned: of a signed one numba asks each time whether it is negative.
"""

from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Bytes, Int32s, Int64s, UInt64s
from lc_assets.compiling import borrowing, compiled
from lc_assets.text.hashing import absorb, bits_of, fill_slots, slot_in, slot_of, whole

_0, _1, _2, _7, _56 = map(np.uint64, (0, 1, 2, 7, 56))
EVERY, HIGH_BITS, LOW_BITS, _FROM_VISIBLE = (
    np.uint64(byte * 0x0101010101010101) for byte in (1, 0x80, 0x7F, 0x7F - ord(" "))
)
"""A byte, eight times; the last carries into the highest bit from the first visible character."""

FIRST_ROOM = 1 << 9
"""For distinct pieces, of which most texts have no more."""
_FIRST_BITS, _LARGE_BITS = 16, 20
_SLOTS_PER_PAIR, _MOST_BITS = 4, 22
_KEY_BYTES = 16
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""Masks that keep the given number of bytes of a number."""


@borrowing
def eight_bytes(data: Bytes, at: int) -> np.uint64:
    """Eight bytes as a number; LLVM compiles the loop to one load."""
    number = np.uint64(0)
    for i in range(8):
        number |= np.uint64(data[np.uint64(at + i)]) << np.uint64(8 * i)
    return number


@compiled
def visible(eight: np.uint64) -> tuple[np.uint64, int]:
    """Of eight bytes those before the first that is white space, a control character or not ASCII,
    then zeros; and how many. Compared at once: Warren, Hacker's Delight (2002), section 6-1.
    """
    others = ~((eight & LOW_BITS) + _FROM_VISIBLE) | eight
    first = others & HIGH_BITS & (~(others & HIGH_BITS) + _1)
    before = (first >> _7) - _1
    return eight & before, whole(count_bytes(before))


@compiled
def count_bytes(marks: np.uint64) -> np.uint64:
    """How many of eight bytes have their lowest bit set."""
    return ((marks & EVERY) * EVERY) >> _56


@borrowing
def first_bytes(data: Bytes, start: int, length: int) -> tuple[np.uint64, np.uint64]:
    """The first sixteen bytes of a piece as two numbers, zeros behind its end. Without branches on
    its length, which cannot be predicted.
    """
    n_low, n_high = min(length, 8), min(max(length - 8, 0), 8)
    if start + _KEY_BYTES <= len(data):
        return (
            eight_bytes(data, start) & _MASKS[np.uint64(n_low)],
            eight_bytes(data, start + 8) & _MASKS[np.uint64(n_high)],
        )
    low = high = np.uint64(0)
    for i in range(n_low):
        low |= np.uint64(data[start + i]) << np.uint64(8 * i)
    for i in range(n_high):
        high |= np.uint64(data[start + 8 + i]) << np.uint64(8 * i)
    return low, high


@borrowing
def hash_bytes(data: Bytes, start: int, end: int, seed: np.uint64) -> np.uint64:
    """Hash a range of bytes."""
    state = absorb(seed, np.uint64(end - start))
    i = start
    while i + 8 <= end:
        state = absorb(state, eight_bytes(data, i))
        i += 8
    return state if i == end else absorb(state, first_bytes(data, i, end - i)[0])


@borrowing
def are_equal(data: Bytes, one: int, other: int, length: int) -> bool:
    """Whether two ranges contain the same bytes."""
    i = 0
    while i + 8 <= length:
        if eight_bytes(data, one + i) != eight_bytes(data, other + i):
            return False
        i += 8
    ours, theirs = first_bytes(data, one + i, length - i), first_bytes(data, other + i, length - i)
    return bool(ours[0] == theirs[0])


class Known(NamedTuple):
    """The distinct pieces that are known, in the order of first occurrence, and room for more.

    Attributes:
        hashes: uint64, hash of each.
        keys: uint64[n, 3], its first sixteen bytes and its length.
        begins: int32, first byte of its first occurrence.
        slots: int32, its number from 1 in a hash table twice as large, else 0.
    """

    hashes: UInt64s
    keys: UInt64s
    begins: Int32s
    slots: Int32s


@compiled
def room_for(n_pieces: int) -> Known:
    """Room for so many distinct pieces, a power of two."""
    return Known(
        np.empty(n_pieces, np.uint64),
        np.empty((n_pieces, 3), np.uint64),
        np.empty(n_pieces, np.int32),
        np.zeros(2 * n_pieces, np.int32),
    )


@compiled
def _with_more_room(known: Known, n_known: int) -> Known:
    more = room_for(4 * n_known)
    more.hashes[:n_known], more.keys[:n_known] = known.hashes, known.keys
    more.begins[:n_known] = known.begins
    fill_slots(more.slots, more.hashes, n_known)
    return more


@compiled
def number_pieces(
    data: Bytes, starts: Int32s, ends: Int32s, seed: np.uint64, numbers: Int32s
) -> int:
    """Give equal pieces of ``data`` equal numbers, in the order of first occurrence.

    Args:
        data: bytes.
        starts: of the pieces.
        ends: of the pieces.
        seed: of hashes.
        numbers: filled, one per piece.

    Returns:
        The number of distinct pieces.
    """
    return number_more(data, starts, ends, seed, numbers, room_for(FIRST_ROOM), 0)[1]


@compiled
def number_more(
    data: Bytes,
    starts: Int32s,
    ends: Int32s,
    seed: np.uint64,
    numbers: Int32s,
    known: Known,
    n_known: int,
) -> tuple[Known, int]:
    """The same, of some pieces after those that are known; return what is known then."""
    piece = 0
    while True:
        # The table is small while few distinct pieces are known, so that it stays in the cache.
        hashes, keys, begins, slots = known
        piece, n_known = _number_some(
            data, starts, ends, seed, numbers, hashes, keys, begins, slots, piece, n_known
        )
        if piece == len(numbers):
            return known, n_known
        known = _with_more_room(known, n_known)


@borrowing
def _number_some(
    data: Bytes,
    starts: Int32s,
    ends: Int32s,
    seed: np.uint64,
    numbers: Int32s,
    hashes: UInt64s,
    keys: UInt64s,
    begins: Int32s,
    slots: Int32s,
    piece: int,
    n_known: int,
) -> tuple[int, int]:
    """Continue from ``piece`` until all have their numbers or there is no room; return the next
    piece, and how many distinct ones are known.
    """
    mask = np.uint64(slots.size - 1)
    while piece < len(numbers) and n_known < begins.size:
        at = np.uint64(piece)
        start, length = whole(starts[at]), whole(ends[at]) - whole(starts[at])
        low, high = first_bytes(data, start, length)
        size = np.uint64(length)
        state = absorb(absorb(absorb(seed, size), low), high)
        if length > _KEY_BYTES:
            state = hash_bytes(data, start + _KEY_BYTES, start + length, state)
        slot = np.uint64(slot_in(slots, state))
        while slots[slot]:
            known = np.uint64(slots[slot] - 1)
            if keys[known, _0] == low and keys[known, _1] == high and keys[known, _2] == size:
                if length <= _KEY_BYTES:
                    break
                if hashes[known] == state and are_equal(data, whole(begins[known]), start, length):
                    break
            slot = (slot + _1) & mask
        if slots[slot]:
            numbers[at] = slots[slot] - 1
        else:
            new = np.uint64(n_known)
            hashes[new], begins[new] = state, start
            keys[new, _0], keys[new, _1], keys[new, _2] = low, high, size
            numbers[at] = n_known
            n_known += 1
            slots[slot] = n_known
        piece += 1
    return piece, n_known


@borrowing
def _pair(grams: Int32s, at: int) -> np.uint64:
    """Key of an n-gram and the next."""
    return np.uint64(grams[at]) << np.uint64(32) | np.uint64(grams[at + 1])


@compiled
def _number_pairs(
    starts: Int32s,
    grams: Int32s,
    n_left: int,
    keys: UInt64s,
    times: Int32s,
    seed: np.uint64,
) -> tuple[int, int]:
    """Number the pairs of neighbouring n-grams in the order of first occurrence, in place. Nearly
    all that occur once are left out.

    Args:
        starts: first word of each n-gram, ascending; then of each pair.
        grams: the n-grams' numbers; then the pairs'.
        n_left: how many n-grams.
        keys: filled with each distinct pair's key.
        times: filled with how often each distinct pair occurs.
        seed: of hashes.

    Returns:
        How many distinct pairs there are, and how many pairs.
    """
    # Most pairs occur once: what else has their hash is counted first, without branches.
    most = min(bits_of(_SLOTS_PER_PAIR * n_left + 16), _MOST_BITS)
    copies = np.zeros(1 << most, np.uint8)
    for at in range(n_left - 1):
        hashed = np.uint64(slot_of(absorb(seed, _pair(grams, at)), most))
        copies[hashed] += (starts[at + 1] == starts[at] + 1) & (copies[hashed] < 2)
    n_bits, most_bits = min(bits_of(2 * n_left + 16), _FIRST_BITS), bits_of(2 * n_left + 16)
    mask = (1 << n_bits) - 1
    # Memory follows the distinct pairs, which are few in a long text: the rest is not touched.
    table = np.empty(1 << most_bits, np.int32)
    table[: mask + 1] = 0
    n_grams = n_pairs = 0
    for at in range(n_left - 1):
        key = _pair(grams, at)
        state = absorb(seed, key)
        if copies[np.uint64(slot_of(state, most))] < 2 or starts[at + 1] != starts[at] + 1:
            continue
        if 4 * n_grams > 3 * mask and n_bits < most_bits:
            n_bits += 2 if n_bits < _LARGE_BITS else 1
            mask = (1 << n_bits) - 1
            table[: mask + 1] = 0
            for gram in range(n_grams):
                slot = slot_of(absorb(seed, keys[gram]), n_bits)
                while table[slot]:
                    slot = (slot + 1) & mask
                table[slot] = gram + 1
        slot = slot_of(state, n_bits)
        while table[slot] and keys[table[slot] - 1] != key:
            slot = (slot + 1) & mask
        gram = table[slot] - 1
        if gram < 0:
            gram = n_grams
            table[slot] = gram + 1
            keys[gram], times[gram] = key, 0
            n_grams += 1
        times[gram] += 1
        starts[n_pairs] = starts[at]
        grams[n_pairs] = gram
        n_pairs += 1
    return n_grams, n_pairs


@compiled
def count_grams(
    numbers: Int32s,
    counts: Int64s,
    chars: Int32s,
    seed: np.uint64,
    grams: Int64s,
) -> None:
    """Count the n-grams of numbered words, from pairs of words on.

    An n-gram can repeat only where both (n-1)-grams inside it repeat, and two n-grams are equal
    exactly when both those pairs are. So each length numbers the pairs of numbers that the length
    before left over.

    Args:
        numbers: int32[words], number of each word; overwritten, so that a long text needs no copy.
        counts: int64[distinct], occurrences of each distinct word.
        chars: int32[words + 1], characters before each word, and of all.
        seed: of hashes.
        grams: int64[longest + 1, 4], zeros; gets, at n: occurrences of the most frequent n-gram,
            the first one of equals; characters of its words, once; characters of all copies of
            n-grams that occur twice or more; the same with each word counted once.
    """
    n_words, longest = len(numbers), len(grams) - 1
    for length in range(2, min(longest, n_words) + 1):
        grams[length, 0], grams[length, 1] = 1, chars[length]
    starts, left, n_left = np.empty(n_words, np.int32), numbers, 0
    for at in range(n_words):
        starts[n_left], left[n_left] = at, numbers[at]
        n_left += counts[numbers[at]] > 1
    keys, times = np.empty(n_left, np.uint64), np.empty(n_left, np.int32)
    for length in range(2, longest + 1):
        n_grams, n_left = _number_pairs(starts, left, n_left, keys, times, seed)
        top, most = 1, 0
        for gram in range(n_grams):
            if times[gram] > top:
                top, most = whole(times[gram]), gram
        if top > 1:
            at = 0
            while left[at] != most:
                at += 1
            first = whole(starts[at])
            grams[length, 0], grams[length, 1] = top, chars[first + length] - chars[first]
        n_repeated = repeated_chars = marked_chars = stop = 0
        for at in range(n_left):
            if times[left[at]] > 1:
                start = whole(starts[at])
                starts[n_repeated], left[n_repeated] = start, left[at]
                n_repeated += 1
                repeated_chars += chars[start + length] - chars[start]
                marked_chars += chars[start + length] - chars[max(start, stop)]
                stop = start + length
        grams[length, 2], grams[length, 3] = repeated_chars, marked_chars
        n_left = n_repeated
        if n_left < 2:
            break
