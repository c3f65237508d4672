"""The n-grams of evaluation items: sorted hashes, with the words behind them, and their index.

An item is the text of one evaluation example, in parts that no n-gram crosses. All n-grams of
``ngram`` loose words (`lc_assets.text.contamination.loose_words`) are taken. An item none of whose
parts has so many words is one n-gram, its longest part. One with fewer than ``min_words`` is not
searched for and is reported.

An n-gram takes about 40 bytes, a distinct word its letters. ``sample`` keeps one n-gram in
``sample``, chosen by its hash, the same ones in items and documents, so coverage stays an unbiased
estimate; short items are always kept.

Words become numbers in a vocabulary, n-grams become keys. Hashes that collide within the index are
an error.

Source: 13 words, and at least 8 for a shorter item, are Brown et al. 2020 (GPT-3), appendix C.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import islice
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from lc_assets.arrays import Array, Bytes, Int32s, Int64s, UInt32s, UInt64s
from lc_assets.errors import Mismatch
from lc_assets.text.contamination.loose_words import same_words, word_letters
from lc_assets.text.hashing import FNV_BASIS, GOLDEN, MASK64, mix64

_LENGTH_SALT, FILTER_SALT = 0xD6E8FEB86659FD93, 0xA0761D6478BD642F


class GramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which n-grams of items are taken.

    Attributes:
        ngram: words of an n-gram, 1 to 64.
        min_words: minimum words of an item; a shorter one has no n-grams.
        sample: keep one n-gram in ``sample``.
        seed: of the hashes; another one is needed only after a collision.
    """

    ngram: Annotated[int, Meta(ge=1, le=64)] = 13
    min_words: Annotated[int, Meta(ge=1, le=64)] = 8
    sample: Annotated[int, Meta(ge=1)] = 1
    seed: int = 0


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluation item: its name, unique in the set, and its parts."""

    id: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GramIndex:
    """The n-grams of some items; n-grams are numbered by their keys' order, items by their own.

    Attributes:
        settings: which n-grams were taken.
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
    item_words: Int64s
    item_grams: Int64s
    lengths: Int64s
    keys: UInt64s
    gram_lengths: Bytes
    gram_words: Int64s
    posting_ends: Int64s
    items: Int32s
    positions: Int32s
    words: Int32s
    vocabulary: UInt32s
    vocabulary_ends: Int64s
    buckets: Int64s
    bits: UInt64s

    @property
    def arrays(self) -> dict[str, Array]:
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
        first = int(self.gram_words[gram])
        numbers = self.words[first : first + int(self.gram_lengths[gram])]
        begins = np.where(numbers > 0, self.vocabulary_ends[numbers - 1], 0).tolist()
        ends = self.vocabulary_ends[numbers].tolist()
        letters = (self.vocabulary[i:j] for i, j in zip(begins, ends, strict=True))
        return [
            word.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass") for word in letters
        ]


def basis_of(seed: int) -> int:
    """Initial value of a word's hash."""
    return FNV_BASIS ^ mix64(seed & MASK64)


def salt_of(length: int) -> int:
    """A number per length that distinguishes n-grams of different lengths."""
    return (length * _LENGTH_SALT) & MASK64


def totals_at(hashes: UInt64s, starts: Int64s, length: int) -> UInt64s:
    """The polynomials of the windows of ``length`` hashes that begin at ``starts``."""
    totals = np.zeros(len(starts), np.uint64)
    for i in range(length):
        totals = totals * np.uint64(GOLDEN) + hashes[starts + i]
    return totals


def keys_of_totals(totals: UInt64s, length: int, key_bits: int) -> UInt64s:
    """The keys of n-grams, from `totals_at`."""
    return mix64(totals ^ np.uint64(salt_of(length))) & np.uint64((1 << key_bits) - 1)


BATCH_ITEMS = 1000
FILTER_BITS = 16
"""Bits of the filter per n-gram: it passes one other position in sixteen."""

_CLASH = (
    "two different {} have the same hash (one chance in some million): build the index "
    "with another seed"
)


