"""Scanning a text for the n-grams of an index: every occurrence, compared word by word.

One pass over the code points rolls a hash over loose words. A filter of bits rejects nearly all
positions; the others are looked up among the sorted keys, and what is found there is compared with
the text, so no hash collision is ever reported. Time is linear in the text, memory four bytes per
character, and some 20 per character that n-grams cover.
"""

from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Int64s, UInt32s, UInt64s
from lc_assets.compiling import compiled
from lc_assets.records import distinct
from lc_assets.text.contamination.grams import FILTER_SALT, GramIndex, basis_of, salt_of
from lc_assets.text.contamination.loose_words import (
    ALONE,
    MANY,
    PRIME,
    REST,
    known_codes,
    same_words,
    word_letters,
)
from lc_assets.text.hashing import GOLDEN, mix64_kernel

VERIFIED_AT_ONCE = 1 << 16
FINDS_AT_FIRST = 1 << 12
"""Room for occurrences; a text with more is scanned twice."""

_BASE, _SALT = np.uint64(GOLDEN), np.uint64(FILTER_SALT)
_6, _LOW_6, _1 = np.uint64(6), np.uint64(63), np.uint64(1)


@distinct
class Finds:
    """Occurrences of n-grams in a text, by their last word, shorter n-grams first.

    Attributes:
        grams: ``(n,)`` int64, numbers of the index's n-grams.
        starts: ``(n,)`` int64, first character; ``ends``: after the last one.
        lasts: ``(n,)`` int64: words of the text up to and including its last one.
        n_words: loose words of the text.
    """

    grams: Int64s
    starts: Int64s
    ends: Int64s
    lasts: Int64s
    n_words: int

    def __len__(self) -> int:
        return len(self.grams)


class _Lookup(NamedTuple):
    """An index, for kernels.

    Attributes:
        lengths: int64, of its n-grams, ascending.
        powers: uint64, the rolling hash's base to the power of each length.
        salts: uint64, of the keys of each length.
        basis: of a word's hash.
        bits: uint64, a filter of the n-grams' last ``lengths[0]`` words.
        bits_shift: 64 minus the binary logarithm of the filter's bits.
        keys: uint64, ascending.
        mask: the bits of a key that are kept.
        buckets: int64, where in ``keys`` those with the same first bits begin.
        bucket_shift: bits of a key after those.
        ring: a power of two above the longest n-gram.
    """

    lengths: Int64s
    powers: UInt64s
    salts: UInt64s
    basis: np.uint64
    bits: UInt64s
    bits_shift: np.uint64
    keys: UInt64s
    mask: np.uint64
    buckets: Int64s
    bucket_shift: np.uint64
    ring: int


def find_grams(text: str, index: GramIndex) -> Finds:
    """All occurrences in ``text`` of the n-grams of an index."""
    rows, n_words = _scan_text(text, index)
    grams, starts, ends, lasts = (
        np.ascontiguousarray(column) for column in rows[_verified(text, index, rows)].T
    )
    return Finds(grams=grams, starts=starts, ends=ends, lasts=lasts, n_words=n_words)


def _scan_text(text: str, index: GramIndex) -> tuple[Int64s, int]:
    """Occurrences of keys, ``(n, 4)`` as in `Finds`, and the number of words."""
    lengths = index.lengths.tolist()
    lookup = _Lookup(
        index.lengths,
        np.array([pow(GOLDEN, length, 1 << 64) for length in lengths], np.uint64),
        np.array([salt_of(length) for length in lengths], np.uint64),
        np.uint64(basis_of(index.settings.seed)),
        index.bits,
        np.uint64(64 - (64 * len(index.bits) - 1).bit_length()),
        index.keys,
        np.uint64((1 << index.key_bits) - 1),
        index.buckets,
        np.uint64(index.key_bits - (len(index.buckets) - 2).bit_length()),
        1 << lengths[-1].bit_length(),
    )
    codes, (table, several) = known_codes(text + "\n")
    finds = np.empty((FINDS_AT_FIRST, 4), np.int64)
    n_finds, n_words = _scan(codes, table, several, lookup, finds)
    if n_finds > len(finds):
        finds = np.empty((n_finds, 4), np.int64)
        _scan(codes, table, several, lookup, finds)
    return finds[:n_finds], n_words


