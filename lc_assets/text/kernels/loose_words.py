"""Loose words of a text, compiled: as code points and as 64-bit hashes.

Twins: `lc_assets.text.loose_words.placed_words`, and `lc_assets.text.grams.hash_of_word`. A word's
    hash is FNV-1a over
its folded code points, begun from ``basis`` and stirred by SplitMix64's finalizer at its end.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

PRIME = np.uint64(0x100000001B3)
STIR_1, STIR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31 = np.uint64(27), np.uint64(30), np.uint64(31)
ALONE, MANY, REST = np.uint32(1 << 30), np.uint32(1 << 31), np.uint32((1 << 30) - 1)


@compiled
def stir(number: np.uint64) -> np.uint64:
    """SplitMix64's finalizer: every bit of a uint64 moves every other."""
    number = (number ^ (number >> S30)) * STIR_1
    number = (number ^ (number >> S27)) * STIR_2
    return number ^ (number >> S31)


@compiled
def unknown_page(codes: NDArray[np.uint32], known: NDArray[np.bool_], begin: int) -> int:
    """The place of the first code point from ``begin`` on whose page of the table is not filled; -1
    when all are.
    """
    for place in range(begin, len(codes)):
        if not known[codes[place] >> np.uint32(8)]:
            return place
    return -1


@compiled
def fold_words(
    codes: NDArray[np.uint32],
    table: NDArray[np.uint32],
    several: NDArray[np.uint32],
    basis: np.uint64,
    letters: NDArray[np.uint32],
    ends: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> int:
    """Write a text's loose words: their code points one after another, where each ends in there,
    and its hash.

    Args:
        codes: ``(n,)`` code points of the text.
        table: of `lc_assets.text.loose_words.FoldingTable`, as is ``several``.
        basis: what a hash begins from.
        letters: room for `folded_length` code points; ``ends`` and ``hashes``: room for n words
            each.

    Returns:
        How many words there are.
    """
    n_letters = 0
    n_words = 0
    begun = 0
    value = basis
    for place in range(len(codes)):
        entry = table[codes[place]]
        if entry == 1:
            continue
        alone = (entry & ALONE) != 0
        if (entry == 0 or alone) and n_letters > begun:
            ends[n_words], hashes[n_words] = n_letters, stir(value)
            n_words, begun, value = n_words + 1, n_letters, basis
        if entry == 0:
            continue
        if entry & MANY:
            at = np.int64(entry & REST)
            for step in range(np.int64(several[at])):
                letters[n_letters] = several[at + 1 + step]
                value = (value ^ np.uint64(letters[n_letters])) * PRIME
                n_letters += 1
        else:
            letters[n_letters] = entry & REST
            value = (value ^ np.uint64(letters[n_letters])) * PRIME
            n_letters += 1
        if alone:
            ends[n_words], hashes[n_words] = n_letters, stir(value)
            n_words, begun, value = n_words + 1, n_letters, basis
    if n_letters > begun:
        ends[n_words], hashes[n_words] = n_letters, stir(value)
        n_words += 1
    return n_words


@compiled
def folded_length(
    codes: NDArray[np.uint32], table: NDArray[np.uint32], several: NDArray[np.uint32]
) -> int:
    """How many code points a text's loose words have together."""
    n_letters = 0
    for place in range(len(codes)):
        entry = table[codes[place]]
        if entry & MANY:
            n_letters += int(several[np.int64(entry & REST)])
        elif entry > 1:
            n_letters += 1
    return n_letters


@compiled
def first_unlike(
    letters: NDArray[np.uint32],
    ends: NDArray[np.int64],
    words: NDArray[np.int64],
    vocabulary: NDArray[np.uint32],
    vocabulary_ends: NDArray[np.int64],
) -> int:
    """The number of the first word whose code points are not those of the vocabulary's word; -1
    when all are.
    """
    begin = np.int64(0)
    for number in range(len(ends)):
        word = words[number]
        at = vocabulary_ends[word - 1] if word > 0 else np.int64(0)
        length = ends[number] - begin
        if vocabulary_ends[word] - at != length:
            return number
        for step in range(length):
            if vocabulary[at + step] != letters[begin + step]:
                return number
        begin = ends[number]
    return -1
