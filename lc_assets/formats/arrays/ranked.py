"""The codec ``lc_ranked``: ids ranked by frequency, each coded with regard to the one before it.

Ids are symbols with a steep distribution, and the id before says much about the next. zstd, which
looks for repeats, makes use of neither. The tables are those of one array; every chunk is decoded
by itself. Format and figures: docs/formats/ranked.md.

================  ==================================================================================
configuration     content
================  ==================================================================================
``vocab_size``    ids are below it; one more symbol, numbered so, is the array's fill value
``ranked``        ids, the most frequent first; the others follow in ascending order
``lengths``       a string per context: a hexadecimal digit per class of ranks and one for the
                  escape, the number of bits of its code, 0 where it has none
================  ==================================================================================

==================  ================================================================================
bytes of a chunk    content
==================  ================================================================================
0 to 32             32-bit words of each of the eight streams, uint32 little-endian
32 ...              the streams, 32-bit words little-endian: bits are taken from the lowest on
last 4              CRC-32C of all before, uint32 little-endian
==================  ================================================================================

A stream holds an eighth of the ids, in order. The context of an id is the rank of the one before,
at most 127; of the first one 0. Its code says a class of ranks (`classes`), and the bits after it
the place in the class; after the escape they are the rank itself. Codes are canonical: shorter
before longer, then by number; the first bit of a code is its highest.

Source: Huffman 1952; canonical codes as in RFC 1951, 3.2.2.
"""

import heapq
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import google_crc32c
import numpy as np

from lc_assets.arrays import Array, Int64s, UInt32s
from lc_assets.compiling import compiled, inlined
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid_layout import CODER, Configuration
from lc_assets.tokens.dtypes import memory_dtype

if TYPE_CHECKING:
    from lc_assets.formats.arrays.chunks import TokenArray

CONTEXTS = 128
CODE_BITS = 11
"""Longest code. With 128 contexts the decoder's table has a megabyte, as a second-level cache."""
SINGLE = 256
"""Ranks that are a class of their own."""
CLASSES_OF_A_SIZE = 64
MOST_IDS = 2**20 - 2
"""A code and the bits after it have at most 31 bits."""
MOST_RANKED = 2**14
"""Ids that are ranked by frequency: those behind are rare, and the metadata stay small."""
STREAMS = 8
"""Decoded side by side, so that the processor need not wait for the next code of one."""
CHECKSUM_BYTES = 4
_OF_CHECKED_BYTES = 0x48674BC7
"""CRC-32C of any bytes and their CRC-32C behind them."""

_REVERSED = np.array([int(f"{n:0{CODE_BITS}b}"[::-1], 2) for n in range(1 << CODE_BITS)])
_LENGTH_BITS, _TOTAL_BITS = 4, 5


class _Tables(NamedTuple):
    """What encoding and decoding look up.

    Attributes:
        ids: of a rank; the fill value for ranks that there are not.
        ranks: of an id; the last one is the fill value's.
        classes: of a rank.
        firsts: first rank of a class; 0 for the escape, which is the last one.
        extra: bits after the code of a class.
        lengths, codes: (context, class) bits of a code, and the code from its lowest bit on.
        entries: per context and next 11 bits: bits of the code, of code and place together, and the
            first rank of the class.
    """

    ids: Array
    ranks: Int64s
    classes: Int64s
    firsts: Int64s
    extra: Int64s
    lengths: Int64s
    codes: Int64s
    entries: UInt32s


