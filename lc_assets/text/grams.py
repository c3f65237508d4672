"""The n-grams of evaluation items: sorted hashes, with the words behind them.

An item is the text of one evaluation example, in parts that no n-gram crosses. Of an item all
n-grams of ``ngram`` loose words (`lc_assets.text.loose_words`) are taken. An item none of whose
parts has so many words is one n-gram, its longest part whole; unless that has fewer than
``min_words``: then nothing can be said of it, and it is reported.

An n-gram takes some 40 bytes, a distinct word what its letters take. ``sample`` keeps one n-gram in
so many by its hash, the same ones of items and documents, so that coverage stays an unbiased
estimate; short items are always kept.

Here: the values. Not here: making an index (`lc_assets.text.indexing`), scanning
    (`lc_assets.text.gram_scan`), what is
made of the finds (`lc_assets.text.contamination`).

Source: 13 words, and at least 8 of a shorter item, are Brown et al. 2020 (GPT-3), appendix C.
"""

from dataclasses import dataclass, fields
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput

LONGEST = 64
"""Most words of an n-gram."""

_MASK = (1 << 64) - 1
_FNV_PRIME, _FNV_BASIS = 0x100000001B3, 0xCBF29CE484222325
_BASE, _LENGTH_SALT, FILTER_SALT = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F


class GramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken of items.

    Attributes:
        ngram: words of an n-gram, 1 to 64.
        min_words: fewest words of an item that is shorter than an n-gram.
        sample: keep one n-gram in so many.
        seed: of the hashes; another one is needed only when a build says so.
    """

    ngram: int = 13
    min_words: int = 8
    sample: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.ngram <= LONGEST:
            raise BadInput(f"an n-gram has 1 to {LONGEST} words, not {self.ngram}")
        if not 1 <= self.min_words <= self.ngram:
            raise BadInput(f"min_words must be 1 to ngram ({self.ngram}), not {self.min_words}")
        if self.sample < 1:
            raise BadInput(f"sample keeps one n-gram in so many: at least 1, not {self.sample}")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluation item: its name, unique in the set, and its parts."""

    id: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GramIndex:
    """The n-grams of some items; n-grams are numbered by their keys' order, items by their own.

    Attributes:
        settings: what was taken.
        key_bits: bits of a key.
        item_ids: ``(items,)`` names.
        item_words: ``(items,)`` int64, loose words of an item; ``item_grams``: its distinct
            n-grams, 0 when too short or when none was sampled.
        lengths: int64, the n-grams' lengths that occur, ascending; never empty.
        keys: ``(grams,)`` uint64, ascending; ``gram_lengths`` uint8; ``gram_words`` int64: where in
            ``words`` it begins.
        posting_ends: ``(grams,)`` int64: where in ``items`` and ``positions`` an n-gram's
            occurrences end.
        items: ``(occurrences,)`` int32; ``positions`` int32: number of its first word in the item.
        words: int32, the items' words one after another, as numbers in the vocabulary.
        vocabulary: uint32, code points of the distinct words; ``vocabulary_ends`` int64.
        buckets: int64: where in ``keys`` those with the same first bits begin; ``bits`` uint64: a
            filter.
    """

    settings: GramSettings
    key_bits: int
    item_ids: tuple[str, ...]
    item_words: NDArray[np.int64]
    item_grams: NDArray[np.int64]
    lengths: NDArray[np.int64]
    keys: NDArray[np.uint64]
    gram_lengths: NDArray[np.uint8]
    gram_words: NDArray[np.int64]
    posting_ends: NDArray[np.int64]
    items: NDArray[np.int32]
    positions: NDArray[np.int32]
    words: NDArray[np.int32]
    vocabulary: NDArray[np.uint32]
    vocabulary_ends: NDArray[np.int64]
    buckets: NDArray[np.int64]
    bits: NDArray[np.uint64]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {
            field.name: value
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def n_grams(self) -> int:
        """Distinct n-grams."""
        return len(self.keys)

    def words_of(self, gram: int) -> list[str]:
        """The words of an n-gram."""
        begin = int(self.gram_words[gram])
        return [
            self.word(int(number))
            for number in self.words[begin : begin + int(self.gram_lengths[gram])]
        ]

    def word(self, number: int) -> str:
        """A word of the vocabulary."""
        begin = int(self.vocabulary_ends[number - 1]) if number else 0
        return (
            self.vocabulary[begin : int(self.vocabulary_ends[number])]
            .astype("<u4")
            .tobytes()
            .decode("utf-32-le", "surrogatepass")
        )


def stirred(number: int) -> int:
    """SplitMix64's finalizer, on Python's integers."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def basis_of(seed: int) -> int:
    """What a word's hash begins from."""
    return _FNV_BASIS ^ stirred(seed & _MASK)


def hash_of_word(word: str, seed: int) -> int:
    """The hash of a loose word; the plain twin of the kernels: FNV-1a over code points, stirred."""
    value = basis_of(seed)
    for char in word:
        value = ((value ^ ord(char)) * _FNV_PRIME) & _MASK
    return stirred(value)


def salt_of(length: int) -> int:
    """What sets n-grams of one length apart."""
    return (length * _LENGTH_SALT) & _MASK


def key_of(hashes: list[int], key_bits: int = 64) -> int:
    """The key of an n-gram, from its words' hashes; the plain twin: a polynomial, salted by length,
    stirred.
    """
    total = 0
    for value in hashes:
        total = (total * _BASE + value) & _MASK
    return stirred(total ^ salt_of(len(hashes))) & ((1 << key_bits) - 1)


def power_of(length: int) -> int:
    """The polynomial's base to some power."""
    return pow(_BASE, length, 1 << 64)


def stirred_all(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`stirred` of an array."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def window_totals(hashes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """The polynomials of all windows of ``length`` hashes: ``(n - length + 1,)`` uint64."""
    n_windows = max(len(hashes) - length + 1, 0)
    totals = np.zeros(n_windows, np.uint64)
    for step in range(length):
        totals = totals * np.uint64(_BASE) + hashes[step : step + n_windows]
    return totals


def keys_of_totals(
    totals: NDArray[np.uint64], length: int, key_bits: int = 64
) -> NDArray[np.uint64]:
    """`key_of` for `window_totals`."""
    return stirred_all(totals ^ np.uint64(salt_of(length))) & np.uint64((1 << key_bits) - 1)
