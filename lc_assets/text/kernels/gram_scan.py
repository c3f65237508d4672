"""Scanning a text for the n-grams of an index, compiled: one pass over its code points, then the
finds held to their words.

Twin: `lc_assets.text.gram_scan.plain_scan`. The state between calls is in arrays, so that a long
    text is scanned in
pieces. A place costs a look into a bit filter; only what passes is looked up, and only what is
found is verified.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.loose_words import ALONE, MANY, PRIME, REST, stir

BASE = np.uint64(0x9E3779B97F4A7C15)
LENGTH_SALT = np.uint64(0xD6E8FEB86659FD93)
FILTER_SALT = np.uint64(0xA0761D6478BD642F)
S6, LOW_6, ONE = np.uint64(6), np.uint64(63), np.uint64(1)

CHARS, WORDS, BEGUN, ENDED, IN_WORD = 0, 1, 2, 3, 4
"""Places in the state: characters seen in earlier pieces, words seen, where the word begun and
ended, and whether in a
word: 0, 1, or 2 when the word ends at the next character, whatever that is."""
HASH, PREFIX = 0, 1
"""Places in the state's hashes: of the word so far, and of all words so far."""


@compiled
def look_up(
    n_words: int,
    ended: int,
    ring: NDArray[np.uint64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    powers: NDArray[np.uint64],
    salts: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    mask: np.uint64,
    buckets: NDArray[np.int64],
    bucket_shift: np.uint64,
    finds: NDArray[np.int64],
    n_finds: int,
) -> int:
    """Note the n-grams that end with the last word and whose key the index holds; returns how many
    finds there are now.
    """
    size = np.uint64(len(ring) - 1)
    total = ring[np.uint64(n_words) & size]
    for number in range(len(lengths)):
        length = lengths[number]
        if n_words < length:
            break
        before = np.uint64(n_words - length) & size
        key = stir((total - ring[before] * powers[number]) ^ salts[number]) & mask
        bucket = key >> bucket_shift
        for gram in range(buckets[bucket], buckets[bucket + ONE]):
            if keys[gram] == key:
                finds[n_finds, 0] = gram
                finds[n_finds, 1] = begins[before]
                finds[n_finds, 2] = ended
                finds[n_finds, 3] = n_words
                n_finds += 1
                break
    return n_finds


@compiled
def scan_piece(
    codes: NDArray[np.uint32],
    table: NDArray[np.uint32],
    several: NDArray[np.uint32],
    state: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    ring: NDArray[np.uint64],
    begins: NDArray[np.int64],
    finds: NDArray[np.int64],
    lengths: NDArray[np.int64],
    powers: NDArray[np.uint64],
    salts: NDArray[np.uint64],
    basis: np.uint64,
    bits: NDArray[np.uint64],
    bits_shift: np.uint64,
    keys: NDArray[np.uint64],
    mask: np.uint64,
    buckets: NDArray[np.int64],
    bucket_shift: np.uint64,
) -> tuple[int, int]:
    """Scan some code points, until they or the room for finds are used up.

    Args:
        codes: ``(n,)`` code points that follow those of earlier calls; the text's last must end a
            word.
        table: of `lc_assets.text.loose_words.FoldingTable`, as is ``several``.
        state: ``(5,)`` and hashes ``(2,)``: see `CHARS` and `HASH`; changed.
        ring: ``(r,)`` prefix hashes after each of the last words, r a power of two above the
            longest n-gram;
            ``begins``: where the word after that begins.
        finds: ``(m, 4)`` room for n-gram, first character, the end, and words up to there; filled
            from the top.
        lengths: of the index's n-grams, ascending; ``powers``: `BASE` to these; ``salts``: of their
            keys.
        basis: what a word's hash begins from.
        bits: filter of the n-grams' last ``lengths[0]`` words; ``bits_shift``: 64 less the
            logarithm of its bits.
        keys: ascending; ``mask``: what is kept of a key; ``buckets``: where in ``keys`` those with
            the same first bits begin.

    Returns:
        How many code points were scanned, and how many finds there are.
    """
    n_finds = n_read = 0
    room = len(finds) - len(lengths)
    size = np.uint64(len(ring) - 1)
    base, n_words, begun, ended, in_word = (
        state[CHARS],
        state[WORDS],
        state[BEGUN],
        state[ENDED],
        state[IN_WORD],
    )
    value, total = hashes[HASH], hashes[PREFIX]
    shortest, power = lengths[0], powers[0]
    for place in range(len(codes)):
        entry = table[codes[place]]
        if entry == 1:
            n_read += 1
            continue
        alone = (entry & ALONE) != 0
        if in_word > 0 and (entry == 0 or alone or in_word == 2):
            if n_finds > room:
                break
            begins[np.uint64(n_words) & size] = begun
            n_words += 1
            total = total * BASE + stir(value)
            ring[np.uint64(n_words) & size] = total
            value, in_word = basis, 0
            if n_words >= shortest:
                window = total - ring[np.uint64(n_words - shortest) & size] * power
                mark = stir(window ^ FILTER_SALT) >> bits_shift
                if (bits[mark >> S6] >> (mark & LOW_6)) & ONE:
                    n_finds = look_up(
                        n_words,
                        ended,
                        ring,
                        begins,
                        lengths,
                        powers,
                        salts,
                        keys,
                        mask,
                        buckets,
                        bucket_shift,
                        finds,
                        n_finds,
                    )
        n_read += 1
        if entry == 0:
            continue
        if in_word == 0:
            begun = base + place
        in_word = 2 if alone else 1
        ended = base + place + 1
        if entry & MANY:
            at = np.int64(entry & REST)
            for step in range(np.int64(several[at])):
                value = (value ^ np.uint64(several[at + 1 + step])) * PRIME
        else:
            value = (value ^ np.uint64(entry & REST)) * PRIME
    state[CHARS], state[WORDS], state[BEGUN], state[ENDED], state[IN_WORD] = (
        base + n_read,
        n_words,
        begun,
        ended,
        in_word,
    )
    hashes[HASH], hashes[PREFIX] = value, total
    return n_read, n_finds


@compiled
def verify(
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
    """Say of each find whether the words that stand there are those of its n-gram.

    Args:
        codes: code points of the text from character ``base`` on, as far as the finds go.
        finds: ``(m, 4)`` as `scan_piece` leaves them.
        gram_words: where in ``words`` an n-gram's first word is; ``gram_lengths``: how many it has.
        words: numbers of words in the vocabulary, whose code points are ``vocabulary``.
        right: ``(m,)`` to be filled.
    """
    for number in range(len(finds)):
        gram = finds[number, 0]
        first = gram_words[gram]
        right[number] = _same(
            codes, finds[number, 1] - base, finds[number, 2] - base, table, several, words, first, first + gram_lengths[gram],
            vocabulary, vocabulary_ends,
        )  # fmt: skip


@compiled
def _same(
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
