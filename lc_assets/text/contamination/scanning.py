"""Scanning a text for the n-grams of an index: every occurrence, compared word by word.

One pass over the code points rolls a hash over loose words. A filter of bits rejects nearly all
positions; the others are looked up among the sorted keys, and what is found there is compared with
the text, so no hash collision is ever reported. Time is linear in the text, which is scanned in
pieces of bounded size.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.contamination.grams import FILTER_SALT, GramIndex, basis_of, power_of, salt_of
from lc_assets.text.contamination.loose_words import ALONE, MANY, PRIME, REST, known_codes
from lc_assets.text.hashing import GOLDEN, mix64_kernel

PIECE_CHARS: Final = 1 << 22
"""Characters scanned at a time: 16 MiB of code points."""
ROOM: Final = 4096
"""Finds noted before they are collected."""

_BASE, _SALT = np.uint64(GOLDEN), np.uint64(FILTER_SALT)
_6, _LOW_6, _1 = np.uint64(6), np.uint64(63), np.uint64(1)

_CHARS, _WORDS, _BEGIN, _END, _IN_WORD = range(5)
"""Indices into a scan's numbers: characters and words seen in earlier pieces; where the last word
begins and ends; whether the scan is in a word: 0, 1, or 2 when the word ends at the next character.
"""
_HASH, _PREFIX = range(2)
"""Indices into a scan's hashes: of the word so far, and of all words so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Finds:
    """Occurrences of n-grams in a text, by their last word, shorter n-grams first.

    Attributes:
        grams: ``(n,)`` int64, numbers of the index's n-grams.
        starts: ``(n,)`` int64, first character; ``ends``: after the last one.
        lasts: ``(n,)`` int64: words of the text up to and with its last one.
        n_words: loose words of the text.
    """

    grams: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    lasts: NDArray[np.int64]
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
        bits_shift: 64 less the logarithm of the filter's bits.
        keys: uint64, ascending.
        mask: the bits of a key that are kept.
        buckets: int64, where in ``keys`` those with the same first bits begin.
        bucket_shift: bits of a key after those.
    """

    lengths: NDArray[np.int64]
    powers: NDArray[np.uint64]
    salts: NDArray[np.uint64]
    basis: np.uint64
    bits: NDArray[np.uint64]
    bits_shift: np.uint64
    keys: NDArray[np.uint64]
    mask: np.uint64
    buckets: NDArray[np.int64]
    bucket_shift: np.uint64


class _State(NamedTuple):
    """A scan between two pieces.

    Attributes:
        numbers: int64[5], see `_CHARS`.
        hashes: uint64[2], see `_HASH`.
        ring: uint64[r], hash of all words up to each of the last words; r is a power of two above
            the longest n-gram.
        begins: int64[r], where the word after that begins.
    """

    numbers: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    ring: NDArray[np.uint64]
    begins: NDArray[np.int64]


def find_grams(text: str, index: GramIndex) -> Finds:
    """All occurrences in ``text`` of the n-grams of an index."""
    rows, n_words = _scan(text, index)
    grams, starts, ends, lasts = (
        np.ascontiguousarray(column) for column in rows[_verified(text, index, rows)].T
    )
    return Finds(grams=grams, starts=starts, ends=ends, lasts=lasts, n_words=n_words)


def _scan(text: str, index: GramIndex) -> tuple[NDArray[np.int64], int]:
    """Occurrences of keys, ``(n, 4)`` as in `Finds`, and the number of words."""
    lookup, size = _lookup(index), 1 << int(index.lengths[-1]).bit_length()
    state = _State(
        np.zeros(5, np.int64),
        np.array([lookup.basis, 0], np.uint64),
        np.zeros(size, np.uint64),
        np.zeros(size, np.int64),
    )
    room, found = np.empty((ROOM + len(index.lengths), 4), np.int64), []
    for start in range(0, len(text) + 1, PIECE_CHARS):
        last = start + PIECE_CHARS > len(text)
        codes, table = known_codes(text[start : start + PIECE_CHARS] + ("\n" if last else ""))
        n_read = 0
        while n_read < len(codes):
            n, n_finds = _scan_piece(codes[n_read:], *table, state, lookup, room)
            n_read += n
            if n_finds:
                found.append(room[:n_finds].copy())
    rows = np.concatenate(found) if found else np.empty((0, 4), np.int64)
    return rows, int(state.numbers[_WORDS])


def _lookup(index: GramIndex) -> _Lookup:
    lengths = index.lengths.tolist()
    n_bucket_bits = (len(index.buckets) - 2).bit_length()
    return _Lookup(
        index.lengths,
        np.array([power_of(length) for length in lengths], np.uint64),
        np.array([salt_of(length) for length in lengths], np.uint64),
        np.uint64(basis_of(index.settings.seed)),
        index.bits,
        np.uint64(64 - (64 * len(index.bits) - 1).bit_length()),
        index.keys,
        np.uint64((1 << index.key_bits) - 1),
        index.buckets,
        np.uint64(index.key_bits - n_bucket_bits),
    )


def _verified(text: str, index: GramIndex, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which occurrences of keys are occurrences of their n-grams."""
    is_right = np.zeros(len(rows), np.bool_)
    first = 0
    while first < len(rows):
        # A longer n-gram that ends here begins earlier.
        base = int(rows[first : first + 64, 1].min())
        last = int(np.searchsorted(rows[:, 2], base + PIECE_CHARS, side="right"))
        last = max(last, first + 1)
        base = int(rows[first:last, 1].min())
        codes, table = known_codes(text[base : int(rows[first:last, 2].max())])
        _verify(
            codes, base, *table, rows[first:last], index.gram_words, index.gram_lengths, index.words,
            index.vocabulary, index.vocabulary_ends, is_right[first:last],
        )  # fmt: skip
        first = last
    return is_right


