"""The codec ``lc_ranked``: ids by frequency after the id before, in Huffman codes.

Ids are symbols with a steep distribution, and the id before says much about the next. zstd, which
looks for repeats, makes use of neither. Ids after which much the same follows share a context; each
context has a list of the ids that follow most often, and codes of its own. The tables are those of
one array; every chunk is decoded by itself. How they are made: `formats.arrays.ranking`. Format and
figures: docs/formats/ranked.md.

================  ==================================================================================
configuration     content
================  ==================================================================================
``vocab_size``    ids are below it; one more symbol, numbered so, is the array's fill value
``ranked``        ids, the most frequent first; the others follow in ascending order, then the fill
                  value: a place in this order is a rank
``contexts``      per ranked id, in hexadecimal, the context of what follows it; 0 after all others
``own``           per context, up to 1,028 ranks below 65,536, uint16 little-endian in base64: the
                  ids that it has most often, the first the most frequent
``lengths``       a string per context: a hexadecimal digit per class, the bits of its code
================  ==================================================================================

==================  ================================================================================
bytes of a chunk    content
==================  ================================================================================
0 to 32             32-bit words of each of the eight streams, uint32 little-endian
32 ...              the streams, 32-bit words little-endian: bits are taken from the lowest on
last 4              CRC-32C of all before, uint32 little-endian
==================  ================================================================================

A stream holds an eighth of the ids, in order; its first context is 0. A code says a class of places
(`classes_of`), the bits after it the place in the class: in the context's own list, or behind it in
the order of all ranks. Codes are canonical: shorter before longer, then by number; the first bit of
a code is its highest.

Version 1, without ``contexts`` and ``own``, is read only: `formats.arrays.ranked_codes`.

Source: Huffman 1952; canonical codes as in RFC 1951, 3.2.2.
"""

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import google_crc32c
import numpy as np

from lc_assets.arrays import Array, Bytes, Int64s, UInt32s
from lc_assets.compiling import borrowing, compiled
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid_layout import CODER, Configuration, grid_dtype
from lc_assets.formats.arrays.ranked_codes import OWN, Codes, codes_of, places_of

if TYPE_CHECKING:
    from lc_assets.formats.arrays.chunks import TokenArray

STREAMS, TOGETHER = 8, 4
"""Streams, and how many are decoded side by side, so that the processor need not wait for the next
code of one; more have no room in its registers.
"""
CHECKSUM_BYTES = 4
_OF_CHECKED_BYTES = 0x48674BC7
"""CRC-32C of any bytes and their CRC-32C behind them."""
_LENGTH_BITS, _TOTAL_BITS = 6, 5


