"""A guard for HTML parsers: bounds the cost of parsing a page before it is parsed.

Parsers that build trees as browsers do take quadratic time in four things: elements within
elements, attributes of one tag, options of one select, all of which are looked at again for each,
and formatting that is left open, which is opened again in every paragraph after it and takes memory
too. One walk along a page's tags bounds all four from above
(`lc_assets.text.html.stack`) in linear time. Pages beyond the limits, which do not occur in
hand-written HTML, are not parsed; a page of 1 MB within them takes half a second.

Of 73,377 pages of programs' manuals, the deepest is counted at 129 elements, and no count is below
the true one (measured 2026-11).
"""

import msgspec
import numpy as np

from lc_assets.arrays import Bytes, Int64s
from lc_assets.compiling import borrowing, compiled
from lc_assets.text.html.stack import (
    ATTRIBUTES,
    BEYOND,
    CHOICES,
    DEEPEST,
    LEVELS,
    MARKS,
    N_COUNTS,
    ODD,
    REBUILT,
    ROOT_ATTRIBUTES,
    SVG,
    depth_of,
    doubt,
    end,
    lose,
    push,
)
from lc_assets.text.html.starts import end_p, start
from lc_assets.text.html.tags import (
    ENDS_P,
    KIND,
    RAW,
    ROOT,
    SELECT,
    TEXT_ONLY,
    VOID,
    P,
    attributes_at,
    begins_comment,
    flags_of,
    is_letter,
    is_named,
    is_section,
    markup_end,
    name_at,
    number_of,
    raw_end,
    section_end,
)

_LESS, _SLASH, _BANG, _QUESTION = 60, 47, 33, 63
_DOUBTED = 4  # a page is left where more than so many times its length is read twice
_N_RAW = 16  # more than there are elements whose content is only text
_PLAINTEXT = number_of("plaintext")


MAX_DEPTH = 512
"""Maximum nesting of elements; browsers have the same limit."""

MAX_ATTRIBUTES = 1024
"""Maximum attributes of one tag; those of all ``html`` and of all ``body`` tags count together,
because they are merged into one element.
"""

MAX_REBUILT = 1 << 19
"""Maximum formatting elements that are reopened: 360 bytes each."""

LEFT_OPEN = 256
"""Maximum formatting elements left open at a time."""

MAX_CHOICES = 1 << 24
"""Maximum sum, over all options, of the tags in their select before them: some 4,000 options; a
fifth of a second if each is selected."""

MAX_LEVELS = 1 << 21
"""Maximum sum of the depths of all tags; of longer pages than a megabyte, `LEVELS_PER_BYTE` of
their length. Finding the main content asks every element's ancestors, an eighth of a second here.
"""

LEVELS_PER_BYTE = 2

TOO_DEEP = "elements too deep in each other"
TOO_MANY_ATTRIBUTES = "too many attributes of one tag"
TOO_MANY_OPTIONS = "too many options of one select"
TOO_TORN = "too much formatting left open"


class Shape(msgspec.Struct, frozen=True):
    """Upper bounds of what a parser would keep.

    Attributes:
        depth: elements within elements, not counting ``html``, ``body`` and what has no content.
        attributes: of one tag.
        rebuilt: formatting elements that are opened again.
        choices: see `MAX_CHOICES`.
        levels: see `MAX_LEVELS`.
    """

    depth: int
    attributes: int
    rebuilt: int
    choices: int = 0
    levels: int = 0


def refusal_of(page: bytes) -> str | None:
    """Why a page must not be parsed, or None.

    >>> pages = b"<p>One<p>Two", b"<div>" * 1000, b"<p " + b"a " * 2000 + b">"
    >>> tuple(refusal_of(page) for page in pages)
    (None, 'elements too deep in each other', 'too many attributes of one tag')
    """
    shape = shape_of(
        page, max_depth=MAX_DEPTH, max_attributes=MAX_ATTRIBUTES, max_rebuilt=MAX_REBUILT
    )
    if shape.depth > MAX_DEPTH:
        return TOO_DEEP
    if shape.attributes > MAX_ATTRIBUTES:
        return TOO_MANY_ATTRIBUTES
    if shape.choices > MAX_CHOICES:
        return TOO_MANY_OPTIONS
    if shape.rebuilt > MAX_REBUILT:
        return TOO_TORN
    return TOO_DEEP if shape.levels > max(MAX_LEVELS, LEVELS_PER_BYTE * len(page)) else None


def shape_of(page: bytes, *, max_depth: int, max_attributes: int, max_rebuilt: int) -> Shape:
    """Upper bounds of what a parser would keep for a page; the walk stops where a limit is
    exceeded.

    Args:
        page: UTF-8.
        max_depth: maximum depth; memory for as many open elements is allocated.
        max_attributes: maximum attributes of one tag.
        max_rebuilt: maximum formatting elements reopened.
    """
    counts, limits = np.zeros((2, N_COUNTS), np.int64)
    counts[SVG] = -1
    limits[DEEPEST], limits[ATTRIBUTES], limits[REBUILT] = (
        max_depth,
        max_attributes,
        max_rebuilt,
    )
    stack, off = np.zeros((max_depth, 3), np.int64), np.zeros(LEFT_OPEN, np.int64)
    _walk(np.frombuffer(page, np.uint8), counts, stack, off, limits)
    return Shape(
        int(counts[DEEPEST]),
        int(counts[ATTRIBUTES]),
        int(counts[REBUILT]),
        int(counts[CHOICES]),
        int(counts[LEVELS]),
    )