@compiled
def _look_up(
    n_words: int,
    end: int,
    ring: NDArray[np.uint64],
    begins: NDArray[np.int64],
    lookup: _Lookup,
    finds: NDArray[np.int64],
    n_finds: int,
) -> int:
    """Note the n-grams that end with the last word and whose key the index holds; return the number
    of finds.
    """
    size = np.uint64(len(ring) - 1)
    total = ring[np.uint64(n_words) & size]
    for i in range(len(lookup.lengths)):
        length = lookup.lengths[i]
        if n_words < length:
            break
        before = np.uint64(n_words - length) & size
        rolled = total - ring[before] * lookup.powers[i]
        key = mix64_kernel(rolled ^ lookup.salts[i]) & lookup.mask
        bucket = key >> lookup.bucket_shift
        for gram in range(lookup.buckets[bucket], lookup.buckets[bucket + _1]):
            if lookup.keys[gram] == key:
                finds[n_finds, 0] = gram
                finds[n_finds, 1] = begins[before]
                finds[n_finds, 2] = end
                finds[n_finds, 3] = n_words
                n_finds += 1
                break
    return n_finds


@compiled
def _scan_piece(
    codes: NDArray[np.uint32],
    table: NDArray[np.uint32],
    several: NDArray[np.uint32],
    state: _State,
    lookup: _Lookup,
    finds: NDArray[np.int64],
) -> tuple[int, int]:
    """Scan code points until they or the room for finds are used up.

    Args:
        codes: code points that follow those of earlier calls; the text's last one must end a word.
        table: of `lc_assets.text.contamination.loose_words.FoldingTable`, as is ``several``.
        several: see there.
        state: of the scan; changed.
        lookup: of the index.
        finds: ``(m, 4)``, room for finds, filled from the top.

    Returns:
        How many code points were scanned, and how many finds there are.
    """
    numbers, hashes, ring, begins = state
    bits, bits_shift, basis = lookup.bits, lookup.bits_shift, lookup.basis
    n_finds = n_read = 0
    room = len(finds) - len(lookup.lengths)
    size = np.uint64(len(ring) - 1)
    base, n_words, begin = numbers[_CHARS], numbers[_WORDS], numbers[_BEGIN]
    end, in_word = numbers[_END], numbers[_IN_WORD]
    value, total = hashes[_HASH], hashes[_PREFIX]
    shortest, power = lookup.lengths[0], lookup.powers[0]
    for i in range(len(codes)):
        entry = table[codes[i]]
        if entry == 1:
            n_read += 1
            continue
        alone = (entry & ALONE) != 0
        if in_word > 0 and (entry == 0 or alone or in_word == 2):
            # A word has ended: roll its hash in, and ask the filter.
            if n_finds > room:
                break
            begins[np.uint64(n_words) & size] = begin
            n_words += 1
            total = total * _BASE + mix64_kernel(value)
            ring[np.uint64(n_words) & size] = total
            value, in_word = basis, 0
            if n_words >= shortest:
                window = total - ring[np.uint64(n_words - shortest) & size] * power
                mark = mix64_kernel(window ^ _SALT) >> bits_shift
                if (bits[mark >> _6] >> (mark & _LOW_6)) & _1:
                    n_finds = _look_up(n_words, end, ring, begins, lookup, finds, n_finds)
        n_read += 1
        if entry == 0:
            continue
        # A character of a word.
        if in_word == 0:
            begin = base + i
        in_word = 2 if alone else 1
        end = base + i + 1
        if entry & MANY:
            first = np.int64(entry & REST)
            for j in range(np.int64(several[first])):
                value = (value ^ np.uint64(several[first + 1 + j])) * PRIME
        else:
            value = (value ^ np.uint64(entry & REST)) * PRIME
    numbers[_CHARS], numbers[_WORDS], numbers[_BEGIN] = base + n_read, n_words, begin
    numbers[_END], numbers[_IN_WORD] = end, in_word
    hashes[_HASH], hashes[_PREFIX] = value, total
    return n_read, n_finds


