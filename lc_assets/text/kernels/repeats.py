"""Repeated n-grams of numbered words: the fractions of `lc_assets.text.repetition`, exact.

An n-gram can repeat only where both (n-1)-grams inside it repeat, and two of it are equal exactly
when both those pairs are. So every length is a pair of numbers given to the length before, counted
at the starts that it left over.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.hashing import slot_of, stirred

LONGEST_TOP: Final = 4
LONGEST: Final = 10
HALF: Final = np.uint64(32)


@compiled
def repetition(
    numbers: NDArray[np.int32],
    n_words: int,
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    seed: np.uint64,
    top: NDArray[np.int64],
    marked: NDArray[np.int64],
) -> np.int64:
    """Characters of the top 2- to 4-grams into ``top``, of repeated 5- to 10-grams into ``marked``,
    both by n.

    Returns:
        The characters of all words.
    """
    before = np.empty(n_words + 1, np.int64)
    before[0] = 0
    starts = np.empty(n_words, np.int32)
    grams = np.empty(n_words, np.int32)
    n_left = 0
    for at in range(n_words):
        word = numbers[at]
        before[at + 1] = before[at] + lengths[word]
        starts[n_left] = at
        grams[n_left] = word
        n_left += counts[word] > 1
    n_bits = 4
    while 1 << n_bits < 2 * n_left:
        n_bits += 1
    table = np.empty(1 << n_bits, np.int32)
    kept = np.empty((n_left, 2), np.uint64)
    firsts = np.empty(n_left, np.int32)
    for length in range(2, LONGEST + 1):
        while n_bits > 4 and 1 << (n_bits - 2) >= n_left:
            n_bits -= 1
        table[: 1 << n_bits] = 0
        n_grams, n_left = number_pairs(starts, grams, n_left, table, n_bits, kept, firsts, seed)
        if length <= LONGEST_TOP:
            best = np.int64(1)
            for gram in range(n_grams):
                if kept[gram, 1] > best:
                    best = np.int64(kept[gram, 1])
                    first = firsts[gram]
                    top[length] = (before[first + length] - before[first]) * best
        n_repeated = 0
        stop = n_marked = np.int64(0)
        for at in range(n_left):
            if kept[grams[at], 1] > 1:
                start = np.int64(starts[at])
                starts[n_repeated] = start
                grams[n_repeated] = grams[at]
                n_repeated += 1
                n_marked += before[start + length] - before[start if start > stop else stop]
                stop = start + length
        n_left = n_repeated
        marked[length] = n_marked
        if n_left < 2:
            break
    return np.int64(before[n_words])


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
    """Number the pairs of neighbouring n-grams in place, in the order of first occurrence; count
    each in ``kept``.

    Returns:
        How many distinct pairs there are, and how many places have one.
    """
    mask = (1 << n_bits) - 1
    n_grams = n_pairs = 0
    for at in range(n_left - 1):
        if starts[at + 1] != starts[at] + 1:
            continue
        key = np.uint64(grams[at]) << HALF | np.uint64(grams[at + 1])
        slot = slot_of(stirred(seed, key), n_bits)
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
