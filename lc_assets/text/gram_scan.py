"""Scanning a text for the n-grams of an index: every occurrence, held to its words, with where it
stands.

One pass over the code points rolls a hash over loose words; a filter of bits turns nearly all
places away, the rest is looked up among the sorted keys, and what is found there is compared word
for word, so that no clash of hashes is ever reported. Linear in the text, in pieces of bounded
size. The plain twin does the same with strings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.text.grams import GramIndex, basis_of, hash_of_word, key_of, power_of, salt_of
from lc_assets.text.indexing import known_codes
from lc_assets.text.loose_words import placed_words

PIECE_CHARS = 1 << 22
"""Characters scanned at once: 16 MiB of code points."""
ROOM = 4096
"""Finds that are noted between two looks at them."""


@dataclass(frozen=True, slots=True, eq=False)
class Finds:
    """Occurrences of n-grams in a text, by their last word, shorter n-grams first.

    Attributes:
        grams: ``(n,)`` int64, numbers of the index's n-grams.
        starts: ``(n,)`` int64, first character; ``ends``: after the last one.
        lasts: ``(n,)`` int64: words of the text up to and with its last one.
        n_words: loose words of the text.
    """

    grams: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    lasts: NDArray[np.int64]
    n_words: int

    def __len__(self) -> int:
        return len(self.grams)


def find_grams(text: str, index: GramIndex) -> Finds:
    """All occurrences in ``text`` of the n-grams of an index."""
    if not COMPILED:
        return plain_scan(text, index)
    found, n_words = _scan(text, index)
    right = _verified(text, index, found)
    return _finds(found[right], n_words)


def plain_scan(text: str, index: GramIndex) -> Finds:
    """The plain twin of `find_grams`: with strings and a dictionary."""
    numbers = {key: gram for gram, key in enumerate(index.keys.tolist())}
    placed = list(placed_words(text))
    hashes = [hash_of_word(word, index.settings.seed) for word, _, _ in placed]
    found = []
    for end in range(1, len(placed) + 1):
        for length in index.lengths.tolist():
            gram = (
                numbers.get(key_of(hashes[end - length : end], index.key_bits))
                if length <= end
                else None
            )
            if gram is not None and index.words_of(gram) == [
                word for word, _, _ in placed[end - length : end]
            ]:
                found.append((gram, placed[end - length][1], placed[end - 1][2], end))
    return _finds(np.array(found, np.int64).reshape(-1, 4), len(placed))


def _finds(rows: NDArray[np.int64], n_words: int) -> Finds:
    grams, starts, ends, lasts = (np.ascontiguousarray(column) for column in rows.T)
    return Finds(grams=grams, starts=starts, ends=ends, lasts=lasts, n_words=n_words)


def _scan(text: str, index: GramIndex) -> tuple[NDArray[np.int64], int]:
    """Places whose key the index holds, ``(n, 4)``, and how many words there are."""
    # See lc_assets.text.kernels.
    from lc_assets.text.kernels.gram_scan import WORDS, scan_piece  # noqa: PLC0415

    seed = basis_of(index.settings.seed)
    state, hashes = np.zeros(5, np.int64), np.array([seed, 0], np.uint64)
    size = 1 << int(index.lengths[-1]).bit_length()
    ring, begins = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    lookups = _lookups(index)
    finds, found = np.empty((ROOM + len(index.lengths), 4), np.int64), []
    for start in range(0, len(text) + 1, PIECE_CHARS):
        last = start + PIECE_CHARS > len(text)
        codes, table = known_codes(text[start : start + PIECE_CHARS] + ("\n" if last else ""))
        n_read = 0
        while n_read < len(codes):
            n, n_finds = scan_piece(
                codes[n_read:],
                table.codes,
                table.several,
                state,
                hashes,
                ring,
                begins,
                finds,
                *lookups,
            )
            n_read += n
            if n_finds:
                found.append(finds[:n_finds].copy())
    return np.concatenate(found) if found else np.empty((0, 4), np.int64), int(state[WORDS])


def _lookups(index: GramIndex) -> tuple[Any, ...]:
    """The arguments of the kernel that are the index's."""
    lengths = index.lengths.tolist()
    n_bucket_bits = (len(index.buckets) - 2).bit_length()
    return (
        index.lengths,
        np.array([power_of(length) for length in lengths], np.uint64),
        np.array([salt_of(length) for length in lengths], np.uint64),
        np.uint64(basis_of(index.settings.seed)),
        index.bits,
        np.uint64(64 - (64 * len(index.bits) - 1).bit_length()),
        index.keys,
        np.uint64((1 << index.key_bits) - 1),
        index.buckets,
        np.uint64(index.key_bits - n_bucket_bits),
    )


def _verified(text: str, index: GramIndex, found: NDArray[np.int64]) -> NDArray[np.bool_]:
    # See lc_assets.text.kernels.
    from lc_assets.text.kernels.gram_scan import verify  # noqa: PLC0415

    right = np.zeros(len(found), np.bool_)
    first = 0
    while first < len(found):
        base = int(
            found[first : first + 64, 1].min()
        )  # a longer n-gram that ends here begins before
        last = int(np.searchsorted(found[:, 2], base + PIECE_CHARS, side="right"))
        last = max(last, first + 1)
        base = int(found[first:last, 1].min())
        codes, table = known_codes(text[base : int(found[first:last, 2].max())])
        verify(
            codes, base, table.codes, table.several, found[first:last], index.gram_words, index.gram_lengths, index.words,
            index.vocabulary, index.vocabulary_ends, right[first:last],
        )  # fmt: skip
        first = last
    return right
