"""Compiled counting of n-grams, exact: what a hash finds is compared byte by byte before it counts.

Here: kernels over glued words (`lc_assets.text.kernels.measure_words`). Their twin is `lc_assets.text.gram_counts`.

Three ideas carry the speed. Words get numbers, so an n-gram is a pair of numbers: of the (n-1)-grams inside it. An n-gram can
repeat only where both of these do, so each length looks at what the length before left over. And n-grams that are compared as
glued text (datatrove) can repeat only where their first 16 bytes do, which a small sieve finds out for all lengths at once.

Tables are open addressing with numbers that no input is bound to spread well over, so a search that takes more than `PATIENCE`
steps gives up, and the plain twin does that document: never more than linear time, and never a wrong count.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.kernels.compiling import compiled

PATIENCE: Final = 1000
"""Steps of a search before it gives up; tables are at most half full, where some tens are many."""

SIEVED: Final = 16
"""Bytes of a start that the sieve looks at."""

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)


@compiled
def mixed(number: np.uint64) -> np.uint64:
    """Spread the bits of a number."""
    number = (number ^ (number >> _HALF)) * _MIX_2
    return number ^ (number >> _HALF)


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
def hash_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """A number for a stretch of bytes; it finds candidates and decides nothing."""
    made = np.uint64(end - start) * _MIX
    at = start
    while at + 8 <= end:
        made = mixed((made ^ eight_bytes(data, at)) * _MIX)
        at += 8
    rest = np.uint64(0)
    while at < end:
        rest = rest << np.uint64(8) | np.uint64(data[at])
        at += 1
    return mixed((made ^ rest) * _MIX)


@compiled
def same_bytes(data: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    """Whether two stretches hold the same bytes."""
    at = 0
    while at + 8 <= length:
        if eight_bytes(data, one + at) != eight_bytes(data, other + at):
            return False
        at += 8
    while at < length:
        if data[one + at] != data[other + at]:
            return False
        at += 1
    return True


@compiled
def grown(hashes: NDArray[np.uint64], n_known: int, n_slots: int) -> NDArray[np.int32]:
    """A table of that many slots (a power of two) that leads to what is known by its hashes."""
    slots = np.zeros(n_slots, np.int32)
    for known in range(n_known):
        slot = np.int64(hashes[known] & np.uint64(n_slots - 1))
        while slots[slot]:
            slot = (slot + 1) & (n_slots - 1)
        slots[slot] = known + 1
    return slots


@compiled
def number_pieces(data: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32], numbers: NDArray[np.int32]) -> int:
    """Give equal pieces of ``data`` equal numbers, in the order of first occurrence.

    Returns:
        How many distinct pieces there are; -1 when patience ran out.
    """
    n_pieces = len(numbers)
    hashes, firsts = np.empty(n_pieces, np.uint64), np.empty(n_pieces, np.int32)
    n_known, n_slots = 0, 256
    slots = np.zeros(n_slots, np.int32)
    for piece in range(n_pieces):
        start, length = np.int64(starts[piece]), np.int64(ends[piece]) - np.int64(starts[piece])
        key = hash_bytes(data, start, start + length)
        slot, steps = np.int64(key & np.uint64(n_slots - 1)), 0
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                first = firsts[known]
                if np.int64(ends[first]) - np.int64(starts[first]) == length and same_bytes(data, np.int64(starts[first]), start, length):
                    break
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        if slots[slot]:
            numbers[piece] = slots[slot] - 1
            continue
        hashes[n_known], firsts[n_known] = key, piece
        numbers[piece] = n_known
        n_known += 1
        slots[slot] = n_known
        if 2 * n_known > n_slots:
            n_slots *= 4
            slots = grown(hashes, n_known, n_slots)
    return n_known


@compiled
def number_pairs(
    lefts: NDArray[np.int32], rights: NDArray[np.int32], places: NDArray[np.int32], numbers: NDArray[np.int32], counts: NDArray[np.int32]
) -> int:
    """Give equal pairs ``lefts[p], rights[p + 1]`` at ``p`` of ``places`` equal numbers, and count each.

    Returns:
        How many distinct pairs there are; -1 when patience ran out.
    """
    n_places = len(places)
    keys, hashes = np.empty(n_places, np.uint64), np.empty(n_places, np.uint64)
    n_known, n_slots = 0, 256
    slots = np.zeros(n_slots, np.int32)
    for index in range(n_places):
        place = places[index]
        key = np.uint64(lefts[place]) << _HALF | np.uint64(rights[place + 1])
        made = mixed(key * _MIX)
        slot, steps = np.int64(made & np.uint64(n_slots - 1)), 0
        while slots[slot] and keys[slots[slot] - 1] != key:
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        if slots[slot]:
            numbers[place] = slots[slot] - 1
            counts[slots[slot] - 1] += 1
            continue
        keys[n_known], hashes[n_known] = key, made
        numbers[place] = n_known
        counts[n_known] = 1
        n_known += 1
        slots[slot] = n_known
        if 2 * n_known > n_slots:
            n_slots *= 4
            slots = grown(hashes, n_known, n_slots)
    return n_known


@compiled
def count_grams(words: NDArray[np.int32], chars: NDArray[np.int32], longest: int, found: NDArray[np.int64]) -> bool:
    """Count n-grams of 2 to ``longest`` words.

    Args:
        words: a number per word.
        chars: characters before each word, and of all.
        longest: words of the longest n-gram.
        found: shape ``(longest + 1, 4)``; gets, at ``n``, the four counts of `lc_assets.text.gram_counts.GramCounts`.

    Returns:
        False when patience ran out.
    """
    n_words = len(words)
    lefts = words.copy()
    places = np.arange(max(n_words - 1, 0)).astype(np.int32)
    counts = np.empty(n_words, np.int32)
    numbers = np.empty(n_words, np.int32)
    for length in range(2, longest + 1):
        if n_words < length:
            return True
        n_known = number_pairs(lefts, lefts, places, numbers, counts)
        if n_known < 0:
            return False
        most, at_most, repeated = 1, 0, np.int64(0)
        for index in range(len(places)):
            place = places[index]
            count = counts[numbers[place]]
            if count > 1:
                repeated += chars[place + length] - chars[place]
            if count > most:
                most, at_most = count, place
        every = np.int64(0)
        for place in range(n_words - length + 1):
            every += chars[place + length] - chars[place]
        found[length, 0], found[length, 1] = most, chars[at_most + length] - chars[at_most]
        found[length, 2], found[length, 3] = repeated, every
        # An n-gram that occurs once is nobody's part; the rest are the places where the next length may repeat.
        n_left, n_places = 0, len(places)
        for index in range(n_places):
            place = places[index]
            follows = index + 1 < n_places and places[index + 1] == place + 1
            if follows and counts[numbers[place]] > 1 and counts[numbers[place + 1]] > 1:
                places[n_left] = place
                n_left += 1
        places = places[:n_left]
        lefts, numbers = numbers, lefts
    return True


@compiled
def sieve_starts(glued: NDArray[np.uint8], ends: NDArray[np.int32], n_words: int, again: NDArray[np.uint8]) -> None:
    """Mark the words whose first `SIEVED` bytes, with those of the words after, may occur at another word's start too.

    A mark may be wrong, a missing mark never is. Where fewer bytes follow, there is always a mark.
    """
    n_slots = 1024
    while n_slots < 4 * n_words:
        n_slots *= 2
    seen = np.zeros(n_slots, np.uint8)
    keys = np.empty(n_words, np.int32)
    last = np.int64(ends[n_words]) - SIEVED
    for word in range(n_words):
        start = np.int64(ends[word])
        again[word] = 1
        if start <= last:
            made = mixed(eight_bytes(glued, start) * _MIX + eight_bytes(glued, start + 8) * _MIX_2)
            key = np.int64(made & np.uint64(n_slots - 1))
            keys[word] = key
            seen[key] = min(seen[key] + 1, 2)
    for word in range(n_words):
        if np.int64(ends[word]) <= last:
            again[word] = seen[keys[word]] > 1


@compiled
def seen_before(
    glued: NDArray[np.uint8], ends: NDArray[np.int32], chars: NDArray[np.int32], n_words: int, again: NDArray[np.uint8], length: int
) -> int:
    """Characters of n-grams of one length that were seen before, as datatrove walks; -1 when patience ran out."""
    hashes, firsts = np.empty(n_words + 1, np.uint64), np.empty(n_words + 1, np.int32)
    n_known, n_slots = 0, 256
    slots = np.zeros(n_slots, np.int32)
    n_chars, word = np.int64(0), 0
    while word <= n_words - length:
        start, end = np.int64(ends[word]), np.int64(ends[word + length])
        if not again[word] and end - start >= SIEVED:
            word += 1
            continue
        key = hash_bytes(glued, start, end)
        slot, steps = np.int64(key & np.uint64(n_slots - 1)), 0
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                first = firsts[known]
                begun = np.int64(ends[first])
                if np.int64(ends[first + length]) - begun == end - start and same_bytes(glued, begun, start, end - start):
                    break
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        if slots[slot]:
            n_chars += chars[word + length] - chars[word]
            word += length
            continue
        hashes[n_known], firsts[n_known] = key, word
        n_known += 1
        slots[slot] = n_known
        word += 1
        if 2 * n_known > n_slots:
            n_slots *= 4
            slots = grown(hashes, n_known, n_slots)
    return n_chars