class RankedCodec:
    """Encodes and decodes chunks by one configuration.

    Attributes:
        configuration: as stored.
    """

    def __init__(self, configuration: Configuration) -> None:
        """Check a configuration.

        Raises:
            BadInput: if it is none: says what is wrong.
        """
        self.configuration = configuration
        n_ids, ranked = configuration.vocab_size, configuration.ranked
        if not 1 <= n_ids <= MOST_IDS:
            raise BadInput(f"{CODER}: vocab_size must be 1 to {MOST_IDS:,}, got {n_ids:,}")
        if len(set(ranked)) < len(ranked) or not all(0 <= number < n_ids for number in ranked):
            raise BadInput(f"{CODER}: ranked must be different ids below {n_ids:,}")
        n_codes = len(_classes(n_ids)[0]) + 1
        digits = "".join(configuration.lengths).encode()
        if len(digits) != CONTEXTS * n_codes or {*map(len, configuration.lengths)} != {n_codes}:
            raise BadInput(f"{CODER}: lengths must be {CONTEXTS} strings of {n_codes:,} digits")
        codes = np.frombuffer(digits, np.uint8).astype(np.int64).reshape(CONTEXTS, n_codes)
        self._lengths = codes - np.where(codes > ord("9"), ord("a") - 10, ord("0"))
        if self._lengths.min() < 0 or self._lengths.max() > CODE_BITS:
            raise BadInput(f"{CODER}: lengths must be hexadecimal digits up to {CODE_BITS:x}")
        room = np.where(self._lengths, 1 << CODE_BITS - self._lengths, 0).sum(axis=1)
        if room.max() > 1 << CODE_BITS or not self._lengths[:, -1].all():
            raise BadInput(f"{CODER}: a context has lengths that are no code's, or no escape")

    def encode(self, ids: "TokenArray") -> bytes:
        """The bytes of a chunk of ids, of any shape."""
        tables, flat = self._tables, ids.ravel()
        each = -(-flat.size // STREAMS)
        whole = np.full(STREAMS * each, self.configuration.vocab_size, np.int64)
        np.minimum(flat, self.configuration.vocab_size, out=whole[: flat.size], casting="unsafe")
        parts = []
        for stream in whole.reshape(STREAMS, each):
            room = np.zeros(each + 2, np.uint32)
            n_words = _encode(tables.ranks[stream], tables, room)
            parts.append(room[:n_words].astype("<u4").tobytes())
        sizes = np.array([len(part) // 4 for part in parts], "<u4")
        content = b"".join([sizes.tobytes(), *parts])
        return content + _checksum(content)

    def decoded(self, content: bytes, n_ids: int, dtype: np.dtype[Any]) -> "TokenArray":
        """The ids of a chunk of so many, see `decode`."""
        out: TokenArray = np.empty(n_ids, dtype)
        self.decode(content, out)
        return out

    def decode(self, content: bytes, out: "TokenArray") -> None:
        """Fill ``out``, which is contiguous, with the ids of a chunk. Its size bounds the memory,
        whatever the bytes are.

        Raises:
            ValueError: if the bytes are not a chunk of so many ids.
        """
        each, n_words = -(-out.size // STREAMS), (len(content) - CHECKSUM_BYTES) // 4
        if n_words < STREAMS or google_crc32c.value(content) != _OF_CHECKED_BYTES:
            raise ValueError("the checksum of its bytes differs")
        # No id has more than a word: what damaged bytes make it read lies in this room.
        words = np.empty(n_words + each + 2, np.uint32)
        words[:n_words] = np.frombuffer(content, "<u4", n_words)
        words[n_words:] = 0
        whole = np.empty(STREAMS * each, out.dtype) if out.size % STREAMS else out.reshape(-1)
        if not _decode(words, n_words, self._tables.entries, self._tables.ids, whole):
            raise ValueError("its streams do not end where they say")
        if out.size % STREAMS:
            out.reshape(-1)[...] = whole[: out.size]

    @cached_property
    def _tables(self) -> _Tables:
        n_ids = self.configuration.vocab_size
        firsts, extra = _classes(n_ids)
        escape_bits = n_ids.bit_length()
        dtype = memory_dtype(n_ids + 1)
        n_ranks = max(1 << escape_bits, int(firsts[-1] + (1 << extra[-1])))
        ids = np.full(n_ranks, np.iinfo(dtype).max, dtype)
        ids[:n_ids], ranks = _ranking(self.configuration.ranked, n_ids)
        classes = np.searchsorted(firsts, np.arange(n_ids + 1), side="right") - 1
        firsts, extra = np.append(firsts, 0), np.append(extra, escape_bits)
        lengths, codes = self._lengths, np.zeros_like(self._lengths)
        entries = [_entries(*own, firsts, extra) for own in zip(lengths, codes, strict=True)]
        return _Tables(ids, ranks, classes, firsts, extra, lengths, codes, np.concatenate(entries))


def _entries(lengths: Int64s, codes: Int64s, firsts: Int64s, extra: Int64s) -> UInt32s:
    """Entries of one context by the next bits; fills in its codes."""
    used = np.flatnonzero(lengths)
    used = used[np.argsort(lengths[used], kind="stable")]
    widths = 1 << CODE_BITS - lengths[used]
    codes[used] = _REVERSED[np.cumsum(widths) - widths]
    found = firsts[used] << _TOTAL_BITS | lengths[used] + extra[used]
    entries = np.zeros(1 << CODE_BITS, np.uint32)
    entries[: widths.sum()] = np.repeat(found << _LENGTH_BITS | lengths[used], widths)
    by_next_bits: UInt32s = entries[_REVERSED]
    return by_next_bits


def _classes(n_ids: int) -> tuple[Int64s, Int64s]:
    """First rank of each class, and the bits that say a place in it: 256 single ranks, then 64
    classes each of 2, 4, 8, ... ranks, as many as ids and the fill value need.

    >>> [part[[0, 255, 256, 257, -1]].tolist() for part in _classes(300)]
    [[0, 255, 256, 258, 300], [0, 0, 1, 1, 1]]
    """
    firsts, bits = list(range(min(SINGLE, n_ids + 1))), 1
    extra, rank = [0] * len(firsts), len(firsts)
    while rank <= n_ids:
        for _ in range(CLASSES_OF_A_SIZE):
            if rank <= n_ids:
                firsts.append(rank)
                extra.append(bits)
            rank += 1 << bits
        bits += 1
    return np.array(firsts), np.array(extra)


def _ranking(ranked: Any, n_ids: int) -> tuple[Int64s, Int64s]:
    """Ids by rank; and ranks by id, the last one the fill value's."""
    ids = np.append(ranked, np.setdiff1d(np.arange(n_ids), ranked)).astype(np.int64)
    return ids, np.append(np.argsort(ids), n_ids)


def configuration_for(rows: "TokenArray", vocab_size: int) -> Configuration:
    """The configuration that suits some rows, (row, token); by it, any ids of the vocabulary can be
    coded.
    """
    counts = np.bincount(rows.ravel(), minlength=vocab_size)
    ranked = np.argsort(-counts, kind="stable")[: min(MOST_RANKED, int((counts > 0).sum()))]
    _, ranks = _ranking(ranked, vocab_size)
    firsts, _ = _classes(vocab_size)
    seen = np.zeros(CONTEXTS * len(firsts), np.int64)
    for row in rows:
        own = ranks[row]
        before = np.minimum(np.append(0, own[:-1]), CONTEXTS - 1)
        classes = np.searchsorted(firsts, own, side="right") - 1
        seen += np.bincount(before * len(firsts) + classes, minlength=len(seen))
    lengths = (_code_lengths(counts) for counts in seen.reshape(CONTEXTS, -1))
    digits = tuple("".join(f"{length:x}" for length in own) for own in lengths)
    return Configuration(vocab_size, tuple(ranked.tolist()), digits)


def _code_lengths(counts: Int64s) -> list[int]:
    """Bits of the code of each class and of the escape, which stands for classes too rare for a
    code of 11 bits.
    """
    rare = counts << CODE_BITS + 1 <= counts.sum()
    weights = np.append(np.where(rare, 0, counts), max(int(counts[rare].sum()), 1))
    used = np.flatnonzero(weights)
    while (depths := _huffman(weights[used].tolist())) and max(depths) > CODE_BITS:
        weights[used] = (weights[used] >> 1) + 1
    found = [0] * len(weights)
    for number, depth in zip(used.tolist(), depths, strict=True):
        found[number] = depth
    return found


def _huffman(weights: Sequence[int]) -> list[int]:
    """Depths of the leaves of a Huffman tree; of equal weights the earlier is taken first.

    >>> _huffman([8, 1, 1, 2])
    [1, 3, 3, 2]
    """
    heap = [(weight, number) for number, weight in enumerate(weights)]
    heapq.heapify(heap)
    parents = [0] * (2 * len(weights) - 1)
    for node in range(len(weights), len(parents)):
        (lightest, one), (light, other) = heapq.heappop(heap), heapq.heappop(heap)
        parents[one] = parents[other] = node
        heapq.heappush(heap, (lightest + light, node))
    depths = [int(len(weights) == 1)] * len(parents)
    for node in reversed(range(len(parents) - 1)):
        depths[node] = depths[parents[node]] + 1
    return depths[: len(weights)]


@compiled
def _encode(ranks: Int64s, tables: _Tables, words: UInt32s) -> int:
    """Write the codes of some ranks into words that are 0; return how many words they need."""
    at, context, escape = 0, 0, len(tables.firsts) - 1
    for rank in ranks:
        found = tables.classes[rank]
        if tables.lengths[context, found] == 0:
            found = escape
        length = tables.lengths[context, found]
        bits = tables.codes[context, found] | (rank - tables.firsts[found]) << length
        bits <<= at & 31
        words[at >> 5] |= np.uint32(bits & 0xFFFFFFFF)
        words[(at >> 5) + 1] |= np.uint32(bits >> 32)
        at += length + tables.extra[found]
        context = min(rank, CONTEXTS - 1)
    return (at + 31) >> 5


@compiled
def _decode(words: UInt32s, n_words: int, entries: UInt32s, ids: Array, out: Array) -> bool:
    """Decode all streams; whether each ends where it should.

    Args:
        words: the bytes of a chunk without its checksum, and room behind.
        n_words: without the room.
        entries, ids: see `_Tables`.
        out: the ids, an eighth of each stream.
    """
    places, before = np.zeros(STREAMS, np.uint64), np.zeros(STREAMS, np.uint64)
    ends = STREAMS + np.cumsum(words[:STREAMS].astype(np.int64))
    if ends[-1] != n_words:
        return False
    for stream in range(STREAMS):
        places[stream] = 32 * (ends[stream] - words[stream])
    each = np.uint64(len(out) // STREAMS)
    for number in range(each):
        for stream in range(STREAMS):
            at, rank = _next(words, places[stream], before[stream], entries)
            places[stream], before[stream] = at, rank
            out[np.uint64(stream) * each + np.uint64(number)] = ids[rank]
    return np.array_equal(places.astype(np.int64) + 31 >> 5, ends)


@inlined
def _next(words: UInt32s, at: Any, last: Any, entries: UInt32s) -> tuple[Any, Any]:
    """The bit behind a code, and the rank that it says; ``last`` is the rank before it."""
    word, one = at >> np.uint64(5), np.uint64(1)
    bits = np.uint64(words[word]) | np.uint64(words[word + one]) << np.uint64(32)
    bits >>= at & np.uint64(31)
    context = min(last, np.uint64(CONTEXTS - 1))
    entry = np.uint64(
        entries[context << np.uint64(CODE_BITS) | (bits & np.uint64((1 << CODE_BITS) - 1))]
    )
    length = entry & np.uint64((1 << _LENGTH_BITS) - 1)
    total = entry >> np.uint64(_LENGTH_BITS) & np.uint64((1 << _TOTAL_BITS) - 1)
    first = entry >> np.uint64(_LENGTH_BITS + _TOTAL_BITS)
    return at + total, first + ((bits & ((one << total) - one)) >> length)


def _checksum(content: bytes) -> bytes:
    return int(google_crc32c.value(content)).to_bytes(CHECKSUM_BYTES, "little")
