"""Compiled counting of n-grams, exact: what a hash finds is compared byte by byte before it counts.

Here: kernels over glued words (`lc_assets.text.kernels.measure_words`). Their twin is
    `lc_assets.text.gram_counts`. Not here: n-grams that
are compared as glued text (`lc_assets.text.kernels.measure_seen`).

Words get numbers, so an n-gram is a pair of numbers: of the (n-1)-grams inside it. An n-gram can
repeat only where both of these do, so each length looks at what the length before left over.

Tables are open addressing with numbers that no input is bound to spread well over, so a search that
takes more than `PATIENCE` steps gives up, and the plain twin does that document: never more than
linear time, and never a wrong count.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.measure_words import eight_bytes, whole

PATIENCE: Final = 1000
"""Steps of a search before it gives up; tables are at most half full, where some tens are many."""

MIX: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
_LONG: Final = np.uint64(0xFF << 56)


@compiled
def mixed(number: np.uint64) -> np.uint64:
    """Spread the bits of a number."""
    number = (number ^ (number >> _HALF)) * MIX_2
    return number ^ (number >> _HALF)


@compiled
def some_bytes(data: NDArray[np.uint8], at: int, n_bytes: int) -> np.uint64:
    """One to seven bytes as a number: those of eight that are wanted, but for the last seven of
    all.
    """
    if at + 8 <= len(data):
        return eight_bytes(data, at) & ((np.uint64(1) << np.uint64(8 * n_bytes)) - np.uint64(1))
    made = np.uint64(0)
    for offset in range(n_bytes):
        made |= np.uint64(data[at + offset]) << np.uint64(8 * offset)
    return made


@compiled
def hash_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """A number for a stretch of bytes; it finds candidates and decides nothing."""
    made = np.uint64(end - start) * MIX
    at = start
    while at + 8 <= end:
        made = mixed((made ^ eight_bytes(data, at)) * MIX)
        at += 8
    if at == end:
        return made
    return mixed((made ^ some_bytes(data, at, end - at)) * MIX)


@compiled
def same_bytes(data: NDArray[np.uint8], one: int, other: int, length: int) -> bool:
    """Whether two stretches hold the same bytes."""
    at = 0
    while at + 8 <= length:
        if eight_bytes(data, one + at) != eight_bytes(data, other + at):
            return False
        at += 8
    return at == length or some_bytes(data, one + at, length - at) == some_bytes(
        data, other + at, length - at
    )


@compiled
def slots_for(n_keys: int) -> int:
    """Slots of a table for that many keys: a power of two, at most half full.

    Tables never grow while they are filled: an array that a loop may replace made the loop five
    times slower.
    """
    n_slots = 256
    while n_slots < 2 * n_keys:
        n_slots *= 2
    return n_slots


@compiled
def number_pieces(
    data: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> int:
    """Give equal pieces of ``data`` equal numbers, in the order of first occurrence.

    Returns:
        How many distinct pieces there are; -1 when patience ran out.
    """
    n_pieces = len(numbers)
    hashes, firsts = np.empty(n_pieces, np.uint64), np.empty(n_pieces, np.int32)
    n_known, n_slots = 0, slots_for(n_pieces)
    slots = np.zeros(n_slots, np.int32)
    for piece in range(n_pieces):
        start, length = whole(starts[piece]), whole(ends[piece]) - whole(starts[piece])
        key = hash_bytes(data, start, start + length)
        slot, steps = whole(key & np.uint64(n_slots - 1)), 0
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                first = firsts[known]
                if whole(ends[first]) - whole(starts[first]) == length and same_bytes(
                    data, whole(starts[first]), start, length
                ):
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
def number_words(
    glued: NDArray[np.uint8],
    ends: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
) -> int:
    """Give equal words equal numbers, in the order of first occurrence.

    A short word is its key; a long one is found by a hash, whose highest byte no short key has, and
    compared.

    Returns:
        How many distinct words there are; -1 when patience ran out.
    """
    # A text of n words has some 20 √n different ones; a table for all n would be read from farther
    # away.
    n_slots = slots_for(whole(32 * np.sqrt(len(numbers))))
    while True:
        known = number_words_in(glued, ends, keys, numbers, n_slots)
        if known >= -1:
            return known
        n_slots *= 8


@compiled
def number_words_in(
    glued: NDArray[np.uint8],
    ends: NDArray[np.int32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    n_slots: int,
) -> int:
    """`number_words` in a table of that many slots; -2 when it is half full and there are more."""
    n_known = 0
    seen, values = np.empty(n_slots, np.uint64), np.zeros(n_slots, np.int32)
    firsts = np.empty(len(numbers), np.int32)
    for word in range(len(numbers)):
        key, start = keys[word], whole(ends[word])
        n_bytes = whole(ends[word + 1]) - start
        if key == 0:
            key = hash_bytes(glued, start, start + n_bytes) | _LONG
        slot, steps = slot_of(key, n_slots), 0
        while (values[slot] != 0) & ((seen[slot] != key) | (key >= _LONG)):
            if seen[slot] == key:
                first = firsts[values[slot] - 1]
                begun = whole(ends[first])
                if whole(ends[first + 1]) - begun == n_bytes and same_bytes(
                    glued, begun, start, n_bytes
                ):
                    break
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        # No branch on whether it is known: the processor would guess wrong every other time.
        new = values[slot] == 0
        firsts[n_known] = word
        n_known += new
        known = n_known if new else whole(values[slot])
        seen[slot], values[slot], numbers[word] = key, known, known - 1
        if 2 * n_known > n_slots:
            return -2
    return n_known


@compiled
def slot_of(key: np.uint64, n_slots: int) -> int:
    """Where a key belongs in a table of that many slots, a power of two."""
    return whole((key ^ (key >> _HALF)) * MIX >> _HALF) & (n_slots - 1)


@compiled
def number_pairs(
    lefts: NDArray[np.int32],
    rights: NDArray[np.int32],
    places: NDArray[np.int32],
    numbers: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> int:
    """Give equal pairs ``lefts[p], rights[p + 1]`` at ``p`` of ``places`` equal numbers, and count
    each.

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
        known = n_known if new else whole(values[slot])
        keys[slot], values[slot], numbers[place] = key, known, known - 1
        counts[known - 1] += 1
    return n_known


@compiled
def count_grams(
    words: NDArray[np.int32], chars: NDArray[np.int32], longest: int, found: NDArray[np.int64]
) -> bool:
    """Count n-grams of 2 to ``longest`` words.

    Args:
        words: a number per word.
        chars: characters before each word, and of all.
        longest: words of the longest n-gram.
        found: shape ``(longest + 1, 4)``; gets, at ``n``, the four counts of
            `lc_assets.text.gram_counts.GramCounts`.

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
        most, at_most, repeated = 1, 0, 0
        for index in range(len(places)):
            place = places[index]
            count = counts[numbers[place]]
            repeated += (count > 1) * (chars[place + length] - chars[place])
            if count > most:
                most, at_most = count, place
        every = 0
        for place in range(n_words - length + 1):
            every += chars[place + length] - chars[place]
        found[length, 0], found[length, 1] = most, chars[at_most + length] - chars[at_most]
        found[length, 2], found[length, 3] = repeated, every
        # An n-gram that occurs once is nobody's part; the rest are the places where the next length
        # may repeat.
        n_left = 0
        for index in range(len(places) - 1):
            place, after = places[index], places[index + 1]
            places[n_left] = place
            n_left += (
                (after == place + 1) & (counts[numbers[place]] > 1) & (counts[numbers[after]] > 1)
            )
        places = places[:n_left]
        lefts, numbers = numbers, lefts
    return True
