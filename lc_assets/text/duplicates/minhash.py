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
from functools import lru_cache

import numpy as np

from lc_assets.arrays import Array, Bytes, UInt32s, UInt64s
from lc_assets.compiling import compiled, inlined
from lc_assets.records import distinct, frozen
from lc_assets.text.duplicates.keys import PUBLISHED_SHINGLES, SHINGLE_WORDS, Shingles, grams_of
from lc_assets.text.hashing import GOLDEN, mix64
from lc_assets.text.words import normalized_utf8

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


def signature(text: str, scheme: MinHashScheme) -> Signature | None:
    """The signature of a text, ``(128,)`` uint32; None when it is shorter than a shingle.

    >>> text = "one two three four five six seven eight nine ten eleven twelve"
    >>> signature(text, RPV2) is None, signature(f"{text} thirteen", RPV2)[:2].tolist()
    (True, [1946175548, 3164831273])
    """
    numbers = np.empty(N_PERMUTATIONS, np.uint32)
    if scheme is not RPV2:
        size = scheme.shingles.size
        grams, n_units = grams_of(text, size, scheme.shingles.of)
        if n_units < size:
            return None
        _multiply_minima(grams, scheme.factors, scheme.terms, numbers)
        return numbers
    normalized = normalized_utf8(text)
    if _digest_grams.is_interpreted:
        return _rpv2_in_numpy(normalized)
    digests = np.empty(len(normalized) // 2 + 1, np.uint32)
    n_grams = _digest_grams(normalized, SHINGLE_WORDS, digests)
    if not n_grams:
        return None
    _prime_minima(digests[:n_grams], scheme.factors, scheme.terms, numbers)
    return numbers


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
_61, _1, _32 = np.uint64(61), np.uint64(1), np.uint64(32)
_HIGHEST = np.uint32(0xFFFFFFFF)
_u32 = np.uint32


@compiled
def _prime_minima(
    hashes: UInt32s,
    factors: UInt64s,
    terms: UInt64s,
    out: UInt32s,
) -> None:
    """For each permutation the minimum of ``((hash · factor + term) mod 2⁶⁴ mod 2⁶¹ - 1) mod 2³²``.

    Args:
        hashes: ``(k,)``.
        factors: ``(p,)``.
        terms: ``(p,)``.
        out: ``(p,)``; filled with 2³² - 1 where there are no hashes.
    """
    for i in range(len(factors)):
        factor, term, least = factors[i], terms[i], _HIGHEST
        for value in hashes:
            product = np.uint64(value) * factor + term
            folded = (product & _PRIME) + (product >> _61)
            # Subtracting 2⁶¹ - 1 adds one to the lower 32 bits, which are all that is needed.
            least = min(least, _u32(folded + ((folded + _1) >> _61)))
        out[i] = least


@compiled
def _multiply_minima(
    hashes: UInt64s,
    factors: UInt32s,
    terms: UInt32s,
    out: UInt32s,
) -> None:
    """For each permutation the minimum of ``(hash's upper half · factor + term) mod 2³²``.

    Args:
        hashes: ``(k,)``, at least one.
        factors: ``(p,)``, odd.
        terms: ``(p,)``.
        out: ``(p,)``, filled.
    """
    upper = (hashes >> _32).astype(np.uint32)
    for i in range(len(factors)):
        out[i] = (upper * factors[i] + terms[i]).min()  # vectorized; a loop is not


def _rpv2_in_numpy(normalized: Bytes) -> Signature | None:
    """The signature without kernels, for small inputs."""
    words = bytes(normalized).split(b" ")
    grams = (words[i : i + SHINGLE_WORDS] for i in range(len(words) - SHINGLE_WORDS + 1))
    starts = b"".join(hashlib.sha1(b" ".join(gram)).digest()[:4] for gram in grams)  # noqa: S324
    if not starts:
        return None
    product = np.frombuffer(starts, "<u4").astype(np.uint64)[:, None] * RPV2.factors + RPV2.terms
    folded = (product & _PRIME) + (product >> _61)
    numbers: Signature = (folded + ((folded + _1) >> _61)).astype(np.uint32).min(axis=0)
    return numbers


_LANES = 16
"""n-grams hashed by SHA-1 in parallel: as many 32-bit numbers as the widest registers hold.

On signatures of whole documents this is twice as fast as hashlib on each n-gram (measured 2026-11,
documents of 900 words, one core of an x86-64 server). Source: FIPS 180-4, section 6.1.
"""
_ROUND_CONSTANTS = np.array([0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6], np.uint32)
_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0], np.uint32)
_SPACE = np.uint8(32)


@inlined
def _turned(word: np.uint32, left: int) -> np.uint32:
    return _u32(_u32(word << _u32(left)) | _u32(word >> _u32(32 - left)))


@inlined
def _mixed(part: int, b: np.uint32, c: np.uint32, d: np.uint32) -> np.uint32:
    """The function of a round, of which there are three in four parts."""
    if part == 0:
        return d ^ (b & (c ^ d))
    return (b & c) | (d & (b | c)) if part == 2 else b ^ c ^ d