@compiled
def _walk(page: Bytes, counts: Int64s, stack: Int64s, off: Int64s, limits: Int64s) -> None:
    """Fill ``counts`` from a page's tags; stop where a limit is exceeded.

    Args:
        page: UTF-8.
        counts: ``(N_COUNTS,)`` see `lc_assets.text.html.stack`; all 0 but for the followed
            svg, which is -1.
        stack: ``(d, 3)`` room for ``d`` open elements.
        off: ``(f,)`` room for ``f`` formatting elements that are left open.
        limits: ``(N_COUNTS,)`` greatest values that are followed.
    """
    size, at, doubted, n_doubted = len(page), 0, 0, 0
    ends, raw_ends = np.zeros(3, np.int64), np.zeros((_N_RAW, 2), np.int64)
    while at < size:
        if page[at] != _LESS:
            at += 1
            continue
        counts[MARKS] += 1
        is_end = at + 1 < size and page[at + 1] == _SLASH
        name_start = at + 2 if is_end else at + 1
        if not is_letter(page, name_start):
            is_markup = name_start < size and (is_end or page[name_start] in (_BANG, _QUESTION))
            counts[LEVELS] += depth_of(counts) if is_markup else 0
            if is_markup and not counts[ODD]:
                at = markup_end(page, at)
            else:
                doubted = max(doubted, _doubted_up_to(page, at, ends)) if is_markup else doubted
                at += 1
            continue
        name, after = name_at(page, name_start)
        flags = flags_of(name)
        n_attributes, stop, is_closed = attributes_at(page, after)
        is_doubted = at < doubted
        # of end tags, only </p> and </br> can make an element
        if not is_end or flags & VOID or flags & KIND == P:
            counts[LEVELS] += depth_of(counts)
        # whether a quote begins or ends here is unknown too: every tag counts, none contains
        # another
        if is_doubted:
            n_doubted += stop - at
            stop, doubted = after, max(doubted, stop)
            if n_doubted > _DOUBTED * size:
                counts[REBUILT] = BEYOND
        elif stop > size:
            return
        if flags & KIND == ROOT:
            counts[ROOT_ATTRIBUTES] += n_attributes
            n_attributes = counts[ROOT_ATTRIBUTES]
        counts[ATTRIBUTES] = max(counts[ATTRIBUTES], n_attributes)
        if is_end and is_doubted:
            doubt(counts)
        elif is_end:
            end(counts, stack, off, name, flags)
        elif flags & RAW or (flags & TEXT_ONLY and counts[SVG] >= 0):
            stop, doubted = _start_text(
                page, stop, doubted, name, flags, counts, stack, off, raw_ends
            )
        else:
            start(counts, stack, off, name, flags, is_closed)
        at = stop
        if (
            counts[DEEPEST] > limits[DEEPEST]
            or counts[REBUILT] > limits[REBUILT]
            or counts[ATTRIBUTES] > limits[ATTRIBUTES]
        ):
            return


@borrowing
def _doubted_up_to(page: Bytes, at: int, ends: Int64s) -> int:
    """Where a comment or CDATA section ends, if it is one: apparent tags within it may begin
    elements, but end none.

    ``ends`` holds the last such place of each of the three kinds, so that no stretch is searched
    twice.
    """
    is_cdata = is_section(page, at)
    kind = 1 if is_cdata else int(begins_comment(page, at)) * 2
    if at >= ends[kind]:
        ends[kind] = section_end(page, at) if is_cdata else markup_end(page, at)
    return int(ends[kind])


@borrowing
def _start_text(
    page: Bytes,
    at: int,
    doubted: int,
    name: int,
    flags: int,
    counts: Int64s,
    stack: Int64s,
    off: Int64s,
    raw_ends: Int64s,
) -> tuple[int, int]:
    """An element begins that contains only text, or would outside svg and math; returns where to
    continue, and up to where the interpretation is uncertain.

    ``raw_ends`` holds the last end that was searched for, by name.
    """
    if counts[SVG] >= 0 and _closes_at(page, _next_tag(page, at), name):
        return _next_tag(page, at), doubted
    if counts[ODD]:
        lose(counts, stack, SELECT)
        push(counts, stack, name, flags)
        doubt(counts)
        if flags & RAW:
            row = 0
            while raw_ends[row, 0] not in (0, name):
                row += 1
            if at >= raw_ends[row, 1]:
                raw_ends[row] = name, raw_end(page, at, name)
            doubted = max(doubted, raw_ends[row, 1])
        return at, doubted
    if flags & ENDS_P and not end_p(counts, stack, off):
        doubt(counts)
    return len(page) if name == _PLAINTEXT else raw_end(page, at, name), doubted


@borrowing
def _next_tag(page: Bytes, at: int) -> int:
    """Position of the next ``<``; the page's length when there is none."""
    while at < len(page) and page[at] != _LESS:
        at += 1
    return at


@borrowing
def _closes_at(page: Bytes, at: int, name: int) -> bool:
    """Whether the end tag of an element of this name begins there."""
    if at + 1 >= len(page) or page[at + 1] != _SLASH:
        return False
    return is_named(page, at + 2, name)
