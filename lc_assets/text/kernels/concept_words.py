"""Compiled reading of sentences and words: one pass over a text's characters.

Its twin is `lc_assets.text.concept_words.read_words`. Here: that pass, and its tables. Not here:
what is a concept (`lc_assets.text.kernels.concepts`).
"""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled, inlined
from lc_assets.text.concept_words import (
    ABBREVIATION,
    CAPITAL,
    CLASSES,
    COMMON,
    INITIAL,
    JOINED,
    LIMIT,
    LONGEST_WORD,
    PRONOUN,
    STOP,
    WRAPPED,
    class_of,
    folded,
)
from lc_assets.text.kernels.hashing import bits_of, slot_of, stirred
from lc_assets.text.kernels.measure_words import whole

_H, _U, _L, _C, _D, _M, _A, _Y, _P, _K, _E, _F, _Q, _B, _N, _S, _O = range(len(CLASSES))
_SHORTEST_WRAPPED, _LONGEST_WRAPPED = WRAPPED.start, WRAPPED.stop - 1
_NUMBER: Final = np.uint64(0xFFFFFFFF)
_TAG: Final = np.uint64(0xFFFFFFFF00000000)
"""A slot holds half of a word's hash above its number, from 1; 0 where there is none."""


@cache
def class_table() -> NDArray[np.uint8]:
    """uint8[LIMIT + 1]: place of a character's class in `lc_assets.text.concept_words.CLASSES`; the
    last entry is for all others.
    """
    table = np.fromiter(
        (CLASSES.index(class_of(chr(code))) for code in range(LIMIT)), np.uint8, LIMIT
    )
    return np.append(table, np.uint8(_O))


@cache
def fold_table() -> NDArray[np.uint32]:
    """uint32[LIMIT + 1]: what a character of a word is compared as."""
    table = np.arange(LIMIT + 1, dtype=np.uint32)
    for code in np.flatnonzero(
        np.isin(class_table(), (_U, _A, _Y))
    ).tolist():  # nothing else changes in a word
        table[code] = ord(folded(chr(code)))
    return table


@inlined
def _is_letter(kind: int) -> bool:
    """Whether a character of this class is a letter or a digit, and not a word of its own."""
    return _U <= kind <= _D


@inlined
def _end_of_word(kinds: NDArray[np.uint8], at: int) -> int:
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


@inlined
def _is_at(
    codes: NDArray[np.uint32], start: int, length: int, others: NDArray[np.uint32], other: int
) -> bool:
    """Whether a word is one that stands in ``others``."""
    for offset in range(length):  # noqa: SIM110 - compiled
        if codes[start + offset] != others[other + offset]:
            return False
    return True


