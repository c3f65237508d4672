r"""The two passes over a text: over its raw words, and over its normalized words; both describe its
lines too.

Raw words are ``\w+|[^\w\s]+``. A sentence is ``\b[^.!?]+[.!?]*``: it begins at the first word
character after a terminator, which is the only word boundary outside the sentence before.
"""

from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Bytes, Int32s, Int64s, UInt16s
from lc_assets.compiling import borrowing, compiled
from lc_assets.text.characters import (
    DENSE,
    LATIN,
    NOT_UPPER,
    NUMERIC,
    UPPER,
    WORD,
    character_at,
)
from lc_assets.text.hashing import WordSet, find_word, whole
from lc_assets.text.numbering import (
    FIRST_ROOM,
    count_bytes,
    eight_bytes,
    first_bytes,
    hash_bytes,
    number_more,
    room_for,
    visible,
)


class RawCounts(NamedTuple):
    """Counts of a document."""

    words: int
    alphabetic: int
    all_caps: int
    stop_words: int
    sentences: int
    symbols: int
    curly: int
    ellipsis_lines: int


_SPACE, _NEWLINE = 32, 10
_FROM_ZERO, _AFTER_NINE = (
    np.uint64((0x80 - digit) * 0x0101010101010101) for digit in (ord("0"), ord("9") + 1)
)
"""Eight times what carries into a byte's highest bit from a digit on, and after it."""
_7 = np.uint64(7)
_HASH, _BANG, _DOT, _QUESTION = 0x23, 0x21, 0x2E, 0x3F
_OPEN, _CLOSE = 0x7B, 0x7D
_QUOTE, _ELLIPSIS = 0x201D, 0x2026

_LOREM, _IPSUM, _JAVASCRIPT_LOW, _JAVASCRIPT_HIGH = (
    np.uint64(int.from_bytes(word, "little")) for word in (b"lorem", b"ipsum", b"javascri", b"pt")
)
_SHORTEST, _LONGEST = 5, 10
_WORDS_AT_ONCE = 1 << 14
_I, _J, _M = b"ijm"
_FIVE_BYTES = np.uint64((1 << 40) - 1)
_ENDS_LOREM, _BEGINS_IPSUM, _IS_JAVASCRIPT = 1, 2, 4


N_LINES = 8
ENDS, TERMINAL, BULLETS, UPPER_CASE, WORDS, JAVASCRIPT, CHARS, NUMBERS = range(N_LINES)
"""Columns of the counts of lines: after the line's last character, its newline included; 1 where it
ends with a terminal mark; 1 where it begins with a bullet; upper case characters; of its normalized
words how many, those that are "javascript", their characters with a space between two, and numeric
characters.
"""


@compiled
def _is_bullet(code: int) -> bool:
    """Whether a character is one of RedPajama-V2's ten bullets."""
    return (
        code in (0x2022, 0x2023, 0x2013)
        or code in (0x25B6, 0x25C0, 0x25E6)
        or code in (0x25A0, 0x25A1, 0x25AA, 0x25AB)
    )


