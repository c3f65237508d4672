"""All signals of one text in one call: both passes, means and rounding.

Rounding is to eight decimal digits as Python's `round` does it, which `numpy.round` does not.
``round`` rounds the exact value of the float to the nearest multiple of 1e-8, ties to even. Here
the product with 1e8 is taken with its error (Dekker 1971), so the comparison with a half is exact.
"""

from math import floor, log, nan
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Bytes, Floats, Int32s, Int64s, UInt16s
from lc_assets.compiling import compiled
from lc_assets.text.hashing import WordSet
from lc_assets.text.numbering import count_grams
from lc_assets.text.signals.passes import (
    CHARS,
    ENDS,
    N_LINES,
    NUMBERS,
    UPPER_CASE,
    NumberedWords,
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
"""Counts whose terms of the entropy are looked up; nearly all words occur less often."""


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
    terms = np.empty(_REMEMBERED, np.float64)
    for count in range(1, _REMEMBERED):
        terms[count] = -count / n_words * log(count / n_words)
    total = 0.0
    for count in counts:
        total += terms[count] if count < _REMEMBERED else -count / n_words * log(count / n_words)
    return total


@compiled
def compute_scores(
    data: Bytes,
    folded: Bytes,
    n_lines: int,
    seed: np.uint64,
    bits: UInt16s,
    stop_words: WordSet,
    bad_words: Phrases,
) -> tuple[Floats, Int64s, Floats]:
    """Compute the signals of a text.

    Args:
        data: its UTF-8.
        folded: of `lc_assets.text.words.folded_lines`.
        n_lines: its newlines, and what follows the last one.
        seed: of hashes.
        bits: `lc_assets.text.characters.character_bits`.
        stop_words: listed raw words.
        bad_words: listed phrases.

    Returns:
        float64[22], the document's scores, NaN for None, in the order of
        `lc_assets.text.signals.names.TEXT_DOC_SIGNALS` followed by stop words and bad words;
        int64[8, lines], see `lc_assets.text.signals.passes.ENDS`; float64[2, lines]: shares of
        numeric and of upper case characters.
    """
    scores, lines = np.empty(N_SCORES, np.float64), np.zeros((N_LINES, n_lines), np.int64)
    compute_word_scores(folded, seed, bits, bad_words, scores, lines)
    add_raw_scores(data, seed, bits, stop_words, scores, lines)
    return scores, lines, shares_of(lines)


@compiled
def shares_of(lines: Int64s) -> Floats:
    """Shares of numeric and of upper case characters of each line, of which all is counted."""
    n_lines = lines.shape[1]
    shares, start = np.zeros((2, n_lines), np.float64), np.int64(0)
    for line in range(n_lines):
        stop = lines[ENDS, line]
        if lines[NUMBERS, line]:
            shares[0, line] = round8(lines[NUMBERS, line] / lines[CHARS, line])
        if lines[UPPER_CASE, line]:
            shares[1, line] = round8(lines[UPPER_CASE, line] / (stop - start))
        start = stop
    return shares


@compiled
def compute_word_scores(
    folded: Bytes,
    seed: np.uint64,
    bits: UInt16s,
    bad_words: Phrases,
    scores: Floats,
    lines: Int64s,
) -> None:
    """Compute only the scores of normalized words. They are written into arrays that the caller
    makes: returning arrays to Python takes longer.

    Args:
        folded: as of `compute_scores`, as the next three.
        seed: see there.
        bits: see there.
        bad_words: see there.
        scores: float64[22], filled; NaN for all other scores.
        lines: int64[8, lines], zeros; the rows about normalized words are filled.
    """
    words = scan_words(folded, bits, seed, bad_words.words, lines)
    score_words(words, seed, bad_words, scores)


@compiled
def score_words(words: NumberedWords, seed: np.uint64, bad_words: Phrases, scores: Floats) -> None:
    """Fill the scores of words that are numbered; see `compute_word_scores`."""
    scores[:], n_words = nan, words.numbers.size
    before = np.zeros(n_words + 1, np.int32)
    n_chars = 0
    for word in range(n_words):
        n_chars += words.lengths[words.numbers[word]]
        before[word + 1] = n_chars
    grams = np.zeros((_LONGEST + 1, 4), np.int64)
    count_grams(words.numbers, words.counts, before, seed, grams)
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
    scores[21] = _count_listed(words.numbers, words.listed, bad_words)
    _round(scores)


@compiled
def add_raw_scores(
    data: Bytes,
    seed: np.uint64,
    bits: UInt16s,
    stop_words: WordSet,
    scores: Floats,
    lines: Int64s,
) -> None:
    """Fill the other scores and rows; arguments as of `compute_scores`."""
    raw, n_lines = scan_raw(data, bits, seed, stop_words, lines), lines.shape[1]
    n_chars = lines[ENDS, n_lines - 1] if n_lines else 0
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
    for start in range(len(numbers)):
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
