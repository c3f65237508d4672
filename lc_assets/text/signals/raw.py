r"""One pass over a text as it is: raw words, sentences, symbols, and the ends of each line.

Raw words are ``\w+|[^\w\s]+``. A sentence is ``\b[^.!?]+[.!?]*``: it begins at the first word
character after a terminator, which is the only word boundary outside the sentence before.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.hashing import WordSet, absorb, find_word
from lc_assets.text.signals.characters import LETTER, LIMIT, NOT_UPPER, PLAIN, SPACE, UPPER, WORD

N_RAW: Final = 8
RAW_WORDS, ALPHABETIC, ALL_CAPS, STOP_WORDS, SENTENCES, SYMBOLS, CURLY, ELLIPSIS_LINES = range(
    N_RAW
)
"""Indices into the counts of a document."""

NEWLINE: Final = 10
_HASH, _BANG, _DOT, _QUESTION = 0x23, 0x21, 0x2E, 0x3F
_OPEN, _CLOSE = 0x7B, 0x7D
_QUOTE, _ELLIPSIS = 0x201D, 0x2026


class RawLines(NamedTuple):
    """What `scan_raw` says of each line.

    Attributes:
        ends: int64[lines], after the line's last character, its newline included.
        terminal: int64[lines], 1 where it ends with a terminal mark.
        bullets: int64[lines], 1 where it begins with a bullet.
        upper: int64[lines], upper case characters.
    """

    ends: NDArray[np.int64]
    terminal: NDArray[np.int64]
    bullets: NDArray[np.int64]
    upper: NDArray[np.int64]


@compiled
def count_lines(codes: NDArray[np.uint32]) -> int:
    """Lines of a text: its newlines, and what follows the last one."""
    n_lines = 0
    for code in codes:
        if code == NEWLINE:
            n_lines += 1
    return n_lines + (codes.size > 0 and codes[codes.size - 1] != NEWLINE)


@compiled
def _is_bullet(code: int) -> bool:
    """Whether a character is one of RedPajama-V2's ten bullets."""
    return (
        code in (0x2022, 0x2023, 0x2013)
        or code in (0x25B6, 0x25C0, 0x25E6)
        or code in (0x25A0, 0x25A1, 0x25AA, 0x25AB)
    )


@compiled
def scan_raw(
    codes: NDArray[np.uint32],
    flags: NDArray[np.uint16],
    seed: np.uint64,
    stop_words: WordSet,
    counts: NDArray[np.int64],
    lines: RawLines,
) -> None:
    """Count raw words, sentences and symbols, and describe each line.

    Args:
        codes: the text's code points.
        flags: of `lc_assets.text.signals.characters.CharacterTables`.
        seed: of hashes.
        stop_words: to look raw words up in.
        counts: filled with `N_RAW` counts.
        lines: filled.
    """
    ends, terminal, bullets, upper = lines
    n = codes.size
    n_words = n_alphabetic = n_caps = n_stop = n_sentences = n_symbols = n_curly = 0
    n_ellipsis_lines = line = n_upper = last = dots = i = 0
    blank = True
    in_sentence = False
    while i < n:
        code = codes[i]
        flag = flags[code] if code < LIMIT else PLAIN
        if flag & WORD:
            # A run of word characters.
            start = i
            state = seed
            seen = 0
            while True:
                state = absorb(state, np.uint64(code))
                seen |= flag
                n_upper += (flag & UPPER) >> 2
                i += 1
                if i == n:
                    break
                code = codes[i]
                flag = flags[code] if code < LIMIT else PLAIN
                if not flag & WORD:
                    break
            n_words += 1
            n_alphabetic += (seen & LETTER) >> 4
            n_caps += seen & (UPPER | NOT_UPPER) == UPPER
            n_stop += 1 if find_word(codes, start, i, state, stop_words) else 0
            n_sentences += not in_sentence
            in_sentence = True
            blank = False
            last = dots = 0
        elif flag & SPACE:
            if code == NEWLINE:
                ends[line] = i + 1
                terminal[line] = last in (_DOT, _BANG, _QUESTION) or last == _QUOTE
                n_ellipsis_lines += last == _ELLIPSIS or dots >= 3
                upper[line] = n_upper
                line += 1
                n_upper = last = dots = 0
                blank = True
            i += 1
        else:
            # A run of other characters: symbols, and the ends of sentences and lines.
            if blank:
                bullets[line] = _is_bullet(code)
                blank = False
            start = i
            state = seed
            seen = dots = 0
            while True:
                state = absorb(state, np.uint64(code))
                seen |= flag
                n_upper += (flag & UPPER) >> 2
                last = code
                if code == _DOT:
                    dots += 1
                    n_symbols += dots % 3 == 0
                    in_sentence = False
                else:
                    dots = 0
                    if code in (_HASH, _ELLIPSIS):
                        n_symbols += 1
                    elif code in (_OPEN, _CLOSE):
                        n_curly += 1
                    elif code in (_BANG, _QUESTION):
                        in_sentence = False
                i += 1
                if i == n:
                    break
                code = codes[i]
                flag = flags[code] if code < LIMIT else PLAIN
                if flag & (WORD | SPACE):
                    break
            n_words += 1
            n_caps += seen & (UPPER | NOT_UPPER) == UPPER
            n_stop += 1 if find_word(codes, start, i, state, stop_words) else 0
    if n and codes[n - 1] != NEWLINE:
        ends[line] = n
        terminal[line] = last in (_DOT, _BANG, _QUESTION) or last == _QUOTE
        n_ellipsis_lines += last == _ELLIPSIS or dots >= 3
        upper[line] = n_upper
    counts[RAW_WORDS], counts[ALPHABETIC], counts[ALL_CAPS] = n_words, n_alphabetic, n_caps
    counts[STOP_WORDS], counts[SENTENCES], counts[SYMBOLS] = n_stop, n_sentences, n_symbols
    counts[CURLY], counts[ELLIPSIS_LINES] = n_curly, n_ellipsis_lines
