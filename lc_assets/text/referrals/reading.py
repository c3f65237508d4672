"""Reading the sentences and words of a text in one pass over its characters."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lc_assets.arrays import Bytes, Int64s, UInt32s, UInt64s
from lc_assets.compiling import compiled, inlined
from lc_assets.text.hashing import (
    WordSet,
    absorb,
    bits_of,
    code_points,
    find_word,
    hash_seed,
    slot_of,
    whole,
    word_set,
)
from lc_assets.text.referrals.words import (
    ABBREVIATION,
    ADDRESS,
    CAPITAL,
    CLASSES,
    COMMON,
    DATE,
    INITIAL,
    JOINED,
    LIMIT,
    LONGEST_WORD,
    PRONOUN,
    STOP,
    WRAPPED,
    SpecialWords,
    Words,
    class_of,
    folded,
)

_H, _U, _L, _C, _D, _M, _A, _Y, _P, _K, _E, _F, _Q, _B, _N, _S, _O = range(len(CLASSES))
_SHORTEST_WRAPPED, _LONGEST_WRAPPED = WRAPPED.start, WRAPPED.stop - 1
_IDEOGRAPHS = 0x20000
_NUMBER = np.uint64(0xFFFFFFFF)
_TAG = np.uint64(0xFFFFFFFF00000000)
"""A slot holds half of a word's hash above its number, from 1; 0 where there is none."""


@cache
def class_table() -> Bytes:
    """uint8[LIMIT + 1]: place of a character's class in `lc_assets.text.referrals.words.CLASSES`;
    the last entry is for all others.
    """
    places = {name: place for place, name in enumerate(CLASSES)}
    classes = map(class_of, map(chr, range(_IDEOGRAPHS)))
    table = np.array([*map(places.__getitem__, classes)], np.uint8)
    # Beyond, all letters are ideographs; asking for each class would take 0.1 CPU-seconds.
    letters = np.fromiter(map(str.isalnum, map(chr, range(_IDEOGRAPHS, LIMIT))), np.bool_)
    return np.concatenate([table, np.where(letters, _H, _O), [_O]]).astype(np.uint8)


@cache
def fold_table() -> UInt32s:
    """uint32[LIMIT + 1]: the form in which a character of a word is compared."""
    table = np.arange(LIMIT + 1, dtype=np.uint32)
    changed = np.isin(class_table(), (_U, _A, _Y))
    for code in np.flatnonzero(changed).tolist():
        table[code] = ord(folded(chr(code)))
    return table


@inlined
def _is_letter(kind: int) -> bool:
    """Whether a character of this class is a letter or a digit, and not a word of its own."""
    return _U <= kind <= _D


@inlined
def _end_of_word(kinds: Bytes, at: int) -> int:
    """Where a word ends that begins here."""
    n_codes = len(kinds)
    end = at + 1
    if kinds[at] == _H:
        while end < n_codes and kinds[end] == _M:
            end += 1
        return end
    while end < n_codes:
        kind = kinds[end]
        if kind <= _M and kind != _H:
            end += 1
            continue
        if end + 1 == n_codes or not _is_letter(kinds[end + 1]):
            break
        if kind == _A or kind == _Y:
            end += 1
            continue
        if (kind == _P or kind == _K) and kinds[end - 1] == _D and kinds[end + 1] == _D:
            end += 1
            continue
        break
    return end


