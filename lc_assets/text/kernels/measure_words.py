r"""Compiled reading of words: where they are, how long, what they hold.

Here: one pass over a text's UTF-8. Its twin is `lc_assets.text.word_counts`. Not here: n-grams
(`lc_assets.text.kernels.measure_grams`), lines (`lc_assets.text.kernels.measure_lines`).

Words are glued together without what lies between them: word ``i`` is ``glued[ends[i -
1]:ends[i]]``. Two spellings are equal where their UTF-8 is, so nothing needs to be decoded again.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.measure_characters import (
    BEYOND,
    DENSE,
    LETTER,
    N_CODE_POINTS,
    NOT_PUNCTUATION,
    SYMBOL,
    WORD,
)
from lc_assets.text.word_counts import STOP_WORDS

N_COUNTS: Final = 8
"""Counts that `read_words` returns, in the order of the fields of
`lc_assets.text.word_counts.WordCounts`.
"""

PADDING: Final = 8
"""Bytes after the last word, so that eight can be read at once wherever one begins."""

_SHORT: Final = 7
_STOP_KEYS: Final = tuple(
    int.from_bytes(word.encode(), "little") | len(word) << 56 for word in STOP_WORDS
)
_THE, _BE, _TO, _OF, _AND, _THAT, _HAVE, _WITH = map(np.uint64, _STOP_KEYS)


@compiled
def whole(number: np.integer[Any]) -> int:
    """A number as a signed one of 64 bits, so that arithmetic on it neither wraps nor turns into
    floats.
    """
    return np.int64(number)  # type: ignore[return-value]


@compiled
def code_point(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The character at a position of sound UTF-8 (surrogates may be there), and its bytes."""
    first = whole(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (whole(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (whole(data[at + 1]) & 0x3F) << 6 | (
            whole(data[at + 2]) & 0x3F
        ), 3
    high = (first & 0x07) << 18 | (whole(data[at + 1]) & 0x3F) << 12
    return high | (whole(data[at + 2]) & 0x3F) << 6 | (whole(data[at + 3]) & 0x3F), 4


@compiled
def eight_bytes(data: NDArray[np.uint8], at: int) -> np.uint64:
    """Eight bytes as a number; LLVM makes it one load."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + 1]) << np.uint64(8)
        | np.uint64(data[at + 2]) << np.uint64(16)
        | np.uint64(data[at + 3]) << np.uint64(24)
        | np.uint64(data[at + 4]) << np.uint64(32)
        | np.uint64(data[at + 5]) << np.uint64(40)
        | np.uint64(data[at + 6]) << np.uint64(48)
        | np.uint64(data[at + 7]) << np.uint64(56)
    )


@compiled
def short_key(glued: NDArray[np.uint8], start: int, length: int) -> np.uint64:
    """A word of up to seven bytes as a number, its length on top; 0 for a longer one."""
    if length > _SHORT:
        return np.uint64(0)
    mask = (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
    return eight_bytes(glued, start) & mask | np.uint64(length) << np.uint64(56)


@compiled
def stop_bit(key: np.uint64) -> int:
    """A bit for each of the eight stop words, by its `short_key`; 0 for every other word. No
    branches: they would miss.
    """
    low = (key == _THE) * 1 + (key == _BE) * 2 + (key == _TO) * 4 + (key == _OF) * 8
    bit: int = (
        low + (key == _AND) * 16 + (key == _THAT) * 32 + (key == _HAVE) * 64 + (key == _WITH) * 128
    )
    return bit


@compiled
def bits_at(data: NDArray[np.uint8], table: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Bits of the character at a position, and its bytes."""
    first = data[at]
    if first < 0x80:
        return whole(table[first]), 1
    point, size = code_point(data, at)
    return (whole(table[point]) if point < N_CODE_POINTS else BEYOND), size


@compiled
def read_words(
    data: NDArray[np.uint8],
    table: NDArray[np.uint8],
    runs: bool,
    glued: NDArray[np.uint8],
    ends: NDArray[np.int32],
    chars: NDArray[np.int32],
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> int:
    """Read words: of everything but white space, or (``runs``) of word characters or of neither.

    Args:
        data: UTF-8.
        table: `lc_assets.text.kernels.measure_characters.character_bits`.
        runs: whether a word ends where word characters do.
        glued: gets the words' bytes; `PADDING` longer than ``data``.
        ends: gets, for word ``i`` at ``i + 1``, the end of its bytes in ``glued``; at 0 a 0.
        chars: the same in characters.
        keys: gets each word's `short_key`.
        counts: gets `N_COUNTS` counts.

    Returns:
        How many words there are.
    """
    n_words = n_glued = n_chars = stops = 0
    n_non_symbol = n_chars_non_symbol = n_with_letter = n_with_symbol = n_stops = 0
    border = DENSE | WORD if runs else DENSE
    ends[0] = chars[0] = 0
    at, n_bytes = 0, len(data)
    while at < n_bytes:
        bits, size = bits_at(data, table, at)
        group = bits & border
        if not bits & DENSE:
            at += size
            continue
        begun, begun_chars, held = n_glued, n_chars, 0
        while bits & border == group:
            held |= bits
            glued[n_glued] = data[at]
            for offset in range(1, size):
                glued[n_glued + offset] = data[at + offset]
            n_glued += size
            n_chars += 1
            at += size
            if at == n_bytes:
                break
            bits, size = bits_at(data, table, at)
        key = short_key(glued, begun, n_glued - begun)
        stop = stop_bit(key)
        stops |= stop
        n_stops += stop != 0
        counted = (held & NOT_PUNCTUATION) // NOT_PUNCTUATION
        n_non_symbol += counted
        n_chars_non_symbol += counted * (n_chars - begun_chars)
        n_with_letter += held & LETTER
        n_with_symbol += held & SYMBOL
        keys[n_words] = key
        n_words += 1
        ends[n_words] = n_glued
        chars[n_words] = n_chars
    n_distinct = 0
    while stops:
        n_distinct += stops & 1
        stops >>= 1
    counts[0], counts[1], counts[2], counts[3] = n_words, n_chars, n_non_symbol, n_chars_non_symbol
    counts[4], counts[5], counts[6], counts[7] = (
        n_with_letter // LETTER,
        n_with_symbol // SYMBOL,
        n_distinct,
        n_stops,
    )
    return n_words
