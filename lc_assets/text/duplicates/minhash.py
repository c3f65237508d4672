"""MinHash signatures: 128 numbers that two documents share as often as their 13-grams overlap.

========  ==========================================================================================
`RPV2`    RedPajama-V2's, bit for bit: SHA-1 of each 13-gram of normalized words, permutations
          modulo 2⁶¹ - 1
`FAST`    the same words and bands, this package's own hash (`lc_assets.text.duplicates.keys`),
          permutations modulo 2³²; `fast_scheme` is the same of other shingles
========  ==========================================================================================

The share of equal numbers estimates the Jaccard index J with a standard error of √(J (1 - J) /
128): at most 0.044, and 0.035 at 0.8. Signatures of different schemes cannot be compared, so a
scheme's label is stored with them.

A band is some numbers of the signature, each as four bytes, big-endian. Two documents that share a
band are candidates. RedPajama-V2 stores four sets of bands, each made for one similarity; numbers
that fill no band are left out.

Source: ``app/src/dedupe/minhash.py`` and ``dedupe/utils.py`` of togethercomputer/RedPajama-Data.
    Its permutations come from ``np.random.RandomState(42)``, a stream that NumPy has frozen. It
    fails on lone surrogates; here they are hashed as three bytes each.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lc_assets.arrays import Array, Booleans, Bytes, Int64s, UInt32s, UInt64s
from lc_assets.compiling import compiled, inlined
from lc_assets.records import distinct, frozen
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import (
    PUBLISHED_SHINGLES,
    SHINGLE_WORDS,
    Shingles,
    shingles_each,
)
from lc_assets.text.duplicates.sha1 import digest_grams
from lc_assets.text.folding import normalized_utf8
from lc_assets.text.hashing import GOLDEN, mix64, whole
from lc_assets.text.texts import parts

Signature = UInt32s

N_PERMUTATIONS = 128
_MODULUS = (1 << 61) - 1


@frozen
class Bands:
    """One way to cut a signature into bands.

    Attributes:
        similarity: at which two documents share a band more often than not.
        n_bands: number of bands.
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

    @property
    def n_numbers(self) -> int:
        """Numbers of all bands."""
        return self.n_bands * self.n_rows


BANDS = (Bands(1.0, 1, 128), Bands(0.9, 5, 25), Bands(0.8, 9, 13), Bands(0.7, 14, 9))


@distinct
class MinHashScheme:
    """How signatures are made.

    Attributes:
        label: name and version, as stored with signatures; the version is raised when the same text
            would get another signature.
        shingles: of which the signature is; of RedPajama-V2's scheme always 13 words.
        factors: ``(128,)``, of the permutations.
        terms: ``(128,)``, of the permutations.
    """

    label: str
    shingles: Shingles
    factors: Array
    terms: Array


def signature(text: str | bytes, scheme: MinHashScheme) -> Signature | None:
    """The signature of a text, or of its UTF-8, ``(128,)`` uint32; None when it is shorter than a
    shingle.

    >>> text = "one two three four five six seven eight nine ten eleven twelve"
    >>> signature(text, RPV2) is None, signature(f"{text} thirteen", RPV2)[:2].tolist()
    (True, [1946175548, 3164831273])
    """
    normalized = normalized_utf8(text)
    ((numbers,), (is_signed,)) = signatures_each(normalized, np.array([len(normalized)]), scheme)
    return numbers if is_signed else None


