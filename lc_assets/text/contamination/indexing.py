"""Building an index of n-grams from items, some thousand items at a time.

Words become numbers in a vocabulary, n-grams become keys. Hashes that collide within the index are
an error.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import Mismatch
from lc_assets.text.contamination.grams import (
    FILTER_SALT,
    GramIndex,
    GramSettings,
    Item,
    basis_of,
    keys_of_totals,
    window_totals,
)
from lc_assets.text.contamination.loose_words import first_unlike, word_letters
from lc_assets.text.hashing import GOLDEN, mix64

BATCH_ITEMS: Final = 1000
FILTER_BITS: Final = 16
"""Bits of the filter per n-gram: it passes one other position in sixteen."""

_CLASH = (
    "two different {} have the same hash (one chance in some million): build the index "
    "with another seed"
)


def build_index(
    items: Iterable[Item], settings: GramSettings | None = None, *, key_bits: int = 64
) -> GramIndex:
    """Index the n-grams of some items.

    >>> index = build_index([Item(id="q", parts=("The quick brown fox jumps over the lazy dog, they say.",))])
    >>> index.n_grams, index.words_of(0)[:4], int(index.item_words[0])
    (1, ['the', 'quick', 'brown', 'fox'], 11)

    Args:
        items: with unique ids; only some are held at a time.
        settings: what is taken of them.
        key_bits: fewer than 64 make keys collide, for tests.

    Raises:
        Mismatch: when hashes collide within the index.
    """
    builder = _Builder(settings or GramSettings(), key_bits)
    remaining = iter(items)
    while batch := list(islice(remaining, BATCH_ITEMS)):
        builder.add(batch)
    return builder.index()


class _Vocabulary:
    """Distinct words, numbered in the order of first occurrence."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.letters: list[NDArray[np.uint32]] = []

    def number(
        self, letters: NDArray[np.uint32], ends: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        distinct, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        numbers = np.empty(len(distinct), np.int64)
        for i, (value, first) in enumerate(zip(distinct.tolist(), firsts.tolist(), strict=True)):
            numbers[i] = found = self.numbers.setdefault(value, len(self.numbers))
            word = letters[begins[first] : ends[first]]
            if found == len(self.letters):
                self.letters.append(word.copy())
            elif not np.array_equal(self.letters[found], word):
                raise Mismatch(_CLASH.format("words"))
        words = numbers[inverse]
        if first_unlike(letters, ends, firsts[inverse], letters, ends) >= 0:
            raise Mismatch(_CLASH.format("words"))
        return words


class _Builder:
    """The items so far, a list of arrays per column."""

    def __init__(self, settings: GramSettings, key_bits: int) -> None:
        self.settings, self.key_bits = settings, key_bits
        self.vocabulary = _Vocabulary()
        self.ids: list[str] = []
        self.item_words: list[int] = []
        self.words: list[NDArray[Any]] = []
        self.hashes: dict[int, int] = {}
        self.n_words = 0
        self.grams: list[tuple[NDArray[Any], ...]] = []

    def add(self, batch: list[Item]) -> None:
        basis = basis_of(self.settings.seed)
        parts = [
            (number, *word_letters(part, basis))
            for number, item in enumerate(batch)
            for part in item.parts
        ]
        n_letters = np.cumsum([0, *(len(letters) for _, letters, _, _ in parts)])
        if parts:
            letters = np.concatenate([letters for _, letters, _, _ in parts])
            ends = np.concatenate(
                [
                    ends + before
                    for (_, _, ends, _), before in zip(parts, n_letters[:-1], strict=True)
                ]
            )
            hashes = np.concatenate([hashes for _, _, _, hashes in parts])
            if len(hashes):
                self.words.append(self.vocabulary.number(letters, ends, hashes).astype(np.int32))
        first_item = len(self.ids)
        totals = np.zeros(len(batch), np.int64)
        longest: dict[int, tuple[NDArray[np.uint64], int, int]] = {}
        for number, _, _, hashes in parts:
            self._windows(hashes, first_item + number, int(totals[number]), self.n_words)
            if number not in longest or len(hashes) > len(longest[number][0]):
                longest[number] = hashes, int(totals[number]), self.n_words
            totals[number] += len(hashes)
            self.n_words += len(hashes)
        for number, (hashes, position, place) in longest.items():
            if self.settings.min_words <= len(hashes) < self.settings.ngram:
                self._whole(hashes, first_item + number, position, place)
        self.ids += [item.id for item in batch]
        self.item_words += totals.tolist()

    def _windows(self, hashes: NDArray[np.uint64], item: int, position: int, place: int) -> None:
        length = self.settings.ngram
        if len(hashes) < length:
            return
        keys = keys_of_totals(window_totals(hashes, length), length, self.key_bits)
        chosen = (
            np.flatnonzero(keys % np.uint64(self.settings.sample) == 0)
            if self.settings.sample > 1
            else np.arange(len(keys))
        )
        self._add_grams(keys[chosen], length, item, position + chosen, place + chosen)

    def _whole(self, hashes: NDArray[np.uint64], item: int, position: int, place: int) -> None:
        keys = keys_of_totals(window_totals(hashes, len(hashes)), len(hashes), self.key_bits)
        self._add_grams(keys, len(hashes), item, np.array([position]), np.array([place]))

    def _add_grams(
        self,
        keys: NDArray[np.uint64],
        length: int,
        item: int,
        positions: NDArray[Any],
        places: NDArray[Any],
    ) -> None:
        n = len(keys)
        self.grams.append(
            (
                keys,
                np.full(n, length, np.uint8),
                np.full(n, item, np.int32),
                positions.astype(np.int32),
                places.astype(np.int64),
            )
        )

    def index(self) -> GramIndex:
        """Sort everything by key and make the index."""
        types = (np.uint64, np.uint8, np.int32, np.int32, np.int64)
        keys, lengths, items, positions, places = (
            np.concatenate([np.zeros(0, kind), *(gram[column] for gram in self.grams)])
            for column, kind in enumerate(types)
        )
        order = np.argsort(keys, kind="stable")
        keys, lengths, items, positions, places = (
            column[order] for column in (keys, lengths, items, positions, places)
        )
        words = np.concatenate([np.zeros(0, np.int32), *self.words])
        firsts = np.flatnonzero(
            np.concatenate([np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1]])
        )
        ends = np.append(firsts[1:], len(keys)).astype(np.int64)[: len(firsts)]
        _require_same_words(
            words, places, lengths, np.repeat(firsts, np.diff(np.append(firsts, len(keys))))
        )
        found = (
            np.unique(lengths).astype(np.int64)
            if len(keys)
            else np.array([self.settings.ngram], np.int64)
        )
        hash_of = np.fromiter(self.vocabulary.numbers, np.uint64, len(self.vocabulary.numbers))
        return GramIndex(
            settings=self.settings,
            key_bits=self.key_bits,
            item_ids=tuple(self.ids),
            item_words=np.array(self.item_words, np.int64),
            item_grams=_distinct_grams(
                items,
                np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(keys)))),
                len(self.ids),
            ),
            lengths=found,
            keys=keys[firsts],
            gram_lengths=lengths[firsts],
            gram_words=places[firsts],
            posting_ends=ends,
            items=items,
            positions=positions,
            words=words,
            vocabulary=np.concatenate([np.zeros(0, np.uint32), *self.vocabulary.letters]),
            vocabulary_ends=np.cumsum(
                [len(word) for word in self.vocabulary.letters], dtype=np.int64
            ),
            buckets=_buckets(keys[firsts], self.key_bits),
            bits=_filter(
                words, hash_of, places[firsts], lengths[firsts].astype(np.int64), int(found[0])
            ),
        )


