r"""Properties of characters as bits of a table, for kernels; and decoding of UTF-8.

The table is made once per process from Python's own predicates, so it agrees with `str.split`,
`str.isupper` and ``\w`` of the running Python. Characters from `N_CODE_POINTS` on (tags, variation
selectors, private use, unassigned) are neither words nor white space nor of any case; a test checks
each.
"""

import re
from functools import lru_cache

import numpy as np

from lc_assets.arrays import Bytes, UInt16s
from lc_assets.compiling import borrowing, inlined
from lc_assets.text.hashing import whole

TERMINAL_MARKS = re.compile(
    r"[\x21\x2e\x3f\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    r"\u166e\u1735\u1736\u17d4-\u17d6\u17d9\u17da\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d\u1b7e\u1c3b"
    r"\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce"
    r"\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    r"\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1\U00011141-\U00011143\U000111c5\U000111c6"
    r"\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2\U000115c3"
    r"\U000115c9-\U000115d7\U00011641\U00011642\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c"
    r"\U00011c41\U00011c42\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44"
    r"\U00016e98\U0001bc9f\U0001da88]"
)
"""One character that ends a sentence in some script: ``TERMINAL_PUNCTUATION`` of datatrove 0.10,
159 characters.
"""

PUNCTUATION = re.compile(
    f"[{TERMINAL_MARKS.pattern[1:-1]}"
    r"\x00-\x08\x0b-\x1f\x22-\x2d\x2f\x3a-\x3e\x40\x5b-\x60\x7b-\x9f\xab\xb4\xbb\u2013\u2014\u2019\u201c-\u201e\u2026\u2236\u2501\u25ba"
    r"\u3001\u3008-\u300d\u3010\u3011\uff05\uff08\uff09\uff0c\uff11\uff1a\uff1b\uff5e]"
)
"""One character of ``PUNCTUATION_SET`` of datatrove 0.10: 440 characters, control characters and a
full-width 1 among them.
"""

WORD = 1
r"""A word character, ``\w``."""
DENSE = 2
"""No white space (``str.isspace``)."""
LETTER = 4
"""``str.isalpha``."""
NOT_PUNCTUATION = 8
"""Not one of `PUNCTUATION`."""
SYMBOL = 16
"""``#`` or ``…``."""
BREAK = 32
"""Ends a line for ``str.splitlines``."""
TERMINAL = 64
"""One of `TERMINAL_MARKS`."""
ORDINARY = 128
"""ASCII, no full stop, no white space but the space."""
UPPER = 256
"""``str.isupper``."""
NOT_UPPER = 512
"""A word that holds it is not upper case: lower or title case."""
LATIN = 1024
"""One of ``a-zA-Z``."""
NUMERIC = 2048
"""``str.isnumeric``."""

N_CODE_POINTS = 0x40000
"""Entries of the table."""

BEYOND = DENSE | NOT_PUNCTUATION
"""Bits of every character after the table's end."""


@lru_cache(maxsize=1)
def character_bits() -> UInt16s:
    """Properties of each character, as bits: uint16[N_CODE_POINTS]."""
    characters = "".join(map(chr, range(N_CODE_POINTS)))
    bits = np.full(N_CODE_POINTS, DENSE | NOT_PUNCTUATION, np.uint16)
    for pattern, set_bits, cleared in (
        (r"\w+", WORD, 0),
        (r"\s+", 0, DENSE),
        (f"{PUNCTUATION.pattern}+", 0, NOT_PUNCTUATION),
        ("[#\u2026]", SYMBOL, 0),
        ("[\n-\r\x1c-\x1e\x85\u2028\u2029]+", BREAK, 0),
        (f"{TERMINAL_MARKS.pattern}+", TERMINAL, 0),
        ("[ \x00-\x08\x0e-\x1b!-\\-/-\x7f]+", ORDINARY, 0),
        ("[a-zA-Z]+", LATIN, 0),
    ):
        for run in re.finditer(pattern, characters):
            bits[run.start() : run.end()] |= set_bits
            bits[run.start() : run.end()] &= ~np.uint16(cleared)
    letter, upper, lower, title, numeric = (
        np.fromiter(map(predicate, characters), np.bool_, N_CODE_POINTS)
        for predicate in (str.isalpha, str.isupper, str.islower, str.istitle, str.isnumeric)
    )
    bits[letter] |= LETTER
    bits[upper] |= UPPER
    bits[lower | (title & ~upper)] |= NOT_UPPER
    bits[numeric] |= NUMERIC
    bits.flags.writeable = False
    return bits


@inlined
def code_point(data: Bytes, at: int) -> tuple[int, int]:
    """The character at a position of valid UTF-8 (surrogates allowed), and its number of bytes."""
    point, size = whole(data[np.uint64(at)]), 1
    if point >= 0x80:
        point, size = _beyond_ascii(data, at)
    return point, size


@inlined
def character_at(data: Bytes, bits: UInt16s, at: int) -> tuple[int, int, int]:
    """The character at a position of valid UTF-8, its number of bytes, and its `character_bits`."""
    point, size = code_point(data, at)
    return point, size, whole(bits[np.uint64(point)]) if point < N_CODE_POINTS else BEYOND


@borrowing
def _beyond_ascii(data: Bytes, at: int) -> tuple[int, int]:
    first = whole(data[at])
    if first < 0xE0:
        return (first & 0x1F) << 6 | (whole(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (whole(data[at + 1]) & 0x3F) << 6 | (
            whole(data[at + 2]) & 0x3F
        ), 3
    high = (first & 0x07) << 18 | (whole(data[at + 1]) & 0x3F) << 12
    return high | (whole(data[at + 2]) & 0x3F) << 6 | (whole(data[at + 3]) & 0x3F), 4
