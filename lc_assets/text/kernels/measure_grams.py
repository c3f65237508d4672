"""Compiled counting of n-grams, exact: what a hash finds is compared byte by byte before it counts.

Here: kernels over glued words (`lc_assets.text.kernels.measure_words`). Their twin is `lc_assets.text.gram_counts`.

Three ideas carry the speed. Words get numbers, so an n-gram is a pair of numbers: of the (n-1)-grams inside it. An n-gram can
repeat only where both of these do, so each length looks at what the length before left over. And n-grams that are compared as
glued text (datatrove) can repeat only where their first bytes do, which a small sieve finds out for all lengths at once.

Tables are open addressing with numbers that no input is bound to spread well over, so a search that takes more than `PATIENCE`
steps gives up, and the plain twin does that document: never more than linear time, and never a wrong count.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.kernels.compiling import compiled
from lc_assets.text.kernels.measure_words import eight_bytes

PATIENCE: Final = 1000
"""Steps of a search before it gives up; tables are at most half full, where some tens are many."""

NEVER: Final = 255
"""For a word whose start the sieve finds elsewhere too."""

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_LONG: Final = np.uint64(0xFF << 56)


@compiled
def mixed(number: np.uint64) -> np.uint64:
    """Spread the bits of a number."""
    number = (number ^ (number >> _HALF)) * _MIX_2
    return number ^ (number >> _HALF)


@compiled
def some_bytes(data: NDArray[np.uint8], at: int, n_bytes: int) -> np.uint64:
    """One to seven bytes as a number: those of eight that are wanted, but for the last seven of all."""
    if at + 8 <= len(data):
        return eight_bytes(data, at) & ((np.uint64(1) << np.uint64(8 * n_bytes)) - np.uint64(1))
    made = np.uint64(0)
    for offset in range(n_bytes):
        made |= np.uint64(data[at + offset]) << np.uint64(8 * offset)
    return made


@compiled
def hash_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """A number for a stretch of bytes; it finds candidates and decides nothing."""
    made = np.uint64(end - start) * _MIX
    at = start
    while at + 8 <= end:
        made = mixed((made ^ eight_bytes(data, at)) * _MIX)
        at += 8
    if at == end:
        return made
    return mixed((made ^ some_bytes(data, at, end - at)) * _MIX)


@compiled
def same_bytes(data: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    """Whether two stretches hold the same bytes."""
    at = 0
    while at + 8 <= length:
        if eight_bytes(data, one + at) != eight_bytes(data, other + at):
            return False
        at += 8
    return at == length or some_bytes(data, one + at, length - at) == some_bytes(data, other + at, length - at)


@compiled
def slots_for(n_keys: int) -> int:
    """Slots of a table for that many keys: a power of two, at most half full.

    Tables never grow while they are filled: an array that a loop may replace made the loop five times slower.
    """
    n_slots = 256
    while n_slots < 2 * n_keys:
        n_slots *= 2
    return n_slots


@compiled
def number_pieces(data: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32], numbers: NDArray[np.int32]) -> int:
    """Give equal pieces of ``data`` equal numbers, in the order of first occurrence.

    Returns:
        How many distinct pieces there are; -1 when patience ran out.
    """
    n_pieces = len(numbers)
    hashes, firsts = np.empty(n_pieces, np.uint64), np.empty(n_pieces, np.int32)
    n_known, n_slots = 0, slots_for(n_pieces)
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
    return n_known


@compiled
def number_words(glued: NDArray[np.uint8], ends: NDArray[np.int32], keys: NDArray[np.uint64], numbers: NDArray[np.int32]) -> int:
    """Give equal words equal numbers, in the order of first occurrence.

    A short word is its key; a long one is found by a hash, whose highest byte no short key has, and compared.

    Returns:
        How many distinct words there are; -1 when patience ran out.
    """
    # A text of n words has some 20 √n different ones; a table for all n would be read from farther away.
    n_slots = slots_for(np.int64(32 * np.sqrt(len(numbers))))
    while True:
        known = number_words_in(glued, ends, keys, numbers, n_slots)
        if known >= -1:
            return known
        n_slots *= 8


@compiled
def number_words_in(
    glued: NDArray[np.uint8], ends: NDArray[np.int32], keys: NDArray[np.uint64], numbers: NDArray[np.int32], n_slots: int
) -> int:
    """`number_words` in a table of that many slots; -2 when it is half full and there are more."""
    n_known = 0
    seen, values = np.empty(n_slots, np.uint64), np.zeros(n_slots, np.int32)
    firsts = np.empty(len(numbers), np.int32)
    for word in range(len(numbers)):
        key, start = keys[word], np.int64(ends[word])
        n_bytes = np.int64(ends[word + 1]) - start
        if key == 0:
            key = hash_bytes(glued, start, start + n_bytes) | _LONG
        slot, steps = slot_of(key, n_slots), 0
        while (values[slot] != 0) & ((seen[slot] != key) | (key >= _LONG)):
            if seen[slot] == key:
                first = firsts[values[slot] - 1]
                begun = np.int64(ends[first])
                if np.int64(ends[first + 1]) - begun == n_bytes and same_bytes(glued, begun, start, n_bytes):
                    break
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        # No branch on whether it is known: the processor would guess wrong every other time.
        new = values[slot] == 0
        firsts[n_known] = word
        n_known += new
        known = n_known if new else np.int64(values[slot])
        seen[slot], values[slot], numbers[word] = key, known, known - 1
        if 2 * n_known > n_slots:
            return -2
    return n_known


@compiled
def slot_of(key: np.uint64, n_slots: int) -> int:
    """Where a key belongs in a table of that many slots, a power of two."""
    return np.int64((key ^ (key >> _HALF)) * _MIX >> _HALF) & (n_slots - 1)


@compiled
def number_pairs(
    lefts: NDArray[np.int32], rights: NDArray[np.int32], places: NDArray[np.int32], numbers: NDArray[np.int32], counts: NDArray[np.int32]
) -> int:
    """Give equal pairs ``lefts[p], rights[p + 1]`` at ``p`` of ``places`` equal numbers, and count each.

    Returns:
        How many distinct pairs there are; -1 when patience ran out.
    """
    n_places, n_known = len(places), 0
    n_slots = slots_for(n_places)
    counts[:] = 0
    keys, values = np.empty(n_slots, np.uint64), np.zeros(n_slots, np.int32)
    for index in range(n_places):
        place = places[index]
        key = np.uint64(lefts[place]) << _HALF | np.uint64(rights[place + 1])
        slot, steps = slot_of(key, n_slots), 0
        while (values[slot] != 0) & (keys[slot] != key):
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        new = values[slot] == 0
        n_known += new
        known = n_known if new else np.int64(values[slot])
        keys[slot], values[slot], numbers[place] = key, known, known - 1
        counts[known - 1] += 1
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
            repeated += (count > 1) * (chars[place + length] - chars[place])
            if count > most:
                most, at_most = count, place
        every = np.int64(0)
        for place in range(n_words - length + 1):
            every += chars[place + length] - chars[place]
        found[length, 0], found[length, 1] = most, chars[at_most + length] - chars[at_most]
        found[length, 2], found[length, 3] = repeated, every
        # An n-gram that occurs once is nobody's part; the rest are the places where the next length may repeat.
        n_left = 0
        for index in range(len(places) - 1):
            place, after = places[index], places[index + 1]
            places[n_left] = place
            n_left += (after == place + 1) & (counts[numbers[place]] > 1) & (counts[numbers[after]] > 1)
        places = places[:n_left]
        lefts, numbers = numbers, lefts
    return True


@compiled
def sieve_starts(glued: NDArray[np.uint8], ends: NDArray[np.int32], n_words: int, alone: NDArray[np.uint8]) -> None:
    """Find, for each word, how many bytes from its start on are enough to be met nowhere else at a word's start.

    Args:
        glued: the words' bytes.
        ends: their ends.
        n_words: how many.
        alone: gets 8, 12, 16, 24 or 32, or `NEVER`. It may be too many or `NEVER`, but is never too few.
    """
    n_slots = slots_for(2 * n_words)
    keys = np.empty(n_words, np.int32)
    places = np.arange(n_words).astype(np.int32)
    alone[:] = NEVER
    n_bytes, n_left = 8, n_words
    while n_bytes <= 32 and n_left:
        seen = np.zeros(n_slots, np.uint8)
        last = np.int64(ends[n_words]) - n_bytes
        for index in range(n_left):
            start = np.int64(ends[places[index]])
            if start > last:
                keys[index] = -1
                continue
            made = eight_bytes(glued, start) * _MIX
            if n_bytes > 8:
                made = mixed(made) + eight_bytes(glued, start + n_bytes - 8) * _MIX_2
            if n_bytes > 16:
                made = mixed(made) + eight_bytes(glued, start + 8) * _MIX
            if n_bytes > 24:
                made = mixed(made) + eight_bytes(glued, start + 16) * _MIX_2
            key = np.int64(mixed(made) & np.uint64(n_slots - 1))
            keys[index] = key
            seen[key] = min(seen[key] + 1, 2)
        n_kept = 0
        for index in range(n_left):
            lonely = keys[index] >= 0 and seen[keys[index]] == 1
            place = places[index]
            alone[place] = n_bytes if lonely else NEVER
            places[n_kept] = place
            n_kept += not lonely
        n_left = n_kept
        n_bytes += 4 if n_bytes < 16 else 8


@compiled
def seen_before(
    glued: NDArray[np.uint8], ends: NDArray[np.int32], chars: NDArray[np.int32], n_words: int, alone: NDArray[np.uint8], length: int
) -> int:
    """Characters of n-grams of one length that were seen before, as datatrove walks; -1 when patience ran out."""
    last = n_words - length
    n_candidates = 0
    for start in range(last + 1):
        n_candidates += (alone[start] == NEVER) | (ends[start + length] - ends[start] < alone[start])
    hashes, firsts = np.empty(n_candidates + 1, np.uint64), np.empty(n_candidates + 1, np.int32)
    n_known, n_slots = 0, slots_for(n_candidates)
    slots = np.zeros(n_slots, np.int32)
    n_chars, word = np.int64(0), 0
    while word <= last:
        start, end = np.int64(ends[word]), np.int64(ends[word + length])
        if alone[word] < NEVER and end - start >= alone[word]:
            word += 1
            continue
        key = hash_bytes(glued, start, end)
        slot, steps = np.int64(key & np.uint64(n_slots - 1)), 0
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                begun = np.int64(ends[firsts[known]])
                if np.int64(ends[firsts[known] + length]) - begun == end - start and same_bytes(glued, begun, start, end - start):
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
    return n_chars
