"""Hashes of the words of normalized texts, and of runs of words; see
`lc_assets.text.duplicates.keys`.
"""

from typing import Any

import numpy as np

from lc_assets.arrays import Bytes, Int64s, UInt64s
from lc_assets.compiling import compiled, inlined
from lc_assets.text.hashing import FNV_BASIS, FNV_PRIME, GOLDEN, mix64_kernel

Hashes = UInt64s

_SPACE = np.uint8(32)
_BASIS, _PRIME, _BASE = np.uint64(FNV_BASIS), np.uint64(FNV_PRIME), np.uint64(GOLDEN)


@compiled
def word_hashes(text: Bytes, out: Hashes) -> int:
    """Hash each word of normalized text; return how many there are.

    Args:
        text: UTF-8, words separated by one space, none at the ends.
        out: room for one hash per two bytes, and one more.
    """
    if len(text) == 0:
        return 0
    # Two halves side by side and without branches: each product needs the one before, and where
    # words end cannot be predicted.
    middle = len(text) // 2
    while middle < len(text) and text[middle] != _SPACE:
        middle += 1
    begin, second = middle + 1, out[(middle + 1) // 2 :]
    n_both = max(len(text) - begin, 0)
    n_words: Any = 0
    n_second: Any = 0
    state = other = _BASIS
    for i in range(n_both):
        out[np.uint64(n_words)], second[np.uint64(n_second)] = state, other
        one, two = text[np.uint64(i)], text[np.uint64(begin + i)]
        n_words += np.int64(one == _SPACE)
        n_second += np.int64(two == _SPACE)
        state, other = _hashed(state, one), _hashed(other, two)
    if n_both:
        second[n_second] = other
        n_second += 1
    for i in range(n_both, middle):
        out[n_words] = state
        n_words += np.int64(text[i] == _SPACE)
        state = _hashed(state, text[i])
    out[n_words] = state
    n_words += 1
    for i in range(n_words):
        out[i] = mix64_kernel(out[i])
    for i in range(n_second):
        out[n_words + i] = mix64_kernel(second[i])
    return int(n_words + n_second)


@inlined
def _hashed(state: Any, byte: Any) -> Any:
    """FNV-1a of a word and one more byte; of no word after a space."""
    return _BASIS if byte == _SPACE else (state ^ np.uint64(byte)) * _PRIME


@compiled
def gram_hashes(words: Hashes, n: int) -> int:
    """Hash each run of ``n`` words, or of all words when there are fewer, in place; return how many
    runs.

    Args:
        words: uint64[w], hashes of the words; then of the runs.
        n: words of a run, at least 1.
    """
    length = min(n, len(words))
    if length == 0:
        return 0
    top = np.uint64(1)
    for _ in range(length):
        top *= _BASE
    rolling = np.uint64(0)
    for i in range(length):
        rolling = rolling * _BASE + words[i]
    for i in range(length, len(words)):
        run = mix64_kernel(rolling)
        rolling = rolling * _BASE + words[i] - words[i - length] * top
        words[i - length] = run
    words[len(words) - length] = mix64_kernel(rolling)
    return len(words) - length + 1


@compiled
def words_of_each(data: Bytes, ends: Int64s, out: Hashes, out_ends: Int64s) -> int:
    """Hash each word of some texts; return how many there are.

    Args:
        data: the normalized texts, one behind the other.
        ends: after the last byte of each.
        out: room for one hash per two bytes, one per text, and one more.
        out_ends: gets the number of words of each text and of those before it.
    """
    begin = n_out = 0
    for text in range(len(ends)):
        n_out += word_hashes(data[begin : ends[text]], out[n_out:])
        begin, out_ends[text] = ends[text], n_out
    return n_out


@compiled
def grams_of_each(units: Hashes, ends: Int64s, n: int, out_ends: Int64s) -> int:
    """Hash each run of ``n`` units of some texts, in place; return how many runs. A text of fewer
    units has none.

    Args:
        units: uint64, hashes of the words or characters of all texts; then of the runs.
        ends: after the last unit of each text.
        n: units of a run, at least 1.
        out_ends: gets the number of runs of each text and of those before it.
    """
    begin = n_out = 0
    for text in range(len(ends)):
        own = units[begin : ends[text]]
        if len(own) >= n:
            n_own = gram_hashes(own, n)
            for at in range(n_own):
                units[n_out + at] = own[at]
            n_out += n_own
        begin, out_ends[text] = ends[text], n_out
    return n_out
