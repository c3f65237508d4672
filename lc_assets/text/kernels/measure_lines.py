r"""Compiled reading of lines and paragraphs.

Here: one pass over a text's UTF-8 that finds newline lines and counts what single lines show;
    paragraphs made of them; and sums
over equal ones once they have numbers (`lc_assets.text.kernels.measure_grams.number_pieces`). The
twin is `lc_assets.text.line_counts`.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.measure_characters import (
    BEYOND,
    BREAK,
    DENSE,
    N_CODE_POINTS,
    ORDINARY,
    TERMINAL,
)
from lc_assets.text.kernels.measure_words import code_point, whole
from lc_assets.text.line_counts import SHORT_LINE

N_SINGLE: Final = 13
"""Counts that `read_lines` returns; see there."""

N_REPEATED: Final = 6
"""Counts that `count_repeated` returns; see there."""

_NEWLINE, _RETURN, _SPACE, _DOT, _STAR, _DASH = 10, 13, 0x20, 0x2E, 0x2A, 0x2D
_BULLET, _ELLIPSIS = 0x2022, 0x2026


@compiled
def read_lines(
    data: NDArray[np.uint8],
    table: NDArray[np.uint8],
    lines: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Find newline lines, and what single lines show.

    Args:
        data: UTF-8.
        table: `lc_assets.text.kernels.measure_characters.character_bits`.
        lines: shape ``(4, newlines + 1)``; gets each line's first byte, end, characters, and 1
            where it is filled.
        counts: gets broken lines, those bulleted, those trailing off; newline lines bulleted,
            trailing off; filled lines, those with a terminal mark, those short; dense characters;
            then of the stripped text its first byte, its end, and the characters that stripping
            takes from the line it begins in and from the line it ends in.

    Returns:
        How many newline lines there are.
    """
    n_broken = n_broken_bulleted = n_broken_ellipsis = n_bulleted = n_ellipsis = n_filled = (
        n_terminal
    ) = n_short = n_dense = 0
    n_lines = 0
    # The newline line and the broken line that is being read.
    begun = n_chars = filled = 0
    last = last_bits = -1
    broken_chars = dots = gap = trails = before = 0
    broken_empty = True
    # The stripped text.
    strip_start, strip_end, strip_lead, strip_trail, spaces = -1, 0, 0, 0, 0
    at, n_bytes = 0, len(data)
    while at <= n_bytes:
        point, size, bits = _NEWLINE, 1, BREAK
        if at < n_bytes:
            point, size = code_point(data, at)
            bits = whole(table[point]) if point < N_CODE_POINTS else BEYOND
        dense = bits & DENSE
        # Broken lines; a return and the newline after it are one break, and the text's end is one
        # only where there is something.
        if bits & BREAK:
            if not (point == _NEWLINE and before == _RETURN and at < n_bytes) and (
                at < n_bytes or broken_chars
            ):
                n_broken += 1
                n_broken_ellipsis += dots >= 3 or trails
            broken_chars = dots = gap = trails = 0
            broken_empty = True
        else:
            broken_chars += 1
            if dense:
                if broken_empty:
                    n_broken_bulleted += point in (_BULLET, _DASH)
                    broken_empty = False
                dots = (0 if gap else dots) + 1 if point == _DOT else 0
                trails = point == _ELLIPSIS
                gap = 0
            else:
                gap = 1
        before = point
        # Newline lines.
        if point == _NEWLINE:
            lines[0, n_lines], lines[1, n_lines], lines[2, n_lines], lines[3, n_lines] = (
                begun,
                at,
                n_chars,
                filled,
            )
            n_lines += 1
            n_ellipsis += last == _ELLIPSIS
            if filled:
                n_filled += 1
                n_terminal += (last_bits & TERMINAL) != 0
                n_short += n_chars <= SHORT_LINE
                strip_trail = spaces
            begun, n_chars, filled, last, last_bits = at + 1, 0, 0, -1, 0
        else:
            if n_chars == 0:
                n_bulleted += point in (_STAR, _DASH)
            last, last_bits = point, bits
            if dense:
                if strip_start < 0:
                    strip_start, strip_lead = at, n_chars
                strip_end, spaces, filled = at + size, 0, 1
                n_dense += DENSE
            else:
                spaces += 1
            n_chars += 1
        at += size
        if not dense:
            continue
        # Most of a line changes little: bytes from 128 on have no such bit.
        begun_run = at
        while at < n_bytes and table[data[at]] & ORDINARY:
            n_dense += whole(table[data[at]]) & DENSE
            at += 1
        if at > begun_run:
            trailing = 0
            while trailing < at - begun_run and data[at - 1 - trailing] == _SPACE:
                trailing += 1
            if trailing < at - begun_run:
                dots = trails = spaces = 0
                strip_end = at - trailing
            gap = trailing > 0
            spaces += trailing
            n_chars += at - begun_run
            before = last = whole(data[at - 1])
            last_bits = whole(table[last])
    counts[0], counts[1], counts[2], counts[3], counts[4] = (
        n_broken,
        n_broken_bulleted,
        n_broken_ellipsis,
        n_bulleted,
        n_ellipsis,
    )
    counts[5], counts[6], counts[7], counts[8] = n_filled, n_terminal, n_short, n_dense // DENSE
    counts[9], counts[10], counts[11], counts[12] = (
        max(strip_start, 0),
        strip_end,
        strip_lead,
        strip_trail,
    )
    return n_lines


