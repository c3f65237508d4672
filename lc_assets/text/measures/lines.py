r"""Lines and paragraphs of a document: bulleted, ending with an ellipsis, short, repeated.

What a line is differs by program and by measure:

==================  ================================================================================
broken lines        ``str.splitlines``: also at ``\r``, U+2028 …  (datatrove: bullets, ellipses)
stretches           ``re.split("\n+")``: an empty one before a leading and after a trailing newline
                    (datatrove: repeated lines)
newline lines       ``str.split("\n")``: empty ones too (Dolma)
filled lines        newline lines that hold more than white space (FineWeb)
paragraphs          ``re.split("\n{2,}")`` of the stripped text (datatrove)
==================  ================================================================================

Sources: ``gopher_quality_filter.py``, ``gopher_repetition_filter.py`` and
``fineweb_quality_filter.py`` of datatrove 0.10.1; ``taggers/gopher.py`` of Dolma.
"""

from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Bytes, Int32s, Int64s, UInt16s
from lc_assets.compiling import borrowing, compiled
from lc_assets.text.characters import (
    BREAK,
    DENSE,
    ORDINARY,
    TERMINAL,
    character_at,
    character_bits,
)
from lc_assets.text.hashing import hash_seed, whole
from lc_assets.text.measures.words import Counted, require_measurable
from lc_assets.text.numbering import count_bytes, eight_bytes, number_pieces
from lc_assets.text.texts import Texts

SHORT_LINE = 30
"""Characters of the longest line that FineWeb calls short."""


class LineCounts(NamedTuple):
    """Counts of lines and paragraphs; see the module for the kinds of lines.

    Attributes:
        n_broken: broken lines; n_broken_bulleted: those that start with ``•`` or ``-``;
            n_broken_ellipsis: those that end with ``...`` or ``…``; whitespace aside.
        n_stretches: stretches; n_stretches_seen: those seen before; n_stretch_chars_seen: their
            characters.
        n_newline: newline lines; n_newline_bulleted: those that start with ``*`` or ``-``;
            n_newline_ellipsis: those that end with ``…``; n_newline_repeated: those that occur
                twice or more; n_newline_chars_repeated: their
            characters.
        n_filled: filled lines; n_filled_terminal: those that end with a `TERMINAL_MARKS`;
            n_filled_short: those of at most `SHORT_LINE` characters; n_filled_chars_seen:
                characters of those seen before.
        n_paragraphs: paragraphs; n_paragraphs_seen: those seen before; n_paragraph_chars_seen:
            their characters.
        n_chars_dense: characters that are not whitespace.
    """

    n_broken: Counted
    n_broken_bulleted: Counted
    n_broken_ellipsis: Counted
    n_newline_bulleted: Counted
    n_newline_ellipsis: Counted
    n_filled: Counted
    n_filled_terminal: Counted
    n_filled_short: Counted
    n_chars_dense: Counted
    n_newline_repeated: Counted
    n_newline_chars_repeated: Counted
    n_stretches_seen: Counted
    n_stretch_chars_seen: Counted
    n_filled_chars_seen: Counted
    n_stretches: Counted
    n_newline: Counted
    n_paragraphs: Counted
    n_paragraphs_seen: Counted
    n_paragraph_chars_seen: Counted


_NEWLINE, _RETURN, _SPACE, _DOT, _STAR, _DASH = 10, 13, 0x20, 0x2E, 0x2A, 0x2D
_BULLET, _ELLIPSIS = 0x2022, 0x2026
_HIGH_BITS, _LOW_BITS, _FROM_SPACE, _STOPS, _SPACES = (
    np.uint64(byte * 0x0101010101010101) for byte in (0x80, 0x7F, 0x80 - _SPACE, _DOT, _SPACE)
)
"""A byte, eight times; the third carries into the highest bit from the space on."""
_7 = np.uint64(7)


@compiled
def _are_ordinary(eight: np.uint64) -> bool:
    """Whether eight bytes are visible ASCII or spaces, and no full stops, compared at once as in
    `lc_assets.text.numbering.visible`.
    """
    low = eight & _LOW_BITS
    no_stops = ((eight ^ _STOPS) & _LOW_BITS) + _LOW_BITS
    return bool((low + _FROM_SPACE) & no_stops & ~eight & _HIGH_BITS == _HIGH_BITS)


