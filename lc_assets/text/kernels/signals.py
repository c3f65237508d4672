"""All signals of one text in one call: the passes put together, means taken, scores rounded."""

from math import log, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.raw_scan import (
    ALL_CAPS,
    ALPHABETIC,
    CURLY,
    ELLIPSIS_LINES,
    N_RAW,
    RAW_WORDS,
    SENTENCES,
    STOP_WORDS,
    SYMBOLS,
    count_lines,
    scan_raw,
)
from lc_assets.text.kernels.repeats import LONGEST, repetition
from lc_assets.text.kernels.rounding import round8
from lc_assets.text.kernels.word_scan import scan_words

N_SCORES: Final = 22
N_LINE_COUNTS: Final = 5
ENDS, TERMINAL, JAVASCRIPT, WORDS, BULLET = range(N_LINE_COUNTS)
NUMERIC, UPPERCASE = range(2)
REMEMBERED: Final = 64
"""Counts whose terms of the entropy are looked up; nearly all words occur less often."""


@compiled
def measure(
    codes: NDArray[np.uint32],
    word_codes: NDArray[np.uint32],
    seed: np.uint64,
    raw_flags: NDArray[np.uint16],
    word_flags: NDArray[np.uint16],
    folds: NDArray[np.uint32],
    expansions: NDArray[np.uint32],
    combining: NDArray[np.uint8],
    stop_slots: NDArray[np.int32],
    stop_hashes: NDArray[np.uint64],
    stop_places: NDArray[np.int64],
    stop_codes: NDArray[np.uint32],
    part_slots: NDArray[np.int32],
    part_hashes: NDArray[np.uint64],
    part_places: NDArray[np.int64],
    part_codes: NDArray[np.uint32],
    roots: NDArray[np.int32],
    edges: NDArray[np.int32],
    states: NDArray[np.int32],
) -> tuple[bool, NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Measure a text.

    Returns:
        Whether the words could be folded one character at a time (else call again with a folded
        text in ``word_codes``); scores of the document, in the order of
        `lc_assets.text.signal_names.TEXT_DOC_SIGNALS` and then the stop words' and the bad words',
        NaN for None; int64[5, lines] and float64[2, lines] of the lines, in the order above.
    """
    n_lines = count_lines(codes)
    scores = np.full(N_SCORES, nan)
    line_counts = np.zeros((N_LINE_COUNTS, n_lines), np.int64)
    line_shares = np.zeros((2, n_lines), np.float64)
    line_chars = np.zeros(n_lines, np.int64)
    line_numeric = np.zeros(n_lines, np.int64)
    done, n_words, numbers, n_distinct, counts, lengths, parts, n_lorem = scan_words(
        word_codes, word_flags, folds, expansions, combining, seed, part_slots, part_hashes, part_places, part_codes,
        line_counts[WORDS], line_counts[JAVASCRIPT], line_chars, line_numeric,
    )  # fmt: skip
    if not done:
        return False, scores, line_counts, line_shares
    raw = np.zeros(N_RAW, np.int64)
    upper = np.zeros(n_lines, np.int64)
    scan_raw(
        codes, raw_flags, seed, stop_slots, stop_hashes, stop_places, stop_codes,
        raw, line_counts[ENDS], line_counts[TERMINAL], line_counts[BULLET], upper,
    )  # fmt: skip
    start = 0
    for line in range(n_lines):
        stop = line_counts[ENDS, line]
        if line_numeric[line]:
            line_shares[NUMERIC, line] = round8(line_numeric[line] / line_chars[line])
        if upper[line]:
            line_shares[UPPERCASE, line] = round8(upper[line] / (stop - start))
        start = stop
    top = np.zeros(LONGEST + 1, np.int64)
    marked = np.zeros(LONGEST + 1, np.int64)
    n_chars = repetition(numbers, n_words, counts, lengths, seed, top, marked)
    chars = max(int(n_chars), 1)
    scores[0] = raw[CURLY] / max(codes.size, 1)
    scores[1] = n_lorem / max(int(n_chars) + n_words - 1, 1)
    scores[2] = marked[10] / chars
    for length in range(5, 10):
        scores[length - 2] = marked[length] / chars
    for length in range(2, 5):
        scores[length + 6] = top[length] / chars
    if raw[RAW_WORDS]:
        scores[11] = raw[ALL_CAPS] / raw[RAW_WORDS]
        scores[13] = 1 - raw[ALPHABETIC] / raw[RAW_WORDS]
        scores[17] = raw[SYMBOLS] / raw[RAW_WORDS]
    if n_lines:
        scores[12] = raw[ELLIPSIS_LINES] / n_lines
    if n_words:
        scores[14] = n_distinct / n_words
        scores[15] = n_chars / n_words
        scores[18] = entropy(counts, n_words)
    scores[16] = raw[SENTENCES]
    scores[19] = n_words
    scores[20] = raw[STOP_WORDS] / raw[RAW_WORDS] if n_words else 0.0
    scores[21] = count_listed(numbers, n_words, parts, roots, edges, states)
    for place in range(N_SCORES):
        if scores[place] == scores[place]:
            scores[place] = round8(scores[place])
    return True, scores, line_counts, line_shares


@compiled
def entropy(counts: NDArray[np.int64], n_words: int) -> float:
    """Entropy of words, terms added one by one in the order of first occurrence: the order shows in
    the eighth digit.
    """
    terms = np.empty(REMEMBERED, np.float64)
    for count in range(1, REMEMBERED):
        terms[count] = -count / n_words * log(count / n_words)
    total = 0.0
    for count in counts:
        total += terms[count] if count < REMEMBERED else -count / n_words * log(count / n_words)
    return total


@compiled
def count_listed(
    numbers: NDArray[np.int32],
    n_words: int,
    parts: NDArray[np.int32],
    roots: NDArray[np.int32],
    edges: NDArray[np.int32],
    states: NDArray[np.int32],
) -> int:
    """Phrases of a list that begin at any word: paths of a tree of the words' numbers in the list,
    from 1.

    Args:
        numbers: the text's words.
        n_words: how many of them.
        parts: of each distinct word its number in the list, or 0.
        roots: state after a first word, by its number; 0 for none.
        edges: int32[2, n], next words of all states, ascending within a state, and the states after
            them.
        states: int32[2, n + 1], where each state's edges begin, and whether a phrase ends there.
    """
    n_found = 0
    for at in range(n_words):
        part = parts[numbers[at]]
        state = roots[part]
        place = at
        while state:
            n_found += states[1, state]
            low, high = states[0, state], states[0, state + 1]
            place += 1
            if low == high or place == n_words:
                break
            part = parts[numbers[place]]
            while low < high:
                middle = (low + high) // 2
                if edges[0, middle] < part:
                    low = middle + 1
                else:
                    high = middle
            state = (
                edges[1, low]
                if part and low < states[0, state + 1] and edges[0, low] == part
                else 0
            )
    return n_found