class _Tables(NamedTuple):
    """What decoding looks up.

    Attributes:
        mask: bits of the longest code.
        entries: per context and next bits: bits of the code, of code and place together, and where
            the class begins among ``ids``.
        ids: all own lists and then all ranks; in the upper half of a number, where the entries of
            the context after it begin.
    """

    mask: np.uint64
    entries: UInt32s
    ids: Array


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
        self._codes = codes_of(configuration)

    def encode(self, ids: "TokenArray") -> bytes:
        """The bytes of a chunk of ids, of any shape.

        Raises:
            BadInput: if the configuration is of version 1.
        """
        ranks, written, flat = *self._encoding, ids.ravel()
        each = -(-flat.size // STREAMS)
        whole = np.full(STREAMS * each, self.configuration.vocab_size, np.int64)
        np.minimum(flat, self.configuration.vocab_size, out=whole[: flat.size], casting="unsafe")
        parts = []
        for stream in whole.reshape(STREAMS, each):
            room = np.zeros(each + 2, np.uint32)
            n_words = _encode(ranks[stream], written, self._codes.contexts, room)
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
            ValueError: if the bytes are not a chunk of so many ids, or ids of this vocabulary have
                another data type.
        """
        if out.dtype != (dtype := grid_dtype(self.configuration.vocab_size)):
            raise ValueError(f"its ids are {dtype}, not {out.dtype}")
        if (
            len(content) < 4 * STREAMS + CHECKSUM_BYTES
            or google_crc32c.value(content) != _OF_CHECKED_BYTES
        ):
            raise ValueError("the checksum of its bytes differs")
        each, n_words = -(-out.size // STREAMS), (len(content) - CHECKSUM_BYTES) // 4
        # No id has more than a word: what damaged bytes make it read lies in this room.
        room = np.frombuffer(content.ljust(len(content) + 4 * each + 8, b"\0"), np.uint8)
        whole = np.empty(STREAMS * each, dtype) if out.size % STREAMS else out.reshape(-1)
        if not _decode(room, n_words, self._tables, whole):
            raise ValueError("its streams do not end where they say")
        if out.size % STREAMS:
            out.reshape(-1)[...] = whole[: out.size]

    @cached_property
    def _tables(self) -> _Tables:
        codes, n_ids = self._codes, self.configuration.vocab_size
        shift = 16 if n_ids < 2**16 and len(codes.lengths) << codes.bits <= 2**16 else 32
        by_rank, fill = codes.contexts << codes.bits + shift, np.iinfo(grid_dtype(n_ids)).max
        by_rank |= np.append(codes.ids, fill)
        n_own = OWN * len(codes.own)
        n_places = n_own + int((codes.firsts + (1 << codes.extra)).max())
        found: Array = np.full(n_places, fill, np.uint32 if shift == 16 else np.uint64)
        found[n_own:][: n_ids + 1] = by_rank
        for context, ranks in enumerate(codes.own):
            found[OWN * context :][: len(ranks)] = by_rank[ranks]
        entries = []
        for context, lengths in enumerate(codes.lengths):
            is_own = codes.firsts < (OWN if codes.own else 0)
            firsts = codes.firsts + np.where(is_own, OWN * context, max(n_own - OWN, 0))
            entries.append(_entries(lengths, firsts, codes))
        return _Tables(np.uint64((1 << codes.bits) - 1), np.concatenate(entries), found)

    @cached_property
    def _encoding(self) -> tuple[Int64s, Int64s]:
        """The rank of an id, the last one the fill value's; and per context and rank, in the lowest
        bits, how many bits are written, and above them these bits.
        """
        codes, n_ids = self._codes, self.configuration.vocab_size
        if not codes.own:
            raise BadInput(f"{CODER}: version 1 is read only: make a new configuration")
        written = np.empty((len(codes.own), n_ids + 1), np.int64)
        for row, own, lengths in zip(written, codes.own, codes.lengths, strict=True):
            used, widths = _canonical(lengths, codes.bits)
            numbers = np.empty_like(lengths)
            numbers[used] = _reversed(codes.bits)[np.cumsum(widths) - widths]
            places, found = places_of(own, n_ids)
            bits = (places - codes.firsts[found]) << lengths[found] | numbers[found]
            row[:] = bits << _LENGTH_BITS | lengths[found] + codes.extra[found]
        return np.append(np.argsort(codes.ids), n_ids), written


def _canonical(lengths: Int64s, bits: int) -> tuple[Int64s, Int64s]:
    """The classes in the order of their codes, and how many numbers of ``bits`` begin with each."""
    used = np.flatnonzero(lengths)
    used = used[np.argsort(lengths[used], kind="stable")]
    return used, 1 << bits - lengths[used]


def _entries(lengths: Int64s, firsts: Int64s, codes: Codes) -> UInt32s:
    """Entries of one context by the next bits."""
    used, widths = _canonical(lengths, codes.bits)
    found = firsts[used] << _TOTAL_BITS | lengths[used] + codes.extra[used]
    entries = np.zeros(1 << codes.bits, np.uint32)
    entries[: widths.sum()] = np.repeat(found << _LENGTH_BITS | lengths[used], widths)
    by_next_bits: UInt32s = entries[_reversed(codes.bits)]
    return by_next_bits


@cache
def _reversed(bits: int) -> Int64s:
    """Numbers of so many bits, read backwards."""
    return np.array([int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits)])


@compiled
def _encode(ranks: Int64s, written: Int64s, contexts: Int64s, words: UInt32s) -> int:
    """Write the codes of some ranks into words that are 0; return how many words they need."""
    at, context = 0, 0
    for rank in ranks:
        entry = written[context, rank]
        bits = entry >> _LENGTH_BITS << (at & 31)
        words[at >> 5] |= np.uint32(bits & 0xFFFFFFFF)
        words[(at >> 5) + 1] |= np.uint32(bits >> 32)
        at += entry & ((1 << _LENGTH_BITS) - 1)
        context = contexts[rank]
    return (at + 31) >> 5


@compiled
def _decode(content: Bytes, n_words: int, tables: _Tables, out: Array) -> bool:
    """Decode all streams; whether each ends where it should.

    Args:
        content: the bytes of a chunk, and room behind.
        n_words: its 32-bit words, without the checksum.
        tables: the codec's.
        out: the ids, an eighth of each stream.
    """
    begins, is_whole = np.zeros(STREAMS + 1, np.uint64), True
    begins[0] = STREAMS
    for stream in range(STREAMS):
        size = _number(content, np.uint64(4 * stream)) & np.uint64(0xFFFFFFFF)
        begins[stream + 1] = begins[stream] + size
    if begins[STREAMS] != n_words:
        return False
    each = np.uint64(len(out) // STREAMS)
    for group in range(0, STREAMS, TOGETHER):
        at0, at1 = begins[group] << np.uint64(5), begins[group + 1] << np.uint64(5)
        at2, at3 = begins[group + 2] << np.uint64(5), begins[group + 3] << np.uint64(5)
        row0 = row1 = row2 = row3 = np.uint64(0)
        first = np.uint64(group) * each
        second, third, fourth = first + each, first + each + each, first + each + each + each
        for number in range(each):
            at0, row0, out[first + number] = _next(content, at0, row0, tables)
            at1, row1, out[second + number] = _next(content, at1, row1, tables)
            at2, row2, out[third + number] = _next(content, at2, row2, tables)
            at3, row3, out[fourth + number] = _next(content, at3, row3, tables)
        for number, at in enumerate((at0, at1, at2, at3)):
            is_whole &= (at + np.uint64(31)) >> np.uint64(5) == begins[group + number + 1]
    return is_whole


@borrowing
def _next(content: Bytes, at: Any, row: Any, tables: _Tables) -> tuple[Any, Any, Any]:
    """The bit behind a code and its place, where the entries for the next begin, and the id; in the
    upper bits of this number is something else.
    """
    one, bits = np.uint64(1), _number(content, at >> np.uint64(3)) >> (at & np.uint64(7))
    entry = np.uint64(tables.entries[row | (bits & tables.mask)])
    total = entry >> np.uint64(_LENGTH_BITS) & np.uint64((1 << _TOTAL_BITS) - 1)
    place = (bits & ((one << total) - one)) >> (entry & np.uint64((1 << _LENGTH_BITS) - 1))
    found = np.uint64(tables.ids[(entry >> np.uint64(_LENGTH_BITS + _TOTAL_BITS)) + place])
    return at + total, found >> np.uint64(np.iinfo(tables.ids.dtype).bits // 2), found


@borrowing
def _number(content: Bytes, at: Any) -> Any:
    """Eight bytes as a little-endian number: one instruction of the processor."""
    number = np.uint64(0)
    for place in range(np.uint64(8)):
        number |= np.uint64(content[at + place]) << (place << np.uint64(3))
    return number


def _checksum(content: bytes) -> bytes:
    return int(google_crc32c.value(content)).to_bytes(CHECKSUM_BYTES, "little")
