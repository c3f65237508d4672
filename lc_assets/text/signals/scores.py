"""All signals of some texts in one call for each pass, means and rounding included.

Rounding is to eight decimal digits as Python's `round` does it, which `numpy.round` does not.
``round`` rounds the exact value of the float to the nearest multiple of 1e-8, ties to even. Here
the product with 1e8 is taken with its error (Dekker 1971), so the comparison with a half is exact.
"""

from math import floor, log, nan
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Bytes, Floats, Int32s, Int64s, UInt16s
from lc_assets.compiling import compiled
from lc_assets.text.hashing import WordSet, whole
from lc_assets.text.numbering import count_grams
from lc_assets.text.signals.passes import (
    CHARS,
    ENDS,
    NUMBERS,
    UPPER_CASE,
    NumberedWords,
    RawCounts,
    scan_raw,
    scan_words,
)

_SCALE = 1e8
_SPLIT = 134217729.0
"""2²⁷ + 1: splits a float into halves whose products are exact."""

_SCALE_HIGH = _SPLIT * _SCALE - (_SPLIT * _SCALE - _SCALE)
_SCALE_LOW = _SCALE - _SCALE_HIGH

LARGEST = 9e7
"""From here on the product cannot represent a half. Whole numbers need no rounding, so they may be
larger.
"""


@compiled
def round8(value: float) -> float:
    """Round a number from 0 to `LARGEST`, or any whole one.

    >>> round8(0.001953125), round8(2 / 3)
    (0.00195312, 0.66666667)
    """
    if value == floor(value):
        return value
    product = value * _SCALE
    high = _SPLIT * value - (_SPLIT * value - value)
    error = ((high * _SCALE_HIGH - product) + high * _SCALE_LOW + (value - high) * _SCALE_HIGH) + (
        value - high
    ) * _SCALE_LOW
    below = floor(product)
    over_half = (product - below - 0.5) + error
    if over_half > 0 or (over_half == 0 and below % 2 == 1):
        below += 1
    return below / _SCALE


_LONGEST = 10
N_SCORES = 22
_REMEMBERED = 64
"""Nearly all words occur less often: their terms of the entropy are computed once."""


class Phrases(NamedTuple):
    """Listed phrases, as a tree of their words' numbers from 1; a state per beginning of any.

    Attributes:
        words: the words.
        steps: int64, ascending: the state before, times the words and one, and a word's number; at
            the number of the state after, less one. The last is greater than all.
        is_end: bool, whether a phrase ends in that state.
    """

    words: WordSet
    steps: Int64s
    is_end: Booleans


@compiled
def entropy(counts: Int64s, n_words: int) -> float:
    """Entropy of words. Terms are added in the order of first occurrence, which shows in the eighth
    digit.
    """
    terms, total = np.zeros(_REMEMBERED + 1, np.float64), 0.0
    for count in counts:
        at = min(count, _REMEMBERED)
        if at == _REMEMBERED or terms[at] == 0:
            terms[at] = -count / n_words * log(count / n_words)
        total += terms[at]
    return total


@compiled
def score_words_of_each(
    folded: Bytes,
    ends: Int64s,
    seed: np.uint64,
    bits: UInt16s,
    bad_words: Phrases,
    scores: Floats,
    lines: Int64s,
    line_ends: Int64s,
) -> None:
    """Compute the scores of normalized words of some texts. All is written into arrays that the
    caller makes: returning arrays to Python takes longer.

    Args:
        folded: of `lc_assets.text.folding.folded_lines`, as ``ends``.
        ends: after the last byte of each text.
        seed: of hashes.
        bits: `lc_assets.text.characters.character_bits`.
        bad_words: listed phrases.
        scores: float64[texts, 22], filled, in the order of
            `lc_assets.text.signals.names.TEXT_DOC_SIGNALS` followed by stop words and bad words;
            NaN for None, and for all other scores.
        lines: int64[lines, 8], zeros; the columns about normalized words are filled, see
            `lc_assets.text.signals.passes.ENDS`.
        line_ends: after the last line of each text.
    """
    begin = first = 0
    for text in range(len(ends)):
        own = lines[first : line_ends[text]]
        words = scan_words(folded[begin : ends[text]], bits, seed, bad_words.words, own)
        score_words(words, seed, bad_words, scores[text])
        begin, first = ends[text], line_ends[text]


