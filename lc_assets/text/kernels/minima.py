"""Minima over many permutations: the second half of MinHash.

Here: the compiled loops. Their plain twins, and where the permutations come from, are in
    `lc_assets.text.minhash`.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

CHUNK = 2048
"""Hashes that are taken through all permutations before the next: 8 kB stay in the fastest cache.
"""

_PRIME = np.uint64((1 << 61) - 1)
_61, _1, _32 = np.uint64(61), np.uint64(1), np.uint64(32)
_HIGHEST = np.uint32(0xFFFFFFFF)


@compiled
def prime_minima(
    hashes: NDArray[np.uint32],
    factors: NDArray[np.uint64],
    terms: NDArray[np.uint64],
    out: NDArray[np.uint32],
) -> None:
    """For each permutation the minimum of ``((hash · factor + term) mod 2⁶⁴ mod 2⁶¹ - 1) mod 2³²``.

    Args:
        hashes: ``(k,)``.
        factors: ``(p,)``.
        terms: ``(p,)``.
        out: ``(p,)``; filled with 2³² - 1 where there are no hashes.
    """
    out[:] = _HIGHEST
    for start in range(0, len(hashes), CHUNK):
        chunk = hashes[start : start + CHUNK]
        for number in range(len(factors)):
            factor, term = factors[number], terms[number]
            least = out[number]
            for value in chunk:
                product = np.uint64(value) * factor + term
                folded = (product & _PRIME) + (product >> _61)
                # Taking 2⁶¹ - 1 off adds one to the lower 32 bits, and they are all that is wanted.
                least = min(least, np.uint32(folded + ((folded + _1) >> _61)))
            out[number] = least


@compiled
def multiply_minima(
    hashes: NDArray[np.uint64],
    factors: NDArray[np.uint32],
    terms: NDArray[np.uint32],
    out: NDArray[np.uint32],
) -> None:
    """For each permutation the minimum of ``(hash's upper half · factor + term) mod 2³²``.

    Args:
        hashes: ``(k,)``.
        factors: ``(p,)``, odd.
        terms: ``(p,)``.
        out: ``(p,)``; filled with 2³² - 1 where there are no hashes.
    """
    out[:] = _HIGHEST
    upper = np.empty(CHUNK, dtype=np.uint32)
    for start in range(0, len(hashes), CHUNK):
        chunk = hashes[start : start + CHUNK]
        for at in range(len(chunk)):
            upper[at] = np.uint32(chunk[at] >> _32)
        values = upper[: len(chunk)]
        for number in range(len(factors)):
            factor, term = factors[number], terms[number]
            least = out[number]
            for value in values:
                least = min(least, np.uint32(value * factor + term))
            out[number] = least