@compiled
def _n_visible(eight: np.uint64) -> np.uint64:
    """How many of eight bytes of ASCII are not spaces."""
    return count_bytes(((eight ^ _SPACES) + _LOW_BITS) >> _7)


@borrowing
def _read_lines(
    data: Bytes,
    table: UInt16s,
    lines: Int32s,
    counts: Int64s,
    stripped: Int64s,
) -> None:
    """Find newline lines, and count properties of single lines.

    Args:
        data: UTF-8.
        table: `lc_assets.text.characters.character_bits`.
        lines: int32[4, newlines + 1]; gets each line's first byte, end, characters, and 1 where it
            is filled.
        counts: gets the first nine of `LineCounts`.
        stripped: int64[4]; gets the first byte of the stripped text, its end, and the characters
            that stripping takes from its first and from its last line.
    """
    n_broken = n_broken_bulleted = n_broken_ellipsis = n_bulleted = n_ellipsis = n_filled = (
        n_terminal
    ) = n_short = n_dense = 0
    n_lines = 0
    # The current newline line and broken line.
    begun = n_chars = filled = 0
    last = last_bits = -1
    broken_chars = dots = gap = ellipsis = before = 0
    broken_empty = True
    # The stripped text.
    strip_start, strip_end, strip_lead, strip_trail, spaces = -1, 0, 0, 0, 0
    at, n_bytes = 0, len(data)
    while at <= n_bytes:
        point, size, bits = _NEWLINE, 1, BREAK
        if at < n_bytes:
            point, size, bits = character_at(data, table, at)
        dense = bits & DENSE
        # Broken lines. A return and a newline are one break; the end of the text is a break only
        # after a character.
        if bits & BREAK:
            if not (point == _NEWLINE and before == _RETURN and at < n_bytes) and (
                at < n_bytes or broken_chars
            ):
                n_broken += 1
                n_broken_ellipsis += dots >= 3 or ellipsis
            broken_chars = dots = gap = ellipsis = 0
            broken_empty = True
        else:
            broken_chars += 1
            if dense:
                if broken_empty:
                    n_broken_bulleted += point in (_BULLET, _DASH)
                    broken_empty = False
                dots = (0 if gap else dots) + 1 if point == _DOT else 0
                ellipsis = point == _ELLIPSIS
                gap = 0
            else:
                gap = 1
        before = point
        # Newline lines, and the stripped text.
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
        # Shortcut for the middle of a line; bytes from 128 on are never `ORDINARY`.
        begun_run = at
        while at + 8 <= n_bytes and _are_ordinary(eight_bytes(data, at)):
            n_dense += whole(_n_visible(eight_bytes(data, at))) * DENSE
            at += 8
        while at < n_bytes and table[data[at]] & ORDINARY:
            n_dense += whole(table[data[at]]) & DENSE
            at += 1
        if at > begun_run:
            trailing = 0
            while trailing < at - begun_run and data[at - 1 - trailing] == _SPACE:
                trailing += 1
            if trailing < at - begun_run:
                dots = ellipsis = spaces = 0
                strip_end = at - trailing
            gap = trailing > 0
            spaces += trailing
            n_chars += at - begun_run
            before = last = whole(data[at - 1])
            last_bits = whole(table[last])
    counts[0], counts[1], counts[2] = n_broken, n_broken_bulleted, n_broken_ellipsis
    counts[3], counts[4], counts[5], counts[6] = n_bulleted, n_ellipsis, n_filled, n_terminal
    counts[7], counts[8] = n_short, n_dense // DENSE
    stripped[0], stripped[1] = max(strip_start, 0), strip_end
    stripped[2], stripped[3] = strip_lead, strip_trail