@compiled
def _verify(
    codes: NDArray[np.uint32],
    base: int,
    table: NDArray[np.uint32],
    several: NDArray[np.uint32],
    finds: NDArray[np.int64],
    gram_words: NDArray[np.int64],
    gram_lengths: NDArray[np.uint8],
    words: NDArray[np.int32],
    vocabulary: NDArray[np.uint32],
    vocabulary_ends: NDArray[np.int64],
    right: NDArray[np.bool_],
) -> None:
    """Mark the finds whose words in the text are those of their n-grams.

    Args:
        codes: code points of the text from character ``base`` on, as far as the finds go.
        finds: ``(m, 4)`` as `_scan_piece` leaves them.
        gram_words: where in ``words`` an n-gram's first word is; ``gram_lengths``: how many it has.
        words: numbers of words in the vocabulary, whose code points are ``vocabulary``.
        right: ``(m,)`` to be filled.
    """
    for number in range(len(finds)):
        gram = finds[number, 0]
        first = gram_words[gram]
        right[number] = _are_words(
            codes, finds[number, 1] - base, finds[number, 2] - base, table, several, words, first, first + gram_lengths[gram],
            vocabulary, vocabulary_ends,
        )  # fmt: skip


@compiled
def _are_words(
    codes: NDArray[np.uint32],
    begin: int,
    end: int,
    table: NDArray[np.uint32],
    several: NDArray[np.uint32],
    words: NDArray[np.int32],
    first: int,
    last: int,
    vocabulary: NDArray[np.uint32],
    vocabulary_ends: NDArray[np.int64],
) -> bool:
    """Whether the loose words of some code points are words ``first`` to ``last``."""
    number = first - 1
    at = stop = np.int64(0)
    in_word = False
    for place in range(begin, end):
        entry = table[codes[place]]
        if entry == 1:
            continue
        alone = (entry & ALONE) != 0
        if entry == 0 or alone:
            if in_word and at != stop:
                return False
            in_word = False
        if entry == 0:
            continue
        if not in_word:
            number += 1
            if number == last:
                return False
            word = np.int64(words[number])
            at = vocabulary_ends[word - 1] if word > 0 else np.int64(0)
            stop = vocabulary_ends[word]
            in_word = True
        source = np.int64(entry & REST) if entry & MANY else np.int64(-1)
        for step in range(np.int64(several[source]) if source >= 0 else 1):
            letter = several[source + 1 + step] if source >= 0 else entry & REST
            if at == stop or vocabulary[at] != letter:
                return False
            at += 1
        if alone:
            if at != stop:
                return False
            in_word = False
    return number == last - 1 and at == stop
