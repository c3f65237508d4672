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

A key is a pair of 64-bit numbers of BLAKE2b, for a text of SHA-256, which processors have
instructions for; two of 10¹² documents share one by chance with probability 10⁻¹⁵.

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
from typing import Literal

import can_ada
import numpy as np

from lc_assets.arrays import Booleans, Bytes, Int32s, Int64s, UInt32s, UInt64s
from lc_assets.records import frozen
from lc_assets.text.duplicates.grams import Hashes, gram_hashes, grams_of_each, words_of_each
from lc_assets.text.folding import normalized_utf8
from lc_assets.text.hashing import GOLDEN, code_points, mix64
from lc_assets.text.texts import parts

Key = tuple[int, int]

SHINGLE_WORDS = 13
"""Words of a shingle in RedPajama-V2's MinHash."""

TERM_BITS = 20


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
    normalized = normalized_utf8(text)
    units, _ = units_each(normalized, np.array([len(normalized)]), of)
    return units[: gram_hashes(units, n)], len(units)


def units_each(
    data: Bytes, ends: Int64s, of: Literal["words", "characters"]
) -> tuple[Hashes, Int64s]:
    """Hashes of the words or characters of some texts, in their order.

    Args:
        data: the normalized texts, one behind the other.
        ends: after the last byte of each, int64.
        of: which of the two.

    Returns:
        The hashes, and after the last of each text, int64.
    """
    if of == "characters":
        texts = [bytes(text).decode("utf-8", "surrogatepass") for text in parts(data, ends)]
        hashes = mix64(code_points("".join(texts)).astype(np.uint64))
        return hashes, np.cumsum([len(text) for text in texts], dtype=np.int64)
    hashes, word_ends = np.empty(len(data) // 2 + len(ends) + 1, np.uint64), np.empty_like(ends)
    return hashes[: words_of_each(data, ends, hashes, word_ends)], word_ends


def shingles_each(data: Bytes, ends: Int64s, shingles: Shingles) -> tuple[Hashes, Int64s]:
    """Hashes of the shingles of some texts in their order, repeats included; none of a text that
    has fewer words or characters than one.

    Args:
        data: as for `units_each`, as is the next.
        ends: see there.
        shingles: what they are.

    Returns:
        The hashes, and after the last of each text, int64.
    """
    units, unit_ends = units_each(data, ends, shingles.of)
    run_ends = np.empty_like(unit_ends)
    return units[: grams_of_each(units, unit_ends, shingles.size, run_ends)], run_ends


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
    normalized = normalized_utf8(text)
    (((high, low),), (is_keyed,)) = text_keys(normalized, np.array([len(normalized)]))
    return (int(high), int(low)) if is_keyed else None


def text_keys(data: Bytes, ends: Int64s) -> tuple[UInt64s, Booleans]:
    """The `text_key` of each of some texts, given as for `units_each`, and which have one.

    Returns:
        ``(texts, 2)`` uint64, of any numbers where there is none; ``(texts,)``.
    """
    digests = b"".join(hashlib.sha256(own.data).digest() for own in parts(data, ends))
    keys = np.frombuffer(digests, "<u8").reshape(-1, 4)[:, :2]
    return keys.astype(np.uint64, copy=False), np.diff(ends, prepend=0) > 0


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