def signatures_each(
    data: Bytes, ends: Int64s, scheme: MinHashScheme, hashes: tuple[Hashes, Int64s] | None = None
) -> tuple[UInt32s, Booleans]:
    """The signatures of some texts, and which have one: a text that is shorter than a shingle has
    none.

    Args:
        data: the normalized texts, one behind the other.
        ends: after the last byte of each, int64.
        scheme: how they are signed.
        hashes: of their shingles, as `shingles_each` gives them, where they are known; `RPV2` has
            its own.

    Returns:
        ``(texts, 128)`` uint32, of any numbers where there is none; ``(texts,)``.
    """
    numbers = np.empty((len(ends), N_PERMUTATIONS), np.uint32)
    if scheme is not RPV2:
        found, gram_ends = hashes or shingles_each(data, ends, scheme.shingles)
        _multiply_minima(found, gram_ends, scheme.factors, scheme.terms, numbers)
    elif digest_grams.is_interpreted:
        sets = [_rpv2_digests(text) for text in parts(data, ends)]
        gram_ends = np.cumsum(list(map(len, sets)))
        _minima_in_numpy(sets, numbers)
    else:
        room, gram_ends = np.empty(len(data) // 2 + len(ends) + 1, np.uint32), np.empty_like(ends)
        digests = room[: digest_grams(data, ends, SHINGLE_WORDS, room, gram_ends)]
        _prime_minima(digests, gram_ends, scheme.factors, scheme.terms, numbers)
    return numbers, np.diff(gram_ends, prepend=0) > 0


def _rpv2() -> MinHashScheme:
    draw = np.random.RandomState(42)
    ranges = [(1, _MODULUS), (0, _MODULUS)] * N_PERMUTATIONS
    draws = np.array([draw.randint(*bounds, dtype=np.uint64) for bounds in ranges], np.uint64)
    return MinHashScheme("rpv2/1", PUBLISHED_SHINGLES, draws[::2].copy(), draws[1::2].copy())


def _fast() -> MinHashScheme:
    """The scheme whose permutations are draws of SplitMix64, seed 0: the upper half of a draw, made
    odd, is the factor, the lower half the term.
    """
    draws = mix64(np.arange(1, N_PERMUTATIONS + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    factors = (draws >> np.uint64(32) | np.uint64(1)).astype(np.uint32)
    return MinHashScheme("lc-fast/1", PUBLISHED_SHINGLES, factors, draws.astype(np.uint32))


RPV2 = _rpv2()
"""RedPajama-V2's scheme; a published file without a label holds it."""
FAST = _fast()
"""This package's own."""


@lru_cache(maxsize=8)
def fast_scheme(shingles: Shingles) -> MinHashScheme:
    """This package's own scheme for other shingles.

    >>> fast_scheme(Shingles(5)).label, fast_scheme(Shingles()) is FAST
    ('lc-fast/1 of 5 words', True)
    """
    if shingles == FAST.shingles:
        return FAST
    label = f"{FAST.label} of {shingles.size} {shingles.of}"
    return MinHashScheme(label, shingles, FAST.factors, FAST.terms)


_PRIME = np.uint64(_MODULUS)
_1, _8, _32, _61 = map(np.uint64, (1, 8, 32, 61))
_HIGHEST = np.uint32(0xFFFFFFFF)
_AT_ONCE = 1 << 11
"""Hashes that go through all permutations while a first-level cache has them."""
_FEW = 64
"""Hashes that are looked at exactly where one of them may be less than all before."""
_u32 = np.uint32


@compiled
def _prime_minima(
    hashes: UInt32s, ends: Int64s, factors: UInt64s, terms: UInt64s, out: UInt32s
) -> None:
    """For each set and permutation the minimum of ``((hash · factor + term) mod 2⁶⁴ mod 2⁶¹ - 1)
    mod 2³²``.

    That is 0 to 8 more than ``hash · factor + term``, mod 2³², which takes a fourth of the time.
    Where it shows that none of a few hashes can be less than those before, no more is asked.

    Args:
        hashes: of all sets.
        ends: after the last hash of each set.
        factors: ``(p,)``.
        terms: ``(p,)``.
        out: ``(sets, p)``; filled with 2³² - 1 where there are no hashes.
    """
    few, wide = np.empty(_FEW, np.uint32), np.empty(_FEW, np.uint64)
    low_factors, low_terms = factors.astype(np.uint32), (terms + _8).astype(np.uint32)
    begin, out[:] = 0, _HIGHEST
    for at in range(len(ends)):
        while begin < ends[at]:
            n_few = min(_FEW, ends[at] - begin)
            few[:], few[:n_few] = hashes[begin], hashes[begin : begin + n_few]
            wide[:] = few
            for i in range(len(factors)):
                least = _least_product(few, low_factors[i], low_terms[i], _HIGHEST)
                if whole(least) <= whole(out[at, i]) + 8:
                    out[at, i] = _least_residue(wide, factors[i], terms[i], out[at, i])
            begin += n_few


@inlined
def _least_residue(
    hashes: UInt64s, factor: np.uint64, term: np.uint64, least: np.uint32
) -> np.uint32:
    """The least of a number and of what `_prime_minima` makes of some hashes."""
    for value in hashes:
        product = value * factor + term
        folded = (product & _PRIME) + (product >> _61)
        # Subtracting 2⁶¹ - 1 adds one to the lower 32 bits, all that is needed.
        least = min(least, _u32(folded + ((folded + _1) >> _61)))
    return least


@inlined
def _least_product(
    hashes: UInt32s, factor: np.uint32, term: np.uint32, least: np.uint32
) -> np.uint32:
    """The least of a number and of what `_multiply_minima` makes of some hashes."""
    for value in hashes:
        number = _u32(value * factor + term)
        # Vectorized; min, of 64 bits, is slower.
        least = number if number < least else least
    return least


@compiled
def _multiply_minima(
    hashes: UInt64s, ends: Int64s, factors: UInt32s, terms: UInt32s, out: UInt32s
) -> None:
    """For each set and permutation the minimum of ``(hash's upper half · factor + term) mod 2³²``.

    Args:
        hashes: of all sets.
        ends: after the last hash of each set.
        factors: ``(p,)``, odd.
        terms: ``(p,)``.
        out: ``(sets, p)``; filled with 2³² - 1 where there are no hashes.
    """
    begin, out[:] = 0, _HIGHEST
    for at in range(len(ends)):
        while begin < ends[at]:
            end = min(begin + _AT_ONCE, ends[at])
            upper = (hashes[begin:end] >> _32).astype(np.uint32)
            for i in range(len(factors)):
                out[at, i] = _least_product(upper, factors[i], terms[i], out[at, i])
            begin = end


def _rpv2_digests(normalized: Bytes) -> UInt32s:
    """What `digest_grams` finds in a text, without kernels, for small inputs."""
    words = bytes(normalized).split(b" ")
    grams = (words[i : i + SHINGLE_WORDS] for i in range(len(words) - SHINGLE_WORDS + 1))
    starts = b"".join(hashlib.sha1(b" ".join(gram)).digest()[:4] for gram in grams)  # noqa: S324
    return np.frombuffer(starts, "<u4")


def _minima_in_numpy(digests: Sequence[UInt32s], out: UInt32s) -> None:
    """What `_prime_minima` finds for some sets."""
    for numbers, found in zip(out, digests, strict=True):
        product = found.astype(np.uint64)[:, None] * RPV2.factors + RPV2.terms
        folded = (product & _PRIME) + (product >> _61)
        reduced = (folded + ((folded + _1) >> _61)).astype(np.uint32)
        numbers[:] = reduced.min(axis=0, initial=_HIGHEST)