@inlined
def _five_rounds(part: int, t: int, w: UInt32s, v: UInt32s) -> None:
    """Rounds ``t`` to ``t + 4`` of each lane. Five give each of the five words its place again, so
    that none is moved in memory.
    """
    k = _ROUND_CONSTANTS[part]
    for i in range(_LANES):
        a, b, c, d, e = v[0, i], v[1, i], v[2, i], v[3, i], v[4, i]
        e = _u32(_turned(a, 5) + _mixed(part, b, c, d) + e + w[t, i] + k)
        b = _turned(b, 30)
        d = _u32(_turned(e, 5) + _mixed(part, a, b, c) + d + w[t + 1, i] + k)
        a = _turned(a, 30)
        c = _u32(_turned(d, 5) + _mixed(part, e, a, b) + c + w[t + 2, i] + k)
        e = _turned(e, 30)
        b = _u32(_turned(c, 5) + _mixed(part, d, e, a) + b + w[t + 3, i] + k)
        d = _turned(d, 30)
        a = _u32(_turned(b, 5) + _mixed(part, c, d, e) + a + w[t + 4, i] + k)
        v[0, i], v[1, i], v[2, i], v[3, i], v[4, i] = a, b, _turned(c, 30), d, e


@compiled
def _compress(w: UInt32s, v: UInt32s, states: UInt32s) -> None:
    """Process one block of each lane.

    Args:
        w: ``(80, _LANES)``, the blocks in the first 16 rows; the others are overwritten.
        v: ``(5, _LANES)``, overwritten.
        states: ``(5, _LANES)``, changed in place.
    """
    for t in range(16, 80):
        for i in range(_LANES):
            w[t, i] = _turned(w[t - 3, i] ^ w[t - 8, i] ^ w[t - 14, i] ^ w[t - 16, i], 1)
    v[:] = states
    for t in range(0, 20, 5):
        _five_rounds(0, t, w, v)
    for t in range(20, 40, 5):
        _five_rounds(1, t, w, v)
    for t in range(40, 60, 5):
        _five_rounds(2, t, w, v)
    for t in range(60, 80, 5):
        _five_rounds(3, t, w, v)
    states += v


@inlined
def _load(numbers: UInt32s, begin: int, length: int, block: int, w: UInt32s, lane: int) -> None:
    """Write one block of a padded message into a lane.

    Args:
        numbers: the four bytes from each byte of the text on, big-endian.
        begin: where the message begins.
        length: bytes of the message.
        block: number of the block of the message.
        w: see `_compress`.
        lane: number of the lane.
    """
    at, n_left = begin + 64 * block, length - 64 * block
    if n_left >= 64:
        for row in range(16):
            w[row, lane] = numbers[at + 4 * row]
    else:
        for row in range(16):
            w[row, lane] = 0
        n_whole = max(n_left, 0) // 4
        for row in range(n_whole):
            w[row, lane] = numbers[at + 4 * row]
        if n_left >= 0:
            n_kept = 8 * (n_left - 4 * n_whole)
            kept = numbers[at + 4 * n_whole] & ~(_HIGHEST >> n_kept)
            w[n_whole, lane] = kept | np.int64(0x80000000) >> n_kept
        if n_left < 56:
            w[14, lane], w[15, lane] = _u32(length >> 29), _u32(length << 3)


@compiled
def _four_bytes(text: Bytes) -> UInt32s:
    """The four bytes from each position on as big-endian numbers, zeros behind the end:
    ``(len(text) + 1,)``.
    """
    numbers = np.zeros(len(text) + 1, np.uint32)
    for i in range(len(text) - 3):
        high = _u32(text[i]) << _u32(24) | _u32(text[i + 1]) << _u32(16)
        numbers[i] = high | _u32(text[i + 2]) << _u32(8) | _u32(text[i + 3])
    for i in range(max(len(text) - 3, 0), len(text)):
        for at in range(i, len(text)):
            numbers[i] |= _u32(text[at]) << _u32(24 - 8 * (at - i))
    return numbers


@compiled
def _digest_grams(text: Bytes, n: int, out: UInt32s) -> int:
    """SHA-1 of every run of ``n`` words; the first four bytes as a little-endian number.

    Args:
        text: normalized UTF-8: words separated by one space, none at the ends.
        n: words of a run.
        out: room for one number per two bytes, and one more.

    Returns:
        The number of runs; 0 when there are fewer words.
    """
    starts = np.zeros(len(text) // 2 + 2, np.int64)
    n_words = 1
    for i in range(len(text)):
        if text[i] == _SPACE:
            starts[n_words] = i + 1
            n_words += 1
    starts[n_words] = len(text) + 1
    n_grams = max(n_words - n + 1, 0)
    w, states = np.empty((80, _LANES), np.uint32), np.empty((5, _LANES), np.uint32)
    v, numbers = np.empty_like(states), _four_bytes(text)
    lengths = np.empty(_LANES, np.int64)
    for first in range(0, n_grams, _LANES):
        n_lanes = min(_LANES, n_grams - first)
        for lane in range(_LANES):
            states[:, lane] = _START
        for lane in range(n_lanes):
            lengths[lane] = starts[first + lane + n] - 1 - starts[first + lane]
        for block in range((lengths[:n_lanes].max() + 8) // 64 + 1):
            for lane in range(n_lanes):
                # A lane that has ended repeats its last block; its digest has been read.
                if block <= (lengths[lane] + 8) // 64:
                    _load(numbers, starts[first + lane], lengths[lane], block, w, lane)
            _compress(w, v, states)
            for lane in range(n_lanes):
                if block == (lengths[lane] + 8) // 64:
                    word = states[0, lane]
                    swapped = _turned(word, 8) & _u32(0x00FF00FF)
                    out[first + lane] = swapped | (_turned(word, 24) & _u32(0xFF00FF00))
    return n_grams