def _require_same_words(
    words: NDArray[np.int32], places: NDArray[Any], lengths: NDArray[Any], firsts: NDArray[Any]
) -> None:
    """Compare each occurrence of a key with the first one."""
    others = np.flatnonzero(firsts != np.arange(len(firsts)))
    clash = bool((lengths[others] != lengths[firsts[others]]).any())
    for step in range(int(lengths.max(initial=0))):
        others = others[lengths[others] > step]
        clash = clash or bool(
            (words[places[others] + step] != words[places[firsts[others]] + step]).any()
        )
    if clash:
        raise Mismatch(_CLASH.format("n-grams"))


def _distinct_grams(
    items: NDArray[np.int32], grams: NDArray[Any], n_items: int
) -> NDArray[np.int64]:
    order = np.lexsort((grams, items))
    items, grams = items[order], grams[order]
    new = np.ones(len(items), bool)
    new[1:] = (items[1:] != items[:-1]) | (grams[1:] != grams[:-1])
    return np.bincount(items[new], minlength=n_items).astype(np.int64)


def _buckets(keys: NDArray[np.uint64], key_bits: int) -> NDArray[np.int64]:
    n_bits = min(_bucket_bits(len(keys)), key_bits)
    edges = np.arange(1 << n_bits, dtype=np.uint64) << np.uint64(key_bits - n_bits)
    return np.append(np.searchsorted(keys, edges), len(keys)).astype(np.int64)


def _bucket_bits(n_grams: int) -> int:
    """Logarithm of how many buckets there are: about one n-gram in each."""
    return max(1, (n_grams - 1).bit_length())


def _filter(
    words: NDArray[np.int32],
    hash_of: NDArray[np.uint64],
    places: NDArray[Any],
    lengths: NDArray[np.int64],
    shortest: int,
) -> NDArray[np.uint64]:
    """Bits of the n-grams' last ``shortest`` words."""
    n_bits = max(6, (FILTER_BITS * len(places) - 1).bit_length())
    bits = np.zeros(1 << (n_bits - 6), np.uint64)
    totals = np.zeros(len(places), np.uint64)
    for step in range(shortest):
        totals = totals * np.uint64(GOLDEN) + hash_of[words[places + lengths - shortest + step]]
    marks = mix64(totals ^ np.uint64(FILTER_SALT)) >> np.uint64(64 - n_bits)
    np.bitwise_or.at(bits, marks >> np.uint64(6), np.uint64(1) << (marks & np.uint64(63)))
    return bits
