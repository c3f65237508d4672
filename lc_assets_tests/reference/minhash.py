"""Plain reference of `lc_assets.text.duplicates.minhash` and its shingles: hashlib and NumPy."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.redpajama.minhash import Signatures
from lc_assets.text.duplicates.clusters import Hashes
from lc_assets.text.duplicates.keys import SHINGLE_WORDS
from lc_assets.text.duplicates.minhash import (
    _MODULUS,
    BANDS,
    N_PERMUTATIONS,
    RPV2,
    MinHashScheme,
    Signature,
)
from lc_assets.text.hashing import GOLDEN, MASK64, mix64
from lc_assets.text.words import normalize


def plain_grams(words: Sequence[str], n: int) -> Hashes:
    """Hashes of all ``n``-grams of normalized words, in order."""
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
        state = (state ^ byte) * 0x100000001B3 & MASK64
    return mix64(state)


def _gram_hash(words: Sequence[int]) -> int:
    rolling = 0
    for word in words:
        rolling = (rolling * GOLDEN + word) & MASK64
    return mix64(rolling)


_PLAIN_CHUNK: Final = 512


def plain_signature(text: str, scheme: MinHashScheme) -> Signature | None:
    """`signature` by `hashlib`, Python and NumPy."""
    words = normalize(text).split()
    plain = _plain_rpv2 if scheme is RPV2 else _plain_fast
    return plain(words, scheme) if len(words) >= SHINGLE_WORDS else None


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


def _plain_rpv2(words: Sequence[str], scheme: MinHashScheme) -> Signature:
    grams = {
        " ".join(words[at : at + SHINGLE_WORDS]) for at in range(len(words) - SHINGLE_WORDS + 1)
    }
    hashes = np.array([_first_four_bytes(gram) for gram in sorted(grams)], dtype=np.uint64)
    return _plain_minima(hashes, lambda some: _permuted(some, scheme) % np.uint64(_MODULUS))


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
    minima = [(permuted(chunk) & np.uint64((1 << 32) - 1)).min(axis=1) for chunk in chunks]
    least: Signature = np.array(minima, dtype=np.uint64).min(axis=0).astype(np.uint32)
    return least


def signatures_of(ids: list[str], found: Sequence[Signature | None]) -> Signatures:
    """Some documents with their signatures; None where a text is too short."""
    numbers = np.zeros((len(ids), N_PERMUTATIONS), np.uint32)
    for row, own in zip(numbers, found, strict=True):
        row[:] = 7 if own is None else own  # what is written of a text that is too short is nothing
    is_signed = np.array([own is not None for own in found], np.bool_)
    return Signatures(ids=ids, numbers=numbers, is_signed=is_signed)
