"""SHA-1 of many short pieces of one text at once: 16 side by side, so that the compiler uses the
widest registers.

Here: the compiled loops. The plain twin is `hashlib`, in `lc_assets.text.minhash`.

Source: FIPS 180-4, section 6.1. Only the first word of each digest is kept.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

LANES = 16
"""Pieces hashed side by side: as many 32-bit numbers as the widest registers hold."""

Four: TypeAlias = tuple[Any, Any, Any, Any]
Five: TypeAlias = tuple[Any, Any, Any, Any, Any]

_BLOCK = 64
_SPACE = 32
_u32 = np.uint32


@compiled
def _turned(word: Any, left: int) -> Any:
    return _u32(_u32(word << _u32(left)) | _u32(word >> _u32(32 - left)))


@compiled
def _round(state: Five, mixed: Any, word: Any, constant: Any) -> Five:
    a, b, c, d, e = state
    return _u32(_turned(a, 5) + mixed + e + word + constant), a, _turned(b, 30), c, d


@compiled
def _choose(s: Five, w: Four) -> Five:
    k = _u32(0x5A827999)
    s = _round(s, _u32(s[3] ^ (s[1] & (s[2] ^ s[3]))), w[0], k)
    s = _round(s, _u32(s[3] ^ (s[1] & (s[2] ^ s[3]))), w[1], k)
    s = _round(s, _u32(s[3] ^ (s[1] & (s[2] ^ s[3]))), w[2], k)
    return _round(s, _u32(s[3] ^ (s[1] & (s[2] ^ s[3]))), w[3], k)


@compiled
def _parity(s: Five, w: Four, k: Any) -> Five:
    s = _round(s, _u32(s[1] ^ s[2] ^ s[3]), w[0], k)
    s = _round(s, _u32(s[1] ^ s[2] ^ s[3]), w[1], k)
    s = _round(s, _u32(s[1] ^ s[2] ^ s[3]), w[2], k)
    return _round(s, _u32(s[1] ^ s[2] ^ s[3]), w[3], k)


@compiled
def _majority(s: Five, w: Four) -> Five:
    k = _u32(0x8F1BBCDC)
    s = _round(s, _u32((s[1] & s[2]) | (s[3] & (s[1] | s[2]))), w[0], k)
    s = _round(s, _u32((s[1] & s[2]) | (s[3] & (s[1] | s[2]))), w[1], k)
    s = _round(s, _u32((s[1] & s[2]) | (s[3] & (s[1] | s[2]))), w[2], k)
    return _round(s, _u32((s[1] & s[2]) | (s[3] & (s[1] | s[2]))), w[3], k)


@compiled
def _next(a: Four, b: Four, c: Four, d: Four) -> Four:
    """The four words that follow sixteen."""
    first = _turned(d[1] ^ c[0] ^ a[2] ^ a[0], 1)
    second = _turned(d[2] ^ c[1] ^ a[3] ^ a[1], 1)
    third = _turned(d[3] ^ c[2] ^ b[0] ^ a[2], 1)
    return first, second, third, _turned(first ^ c[3] ^ b[1] ^ a[3], 1)


@compiled
def _compress(words: NDArray[np.uint32], states: NDArray[np.uint32]) -> None:
    """Take one block of each lane into its state.

    Args:
        words: ``(16, LANES)`` the blocks, word by word.
        states: ``(5, LANES)``, changed in place.
    """
    ones, twos = _u32(0x6ED9EBA1), _u32(0xCA62C1D6)
    for lane in range(LANES):
        begin = (
            states[0, lane],
            states[1, lane],
            states[2, lane],
            states[3, lane],
            states[4, lane],
        )
        p = (words[0, lane], words[1, lane], words[2, lane], words[3, lane])
        q = (words[4, lane], words[5, lane], words[6, lane], words[7, lane])
        r = (words[8, lane], words[9, lane], words[10, lane], words[11, lane])
        t = (words[12, lane], words[13, lane], words[14, lane], words[15, lane])
        s = _choose(_choose(_choose(_choose(begin, p), q), r), t)
        p = _next(p, q, r, t)
        q = _next(q, r, t, p)
        r = _next(r, t, p, q)
        t = _next(t, p, q, r)
        s = _parity(_parity(_parity(_choose(s, p), q, ones), r, ones), t, ones)
        p = _next(p, q, r, t)
        q = _next(q, r, t, p)
        r = _next(r, t, p, q)
        t = _next(t, p, q, r)
        s = _majority(_majority(_parity(_parity(s, p, ones), q, ones), r), t)
        p = _next(p, q, r, t)
        q = _next(q, r, t, p)
        r = _next(r, t, p, q)
        t = _next(t, p, q, r)
        s = _parity(_majority(_majority(_majority(s, p), q), r), t, twos)
        p = _next(p, q, r, t)
        q = _next(q, r, t, p)
        r = _next(r, t, p, q)
        t = _next(t, p, q, r)
        s = _parity(_parity(_parity(_parity(s, p, twos), q, twos), r, twos), t, twos)
        states[0, lane] = _u32(begin[0] + s[0])
        states[1, lane] = _u32(begin[1] + s[1])
        states[2, lane] = _u32(begin[2] + s[2])
        states[3, lane] = _u32(begin[3] + s[3])
        states[4, lane] = _u32(begin[4] + s[4])


@compiled
def _load(
    rest: NDArray[np.uint8], left: int, length: int, words: NDArray[np.uint32], lane: int
) -> None:
    """Write one block of a padded message into a lane.

    Args:
        rest: the text from this block on.
        left: bytes of the message from this block on; negative when its end mark stood in the block
            before.
        length: bytes of the message.
        words: ``(16, LANES)``.
        lane: which.
    """
    for number in range(16):
        more = left - 4 * number
        if more >= 4:
            words[number, lane] = _word(rest, 4 * number)
        elif more > 0:
            kept = _u32(_u32(0xFFFFFFFF) << _u32(8 * (4 - more)))
            words[number, lane] = (_word(rest, 4 * number) & kept) | (
                _u32(0x80) << _u32(24 - 8 * more)
            )
        else:
            words[number, lane] = _u32(0x80000000) if more == 0 else _u32(0)
    if left < _BLOCK - 8:
        words[14, lane] = _u32(length >> 29)
        words[15, lane] = _u32(length << 3)


@compiled
def _word(text: NDArray[np.uint8], at: int) -> Any:
    return _u32(
        (_u32(text[at]) << _u32(24))
        | (_u32(text[at + 1]) << _u32(16))
        | (_u32(text[at + 2]) << _u32(8))
        | _u32(text[at + 3])
    )


@compiled
def window_digests(text: NDArray[np.uint8], n_bytes: int, n: int, out: NDArray[np.uint32]) -> int:
    """SHA-1 every run of ``n`` words; the first four bytes of each digest as a little-endian
    number.

    Args:
        text: ``(n_bytes + 3 or more,)`` normalized UTF-8: words apart by one space, none at the
            ends.
        n_bytes: length of the text.
        n: words of a run.
        out: room for one number per two bytes, and one more.

    Returns:
        How many runs there are; 0 when there are fewer words.
    """
    words = np.empty((16, LANES), dtype=np.uint32)
    states = np.empty((5, LANES), dtype=np.uint32)
    spans = np.zeros((2, LANES), dtype=np.int64)
    begin = n_out = n_lanes = 0
    end = -1
    for _ in range(n):
        if end + 1 >= n_bytes:
            return 0
        end = _end_of_word(text, end + 1, n_bytes)
    while True:
        spans[0, n_lanes], spans[1, n_lanes] = begin, end - begin
        n_lanes += 1
        is_last = end >= n_bytes
        if n_lanes == LANES or is_last:
            _digest_lanes(text, spans, words, states, out[n_out : n_out + n_lanes])
            n_out += n_lanes
            n_lanes = 0
        if is_last:
            return n_out
        begin = _end_of_word(text, begin, n_bytes) + 1
        end = _end_of_word(text, end + 1, n_bytes)


@compiled
def _end_of_word(text: NDArray[np.uint8], begin: int, n_bytes: int) -> int:
    at = begin
    while at < n_bytes and text[at] != _SPACE:
        at += 1
    return at


@compiled
def _digest_lanes(
    text: NDArray[np.uint8],
    spans: NDArray[np.int64],
    words: NDArray[np.uint32],
    states: NDArray[np.uint32],
    out: NDArray[np.uint32],
) -> None:
    """Digest as many pieces as ``out`` has room for; ``spans`` are their begins and their
    lengths.
    """
    most = 0
    for lane in range(LANES):
        states[0, lane], states[1, lane], states[2, lane] = (
            _u32(0x67452301),
            _u32(0xEFCDAB89),
            _u32(0x98BADCFE),
        )
        states[3, lane], states[4, lane] = _u32(0x10325476), _u32(0xC3D2E1F0)
        if lane < len(out):
            most = max(most, _last_block(spans[1, lane]))
    for block in range(most + 1):
        passed = block * _BLOCK
        for lane in range(len(out)):
            # A lane that has ended goes on with its last block; its digest was read before.
            if block <= _last_block(spans[1, lane]):
                _load(
                    text[spans[0, lane] + passed :],
                    spans[1, lane] - passed,
                    spans[1, lane],
                    words,
                    lane,
                )
        _compress(words, states)
        for lane in range(len(out)):
            if block == _last_block(spans[1, lane]):
                out[lane] = _reversed(states[0, lane])


@compiled
def _last_block(length: int) -> int:
    return (length + 8) // _BLOCK


@compiled
def _reversed(word: Any) -> Any:
    return (
        (word >> _u32(24))
        | ((word >> _u32(8)) & _u32(0xFF00))
        | ((word << _u32(8)) & _u32(0xFF0000))
        | (word << _u32(24))
    )
