"""Plain reference of `lc_assets.text.contamination.overlaps`: loose words, hashes and the scan,
by strings.
"""

from collections.abc import Iterator

import numpy as np

from lc_assets.text.contamination.grams import GramIndex, basis_of, salt_of
from lc_assets.text.contamination.loose_words import fold_character, is_alone
from lc_assets.text.contamination.scanning import Finds
from lc_assets.text.hashing import FNV_PRIME, GOLDEN, MASK64, mix64


def loose_words(text: str) -> list[str]:
    """The loose words of a text, in order.

    >>> loose_words("“Don’t”—said the CAFÉ’s owner — 1,000×!")
    ['dont', 'said', 'the', 'cafes', 'owner', '1', '000']
    """
    return [word for word, _, _ in placed_words(text)]


def placed_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each loose word with where it starts and ends in ``text``, in characters; the plain
    reference of the kernels.

    A word starts at the first character that adds to it and ends after the last one.
    """
    letters: list[str] = []
    start = end = 0
    for place, char in enumerate(text):
        folded = fold_character(char)
        if not folded:
            continue
        alone = is_alone(char)
        if letters and (alone or folded == " "):
            yield "".join(letters), start, end
            letters = []
        if folded == " ":
            continue
        if not letters:
            start = place
        letters.append(folded)
        end = place + 1
        if alone:
            yield folded, start, end
            letters = []
    if letters:
        yield "".join(letters), start, end


def hash_of_word(word: str, seed: int) -> int:
    """The hash of a loose word; the plain reference of the kernels: FNV-1a over code points,
    stirred.
    """
    value = basis_of(seed)
    for char in word:
        value = ((value ^ ord(char)) * FNV_PRIME) & MASK64
    return mix64(value)


def key_of(hashes: list[int], key_bits: int = 64) -> int:
    """The key of an n-gram, from its words' hashes; the plain reference: a polynomial, salted by
    length, stirred.
    """
    total = 0
    for value in hashes:
        total = (total * GOLDEN + value) & MASK64
    return mix64(total ^ salt_of(len(hashes))) & ((1 << key_bits) - 1)


def plain_scan(text: str, index: GramIndex) -> Finds:
    """The plain reference of `find_grams`: with strings and a dictionary."""
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
    grams, starts, ends, lasts = np.array(found, np.int64).reshape(-1, 4).T
    return Finds(grams=grams, starts=starts, ends=ends, lasts=lasts, n_words=len(placed))
