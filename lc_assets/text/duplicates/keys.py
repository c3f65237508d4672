"""When documents are the same: 128-bit keys of text, digest and address, and keys of bands.

======  ============================================================================================
digest  the digest that the crawl published, without its ``sha1:``
text    the normalized words in their order. ASCII punctuation, case, white space and the composition
        of accents make no difference. A text without words has no key, so it duplicates nothing.
url     the address as browsers read it (WHATWG: lower-case host, no default port, no ``..``),
        without its fragment. Scheme, ``www.``, trailing slash and query make a difference.
band    a band of a MinHash signature: 48 bits of all its rows and 16 of its first row
======  ============================================================================================

A key is a pair of 64-bit numbers of BLAKE2b; two of 10¹² documents share one by chance with
probability 10⁻¹⁵.

`Preference` says which of several equal or similar documents is kept.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import can_ada
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.text.duplicates.shingles import grams_of
from lc_assets.text.hashing import GOLDEN, mix64

Key = tuple[int, int]
Keys = NDArray[np.uint64]

ROW_BITS: Final = 16
"""Lowest bits of a band's key: they depend on the band's first row alone."""

_TWO: Final = struct.Struct("<QQ")


def text_key(text: str) -> Key | None:
    """Key of a text's normalized words; None when it has none.

    >>> text_key("Don't  STOP!") == text_key("dont stop"), text_key("dont stop") == text_key("stop dont"), text_key("?!")
    (True, False, None)
    """
    words, n_words = grams_of(text, 1)
    return _key(words.tobytes()) if n_words else None


def digest_key(digest: str) -> Key | None:
    """Key of a published digest; None when it is empty.

    >>> digest_key("sha1:ABC") == digest_key("ABC"), digest_key("sha1:")
    (True, None)
    """
    bare = digest.strip().removeprefix("sha1:")
    return _key(bare.encode("utf-8", "surrogatepass")) if bare else None


def url_key(url: str) -> Key | None:
    """Key of an address; None when it is not one.

    >>> url_key("HTTP://Example.org:80/a/../b#part") == url_key("http://example.org/b"), url_key("no address")
    (True, None)
    """
    canonical = canonical_url(url)
    return None if canonical is None else _key(canonical.encode("utf-8", "surrogatepass"))


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
    >>> bool(keys[0, 0] == keys[1, 0]), bool(keys[0, 1] == keys[1, 1]), bool(keys[0, 0] == keys[0, 1])
    (False, True, False)
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


def _key(content: bytes) -> Key:
    high, low = _TWO.unpack(hashlib.blake2b(content, digest_size=_TWO.size).digest())
    return int(high), int(low)


ORDERS: Final = ("newest", "oldest", "longest", "best_perplexity")
ASCENDING: Final = ("oldest", "best_perplexity")
SOURCE: Final = "source="


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a preference can compare.

    Attributes:
        id: the document's.
        number: its index among all documents, for documents that share an id.
        source: name of the folder or file it came in.
        date: ISO 8601; empty when not known.
        n_chars: length of the text.
        perplexity: None when not known.
    """

    id: str
    number: int
    source: str = ""
    date: str = ""
    n_chars: int = 0
    perplexity: float | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of several documents is kept: the first key in which they differ decides, the id
    last.

    Attributes:
        keys: of `ORDERS`, or ``source=NAME`` (documents from there are kept). Documents of unknown
            date or perplexity come after the others.
    """

    keys: tuple[str, ...] = ("newest",)

    def __post_init__(self) -> None:
        for key in self.keys:
            if key not in ORDERS and not (key.startswith(SOURCE) and key != SOURCE):
                raise BadInput(
                    f"no preference {key!r}; there are {', '.join(ORDERS)} and {SOURCE}NAME, "
                    "in any order, separated by commas"
                )

    @classmethod
    def parse(cls, words: str) -> Self:
        """Read ``newest,longest``.

        >>> Preference.parse("source=books, newest").keys
        ('source=books', 'newest')

        Raises:
            BadInput: when a key is not known.
        """
        return cls(tuple(word.strip() for word in words.split(",") if word.strip()))

    def best(self, candidates: Iterable[Candidate]) -> Candidate:
        """The document that is kept.

        >>> old, new = Candidate(id="b", number=0, date="2014"), Candidate(id="a", number=1, date="2023")
        >>> Preference(("oldest",)).best([new, old]).id
        'b'
        """
        order = sorted(candidates, key=lambda candidate: (candidate.id, candidate.number))
        for key in reversed(self.keys):
            order.sort(key=partial(_value, key), reverse=key not in ASCENDING)
        return order[0]

    def why(self, kept: Candidate, other: Candidate) -> str:
        """Why ``kept`` is kept rather than ``other``.

        >>> Preference(("newest",)).why(Candidate(id="a", number=0, date="2023"), Candidate(id="b", number=1, date="2014"))
        'newer: 2023 rather than 2014'
        """
        for key in self.keys:
            if _value(key, kept) != _value(key, other):
                return _words(key, kept, other)
        return "first by id"


def _value(key: str, candidate: Candidate) -> Any:
    """What a key compares: the greatest is kept, or the least for a key in `ASCENDING`."""
    if key == "newest":
        return candidate.date
    if key == "oldest":
        return (candidate.date == "", candidate.date)
    if key == "longest":
        return candidate.n_chars
    if key == "best_perplexity":
        return (candidate.perplexity is None, candidate.perplexity or 0.0)
    return candidate.source == key.removeprefix(SOURCE)


def _words(key: str, kept: Candidate, other: Candidate) -> str:
    if key in {"newest", "oldest"}:
        return (
            f"{'newer' if key == 'newest' else 'older'}: {kept.date} rather than "
            f"{other.date or 'no date'}"
        )
    if key == "longest":
        return f"longer: {kept.n_chars} rather than {other.n_chars} characters"
    if key == "best_perplexity":
        return (
            f"better perplexity: {kept.perplexity} rather than "
            f"{'none' if other.perplexity is None else other.perplexity}"
        )
    return f"from {key.removeprefix(SOURCE)}"
