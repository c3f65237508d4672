"""A document as the set of its shingles: n-grams of normalized words, each a 64-bit number.

Two documents are as similar as their sets' Jaccard index. Here: the sets and the index, exactly.
Not here: finding the pairs that are worth comparing (`lc_assets.text.minhash`).

The hash is this package's own, the same on every machine and in every process::

    word   SplitMix64's finisher of FNV-1a, 64 bits, of the word's UTF-8 (lone surrogates in three bytes)
    n-gram the same finisher of (…(w₁·B + w₂)·B + …) + wₙ modulo 2⁶⁴, with B = 0x9E3779B97F4A7C15

Among a million different n-grams the chance that any two share a number is 3 in 10⁸.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput
from lc_assets.text.folded import folded_into_room
from lc_assets.text.words import normalize

Hashes = NDArray[np.uint64]

SHINGLE_WORDS = 13
"""Words of a shingle in RedPajama-V2's MinHash."""

_MASK = (1 << 64) - 1
_BASE = 0x9E3779B97F4A7C15


def shingle_hashes(text: str, n: int = SHINGLE_WORDS) -> Hashes:
    """The set of ``n``-grams of a text's normalized words.

    A text of fewer than ``n`` words is one shingle of all its words; a text without words has none.

    Args:
        text: the raw text.
        n: words of a shingle.

    Returns:
        ``(k,)`` uint64, ascending, without repeats.

    Raises:
        BadInput: when ``n`` is below one.

    >>> len(shingle_hashes("one two three two three", n=2)), len(shingle_hashes("One!", n=2)), len(shingle_hashes("?!"))
    (3, 1, 0)
    """
    if n < 1:
        raise BadInput(f"a shingle of {n} words: wanted at least one")
    grams = np.sort(
        grams_of(text, n)[0]
    )  # twice as fast as np.unique: numpy sorts 64-bit numbers by vectors
    is_new = np.ones(len(grams), dtype=np.bool_)
    is_new[1:] = grams[1:] != grams[:-1]
    return grams[is_new]


def grams_of(text: str, n: int) -> tuple[Hashes, int]:
    """Hashes of all ``n``-grams in the order of the text, repeats included; and how many words
    there are.
    """
    if not COMPILED:
        words = normalize(text).split()
        return plain_grams(words, n), len(words)
    # Numba takes half a second to import.
    from lc_assets.text.kernels.shingling import gram_hashes, word_hashes  # noqa: PLC0415

    folded, n_bytes = folded_into_room(text)
    hashes = np.empty(n_bytes // 2 + 1, dtype=np.uint64)
    n_words = word_hashes(folded, n_bytes, hashes)
    out = np.empty(n_words, dtype=np.uint64)
    return out[: gram_hashes(hashes[:n_words], n, out)], n_words


def jaccard(left: Hashes, right: Hashes) -> float:
    """Size of the intersection over size of the union of two sets; two empty sets are equal.

    >>> jaccard(shingle_hashes("a b c", n=2), shingle_hashes("a b d", n=2))
    0.3333333333333333

    Args:
        left: ascending, without repeats, as `shingle_hashes` gives it.
        right: the same.
    """
    shared = _n_shared(left, right)
    union = len(left) + len(right) - shared
    return shared / union if union else 1.0


def _n_shared(left: Hashes, right: Hashes) -> int:
    if not COMPILED:
        return len(np.intersect1d(left, right, assume_unique=True))
    from lc_assets.text.kernels.shingling import n_shared  # noqa: PLC0415

    return n_shared(left, right)


def plain_grams(words: Sequence[str], n: int) -> Hashes:
    """The plain twin of the kernels: hashes of all ``n``-grams of normalized words, in order."""
    hashes = [word_hash(word) for word in words]
    length = min(n, len(hashes))
    if not length:
        return np.empty(0, dtype=np.uint64)
    return np.array(
        [_gram_hash(hashes[at : at + length]) for at in range(len(hashes) - length + 1)],
        dtype=np.uint64,
    )


def word_hash(word: str) -> int:
    """Hash one word.

    >>> hex(word_hash("the"))
    '0x901962260b6a34d5'
    """
    state = 0xCBF29CE484222325
    for byte in word.encode("utf-8", "surrogatepass"):
        state = (state ^ byte) * 0x100000001B3 & _MASK
    return mixed(state)


def _gram_hash(words: Sequence[int]) -> int:
    rolling = 0
    for word in words:
        rolling = (rolling * _BASE + word) & _MASK
    return mixed(rolling)


def mixed(value: int) -> int:
    """SplitMix64's finisher."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)