@compiled
def _kind_of(
    codes: NDArray[np.uint32], start: int, length: int, state: np.uint64,
    slots: NDArray[np.int32], hashes: NDArray[np.uint64], places: NDArray[np.int64], special: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Bits of a word among the special ones; 0 for all others."""
    n_bits = bits_of(slots.size)
    slot = slot_of(state, n_bits)
    while slots[slot]:
        word = slots[slot] - 1
        same = hashes[word] == state and places[word + 1] - places[word] == length
        if same and _is_at(codes, start, length, special, places[word]):
            return whole(kinds[word])
        slot = (slot + 1) & (slots.size - 1)
    return 0


@compiled
def classify(
    codes: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    folds: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
    spelt: NDArray[np.uint32],
) -> int:
    """Look up each character's class and what it is compared as; returns at least as many as there
    are words.
    """
    n_starts = 0
    before = np.uint8(_O)
    for place in range(len(codes)):
        code = min(codes[place], np.uint32(LIMIT))
        kind = classes[code]
        kinds[place], spelt[place] = kind, folds[code]
        n_starts += (kind <= _D) & ((before >= _M) | (before == _H) | (kind == _H))
        before = kind
    return n_starts


@compiled
def read(
    kinds: NDArray[np.uint8], spelt: NDArray[np.uint32], seed: np.uint64,
    special_slots: NDArray[np.int32], special_hashes: NDArray[np.uint64], special_places: NDArray[np.int64],
    special_codes: NDArray[np.uint32], special_kinds: NDArray[np.uint8], part_starts: NDArray[np.int64],
    words: NDArray[np.int32], sentences: NDArray[np.int32], flags: NDArray[np.uint8],
    pronouns: NDArray[np.int32], pronoun_sentences: NDArray[np.int32], parts: NDArray[np.int32],
    slots: NDArray[np.uint64], spellings: NDArray[np.int64], weights: NDArray[np.uint8], bits_of_kind: NDArray[np.uint8],
) -> tuple[int, int, int, int]:  # fmt: skip
    """Read a text.

    Args:
        codes: its code points.
        classes: `class_table`.
        folds: `fold_table`.
        seed: what hashes begin with.
        special_slots: a `lc_assets.text.kernels.hashing.WordSet`, and so are the next three.
        special_hashes: see there.
        special_places: see there.
        special_codes: see there.
        special_kinds: bits of each of its words.
        part_starts: where parts of the text after the first begin.
        words: gets what `lc_assets.text.concept_words.Words` holds; as long as ``codes``, as are
            the next five.
        sentences: see there.
        flags: see there.
        pronouns: see there.
        pronoun_sentences: see there.
        parts: see there.

    Returns:
        How many words, pronouns and sentences there are; starts and lengths of the kinds of words,
        and their weights.
    """
    n_codes = len(kinds)
    n_words = n_pronouns = n_sentences = n_kinds = 0
    n_bits = bits_of(slots.size)
    mask = slots.size - 1
    at = line_start = part = 0
    # Of the gap before the next word: has it anything but white space, a quotation mark, an end of
    # a sentence, of a line?
    breaks = quoted = lines_end = full_end = ended = open_end = False
    abbreviated = joined = False
    gap_place = 0
    while at < n_codes:
        kind = kinds[at]
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
                    if abbreviated and gap_place == 0 and kind == _P:
                        following = kinds[at + 1] if at + 1 < n_codes else _S
                        open_end = following in (_P, _E)
                elif kind == _A or kind == _Q:
                    quoted = True
                elif kind == _F:
                    full_end = True
                    open_end = False
                elif kind != _B:
                    open_end = False
            gap_place += 1
            at += 1
            continue
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
        gap_place = 0
        start, length = at, end - at
        at = end
        if length > LONGEST_WORD:
            joined = abbreviated = False
            continue
        state = one_back = two_back = seed
        for place in range(start, end):
            two_back = one_back
            one_back = state
            state = stirred(state, np.uint64(spelt[place]))
        if length > 2 and spelt[end - 1] == 115 and spelt[end - 2] == 39:  # 's
            length -= 2
            state = two_back
        slot = slot_of(state, n_bits)
        tag = state & _TAG
        number = -1
        while slots[slot]:
            if slots[slot] & _TAG == tag:
                word = whole(slots[slot] & _NUMBER) - 1
                if spellings[word, 1] == length and _is_at(
                    spelt, start, length, spelt, spellings[word, 0]
                ):
                    number = word
                    break
            slot = (slot + 1) & mask
        if number < 0:
            number = n_kinds
            if 2 * n_kinds == slots.size:
                return -1, 0, 0, 0
            slots[slot] = tag | np.uint64(number + 1)
            bits = _kind_of(
                spelt,
                start,
                length,
                state,
                special_slots,
                special_hashes,
                special_places,
                special_codes,
                special_kinds,
            )
            n_letters = n_telling = 0
            for place in range(start, start + length):
                letter = kinds[place]
                n_letters += letter <= _D
                n_telling += letter <= _C
            tells = n_telling > 0 and not bits & (STOP | COMMON)
            spellings[number, 0], spellings[number, 1], bits_of_kind[number] = start, length, bits
            weights[number] = min(2, n_letters) if tells else 0
            n_kinds += 1
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
        flags[n_words] = JOINED * joined | CAPITAL * (kind == _U) | INITIAL * initial
        n_words += 1
        joined = True
    return n_words, n_pronouns, n_sentences, n_kinds
