"""SHA-1 of every n-gram of a text, sixteen at a time."""

import numpy as np

from lc_assets.arrays import Bytes, Int64s, UInt32s
from lc_assets.compiling import compiled, inlined

_u32, _u64 = np.uint32, np.uint64
_ONES, _ONE_BIT = 0xFFFFFFFF, 0x80000000

_LANES = 16
"""n-grams hashed by SHA-1 in parallel: as many 32-bit numbers as the widest registers hold.

On documents of 900 words this is seven times as fast as hashlib on each n-gram (measured 2026-11,
one core of an x86-64 server). Source: FIPS 180-4, section 6.1.
"""
_ROUND_CONSTANTS = np.array([0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6], np.uint32)
_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0], np.uint32)
_SPACE = np.uint8(32)


@inlined
def _turned(word: np.uint32, left: int) -> np.uint32:
    return _u32(_u32(word << _u32(left)) | _u32(word >> _u32(32 - left)))


@inlined
def _mixed(part: int, b: np.uint32, c: np.uint32, d: np.uint32) -> np.uint32:
    """The function of a round, of which there are three in four parts."""
    if part == 0:
        return d ^ (b & (c ^ d))
    return (b & c) | (d & (b | c)) if part == 2 else b ^ c ^ d


@inlined
def _five_rounds(part: int, t: int, w: UInt32s, v: UInt32s) -> None:
    """Rounds ``t`` to ``t + 4`` of each lane. Five give each of the five words its place again, so
    that none is moved in memory.
    """
    k = _ROUND_CONSTANTS[part]
    for i in range(_LANES):
        at = t * _LANES + i
        a, b, c = v[i], v[i + _LANES], v[i + 2 * _LANES]
        d, e = v[i + 3 * _LANES], v[i + 4 * _LANES]
        e = _u32(_turned(a, 5) + _mixed(part, b, c, d) + e + w[at] + k)
        b = _turned(b, 30)
        d = _u32(_turned(e, 5) + _mixed(part, a, b, c) + d + w[at + _LANES] + k)
        a = _turned(a, 30)
        c = _u32(_turned(d, 5) + _mixed(part, e, a, b) + c + w[at + 2 * _LANES] + k)
        e = _turned(e, 30)
        b = _u32(_turned(c, 5) + _mixed(part, d, e, a) + b + w[at + 3 * _LANES] + k)
        d = _turned(d, 30)
        a = _u32(_turned(b, 5) + _mixed(part, c, d, e) + a + w[at + 4 * _LANES] + k)
        v[i], v[i + _LANES], v[i + 2 * _LANES] = a, b, _turned(c, 30)
        v[i + 3 * _LANES], v[i + 4 * _LANES] = d, e


@compiled
def _compress(w: UInt32s, v: UInt32s, states: UInt32s) -> None:
    """Process one block of each lane. The arrays have one dimension, so that LLVM knows how far
    their rows are apart, and needs no checks of overlap: two and a half times as fast.

    Args:
        w: 80 rows of `_LANES`, the blocks in the first 16; the others are overwritten.
        v: 5 rows of `_LANES`, overwritten.
        states: the same, changed in place.
    """
    for at in range(16 * _LANES, 80 * _LANES):
        mixed = w[at - 3 * _LANES] ^ w[at - 8 * _LANES] ^ w[at - 14 * _LANES]
        w[at] = _turned(mixed ^ w[at - 16 * _LANES], 1)
    v[:] = states
    for t in range(0, 20, 5):
        _five_rounds(0, t, w, v)
    for t in range(20, 40, 5):
        _five_rounds(1, t, w, v)
    for t in range(40, 60, 5):
        _five_rounds(2, t, w, v)
    for t in range(60, 80, 5):
        _five_rounds(3, t, w, v)
    states += v


