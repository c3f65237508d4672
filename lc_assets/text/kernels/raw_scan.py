r"""One pass over a text as it stands: raw words, sentences, symbols, and what each line begins and
ends with.

Raw words are ``\w+|[^\w\s]+``, and a sentence ``\b[^.!?]+[.!?]*``: it begins at the first word
character after a terminator, for there alone is a boundary that is not inside the one before.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.characters import LETTER, LIMIT, NOT_UPPER, PLAIN, SPACE, UPPER, WORD
from lc_assets.text.kernels.hashing import bits_of, slot_of, stirred

N_RAW: Final = 8
RAW_WORDS, ALPHABETIC, ALL_CAPS, STOP_WORDS, SENTENCES, SYMBOLS, CURLY, ELLIPSIS_LINES = range(
    N_RAW
)
"""Places in the counts of a document."""

NEWLINE: Final = 10
HASH, BANG, DOT, QUESTION = 0x23, 0x21, 0x2E, 0x3F
OPEN, CLOSE = 0x7B, 0x7D
QUOTE, ELLIPSIS = 0x201D, 0x2026


@compiled
def count_lines(codes: NDArray[np.uint32]) -> int:
    """Lines of a text: newlines, and what follows the last of them."""
    n_lines = 0
    for code in codes:
        if code == NEWLINE:
            n_lines += 1
    return n_lines + (codes.size > 0 and codes[codes.size - 1] != NEWLINE)


@compiled
def is_bullet(code: int) -> bool:
    """One of the ten characters that RedPajama-V2 takes for bullets."""
    return (
        code in (0x2022, 0x2023, 0x2013)
        or code in (0x25B6, 0x25C0, 0x25E6)
        or code in (0x25A0, 0x25A1, 0x25AA, 0x25AB)
    )


@compiled
def is_known(
    codes: NDArray[np.uint32],
    start: int,
    stop: int,
    state: np.uint64,
    slots: NDArray[np.int32],
    n_bits: int,
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    known: NDArray[np.uint32],
) -> np.int32:
    """Number from 1 of the word ``codes[start:stop]`` in a set of words, 0 when it is not there."""
    slot = slot_of(state, n_bits)
    while slots[slot]:
        word = slots[slot] - 1
        if hashes[word] == state and places[word + 1] - places[word] == stop - start:
            place = places[word]
            at = start
            while at < stop and codes[at] == known[place]:
                at += 1
                place += 1
            if at == stop:
                return np.int32(word + 1)
        slot = (slot + 1) & (slots.size - 1)
    return np.int32(0)


@compiled
def scan_raw(
    codes: NDArray[np.uint32],
    flags: NDArray[np.uint16],
    seed: np.uint64,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    known: NDArray[np.uint32],
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    terminal: NDArray[np.uint8],
    bullets: NDArray[np.uint8],
    upper: NDArray[np.int64],
) -> None:
    """Fill ``counts`` of the document, and of each line its end, both marks and its upper case
    characters.
    """
    n = codes.size
    n_bits = bits_of(slots.size)
    n_words = n_alphabetic = n_caps = n_stop = n_sentences = n_symbols = n_curly = (
        n_ellipsis_lines
    ) = 0
    line = n_upper = 0
    blank = True
    in_sentence = False
    last = dots = 0
    at = 0
    while at < n:
        code = codes[at]
        flag = flags[code] if code < LIMIT else PLAIN
        if flag & WORD:
            start = at
            state = seed
            seen = 0
            while True:
                state = stirred(state, np.uint64(code))
                seen |= flag
                n_upper += (flag & UPPER) >> 2
                at += 1
                if at == n:
                    break
                code = codes[at]
                flag = flags[code] if code < LIMIT else PLAIN
                if not flag & WORD:
                    break
            n_words += 1
            n_alphabetic += (seen & LETTER) >> 4
            n_caps += seen & (UPPER | NOT_UPPER) == UPPER
            n_stop += (
                1 if is_known(codes, start, at, state, slots, n_bits, hashes, places, known) else 0
            )
            n_sentences += not in_sentence
            in_sentence = True
            blank = False
            last = dots = 0
        elif flag & SPACE:
            if code == NEWLINE:
                ends[line] = at + 1
                terminal[line] = last in (DOT, BANG, QUESTION) or last == QUOTE
                n_ellipsis_lines += last == ELLIPSIS or dots >= 3
                upper[line] = n_upper
                line += 1
                n_upper = last = dots = 0
                blank = True
            at += 1
        else:
            if blank:
                bullets[line] = is_bullet(code)
                blank = False
            start = at
            state = seed
            seen = dots = 0
            while True:
                state = stirred(state, np.uint64(code))
                seen |= flag
                n_upper += (flag & UPPER) >> 2
                last = code
                if code == DOT:
                    dots += 1
                    n_symbols += dots % 3 == 0
                    in_sentence = False
                else:
                    dots = 0
                    if code in (HASH, ELLIPSIS):
                        n_symbols += 1
                    elif code in (OPEN, CLOSE):
                        n_curly += 1
                    elif code in (BANG, QUESTION):
                        in_sentence = False
                at += 1
                if at == n:
                    break
                code = codes[at]
                flag = flags[code] if code < LIMIT else PLAIN
                if flag & (WORD | SPACE):
                    break
            n_words += 1
            n_caps += seen & (UPPER | NOT_UPPER) == UPPER
            n_stop += (
                1 if is_known(codes, start, at, state, slots, n_bits, hashes, places, known) else 0
            )
    if n and codes[n - 1] != NEWLINE:
        ends[line] = n
        terminal[line] = last in (DOT, BANG, QUESTION) or last == QUOTE
        n_ellipsis_lines += last == ELLIPSIS or dots >= 3
        upper[line] = n_upper
    counts[RAW_WORDS] = n_words
    counts[ALPHABETIC] = n_alphabetic
    counts[ALL_CAPS] = n_caps
    counts[STOP_WORDS] = n_stop
    counts[SENTENCES] = n_sentences
    counts[SYMBOLS] = n_symbols
    counts[CURLY] = n_curly
    counts[ELLIPSIS_LINES] = n_ellipsis_lines
