"""When documents are the same: 128-bit keys of text, digest and address, and keys of bands.

======  ============================================================================================
digest  the digest that the crawl published, without its ``sha1:``
text    the normalized words in their order. ASCII punctuation, case, white space and the
        composition of accents make no difference. A text without words has no key, so it duplicates
        nothing.
url     the address as browsers read it (WHATWG: lower-case host, no default port, no ``..``),
        without its fragment. Scheme, ``www.``, trailing slash and query make a difference.
band    a band of a MinHash signature: 48 bits of all its rows and 16 of its first row
======  ============================================================================================

A key is a pair of 64-bit numbers of BLAKE2b; two of 10¹² documents share one by chance with
probability 10⁻¹⁵.
"""

import hashlib
import struct
from typing import Final

import can_ada
import numpy as np
from numpy.typing import NDArray

from lc_assets.text.duplicates.shingles import grams_of
from lc_assets.text.hashing import GOLDEN, mix64

Key = tuple[int, int]
Keys = NDArray[np.uint64]

ROW_BITS: Final = 16
"""Lowest bits of a band's key: they depend on the band's first row alone."""

_TWO: Final = struct.Struct("<QQ")


def text_key(text: str) -> Key | None:
    """Key of a text's normalized words; None when it has none.

    >>> text_key("Don't  STOP!") == text_key("dont stop"), text_key("?!")
    (True, None)
    """
    words, n_words = grams_of(text, 1)
    return content_key(words.tobytes()) if n_words else None


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


def band_keys(signatures: NDArray[np.uint32]) -> Keys:
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
    keys: Keys = (whole & ~np.uint64((1 << ROW_BITS) - 1)) | (first >> np.uint64(64 - ROW_BITS))
    return keys


def content_key(content: bytes) -> Key:
    """Key of some bytes."""
    high, low = _TWO.unpack(hashlib.blake2b(content, digest_size=_TWO.size).digest())
    return int(high), int(low)