@compiled
def _load(numbers: UInt32s, begins: Int64s, lengths: Int64s, block: int, w: UInt32s) -> None:
    """Write one block of each lane's padded message, a row at a time: branches on single lengths
    could not be predicted. What is written of a message that has ended is of no use.

    Args:
        numbers: the four bytes from each byte of the text on, big-endian.
        begins: where each lane's message begins.
        lengths: bytes of the messages.
        block: number of the block of the messages.
        w: see `_compress`.
    """
    n_whole = min(max(lengths.min() // 4 - 16 * block, 0), 16)
    n_filled = min(max(lengths.max() // 4 + 1 - 16 * block, 0), 16)
    for row in range(n_whole):
        for lane in range(_LANES):
            # Numba tests whether an index is negative, unless it is unsigned.
            w[row * _LANES + lane] = numbers[_u64(begins[lane] + 64 * block + 4 * row)]
    last = _u64(len(numbers) - 1)
    for row in range(n_whole, n_filled):
        for lane in range(_LANES):
            at = 64 * block + 4 * row
            n_left = lengths[lane] - at
            n_bits = 8 * min(max(n_left, 0), 4)
            kept = np.int64(numbers[min(_u64(begins[lane] + at), last)]) & ~(_ONES >> n_bits)
            w[row * _LANES + lane] = (kept | _ONE_BIT >> n_bits) * (n_left >= 0)
    w[n_filled * _LANES : 16 * _LANES] = 0
    for lane in range(_LANES):
        if lengths[lane] - 64 * block < 56:
            w[14 * _LANES + lane] = lengths[lane] >> 29
            w[15 * _LANES + lane] = lengths[lane] << 3


@compiled
def _four_bytes(text: Bytes) -> UInt32s:
    """The four bytes from each position on as big-endian numbers, zeros behind the end:
    ``(len(text) + 1,)``.
    """
    padded, numbers = np.zeros(len(text) + 4, np.uint8), np.empty(len(text) + 1, np.uint32)
    padded[: len(text)] = text
    for i in range(len(numbers)):
        high = _u32(padded[i]) << _u32(24) | _u32(padded[i + 1]) << _u32(16)
        numbers[i] = high | _u32(padded[i + 2]) << _u32(8) | _u32(padded[i + 3])
    return numbers


@compiled
def _digest(
    numbers: UInt32s,
    begins: Int64s,
    lengths: Int64s,
    n_lanes: int,
    w: UInt32s,
    v: UInt32s,
    out: UInt32s,
) -> None:
    """SHA-1 of a message per lane; the first four bytes as a little-endian number.

    Args:
        numbers: see `_load`, as for the next two.
        begins: see there.
        lengths: see there.
        n_lanes: how many lanes have a message.
        w: see `_compress`, as for the next.
        v: see there.
        out: gets a number per message.
    """
    states = np.empty(5 * _LANES, np.uint32)
    for at in range(len(states)):
        states[at] = _START[at // _LANES]
    for block in range((lengths[:n_lanes].max() + 8) // 64 + 1):
        _load(numbers, begins, lengths, block, w)
        _compress(w, v, states)
        for lane in range(n_lanes):
            if block == (lengths[lane] + 8) // 64:
                word = states[lane]
                swapped = _turned(word, 8) & _u32(0x00FF00FF)
                out[lane] = swapped | (_turned(word, 24) & _u32(0xFF00FF00))


@compiled
def digest_grams(text: Bytes, ends: Int64s, n: int, out: UInt32s, out_ends: Int64s) -> int:
    """SHA-1 of every run of ``n`` words of some texts; the first four bytes as a little-endian
    number.

    Args:
        text: the texts one behind the other, normalized UTF-8: words separated by one space, none
            at the ends.
        ends: after the last byte of each.
        n: words of a run.
        out: room for one number per two bytes, one per text, and one more.
        out_ends: gets the number of runs of each text and of those before it.

    Returns:
        The number of runs; a text of fewer words has none.
    """
    starts = np.zeros(len(text) // 2 + 2, np.int64)
    w, v = np.empty(80 * _LANES, np.uint32), np.empty(5 * _LANES, np.uint32)
    begins, lengths = np.zeros(_LANES, np.int64), np.zeros(_LANES, np.int64)
    numbers = _four_bytes(text)
    n_out = n_lanes = begin = 0
    for number in range(len(ends)):
        n_words = 1
        starts[0] = begin
        for i in range(begin, ends[number]):  # without branches: where words end is unpredictable
            starts[n_words] = i + 1
            n_words += text[i] == _SPACE
        starts[n_words] = ends[number] + 1
        for word in range(n_words - n + 1):
            begins[n_lanes] = starts[word]
            lengths[n_lanes] = starts[word + n] - 1 - starts[word]
            n_lanes += 1
            if n_lanes == _LANES:
                _digest(numbers, begins, lengths, n_lanes, w, v, out[n_out:])
                n_out, n_lanes = n_out + n_lanes, 0
        begin, out_ends[number] = ends[number], n_out + n_lanes
    if n_lanes:
        _digest(numbers, begins, lengths, n_lanes, w, v, out[n_out:])
    return n_out + n_lanes