@compiled
def _find_paragraphs(lines: Int32s, stripped: Int64s, paragraphs: Int32s) -> int:
    """Join the stripped text's lines into paragraphs, which empty lines separate.

    Args:
        lines: output of `_read_lines`.
        stripped: of `_read_lines`.
        paragraphs: int32[3 or more, n_lines]; gets each one's first byte, end, characters.

    Returns:
        How many there are: at least one, which may be empty.
    """
    start, end = stripped[0], stripped[1]
    n_paragraphs, inside = 0, False
    for line in range(lines.shape[1]):
        first, after = whole(lines[0, line]), whole(lines[1, line])
        if after <= start or first >= end:
            continue
        if first == after:
            inside = False
            continue
        n_chars = whole(lines[2, line])
        if first <= start:
            first, n_chars = start, n_chars - stripped[2]
        if after >= end:
            after, n_chars = end, n_chars - stripped[3]
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
def _count_repeated(
    data: Bytes, pieces: Int32s, n_pieces: int, seed: np.uint64, counts: Int64s
) -> None:
    """Add up equal pieces.

    Args:
        data: UTF-8.
        pieces: rows as `_read_lines` makes them: first byte, end, characters, and 1 where filled.
        n_pieces: how many there are.
        seed: of hashes.
        counts: int64[6]; gets pieces that repeat and their characters, all copies counted; those
            seen before and their characters, empty ones aside; characters of those seen before that
            are filled; and how many pieces are not empty.
    """
    numbers = np.empty(n_pieces, np.int32)
    n_distinct = number_pieces(data, pieces[0], pieces[1], seed, numbers)
    copies = np.zeros(n_distinct, np.int32)
    for number in numbers:
        copies[number] += 1
    counts[:] = 0
    n_known = 0
    for piece in range(n_pieces):
        n_chars = whole(pieces[2, piece])
        first = numbers[piece] == n_known
        n_known += first
        if copies[numbers[piece]] > 1:
            counts[0] += 1
            counts[1] += n_chars
        if n_chars:
            counts[5] += 1
            if not first:
                counts[2] += 1
                counts[3] += n_chars
                counts[4] += n_chars * pieces[3, piece]


@compiled
def _count_each(
    data: Bytes, ends: Int64s, table: UInt16s, seed: np.uint64, n_newline: Int64s, counts: Int64s
) -> None:
    """Count lines and paragraphs of each text: ``ends`` are after the last byte of each; of each
    its newlines and one are given, and it gets the fields of `LineCounts`, int64[texts, 19].
    """
    begin = 0
    for text in range(len(ends)):
        _count(data[begin : ends[text]], table, seed, n_newline[text], counts[text])
        begin = ends[text]


@compiled
def _count(data: Bytes, table: UInt16s, seed: np.uint64, n_newline: int, counts: Int64s) -> None:
    """Count those of one text."""
    lines, paragraphs = np.empty((4, n_newline), np.int32), np.zeros((4, n_newline), np.int32)
    stripped, of_paragraphs = np.empty(4, np.int64), np.empty(6, np.int64)
    _read_lines(data, table, lines, counts, stripped)
    n_paragraphs = _find_paragraphs(lines, stripped, paragraphs)
    _count_repeated(data, lines, n_newline, seed, counts[9:15])
    _count_repeated(data, paragraphs, n_paragraphs, seed, of_paragraphs)
    # Empty stretches at the edges of the text.
    edges = 1
    if data.size:
        edges = whole(data[0] == _NEWLINE) + whole(data[data.size - 1] == _NEWLINE)
    counts[11] += max(edges - 1, 0)
    counts[14] += edges
    counts[15], counts[16] = n_newline, n_paragraphs
    counts[17], counts[18] = of_paragraphs[2], of_paragraphs[3]


def count_lines(texts: Texts) -> LineCounts:
    r"""Count the lines and paragraphs of some texts; int64[texts] each.

    >>> counts = count_lines(Texts(["- one\n- one\n\n  - two …\n"]))
    >>> n_lines = counts.n_broken, counts.n_stretches_seen, counts.n_newline_repeated
    >>> [n.item() for n in (*n_lines, counts.n_paragraphs)]
    [4, 1, 4, 2]

    Raises:
        BadInput: when a text is too long.
    """
    data, ends = texts.utf8
    require_measurable(ends)
    counts = np.empty((len(ends), len(LineCounts._fields)), np.int64)
    _count_each(data, ends, character_bits(), hash_seed(), texts.n_newlines + 1, counts)
    return LineCounts(*counts.T)
