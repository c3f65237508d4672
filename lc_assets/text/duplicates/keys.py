"""When documents are equal or similar: shingles, and keys of text, digest, URL and bands.

A document is the set of its shingles, each a 64-bit number: n-grams of normalized words, or of the
characters of these words with a space between two. Two
documents are as similar as the Jaccard index of their sets. The hash is this package's own, the
same on every machine and in every process. Among a million different n-grams the chance that any
two share a number is 3 in 10⁸.

======  ============================================================================================
word    `mix64` of FNV-1a, 64 bits, of the word's UTF-8 (lone surrogates in three bytes)
char    `mix64` of its code point
n-gram  `mix64` of (…(w₁·B + w₂)·B + …) + wₙ modulo 2⁶⁴, with B = 0x9E3779B97F4A7C15
======  ============================================================================================

A key is a pair of 64-bit numbers of BLAKE2b; two of 10¹² documents share one by chance with
probability 10⁻¹⁵.

======  ============================================================================================
digest  the digest that the crawl published, without its ``sha1:``
text    the normalized words in their order. ASCII punctuation, case, white space and the
        composition of accents make no difference. A text without words has no key, so it duplicates
        nothing.
url     the URL as browsers read it (WHATWG: lower-case host, no default port, no ``..``), without
        its fragment. Scheme, ``www.``, trailing slash and query make a difference.
band    a band of a MinHash signature: 48 bits of all its rows and 16 of its first row
======  ============================================================================================
"""

import hashlib
import struct
from typing import Any, Literal

import can_ada
import numpy as np

from lc_assets.arrays import Bytes, Int32s, UInt32s, UInt64s
from lc_assets.compiling import compiled, inlined
from lc_assets.records import frozen
from lc_assets.text.folding import normalized_utf8
from lc_assets.text.hashing import FNV_BASIS, FNV_PRIME, GOLDEN, code_points, mix64, mix64_kernel

Hashes = UInt64s
Key = tuple[int, int]

SHINGLE_WORDS = 13
"""Words of a shingle in RedPajama-V2's MinHash."""

TERM_BITS = 20

_SPACE = np.uint8(32)
_BASIS, _PRIME, _BASE = np.uint64(FNV_BASIS), np.uint64(FNV_PRIME), np.uint64(GOLDEN)


@frozen
class Shingles:
    """What the shingles of documents are.

    Attributes:
        size: words or characters of a shingle.
        of: which of the two.
    """

    size: int = SHINGLE_WORDS
    of: Literal["words", "characters"] = "words"


PUBLISHED_SHINGLES = Shingles()
"""RedPajama-V2's."""

ROW_BITS = 16
"""Lowest bits of a band's key: they depend on the band's first row alone."""

_TWO = struct.Struct("<QQ")


def shingle_hashes(
    text: str | bytes, n: int = SHINGLE_WORDS, of: Literal["words", "characters"] = "words"
) -> Hashes:
    """The set of ``n``-grams of a text's normalized words or characters.

    A text of fewer than ``n`` of them is one shingle of all; a text without words has none.

    Args:
        text: the raw text, or its UTF-8.
        n: words or characters of a shingle.
        of: which of the two.

    Returns:
        ``(k,)`` uint64, ascending, without repeats.

    >>> [len(shingle_hashes(text, n=2)) for text in ("one two three two three", "One!", "?!")]
    [3, 1, 0]
    """
    return ascending(grams_of(text, n, of)[0])


def ascending(grams: Hashes) -> Hashes:
    """Hashes in ascending order, each once; twice as fast as np.unique: numpy sorts 64-bit numbers
    by vectors.
    """
    grams = np.sort(grams)
    is_new = np.ones(len(grams), np.bool_)
    np.not_equal(grams[1:], grams[:-1], out=is_new[1:])
    return grams[is_new]


def grams_of(
    text: str | bytes, n: int, of: Literal["words", "characters"] = "words"
) -> tuple[Hashes, int]:
    """Hashes of all ``n``-grams of words or characters in the order of a text, or of its UTF-8,
    repeats included; and the number of words or characters.
    """
    return _grams(_units(normalized_utf8(text), of), n)