@compiled
def find_paragraphs(
    lines: NDArray[np.int32], n_lines: int, counts: NDArray[np.int64], paragraphs: NDArray[np.int32]
) -> int:
    """Join lines into paragraphs: what empty lines part, of the stripped text.

    Args:
        lines: of `read_lines`.
        n_lines: how many.
        counts: of `read_lines`.
        paragraphs: shape ``(3, n_lines)``; gets each one's first byte, end, characters.

    Returns:
        How many there are: at least one, which may be empty.
    """
    start, end = counts[9], counts[10]
    n_paragraphs, inside = 0, False
    for line in range(n_lines):
        first, after = whole(lines[0, line]), whole(lines[1, line])
        if after <= start or first >= end:
            continue
        if first == after:
            inside = False
            continue
        n_chars = whole(lines[2, line])
        if first <= start:
            first, n_chars = start, n_chars - counts[11]
        if after >= end:
            after, n_chars = end, n_chars - counts[12]
        if inside:
            paragraphs[2, n_paragraphs - 1] += n_chars + 1
        else:
            paragraphs[0, n_paragraphs], paragraphs[2, n_paragraphs] = first, n_chars
            n_paragraphs += 1
        paragraphs[1, n_paragraphs - 1] = after
        inside = True
    if n_paragraphs == 0:
        paragraphs[:, 0] = 0
        return 1
    return n_paragraphs


@compiled
def count_repeated(
    numbers: NDArray[np.int32],
    n_distinct: int,
    pieces: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Add up pieces by their numbers.

    Args:
        numbers: a number per piece, 0 and up in the order of first occurrence.
        n_distinct: numbers there are.
        pieces: rows as `read_lines` makes them: first byte, end, characters, and 1 where filled.
        counts: gets pieces that repeat and their characters, all copies counted; those seen before
            and their characters, empty ones aside; characters of those seen before that are filled;
            and how many pieces are not empty.
    """
    copies = np.zeros(n_distinct, np.int32)
    for number in numbers:
        copies[number] += 1
    counts[:] = 0
    known = 0
    for piece in range(len(numbers)):
        n_chars = whole(pieces[2, piece])
        first = numbers[piece] == known
        known += first
        if copies[numbers[piece]] > 1:
            counts[0] += 1
            counts[1] += n_chars
        if n_chars:
            counts[5] += 1
            if not first:
                counts[2] += 1
                counts[3] += n_chars
                counts[4] += n_chars * pieces[3, piece]