@compiled
def _read(
    kinds: Bytes,
    spelt: UInt32s,
    seed: np.uint64,
    special: WordSet,
    special_bits: Bytes,
    part_starts: Int64s,
    slots: UInt64s,
    bits_of_kind: Bytes,
    out: Words,
) -> tuple[int, int, int, int]:
    """Read a text.

    Args:
        kinds: class of each character.
        spelt: what each character is compared as.
        seed: of hashes.
        special: words with a special role.
        special_bits: of each of them.
        part_starts: where parts of the text after the first begin.
        slots: zeros, at least twice as many as words, a power of two: a hash table of the kinds of
            words.
        bits_of_kind: filled with the bits of each kind of word.
        out: filled.

    Returns:
        How many sentences, kinds of words, words and pronouns there are.
    """
    _, spellings, weights, words, sentences, flags, pronouns, pronoun_sentences, parts = out
    n_codes = len(kinds)
    n_words = n_pronouns = n_sentences = n_kinds = 0
    n_bits = bits_of(slots.size)
    mask = slots.size - 1
    at = line_start = part = 0
    # The gap before the next word: other than white space, a quotation mark, the end of a line or
    # of a sentence.
    breaks = quoted = lines_end = full_end = ended = open_end = False
    abbreviated = joined = False
    n_gap = 0
    while at < n_codes:
        kind = kinds[at]
        # Phase 1: characters between words.
        if kind > _D:
            if kind == _N:
                length = at - line_start
                lines_end |= length < _SHORTEST_WRAPPED or length > _LONGEST_WRAPPED
                line_start = at + 1
            if kind == _N or kind == _S:
                ended |= open_end
                open_end = False
            else:
                breaks = True
                if kind == _P or kind == _E:
                    open_end = True
                    if abbreviated and n_gap == 0 and kind == _P:
                        following = kinds[at + 1] if at + 1 < n_codes else _S
                        open_end = following in (_P, _E)
                elif kind == _A or kind == _Q:
                    quoted = True
                elif kind == _F:
                    full_end = True
                    open_end = False
                elif kind != _B:
                    open_end = False
            n_gap += 1
            at += 1
            continue
        # Phase 2: a word begins, and perhaps a sentence or a part.
        end = _end_of_word(kinds, at)
        begins = n_sentences == 0 or lines_end or full_end or (ended and kind != _L)
        while part < len(part_starts) and part_starts[part] <= at:
            part += 1
            begins = True
        if begins:
            parts[n_sentences] = part
            n_sentences += 1
        joined = joined and not begins and not breaks
        initial = begins or quoted
        breaks = quoted = lines_end = full_end = ended = open_end = False
        n_gap = 0
        start, length = at, end - at
        at = end
        if length > LONGEST_WORD:
            joined = abbreviated = False
            continue
        # Phase 3: hash the word, without a final "'s", and find its kind or add one.
        state = one_back = two_back = seed
        for i in range(start, end):
            two_back = one_back
            one_back = state
            state = absorb(state, np.uint64(spelt[i]))
        if length > 2 and spelt[end - 1] == 115 and spelt[end - 2] == 39:  # 's
            length -= 2
            state = two_back
        slot = slot_of(state, n_bits)
        tag = state & _TAG
        number = -1
        while slots[slot]:
            if slots[slot] & _TAG == tag:
                word = whole(slots[slot] & _NUMBER) - 1
                first = spellings[word, 0]
                if spellings[word, 1] == length and np.array_equal(
                    spelt[start : start + length], spelt[first : first + length]
                ):
                    number = word
                    break
            slot = (slot + 1) & mask
        if number < 0:
            number = n_kinds
            slots[slot] = tag | np.uint64(number + 1)
            listed = find_word(spelt, start, start + length, state, special)
            bits = whole(special_bits[listed - 1]) if listed else 0
            n_letters = n_telling = 0
            for i in range(start, start + length):
                letter = kinds[i]
                n_letters += letter <= _D
                n_telling += letter <= _C
            tells = n_telling > 0 and not bits & (STOP | COMMON)
            spellings[number, 0], spellings[number, 1], bits_of_kind[number] = start, length, bits
            weights[number] = min(2, n_letters) if tells else 0
            n_kinds += 1
        # Phase 4: record it.
        bits = whole(bits_of_kind[number])
        abbreviated = (bits & ABBREVIATION) != 0 or (
            length == 1 and (kind == _U or kind == _L) and spelt[start] != 105
        )
        if bits & PRONOUN:
            pronouns[n_pronouns], pronoun_sentences[n_pronouns] = n_words, n_sentences - 1
            n_pronouns += 1
        if bits & STOP:
            joined = False
            continue
        words[n_words], sentences[n_words] = number, n_sentences - 1
        flags[n_words] = (
            JOINED * joined | CAPITAL * (kind == _U) | INITIAL * initial | (bits & DATE)
        )
        n_words += 1
        joined = True
    return n_sentences, n_kinds, n_words, n_pronouns


class WordReader:
    """Reads the words of texts.

    Args:
        special: words with a special role.
    """

    def __init__(self, special: SpecialWords) -> None:
        bits = special.kinds()
        self._special = word_set(list(bits))
        self._bits = np.array(list(bits.values()), np.uint8)

    def read(self, text: str, part_starts: Sequence[int] = ()) -> Words:
        """Read the words of a text.

        Args:
            text: the text.
            part_starts: where parts of the text after the first begin, in characters, ascending.
        """
        codes = np.minimum(code_points(text), LIMIT)
        kinds, spelt = class_table()[codes], fold_table()[codes]
        for found in ADDRESS.finditer(text):
            kinds[found.start() : found.end()] = _O
        before = np.append(np.uint8(_O), kinds[:-1]) if text else kinds
        starts = (kinds <= _D) & ((before >= _M) | (before == _H) | (kinds == _H))
        most = int(starts.sum())  # at least as many as there are words
        words, sentences, pronouns, pronoun_sentences, parts = np.empty((5, most), np.int32)
        out = Words(
            n_sentences=0,
            spellings=np.empty((most, 2), np.int64),
            weights=np.empty(most, np.uint8),
            words=words,
            sentences=sentences,
            flags=np.empty(most, np.uint8),
            pronouns=pronouns,
            pronoun_sentences=pronoun_sentences,
            parts=parts,
        )
        n_sentences, n_kinds, n_words, n_pronouns = _read(
            kinds,
            spelt,
            hash_seed(),
            self._special,
            self._bits,
            np.array(part_starts, np.int64),
            np.zeros(2 << most.bit_length(), np.uint64),
            np.empty(most, np.uint8),
            out,
        )
        sizes = n_kinds, n_kinds, n_words, n_words, n_words, n_pronouns, n_pronouns, n_sentences
        # Copied, so that the memory of what was not filled is free.
        columns: tuple[Any, ...] = out[1:]
        filled = (column[:size].copy() for column, size in zip(columns, sizes, strict=True))
        return Words(n_sentences, *filled)