@borrowing
def scan_raw(
    data: Bytes,
    bits: UInt16s,
    seed: np.uint64,
    stop_words: WordSet,
    lines: Int64s,
) -> RawCounts:
    """Count raw words, sentences and symbols, and describe each line.

    Args:
        data: the text's UTF-8.
        bits: `lc_assets.text.characters.character_bits`.
        seed: of hashes.
        stop_words: to look raw words up in.
        lines: counts of lines; `ENDS` to `UPPER_CASE` are filled.
    """
    n, n_listed = data.size, stop_words.hashes.size
    n_words = n_alphabetic = n_caps = n_stop = n_sentences = n_symbols = n_curly = 0
    n_ellipsis_lines = line = n_upper = last = dots = i = n_chars = 0
    blank = True
    in_sentence = False
    while i < n:
        code, size, flag = character_at(data, bits, i)
        if not flag & DENSE:
            i += size
            n_chars += 1
            if code == _NEWLINE:
                n_ellipsis_lines += _end_line(lines, line, n_chars, n_upper, last, dots)
                line += 1
                n_upper = last = dots = 0
                blank = True
            continue
        start, seen = i, 0
        if flag & WORD:
            # A run of word characters.
            while True:
                seen |= flag
                n_upper += (flag & UPPER) >> 8
                i += size
                n_chars += 1
                if i == n:
                    break
                code, size, flag = character_at(data, bits, i)
                if not flag & WORD:
                    break
            n_alphabetic += (seen & LATIN) >> 10
            n_sentences += not in_sentence
            in_sentence = True
            last = dots = 0
        else:
            # A run of other characters: symbols, and the ends of sentences and lines.
            if blank:
                lines[line, BULLETS] = _is_bullet(code)
            dots = 0
            while True:
                seen |= flag
                n_upper += (flag & UPPER) >> 8
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
                i += size
                n_chars += 1
                if i == n:
                    break
                code, size, flag = character_at(data, bits, i)
                if flag & WORD or not flag & DENSE:
                    break
        blank = False
        n_words += 1
        n_caps += seen & (UPPER | NOT_UPPER) == UPPER
        if n_listed:
            n_stop += find_word(data, start, i, hash_bytes(data, start, i, seed), stop_words) > 0
    if n and data[n - 1] != _NEWLINE:
        n_ellipsis_lines += _end_line(lines, line, n_chars, n_upper, last, dots)
    counts = n_words, n_alphabetic, n_caps, n_stop, n_sentences, n_symbols, n_curly
    return RawCounts(*counts, n_ellipsis_lines)


@borrowing
def _end_line(lines: Int64s, line: int, n_chars: int, n_upper: int, last: int, dots: int) -> bool:
    """Describe a line that ends after ``n_chars`` of the text; return whether it ends with an
    ellipsis.
    """
    lines[line, ENDS], lines[line, UPPER_CASE] = n_chars, n_upper
    lines[line, TERMINAL] = last in (_DOT, _BANG, _QUESTION) or last == _QUOTE
    return last == _ELLIPSIS or dots >= 3


class NumberedWords(NamedTuple):
    """A text's normalized words, numbered in the order of first occurrence.

    Attributes:
        numbers: int32, the number of each word.
        before: int32[words + 1], characters before each word, and of all.
        counts: int64[distinct], occurrences of each distinct word.
        listed: int32[distinct], its number in the set of listed words, 0 when it is not there.
        n_lorem: times that "lorem ipsum" occurs.
    """

    numbers: Int32s
    before: Int32s
    counts: Int64s
    listed: Int32s
    n_lorem: int


@compiled
def scan_words(
    data: Bytes,
    bits: UInt16s,
    seed: np.uint64,
    listed_words: WordSet,
    lines: Int64s,
) -> NumberedWords:
    """Number a text's words, and count those of each line.

    Args:
        data: of `lc_assets.text.folding.folded_lines`.
        bits: `lc_assets.text.characters.character_bits`.
        seed: of hashes.
        listed_words: words whose numbers are returned.
        lines: counts of lines; `WORDS` to `NUMBERS` are filled.
    """
    most = data.size // 2 + 1
    # Not of zeros: half of the text's bytes are more than its words, and never touched.
    numbers, before = np.empty(most, np.int32), np.empty(most + 1, np.int32)
    before[0], state = 0, np.zeros(6, np.int64)
    places = np.empty((2, min(most, _WORDS_AT_ONCE)), np.int32)
    starts, ends = places[0], places[1]
    known = room_for(FIRST_ROOM)
    n_words = n_distinct = 0
    while state[0] <= data.size:
        n_more = _split(data, bits, starts, ends, before[n_words + 1 :], lines, state)
        some = numbers[n_words : n_words + n_more]
        known, n_distinct = number_more(data, starts, ends, seed, some, known, n_distinct)
        n_words += n_more
    numbers, before = numbers[:n_words], before[: n_words + 1]
    counts, listed = np.zeros(n_distinct, np.int64), np.zeros(n_distinct, np.int32)
    marks = np.zeros(n_distinct, np.int64)
    n_lorem = after_lorem = word = found = 0
    for number in range(n_distinct):
        start = whole(known.begins[number])
        stop = start + whole(known.keys[number, 2])
        if data[start] in (_I, _J) or data[stop - 1] == _M:
            marks[number] = _marks_of(data, start, stop)
            found |= marks[number]
        if listed_words.hashes.size:
            hashed = hash_bytes(data, start, stop, seed)
            listed[number] = find_word(data, start, stop, hashed, listed_words)
    for at in range(n_words):
        counts[numbers[at]] += 1
    if found:
        for line in range(lines.shape[0]):
            for _ in range(lines[line, WORDS]):
                mark = marks[numbers[word]]
                lines[line, JAVASCRIPT] += mark >> 2
                n_lorem += after_lorem & mark >> 1
                after_lorem = mark & 1
                word += 1
    return NumberedWords(numbers, before, counts, listed, n_lorem)