def build_index(
    items: Iterable[Item], settings: GramSettings | None = None, *, key_bits: int = 64
) -> GramIndex:
    """Index the n-grams of some items.

    >>> text = "The quick brown fox jumps over the lazy dog, they say."
    >>> index = build_index([Item(id="q", parts=(text,))])
    >>> index.n_grams, index.words_of(0)[:4], int(index.item_words[0])
    (1, ['the', 'quick', 'brown', 'fox'], 11)

    Args:
        items: items with unique ids; only some are in memory at a time.
        settings: which n-grams are taken.
        key_bits: fewer than 64 make keys collide, for tests.

    Raises:
        Mismatch: when hashes collide within the index.
    """
    settings = settings or GramSettings()
    read = _Words(items, basis_of(settings.seed))
    words = np.concatenate([np.zeros(0, np.int32), *read.numbers])
    letters = [word for _, word in read.vocabulary.values()]
    word_hashes = np.fromiter(read.vocabulary, np.uint64, len(read.vocabulary))
    hashes = word_hashes[words]
    owners, sizes = (np.array(column, np.int64) for column in (read.owners, read.sizes))
    item_words = np.bincount(owners, sizes, len(read.ids)).astype(np.int64)
    places, lengths = _grams(owners, sizes, item_words, settings)
    keys = np.zeros(len(places), np.uint64)
    found = np.unique(lengths)
    for length in found.tolist():
        ours = lengths == length
        keys[ours] = keys_of_totals(totals_at(hashes, places[ours], length), length, key_bits)
    taken = (lengths < settings.ngram) | (keys % np.uint64(settings.sample) == 0)
    order = np.flatnonzero(taken)[np.argsort(keys[taken], kind="stable")]
    keys, places, lengths = keys[order], places[order], lengths[order]
    owner_of = np.repeat(owners, sizes)[places]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    counts = np.diff(np.append(firsts, len(keys)))
    _require_same_words(words, places, lengths, np.repeat(firsts, counts))
    found = np.unique(lengths) if len(keys) else np.array([settings.ngram], np.int64)
    grams = np.unique(np.stack([owner_of, np.repeat(np.arange(len(firsts)), counts)]), axis=1)
    return GramIndex(
        settings=settings,
        key_bits=key_bits,
        item_ids=tuple(read.ids),
        item_words=item_words,
        item_grams=np.bincount(grams[0], minlength=len(read.ids)).astype(np.int64),
        lengths=found,
        keys=keys[firsts],
        gram_lengths=lengths[firsts].astype(np.uint8),
        gram_words=places[firsts],
        posting_ends=firsts + counts,
        items=owner_of.astype(np.int32),
        positions=(places - (np.cumsum(item_words) - item_words)[owner_of]).astype(np.int32),
        words=words,
        vocabulary=np.frombuffer(b"".join(letters), np.uint32),
        vocabulary_ends=np.cumsum([len(word) // 4 for word in letters], dtype=np.int64),
        buckets=_buckets(keys[firsts], key_bits),
        bits=_filter(hashes, (places + lengths)[firsts] - found[0], int(found[0])),
    )


def postings(index: GramIndex, grams: Int64s) -> tuple[Array, Array, Array]:
    """Items and positions in which some n-grams occur, and the index in ``grams`` of each."""
    begins = np.append(np.zeros(1, np.int64), index.posting_ends)[grams]
    counts = index.posting_ends[grams] - begins
    owners = np.repeat(np.arange(len(grams)), counts)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts - begins, counts)
    return index.items[places], index.positions[places], owners


class _Words:
    """The words of some items, as numbers in a vocabulary.

    Attributes:
        ids: of the items.
        owners: number of the item of each part; ``sizes``: its words.
        numbers: of the words of all parts.
        vocabulary: number and code points of each distinct word, by hash.
    """

    def __init__(self, items: Iterable[Item], basis: int) -> None:
        self.ids, self.owners, self.sizes = list[str](), list[int](), list[int]()
        self.numbers: list[Int32s] = []
        self.vocabulary: dict[int, tuple[int, bytes]] = {}
        remaining = iter(items)
        while batch := list(islice(remaining, BATCH_ITEMS)):
            parts = list[tuple[Array, ...]]()
            for item in batch:
                for part in item.parts:
                    parts.append(word_letters(part, basis))
                    self.owners.append(len(self.ids))
                    self.sizes.append(len(parts[-1][1]))
                self.ids.append(item.id)
            if parts:
                before = np.cumsum([0, *(len(letters) for letters, _, _ in parts[:-1])])
                ends = [ends + start for (_, ends, _), start in zip(parts, before, strict=True)]
                letters, hashes = (
                    np.concatenate([part[column] for part in parts]) for column in (0, 2)
                )
                self.numbers.append(self._numbers(letters, np.concatenate(ends), hashes))

    def _numbers(self, letters: UInt32s, ends: Int64s, hashes: UInt64s) -> Int32s:
        distinct, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        begins = np.append(np.zeros(1, np.int64), ends)
        numbers = np.empty(len(distinct), np.int32)
        for i, (value, first) in enumerate(zip(distinct.tolist(), firsts.tolist(), strict=True)):
            word = letters[begins[first] : ends[first]].tobytes()
            numbers[i], known = self.vocabulary.setdefault(value, (len(self.vocabulary), word))
            if known != word:
                raise Mismatch(_CLASH.format("words"))
        every = np.arange(len(hashes))
        if not same_words(letters, ends, every, letters, ends, firsts[inverse]).all():
            raise Mismatch(_CLASH.format("words"))
        return numbers[inverse]


def _grams(
    owners: Int64s, sizes: Int64s, item_words: Int64s, settings: GramSettings
) -> tuple[Int64s, Int64s]:
    """First words and lengths of all n-grams: each run of ``ngram`` words of each part of an item
    with enough words; of one without such a part, its longest part, if that has enough words.
    """
    ends = np.cumsum(sizes)
    left = np.repeat(ends, sizes) - np.arange(sizes.sum())
    is_long = np.repeat(item_words[owners] >= settings.min_words, sizes)
    windows = np.flatnonzero((left >= settings.ngram) & is_long)
    order = np.lexsort((-sizes, owners))
    longest = order[np.append(True, np.diff(owners[order]) != 0)[: len(order)]]
    short = (sizes[longest] < settings.ngram) & (sizes[longest] >= settings.min_words)
    wholes = longest[short]
    places = np.concatenate([windows, (ends - sizes)[wholes]])
    return places, np.concatenate([np.full(len(windows), settings.ngram), sizes[wholes]])


def _require_same_words(words: Int32s, places: Int64s, lengths: Int64s, firsts: Int64s) -> None:
    """Compare each occurrence of a key with the first one."""
    others = np.flatnonzero(firsts != np.arange(len(firsts)))
    clash = bool((lengths[others] != lengths[firsts[others]]).any())
    for step in range(int(lengths.max(initial=0))):
        others = others[lengths[others] > step]
        clash |= bool((words[places[others] + step] != words[places[firsts[others]] + step]).any())
    if clash:
        raise Mismatch(_CLASH.format("n-grams"))


def _buckets(keys: UInt64s, key_bits: int) -> Int64s:
    """Where the keys of each bucket begin; there are about as many buckets as keys."""
    n_bits = min(max(1, (len(keys) - 1).bit_length()), key_bits)
    edges = np.arange(1 << n_bits, dtype=np.uint64) << np.uint64(key_bits - n_bits)
    return np.append(np.searchsorted(keys, edges), len(keys)).astype(np.int64)


def _filter(hashes: UInt64s, places: Int64s, length: int) -> UInt64s:
    """Bits of the n-grams' last ``length`` words, which begin at ``places``."""
    n_bits = max(6, (FILTER_BITS * len(places) - 1).bit_length())
    bits = np.zeros(1 << (n_bits - 6), np.uint64)
    totals = totals_at(hashes, places, length)
    marks = mix64(totals ^ np.uint64(FILTER_SALT)) >> np.uint64(64 - n_bits)
    np.bitwise_or.at(bits, marks >> np.uint64(6), np.uint64(1) << (marks & np.uint64(63)))
    return bits
