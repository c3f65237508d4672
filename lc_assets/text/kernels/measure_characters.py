r"""What a character is to the measures, by its code point, as bits in a table.

Here: the table, and its bits. Not here: reading text with it
    (`lc_assets.text.kernels.measure_words`,
`lc_assets.text.kernels.measure_lines`).

The table ends at U+3FFFF: beyond it no character is a letter, a digit, white space or punctuation
(a test asks each), so all its bits but `NOT_PUNCTUATION` and `DENSE` are off there; 256 KiB stay in
the cache.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.word_counts import PUNCTUATION, TERMINAL_MARKS

WORD: Final = 1
r"""A word character, ``\w``."""
DENSE: Final = 2
"""No white space (``str.isspace``)."""
LETTER: Final = 4
"""``str.isalpha``."""
NOT_PUNCTUATION: Final = 8
"""Not one of `lc_assets.text.word_counts.PUNCTUATION`."""
SYMBOL: Final = 16
"""``#`` or ``…``."""
BREAK: Final = 32
"""Ends a line for ``str.splitlines``."""
TERMINAL: Final = 64
"""One of `lc_assets.text.word_counts.TERMINAL_MARKS`."""
ORDINARY: Final = 128
"""ASCII, no full stop, no white space but the space: in the middle of a line such a character
changes little.
"""

N_CODE_POINTS: Final = 0x40000
"""Entries of the table."""

BEYOND: Final = DENSE | NOT_PUNCTUATION
"""Bits of every character after the table's end."""


@lru_cache(maxsize=1)
def character_bits() -> NDArray[np.uint8]:
    """The table: uint8, shape ``(N_CODE_POINTS,)``. Made once per process, in some 0.15 s."""
    characters = list(map(chr, range(N_CODE_POINTS)))
    table = np.zeros(N_CODE_POINTS, np.uint8)
    for bit, says in (
        (WORD, lambda c: c.isalnum() or c == "_"),
        (DENSE, lambda c: not c.isspace()),
        (LETTER, str.isalpha),
        (NOT_PUNCTUATION, lambda c: PUNCTUATION.match(c) is None),
        (SYMBOL, lambda c: c in "#\u2026"),
        (BREAK, lambda c: len(f"{c}a".splitlines()) == 2),
        (TERMINAL, lambda c: TERMINAL_MARKS.match(c) is not None),
        (ORDINARY, lambda c: c == " " or (c.isascii() and not c.isspace() and c != ".")),
    ):
        table |= np.fromiter(map(says, characters), np.bool_, N_CODE_POINTS).astype(
            np.uint8
        ) * np.uint8(bit)
    table.flags.writeable = False
    return table
