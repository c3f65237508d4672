"""The n-grams of evaluation items: sorted hashes, with the words behind them.

An item is the text of one evaluation example, in parts that no n-gram crosses. All n-grams of
``ngram`` loose words (`lc_assets.text.contamination.loose_words`) are taken. An item none of whose
parts has so many words is one n-gram, its longest part; with fewer than ``min_words`` it cannot be
searched for and is reported.

An n-gram takes some 40 bytes, a distinct word what its letters take. ``sample`` keeps one n-gram in
so many by its hash, the same ones in items and documents, so coverage stays an unbiased estimate;
short items are always kept.

Source: 13 words, and at least 8 for a shorter item, are Brown et al. 2020 (GPT-3), appendix C.
"""

from dataclasses import dataclass, fields
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.text.hashing import FNV_BASIS, GOLDEN, MASK64, mix64

LONGEST = 64
"""Most words of an n-gram."""

_LENGTH_SALT, FILTER_SALT = 0xD6E8FEB86659FD93, 0xA0761D6478BD642F


class GramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which n-grams of items are taken.

    Attributes:
        ngram: words of an n-gram, 1 to 64.
        min_words: fewest words of an item that is shorter than an n-gram.
        sample: keep one n-gram in ``sample``.
        seed: of the hashes; another one is needed only after a collision.
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
            self._word(int(number))
            for number in self.words[begin : begin + int(self.gram_lengths[gram])]
        ]

    def _word(self, number: int) -> str:
        begin = int(self.vocabulary_ends[number - 1]) if number else 0
        return (
            self.vocabulary[begin : int(self.vocabulary_ends[number])]
            .astype("<u4")
            .tobytes()
            .decode("utf-32-le", "surrogatepass")
        )


def basis_of(seed: int) -> int:
    """What a word's hash begins from."""
    return FNV_BASIS ^ mix64(seed & MASK64)


def salt_of(length: int) -> int:
    """What distinguishes n-grams of one length from those of another."""
    return (length * _LENGTH_SALT) & MASK64


def totals_at(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64], length: int
) -> NDArray[np.uint64]:
    """The polynomials of the windows of ``length`` hashes that begin at ``starts``."""
    totals = np.zeros(len(starts), np.uint64)
    for i in range(length):
        totals = totals * np.uint64(GOLDEN) + hashes[starts + i]
    return totals


def keys_of_totals(totals: NDArray[np.uint64], length: int, key_bits: int) -> NDArray[np.uint64]:
    """The keys of n-grams, from `totals_at`."""
    return mix64(totals ^ np.uint64(salt_of(length))) & np.uint64((1 << key_bits) - 1)