def _verified(text: str, index: GramIndex, rows: Int64s) -> Booleans:
    """Which occurrences of keys are occurrences of their n-grams."""
    is_right = np.ones(len(rows), np.bool_)
    if not len(rows):
        return is_right
    all_lengths = index.gram_lengths[rows[:, 0]].astype(np.int64)
    covered, first_words = _covered(text, rows, rows[:, 3] - all_lengths)
    letters, ends, _ = word_letters(covered, 0)
    n_known = len(index.vocabulary_ends)
    for begin in range(0, len(rows), VERIFIED_AT_ONCE):
        part = slice(begin, begin + VERIFIED_AT_ONCE)
        grams, lengths = rows[part, 0], all_lengths[part]
        owners = np.repeat(np.arange(len(grams)), lengths)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ours = first_words[part][owners] + within
        theirs = index.words[index.gram_words[grams][owners] + within]
        pairs, which = np.unique(ours * n_known + theirs, return_inverse=True)
        known = (index.vocabulary, index.vocabulary_ends, pairs % n_known)
        same = same_words(letters, ends, pairs // n_known, *known)
        is_right[begin + owners[~same[which]]] = False
    return is_right


def _covered(text: str, rows: Int64s, first_words: Int64s) -> tuple[str, Int64s]:
    """What occurrences cover of a text, line by line, and the number of each one's first word in
    it.
    """
    begins = np.minimum.accumulate(rows[::-1, 1])[::-1]
    ends = np.maximum.accumulate(rows[:, 2])
    is_first = np.concatenate([[True], begins[1:] >= ends[:-1]])
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(rows)) - 1
    lines = zip(begins[first].tolist(), ends[last].tolist(), strict=True)
    words_before = np.minimum.reduceat(first_words, first)
    n_words = rows[last, 3] - words_before
    shifts = words_before - (np.cumsum(n_words) - n_words)
    return (
        "\n".join(text[begin:end] for begin, end in lines),
        first_words - shifts[np.cumsum(is_first) - 1],
    )


@compiled
def _scan(
    codes: UInt32s,
    table: UInt32s,
    several: UInt32s,
    lookup: _Lookup,
    finds: Int64s,
) -> tuple[int, int]:
    """Scan the code points of a text, of which the last must end a word.

    Args:
        codes: code points.
        table: of `lc_assets.text.contamination.loose_words.FoldingTable`, as is ``several``.
        several: see ``table``.
        lookup: of the index.
        finds: ``(m, 4)``, filled with the first m occurrences of keys, as in `Finds`.

    Returns:
        The numbers of occurrences, however many fit, and of words.
    """
    # By number of words, modulo the ring: hash of all words so far, and where the next begins.
    ring, begins = np.zeros(lookup.ring, np.uint64), np.zeros(lookup.ring, np.int64)
    size = np.uint64(lookup.ring - 1)
    n_finds = n_words = begin = end = in_word = (
        0  # in_word: 2 when the word ends at the next character
    )
    value, total = lookup.basis, np.uint64(0)
    for i in range(len(codes)):
        entry = table[codes[i]]
        if entry == 1:
            continue
        alone = (entry & ALONE) != 0
        if in_word > 0 and (entry == 0 or alone or in_word == 2):
            # A word has ended: roll its hash in, and query the filter.
            begins[np.uint64(n_words) & size] = begin
            n_words += 1
            total = total * _BASE + mix64_kernel(value)
            ring[np.uint64(n_words) & size] = total
            value, in_word = lookup.basis, 0
            if n_words >= lookup.lengths[0]:
                before = np.uint64(n_words - lookup.lengths[0]) & size
                window = total - ring[before] * lookup.powers[0]
                mark = mix64_kernel(window ^ _SALT) >> lookup.bits_shift
                if (lookup.bits[mark >> _6] >> (mark & _LOW_6)) & _1:
                    for k in range(len(lookup.lengths)):
                        # Look up the n-gram of this length that ends with the word.
                        length = lookup.lengths[k]
                        if n_words < length:
                            break
                        before = np.uint64(n_words - length) & size
                        rolled = total - ring[before] * lookup.powers[k]
                        key = mix64_kernel(rolled ^ lookup.salts[k]) & lookup.mask
                        bucket = key >> lookup.bucket_shift
                        for gram in range(lookup.buckets[bucket], lookup.buckets[bucket + _1]):
                            if lookup.keys[gram] == key:
                                if n_finds < len(finds):
                                    finds[n_finds, 0], finds[n_finds, 1] = gram, begins[before]
                                    finds[n_finds, 2], finds[n_finds, 3] = end, n_words
                                n_finds += 1
                                break
        if entry == 0:
            continue
        # A character of a word.
        if in_word == 0:
            begin = i
        in_word = 2 if alone else 1
        end = i + 1
        if entry & MANY:
            first = np.int64(entry & REST)
            for j in range(np.int64(several[first])):
                value = (value ^ np.uint64(several[first + 1 + j])) * PRIME
        else:
            value = (value ^ np.uint64(entry & REST)) * PRIME
    return n_finds, n_words
