"""Folding UTF-8 bytes in one pass: what `lc_assets.text.folded` calls normalized text.

Here: the compiled loop over bytes. Not here: the tables that it looks things up in, and the plain twin; both are in
`lc_assets.text.folded`.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.kernels.compiling import compiled

DROPPED = np.uint8(255)
"""In the ASCII table: this character is removed. No ASCII character maps to it otherwise."""
SPACE = np.uint8(32)
IRREGULAR = np.uint8(1)
"""In the table of kinds: what becomes of this character depends on its neighbours."""
WHITE = np.uint8(2)
"""In the table of kinds: white space."""

_EMOJI_FIRST, _EMOJI_LAST = 0x1F000, 0x1FBEF
_IDEOGRAPHS_FIRST, _IDEOGRAPHS_LAST = 0x20000, 0x2F7FF


@compiled
def fold_utf8(
    source: NDArray[np.uint8],
    out: NDArray[np.uint8],
    ascii_table: NDArray[np.uint8],
    entries: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
    first_classes: NDArray[np.uint8],
    last_classes: NDArray[np.uint8],
    pool: NDArray[np.uint8],
) -> int:
    """Write normalized text: no ASCII punctuation, lower case, NFD, runs of white space as one space, none at the ends.

    Args:
        source: ``(n,)`` well-formed UTF-8; lone surrogates are allowed, in three bytes each.
        out: room for three times as many bytes, and one more.
        ascii_table: ``(128,)`` what each ASCII character becomes; `DROPPED` when nothing.
        entries: ``(65536,)`` where in ``pool`` a character's replacement begins, times 256, plus its length in bytes;
            0 when the character stays as it is.
        kinds: ``(65536,)`` 0, `IRREGULAR` or `WHITE`.
        first_classes: ``(65536,)`` canonical combining class of the replacement's first character.
        last_classes: ``(65536,)`` of its last.
        pool: the replacements' bytes.

    Returns:
        How many bytes were written; -1 when a character was met whose folding takes more than its own code point.
    """
    end = len(source)
    at = 0
    n_out = 0
    after_space = np.uint8(1)
    last_class = np.uint8(0)
    marks_end = -1
    while at < end:
        byte = source[at]
        if byte < 128:
            at += 1
            mapped = ascii_table[byte]
            is_space = np.uint8(mapped == SPACE)
            is_dropped = np.uint8(mapped == DROPPED)
            # Without branches: where words end cannot be predicted.
            out[n_out] = mapped
            n_out += np.int64(1 - (is_dropped | (is_space & after_space)))
            after_space = is_space | (is_dropped & after_space)
            continue
        if byte < 0xE0:
            length = 2
            point = ((np.int64(byte) & 0x1F) << 6) | (np.int64(source[at + 1]) & 0x3F)
        elif byte < 0xF0:
            length = 3
            point = ((np.int64(byte) & 0x0F) << 12) | ((np.int64(source[at + 1]) & 0x3F) << 6) | (np.int64(source[at + 2]) & 0x3F)
        else:
            length = 4
            point = ((np.int64(byte) & 0x07) << 18) | ((np.int64(source[at + 1]) & 0x3F) << 12) | ((np.int64(source[at + 2]) & 0x3F) << 6)
            if not (_EMOJI_FIRST <= point <= _EMOJI_LAST or _IDEOGRAPHS_FIRST <= point <= _IDEOGRAPHS_LAST):
                return -1
            point = 0  # NUL stays as it is, and so do these
        kind = kinds[point]
        if kind == IRREGULAR:
            return -1
        if kind == WHITE:
            at += length
            if after_space == 0:
                out[n_out] = SPACE
                n_out += 1
            after_space = np.uint8(1)
            continue
        if first_classes[point] != 0 and marks_end == n_out and first_classes[point] < last_class:
            return -1  # marks out of canonical order
        entry = entries[point]
        if entry == 0:
            for step in range(length):
                out[n_out + step] = source[at + step]
            n_out += length
        else:
            begin = np.int64(entry >> 8)
            n_replaced = np.int64(entry & 255)
            for step in range(n_replaced):
                out[n_out + step] = pool[begin + step]
            n_out += n_replaced
        at += length
        after_space = np.uint8(0)
        last_class = last_classes[point]
        marks_end = n_out
    if n_out > 0 and out[n_out - 1] == SPACE:
        n_out -= 1
    return n_out
