"""MinHash signatures: 128 numbers that two documents share as often as their sets of 13-grams
overlap.

=======  =====================================================================================================
scheme   what it is
=======  =====================================================================================================
`RPV2`   RedPajama-V2's, bit for bit: SHA-1 of each 13-gram of normalized words, permutations modulo 2⁶¹ - 1
`FAST`   the same words and bands, this package's own hash (`lc_assets.text.shingles`), permutations modulo 2³²
=======  =====================================================================================================

The share of equal numbers estimates the Jaccard index J with a standard error of √(J (1 - J) /
128): at most 0.044, and 0.035 at 0.8. Signatures of different schemes say nothing about each other,
so a scheme's label is stored beside them.

A band is some numbers of the signature, each as four bytes, big-endian; two documents are
candidates where they share a band. RedPajama-V2 stores four sets of bands, each made for one
similarity; numbers that fill no band are left out.

Here: signatures and bands, with the plain twin of each. Not here: files
    (`lc_assets.formats.redpajama.minhash`), and
what follows from a shared band.

Source: ``app/src/dedupe/minhash.py`` and ``dedupe/utils.py`` of togethercomputer/RedPajama-Data.
    Its permutations come
from ``np.random.RandomState(42)``, a stream that NumPy has frozen. Where it fails, on lone
surrogates, these are hashed as three bytes each.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput
from lc_assets.text.folded import folded_into_room
from lc_assets.text.shingles import SHINGLE_WORDS, grams_of, mixed, plain_grams
from lc_assets.text.words import normalize

Signature = NDArray[np.uint32]

N_PERMUTATIONS: Final = 128
_PRIME: Final = (1 << 61) - 1
_LOW: Final = (1 << 32) - 1
_PLAIN_CHUNK: Final = 512


@dataclass(frozen=True, slots=True)
class Bands:
    """One way to cut signatures into bands.

    Attributes:
        similarity: two documents that are so similar share a band more often than not.
        n_bands: how many bands.
        n_rows: numbers of a band.
    """

    similarity: float
    n_bands: int
    n_rows: int

    @property
    def column(self) -> str:
        """Its column in RedPajama-V2's tables."""
        return f"signature_sim{self.similarity}"

    @property
    def n_bytes(self) -> int:
        """Bytes of one band."""
        return 4 * self.n_rows


BANDS: Final = (Bands(1.0, 1, 128), Bands(0.9, 5, 25), Bands(0.8, 9, 13), Bands(0.7, 14, 9))


@dataclass(frozen=True, slots=True, eq=False)
class MinHashScheme:
    """How signatures are made.

    Attributes:
        name: what people call it.
        version: raised when the same text would get another signature.
        factors: ``(128,)`` of the permutations.
        terms: ``(128,)`` of the permutations.
        compiled: the fast way: a text to its signature, or None when it has fewer than 13 words.
        plain: the twin: the same from the list of normalized words.
    """

    name: str
    version: int
    factors: NDArray[Any]
    terms: NDArray[Any]
    compiled: Callable[[str, "MinHashScheme"], Signature | None]
    plain: Callable[[Sequence[str], "MinHashScheme"], Signature]

    @property
    def label(self) -> str:
        """Name and version, as stored beside signatures."""
        return f"{self.name}/{self.version}"

    @property
    def checksum(self) -> str:
        """SHA-256 of the factors followed by the terms, in hex: another version of NumPy must not
        move them.
        """
        return hashlib.sha256(self.factors.tobytes() + self.terms.tobytes()).hexdigest()


def signature(text: str, scheme: MinHashScheme) -> Signature | None:
    """The signature of a text; None when it has fewer than 13 normalized words.

    >>> text = "one two three four five six seven eight nine ten eleven twelve"
    >>> signature(text, RPV2) is None, signature(f"{text} thirteen", RPV2)[:2].tolist()
    (True, [1946175548, 3164831273])

    Returns:
        ``(128,)`` uint32.
    """
    return scheme.compiled(text, scheme) if COMPILED else plain_signature(text, scheme)


def plain_signature(text: str, scheme: MinHashScheme) -> Signature | None:
    """The plain twin of `signature`: `hashlib`, Python and NumPy."""
    words = normalize(text).split()
    return scheme.plain(words, scheme) if len(words) >= SHINGLE_WORDS else None


def bands_of(numbers: Signature) -> dict[str, list[bytes]]:
    """Cut a signature into bands, by column.

    >>> bands = bands_of(np.arange(128, dtype=np.uint32))
    >>> [len(found) for found in bands.values()], bands["signature_sim0.7"][1].hex()[:16]
    ([1, 5, 9, 14], '000000090000000a')
    """
    content = numbers.astype(">u4").tobytes()
    return {
        bands.column: [
            content[start : start + bands.n_bytes]
            for start in range(0, bands.n_bands * bands.n_bytes, bands.n_bytes)
        ]
        for bands in BANDS
    }