@compiled
def score_raw_of_each(
    data: Bytes,
    ends: Int64s,
    seed: np.uint64,
    bits: UInt16s,
    stop_words: WordSet,
    scores: Floats,
    lines: Int64s,
    line_ends: Int64s,
) -> Floats:
    """Fill the other scores and columns, of the texts' UTF-8; other arguments as there.

    Args:
        stop_words: listed raw words.

    Returns:
        float64[lines, 2]: shares of numeric and of upper case characters of each line.
    """
    shares = np.zeros((len(lines), 2), np.float64)
    begin = first = 0
    for text in range(len(ends)):
        own = lines[first : line_ends[text]]
        raw = scan_raw(data[begin : ends[text]], bits, seed, stop_words, own)
        _score_raw(raw, own, scores[text])
        _fill_shares(own, shares[first : line_ends[text]])
        begin, first = ends[text], line_ends[text]
    return shares


@compiled
def _fill_shares(lines: Int64s, shares: Floats) -> None:
    start = np.int64(0)
    for line in range(len(lines)):
        stop = lines[line, ENDS]
        if lines[line, NUMBERS]:
            shares[line, 0] = round8(lines[line, NUMBERS] / lines[line, CHARS])
        if lines[line, UPPER_CASE]:
            shares[line, 1] = round8(lines[line, UPPER_CASE] / (stop - start))
        start = stop


@compiled
def score_words(words: NumberedWords, seed: np.uint64, bad_words: Phrases, scores: Floats) -> None:
    """Fill the scores of a text whose words are numbered, and overwritten; see
    `score_words_of_each`.
    """
    scores[:], n_words = nan, words.numbers.size
    n_chars = whole(words.before[n_words])
    scores[21] = _count_listed(words.numbers, words.listed, bad_words)
    grams = np.zeros((_LONGEST + 1, 4), np.int64)
    count_grams(words.numbers, words.counts, words.before, seed, grams)
    chars = max(n_chars, 1)
    scores[1] = words.n_lorem / max(n_chars + n_words - 1, 1)
    scores[2] = grams[10, 3] / chars
    for length in range(5, 10):
        scores[length - 2] = grams[length, 3] / chars
    scores[8:11] = 0
    for length in range(2, 5):
        if grams[length, 0] > 1:
            scores[length + 6] = grams[length, 0] * grams[length, 1] / chars
    if n_words:
        scores[14] = len(words.counts) / n_words
        scores[15] = n_chars / n_words
        scores[18] = entropy(words.counts, n_words)
    scores[19] = n_words
    _round(scores)


@compiled
def _score_raw(raw: RawCounts, lines: Int64s, scores: Floats) -> None:
    n_lines = len(lines)
    n_chars = lines[n_lines - 1, ENDS] if n_lines else 0
    scores[0] = raw.curly / (n_chars or 1)
    if raw.words:
        scores[11] = raw.all_caps / raw.words
        scores[13] = 1 - raw.alphabetic / raw.words
        scores[17] = raw.symbols / raw.words
    if n_lines:
        scores[12] = raw.ellipsis_lines / n_lines
    scores[16] = raw.sentences
    scores[20] = raw.stop_words / raw.words if scores[19] else 0.0
    _round(scores)


@compiled
def _round(scores: Floats) -> None:
    """Round all scores that are not NaN; a rounded one stays as it is."""
    for i in range(N_SCORES):
        if scores[i] == scores[i]:
            scores[i] = round8(scores[i])


@compiled
def _count_listed(numbers: Int32s, listed: Int32s, phrases: Phrases) -> int:
    """How many listed phrases begin at any word.

    Args:
        numbers: of the text's words.
        listed: of each distinct word its number in the list, or 0.
        phrases: the list.
    """
    n_found, n_steps = 0, phrases.words.hashes.size + 1
    for start in range(len(numbers) if n_steps > 1 else 0):
        state = 0
        for at in range(start, len(numbers)):
            word = listed[numbers[at]]
            if word == 0:
                break
            step = state * n_steps + word
            found = np.searchsorted(phrases.steps, step)
            if phrases.steps[found] != step:
                break
            n_found += phrases.is_end[found]
            state = found + 1
    return n_found