@borrowing
def _split(
    data: Bytes,
    bits: UInt16s,
    starts: Int32s,
    ends: Int32s,
    chars: Int32s,
    lines: Int64s,
    state: Int64s,
) -> int:
    """Find where each of the next words begins and ends, and the characters up to its end, as many
    as there is room for; count those of each line.

    Args:
        data: of `lc_assets.text.folding.folded_lines`.
        bits: `lc_assets.text.characters.character_bits`.
        starts: filled.
        ends: filled.
        chars: filled.
        lines: counts of lines.
        state: int64[6]: the next byte, beyond the end when all is done; the line, and its words,
            characters and numeric characters so far; characters of all words so far.
    """
    n_words, n = 0, data.size
    i, line, in_line = state[0], state[1], state[2]
    chars_in_line, numeric_in_line, all_chars = state[3], state[4], state[5]
    while n_words < starts.size:
        while i < n and data[i] == _SPACE:
            i += 1
        if i == n or data[i] == _NEWLINE:
            if line < lines.shape[0]:
                lines[line, WORDS] = in_line
                lines[line, CHARS] = chars_in_line + max(in_line - 1, 0)
                lines[line, NUMBERS] = numeric_in_line
            if i == n:
                state[0] = n + 1
                return n_words
            line += 1
            in_line = chars_in_line = numeric_in_line = 0
            i += 1
            continue
        starts[n_words] = i
        n_chars, n_numeric = _ascii_word(data, i)
        i += n_chars
        while i < n and data[i] != _SPACE and data[i] != _NEWLINE:
            _, size, flag = character_at(data, bits, i)
            n_numeric += (flag & NUMERIC) >> 11
            i += size
            n_chars += 1
        numeric_in_line += n_numeric
        ends[n_words] = i
        all_chars += n_chars
        chars[n_words] = all_chars
        n_words += 1
        in_line += 1
        chars_in_line += n_chars
    state[:3], state[3:] = (i, line, in_line), (chars_in_line, numeric_in_line, all_chars)
    return n_words


@borrowing
def _ascii_word(data: Bytes, start: int) -> tuple[int, int]:
    """Read the visible ASCII characters of a word, as far as eight bytes can be read at once;
    return how many there are, and how many digits.
    """
    i, n, n_digits = start, 8, 0
    while n == 8 and i + 8 <= data.size:
        word, n = visible(eight_bytes(data, i))
        digits = (word + _FROM_ZERO) & ~(word + _AFTER_NINE)
        n_digits += whole(count_bytes(digits >> _7))
        i += n
    return i - start, n_digits


@borrowing
def _marks_of(data: Bytes, start: int, stop: int) -> int:
    """Roles of a word for signals: it ends with "lorem", begins with "ipsum", is "javascript"."""
    marks = 0
    if stop - start >= _SHORTEST:
        low, high = first_bytes(data, start, stop - start)
        end, _ = first_bytes(data, stop - _SHORTEST, _SHORTEST)
        marks = (end == _LOREM) * _ENDS_LOREM + (low & _FIVE_BYTES == _IPSUM) * _BEGINS_IPSUM
        if stop - start == _LONGEST and low == _JAVASCRIPT_LOW and high == _JAVASCRIPT_HIGH:
            marks += _IS_JAVASCRIPT
    return marks
