r"""Compiled reading of words: where they are, how long, what they hold.

Here: one pass over a text's UTF-8. Its twin is `lc_assets.text.word_counts`. Not here: n-grams
(`lc_assets.text.kernels.measure_grams`), lines (`lc_assets.text.kernels.measure_lines`).

Words are glued together without what lies between them: word ``i`` is ``glued[ends[i - 1]:ends[i]]``. Two spellings are equal
where their UTF-8 is, so nothing needs to be decoded again.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.kernels.compiling import compiled
from lc_assets.text.kernels.measure_characters import BEYOND, DENSE, LETTER, N_CODE_POINTS, NOT_PUNCTUATION, SYMBOL, WORD

N_COUNTS: Final = 8
"""Counts that `read_words` returns, in the order of the fields of `lc_assets.text.word_counts.WordCounts`."""

_THE, _AND = 0x3746865, 0x3616E64
_BE, _TO, _OF = 0x26265, 0x2746F, 0x26F66
_THAT, _HAVE, _WITH = 0x474686174, 0x468617665, 0x477697468


@compiled
def code_point(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The character at a position of sound UTF-8 (surrogates may be there), and its bytes."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (np.int64(data[at + 2]) & 0x3F), 3
    high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F), 4


@compiled
def stop_bit(glued: NDArray[np.uint8], start: int, end: int) -> int:
    """A bit for each of the eight stop words; 0 for every other word."""
    length = end - start
    if length < 2 or length > 4:
        return 0
    packed = length  # in front, or a leading NUL would go unseen
    for at in range(start, end):
        packed = packed << 8 | np.int64(glued[at])
    if packed == _THE:
        return 1
    if packed == _BE:
        return 2
    if packed == _TO:
        return 4
    if packed == _OF:
        return 8
    if packed == _AND:
        return 16
    if packed == _THAT:
        return 32
    if packed == _HAVE:
        return 64
    return 128 if packed == _WITH else 0


@compiled
def read_words(
    data: NDArray[np.uint8],
    table: NDArray[np.uint8],
    runs: bool,  # noqa: FBT001 - compiled functions take no keywords
    glued: NDArray[np.uint8],
    ends: NDArray[np.int32],
    chars: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Read words: of everything but white space, or (``runs``) of word characters or of neither.

    Args:
        data: UTF-8.
        table: `lc_assets.text.kernels.measure_characters.character_bits`.
        runs: whether a word ends where word characters do.
        glued: gets the words' bytes; as long as ``data``.
        ends: gets, for word ``i`` at ``i + 1``, the end of its bytes in ``glued``; at 0 a 0.
        chars: the same in characters.
        counts: gets `N_COUNTS` counts.

    Returns:
        How many words there are.
    """
    n_words = n_glued = n_chars = begun = begun_chars = 0
    held = current = stops = 0
    n_non_symbol = n_chars_non_symbol = n_with_letter = n_with_symbol = n_stops = 0
    ends[0] = chars[0] = 0
    at, n_bytes = 0, len(data)
    while at <= n_bytes:
        bits, size = 0, 1
        if at < n_bytes:
            first = data[at]
            if first < 0x80:
                bits = np.int64(table[first])
            else:
                point, size = code_point(data, at)
                bits = np.int64(table[point]) if point < N_CODE_POINTS else BEYOND
        group = bits & DENSE
        if runs and group:
            group += bits & WORD
        if group != current:
            if current:
                n_words += 1
                ends[n_words] = n_glued
                chars[n_words] = n_chars
                if held & NOT_PUNCTUATION:
                    n_non_symbol += 1
                    n_chars_non_symbol += n_chars - begun_chars
                n_with_letter += held & LETTER
                n_with_symbol += held & SYMBOL
                stop = stop_bit(glued, begun, n_glued)
                stops |= stop
                n_stops += stop != 0
                begun, begun_chars = n_glued, n_chars
            current, held = group, 0
        if group:
            held |= bits
            for offset in range(size):
                glued[n_glued + offset] = data[at + offset]
            n_glued += size
            n_chars += 1
        at += size
    n_distinct = 0
    while stops:
        n_distinct += stops & 1
        stops >>= 1
    counts[0], counts[1], counts[2], counts[3] = n_words, n_chars, n_non_symbol, n_chars_non_symbol
    counts[4], counts[5], counts[6], counts[7] = n_with_letter // LETTER, n_with_symbol // SYMBOL, n_distinct, n_stops
    return n_words
