"""Hashing words and n-grams of words of normalized text.

Here: the compiled loops. Their plain twins, and what the hash is, are in `lc_assets.text.shingles`.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

_SPACE = np.uint8(32)
_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_BASE = np.uint64(0x9E3779B97F4A7C15)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def mixed(value: np.uint64) -> np.uint64:
    """SplitMix64's finisher: every bit of the value moves every bit of the result."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@compiled
def word_hashes(text: NDArray[np.uint8], n_bytes: int, out: NDArray[np.uint64]) -> int:
    """Hash each word of the first ``n_bytes`` of normalized text; returns how many there are.

    Args:
        text: UTF-8, words apart by one space, none at the ends.
        n_bytes: length of the text.
        out: room for one hash per two bytes, and one more.
    """
    if n_bytes == 0:
        return 0
    n_words = 0
    state = _OFFSET
    for at in range(n_bytes):
        byte = text[at]
        if byte == _SPACE:
            out[n_words] = mixed(state)
            n_words += 1
            state = _OFFSET
        else:
            state = (state ^ np.uint64(byte)) * _PRIME
    out[n_words] = mixed(state)
    return n_words + 1


@compiled
def gram_hashes(words: NDArray[np.uint64], n: int, out: NDArray[np.uint64]) -> int:
    """Hash each run of ``n`` words, of all words when there are fewer; returns how many runs there
    are.

    Args:
        words: ``(w,)`` hashes of the words.
        n: words of a run, at least 1.
        out: room for ``w`` hashes.
    """
    length = min(n, len(words))
    if length == 0:
        return 0
    top = np.uint64(1)
    for _ in range(length):
        top *= _BASE
    rolling = np.uint64(0)
    for at in range(length):
        rolling = rolling * _BASE + words[at]
    out[0] = mixed(rolling)
    for at in range(length, len(words)):
        rolling = rolling * _BASE + words[at] - words[at - length] * top
        out[at - length + 1] = mixed(rolling)
    return len(words) - length + 1


@compiled
def n_shared(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> int:
    """How many numbers are in both of two ascending arrays without repeats."""
    at = 0
    found = 0
    for number in left:
        while at < len(right) and right[at] < number:
            at += 1
        if at == len(right):
            break
        if right[at] == number:
            found += 1
    return found