def estimated_similarity(left: Signature, right: Signature) -> float:
    """Share of equal numbers of two signatures of one scheme: an estimate of the Jaccard index."""
    return float(np.mean(left == right))


def scheme_named(label: str) -> MinHashScheme:
    """A scheme by its label.

    Raises:
        BadInput: when there is none; names those that there are.

    >>> scheme_named("rpv2/1").name
    'rpv2'
    """
    if label not in SCHEMES:
        raise BadInput(f"{label!r} is no MinHash scheme; there are {', '.join(SCHEMES)}")
    return SCHEMES[label]


def _compiled_rpv2(text: str, scheme: MinHashScheme) -> Signature | None:
    # Numba takes half a second to import.
    from lc_assets.text.kernels.minima import prime_minima  # noqa: PLC0415
    from lc_assets.text.kernels.sha1 import window_digests  # noqa: PLC0415

    folded, n_bytes = folded_into_room(text)
    digests = np.empty(n_bytes // 2 + 1, dtype=np.uint32)
    n_grams = window_digests(folded, n_bytes, SHINGLE_WORDS, digests)
    return _filled(partial(prime_minima, digests[:n_grams]), scheme) if n_grams else None


def _compiled_fast(text: str, scheme: MinHashScheme) -> Signature | None:
    from lc_assets.text.kernels.minima import multiply_minima  # noqa: PLC0415

    grams, n_words = grams_of(text, SHINGLE_WORDS)
    return _filled(partial(multiply_minima, grams), scheme) if n_words >= SHINGLE_WORDS else None


def _filled(minima: Callable[..., None], scheme: MinHashScheme) -> Signature:
    numbers = np.empty(N_PERMUTATIONS, dtype=np.uint32)
    minima(scheme.factors, scheme.terms, numbers)
    return numbers


def _plain_rpv2(words: Sequence[str], scheme: MinHashScheme) -> Signature:
    grams = {
        " ".join(words[at : at + SHINGLE_WORDS]) for at in range(len(words) - SHINGLE_WORDS + 1)
    }
    hashes = np.array([_first_four_bytes(gram) for gram in sorted(grams)], dtype=np.uint64)
    return _plain_minima(hashes, lambda some: _permuted(some, scheme) % np.uint64(_PRIME))


def _first_four_bytes(gram: str) -> int:
    digest = hashlib.sha1(gram.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "little")


def _plain_fast(words: Sequence[str], scheme: MinHashScheme) -> Signature:
    return _plain_minima(
        plain_grams(words, SHINGLE_WORDS) >> np.uint64(32), lambda some: _permuted(some, scheme)
    )


def _permuted(hashes: NDArray[np.uint64], scheme: MinHashScheme) -> NDArray[np.uint64]:
    permuted: NDArray[np.uint64] = (
        hashes * scheme.factors[:, np.newaxis] + scheme.terms[:, np.newaxis]
    )
    return permuted


def _plain_minima(
    hashes: NDArray[np.uint64], permuted: Callable[[NDArray[np.uint64]], NDArray[np.uint64]]
) -> Signature:
    chunks = (hashes[start : start + _PLAIN_CHUNK] for start in range(0, len(hashes), _PLAIN_CHUNK))
    minima = [(permuted(chunk) & np.uint64(_LOW)).min(axis=1) for chunk in chunks]
    least: Signature = np.array(minima, dtype=np.uint64).min(axis=0).astype(np.uint32)
    return least


def _rpv2() -> MinHashScheme:
    draw = np.random.RandomState(42)
    pairs = [
        (draw.randint(1, _PRIME, dtype=np.uint64), draw.randint(0, _PRIME, dtype=np.uint64))
        for _ in range(N_PERMUTATIONS)
    ]
    factors, terms = np.array(pairs, dtype=np.uint64).T.copy()
    return MinHashScheme("rpv2", 1, factors, terms, _compiled_rpv2, _plain_rpv2)


def _fast() -> MinHashScheme:
    """Factor and term of a permutation: the upper and the lower half of one draw of SplitMix64,
    seed 0; a factor must be odd.
    """
    draws = [
        mixed((number + 1) * 0x9E3779B97F4A7C15 & ((1 << 64) - 1))
        for number in range(N_PERMUTATIONS)
    ]
    factors, terms = (
        np.array(half, dtype=np.uint32)
        for half in zip(*((draw >> 32 | 1, draw & _LOW) for draw in draws), strict=True)
    )
    return MinHashScheme("lc-fast", 1, factors, terms, _compiled_fast, _plain_fast)


RPV2: Final = _rpv2()
"""RedPajama-V2's scheme; a published file without a label holds it."""
FAST: Final = _fast()
"""This package's own."""
SCHEMES: Final = MappingProxyType({scheme.label: scheme for scheme in (RPV2, FAST)})
"""Every scheme, by label."""
