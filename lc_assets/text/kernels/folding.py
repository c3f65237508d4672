"""Folding UTF-8 bytes in one pass: what `lc_assets.text.folded` calls normalized text.

Here: the compiled loop over bytes. Not here: the tables that it looks things up in, and the plain
    twin; both are in
`lc_assets.text.folded`.

A character beyond ASCII is looked up by its code point. Its entry packs, from the lowest bits up:
canonical combining class of its replacement's last character (8 bits), of its first (8), its kind
(8), length of the replacement in bytes (8; 0: it stays as it is), and where in the pool the
replacement begins (32).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

DROPPED = 255
"""In the ASCII table: this character is removed. No ASCII character maps to it otherwise."""
IRREGULAR = 1
"""A kind: what becomes of this character depends on its neighbours."""
WHITE = 2
"""A kind: white space."""

_SPACE = 32
_EMOJI_FIRST, _EMOJI_LAST = 0x1F000, 0x1FBEF
_IDEOGRAPHS_FIRST, _IDEOGRAPHS_LAST = 0x20000, 0x2F7FF


@compiled
def fold_utf8(
    source: NDArray[np.uint8],
    out: NDArray[np.uint8],
    ascii_table: NDArray[np.uint8],
    entries: NDArray[np.int64],
    pool: NDArray[np.uint8],
) -> int:
    """Write normalized text: no ASCII punctuation, lower case, NFD, runs of white space as one
    space, none at the ends.

    Args:
        source: ``(n,)`` well-formed UTF-8; lone surrogates are allowed, in three bytes each.
        out: room for three times as many bytes, and one more.
        ascii_table: ``(128,)`` what each ASCII character becomes; `DROPPED` when nothing.
        entries: ``(65536,)`` what each character becomes, as above.
        pool: the replacements' bytes.

    Returns:
        How many bytes were written; -1 when a character was met whose folding takes more than its
        own code point, or that is in no table.
    """
    at = n_out = last_class = 0
    marks_end = -1
    after_space: Any = np.uint8(1)
    while at < len(source):
        if source[at] < 0x80:
            mapped = ascii_table[source[at]]
            is_space: Any = np.uint8(mapped == _SPACE)
            is_dropped: Any = np.uint8(mapped == DROPPED)
            # Without branches: where words end cannot be predicted.
            out[n_out] = mapped
            n_out += 1 - (is_dropped | (is_space & after_space))
            after_space = is_space | (is_dropped & after_space)
            at += 1
            continue
        point, length = _decoded(source, at)
        entry = entries[point]
        kind, first_class = (entry >> 16) & 255, (entry >> 8) & 255
        out_of_order = 0 < first_class < last_class and marks_end == n_out
        if kind == IRREGULAR or point == 0 or out_of_order:
            return -1
        if kind == WHITE:
            out[n_out] = _SPACE
            n_out += 1 - after_space
            after_space = np.uint8(1)
        else:
            n_out += _put(source[at : at + length], entry, pool, out[n_out:])
            after_space = np.uint8(0)
            last_class, marks_end = entry & 255, n_out
        at += length
    return n_out - 1 if n_out > 0 and out[n_out - 1] == _SPACE else n_out


@compiled
def _decoded(source: NDArray[np.uint8], at: int) -> Any:
    """The code point that begins here, and its length; beyond U+FFFF, U+0080 for all that stay as
    they are, 0 for others.
    """
    first = np.int64(source[at])
    second = np.int64(source[at + 1]) & 0x3F
    if first < 0xE0:
        return ((first & 0x1F) << 6) | second, 2
    third = np.int64(source[at + 2]) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    point = (
        ((first & 0x07) << 18) | (second << 12) | (third << 6) | (np.int64(source[at + 3]) & 0x3F)
    )
    stays = _EMOJI_FIRST <= point <= _EMOJI_LAST or _IDEOGRAPHS_FIRST <= point <= _IDEOGRAPHS_LAST
    return (0x80 if stays else 0), 4


@compiled
def _put(
    character: NDArray[np.uint8], entry: int, pool: NDArray[np.uint8], out: NDArray[np.uint8]
) -> int:
    """Write one character, replaced or as it is; returns how many bytes that was."""
    n_replaced = (entry >> 24) & 255
    if n_replaced == 0:
        for step in range(len(character)):
            out[step] = character[step]
        return len(character)
    begin = entry >> 32
    for step in range(n_replaced):
        out[step] = pool[begin + step]
    return n_replaced