def _units(normalized: Bytes, of: Literal["words", "characters"]) -> Hashes:
    """Hashes of the words or characters of a normalized text, in their order."""
    if of == "characters":
        characters = bytes(normalized).decode("utf-8", "surrogatepass")
        return mix64(code_points(characters).astype(np.uint64))
    hashes = np.empty(len(normalized) // 2 + 1, np.uint64)
    return hashes[: _word_hashes(normalized, hashes)]


def _grams(units: Hashes, n: int) -> tuple[Hashes, int]:
    """Hashes of runs of ``n`` units, in place, and how many units there were."""
    return units[: _gram_hashes(units, n)], len(units)


def shingled(text: str | bytes, shingles: Shingles) -> Hashes:
    """Hashes of a text's shingles, or of its UTF-8's, in their order, repeats included; none of a
    text that is shorter than a shingle.
    """
    return _shingled(_units(normalized_utf8(text), shingles.of), shingles)


def _shingled(units: Hashes, shingles: Shingles) -> Hashes:
    grams, n_units = _grams(units, shingles.size)
    return grams if n_units >= shingles.size else grams[:0]


def keyed_and_shingled(text: str | bytes, shingles: Shingles) -> tuple[Key | None, Hashes]:
    """`text_key` and `shingled` of a text, or of its UTF-8, which is normalized once."""
    normalized = normalized_utf8(text)
    words = _units(normalized, "words")
    units = words.copy() if shingles.of == "words" else _units(normalized, shingles.of)
    return _words_key(words), _shingled(units, shingles)


def jaccard(left: Hashes, right: Hashes) -> float:
    """Size of the intersection over size of the union of two sets; two empty sets are equal.

    >>> jaccard(shingle_hashes("a b c", n=2), shingle_hashes("a b d", n=2))
    0.3333333333333333

    Args:
        left: ascending, without repeats, as `shingle_hashes` gives it.
        right: the same.
    """
    shared = len(np.intersect1d(left, right, assume_unique=True))
    union = len(left) + len(right) - shared
    return shared / union if union else 1.0


def containment(left: Hashes, right: Hashes, longer: int) -> float:
    """Share of the shorter text's shingles that the other text has; see `jaccard`.

    Args:
        left: as `shingle_hashes` gives it.
        right: the same.
        longer: characters that ``left``'s text has more; where it is 0, the share is of the larger
            set.

    >>> containment(shingle_hashes("a b c", n=2), shingle_hashes("a b c d", n=2), -2)
    1.0
    """
    shared = len(np.intersect1d(left, right, assume_unique=True))
    sizes = len(left), len(right)
    return shared / ((sizes[longer > 0] if longer else max(sizes)) or 1)


def term_counts(text: str | bytes) -> tuple[Int32s, Int32s]:
    """The normalized words of a text, or of its UTF-8, as numbers, and how often each occurs.

    Returns:
        Terms, int32 below ``2**TERM_BITS``, ascending, without repeats: the lowest bits of a word's
        hash. Counts, int32, one per term.

    >>> terms, counts = term_counts("To be, or not to be")
    >>> len(terms), sorted(counts.tolist())
    (4, [1, 1, 2, 2])
    """
    hashes = (grams_of(text, 1)[0] & np.uint64((1 << TERM_BITS) - 1)).astype(np.int32)
    terms, counts = np.unique(hashes, return_counts=True)
    return terms, counts.astype(np.int32)


def text_key(text: str | bytes) -> Key | None:
    """Key of the normalized words of a text, or of its UTF-8; None when it has none.

    >>> text_key("Don't  STOP!") == text_key("dont stop"), text_key("?!")
    (True, None)
    """
    return _words_key(_units(normalized_utf8(text), "words"))


def _words_key(words: Hashes) -> Key | None:
    """Key of some words' hashes, which are overwritten."""
    return content_key(_grams(words, 1)[0].data) if len(words) else None


def digest_key(digest: str) -> Key | None:
    """Key of a published digest; None when it is empty.

    >>> digest_key("sha1:ABC") == digest_key("ABC"), digest_key("sha1:")
    (True, None)
    """
    bare = digest.strip().removeprefix("sha1:")
    return content_key(bare.encode("utf-8", "surrogatepass")) if bare else None


def url_key(url: str) -> Key | None:
    """Key of an address; None when it is not one.

    >>> url_key("HTTP://Example.org:80/a/../b#part") == url_key("http://example.org/b")
    True
    """
    canonical = canonical_url(url)
    return None if canonical is None else content_key(canonical.encode("utf-8", "surrogatepass"))


def canonical_url(url: str) -> str | None:
    """An address as browsers write it, without its fragment; None when it is not one.

    >>> canonical_url("https://EXAMPLE.org/%7Ea?b=1#top")
    'https://example.org/%7Ea?b=1'
    """
    try:
        url.encode("utf-8")
        parsed = can_ada.parse(url)
    except ValueError:  # not an address, or a lone surrogate, which no address can hold
        return None
    parsed.hash = ""
    return str(parsed.href)


def band_keys(signatures: UInt32s) -> Hashes:
    """Key of every band of some signatures, each band mixed with its number.

    Equal bands have equal keys. Different ones do with one pair in 2.8 × 10¹⁴, which makes one more
    candidate to compare.

    Args:
        signatures: ``(n, bands, rows)``.

    Returns:
        ``(n, bands)`` uint64.

    >>> keys = band_keys(np.array([[[1, 2], [1, 2]], [[1, 3], [1, 2]]], np.uint32))
    >>> (keys[0] == keys[1]).tolist(), bool(keys[0, 0] == keys[0, 1])
    ([False, True], False)
    """
    n_bands, step = signatures.shape[1], np.uint64(GOLDEN)
    whole = np.broadcast_to(
        mix64(np.arange(n_bands, dtype=np.uint64) + step), signatures.shape[:2]
    ).copy()
    for row in range(signatures.shape[2]):
        whole = mix64((whole ^ signatures[:, :, row]) + step)
    first = mix64(signatures[:, :, 0].astype(np.uint64) + step)
    keys: Hashes = (whole & ~np.uint64((1 << ROW_BITS) - 1)) | (first >> np.uint64(64 - ROW_BITS))
    return keys


def content_key(content: bytes | memoryview) -> Key:
    """Key of some bytes."""
    high, low = _TWO.unpack(hashlib.blake2b(content, digest_size=_TWO.size).digest())
    return int(high), int(low)


@compiled
def _word_hashes(text: Bytes, out: Hashes) -> int:
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
        out[n_words], second[n_second] = state, other
        n_words += np.int64(text[i] == _SPACE)
        n_second += np.int64(text[begin + i] == _SPACE)
        state, other = _hashed(state, text[i]), _hashed(other, text[begin + i])
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
def _gram_hashes(words: Hashes, n: int) -> int:
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
