"""What an HTML parser would take to read a page, told before it is asked.

Parsers that build trees as browsers do take time with the square of what pages hold of three
things: elements within elements, attributes of one tag, and formatting that is left open, which is
    opened again in every paragraph after it and takes memory too.
One walk along a page's tags bounds all three from above (`lc_assets.text.kernels.html_stack` says
how), in time that grows with the page alone. Pages beyond the limits, which nobody writes by hand,
are not read; a page of 1 MB within them takes less than a second.

Of 73,377 pages of manuals of programs, the deepest is counted at 129 elements, and no count is
below the true one (measured 2026-11).
"""

import re
from typing import Final

import msgspec
import numpy as np
from selectolax.lexbor import LexborHTMLParser

MAX_DEPTH: Final = 512
"""Elements within elements; browsers stop at as many."""

MAX_ATTRIBUTES: Final = 1024
"""Attributes of one tag; those of all ``html`` and ``body`` tags count together, for they become
one element's.
"""

MAX_REBUILT: Final = 1 << 19
"""Formatting elements that may be opened again: 360 bytes each."""

LEFT_OPEN: Final = 256
"""Formatting elements that may be left open at one time."""

TOO_DEEP: Final = "elements too deep in each other"
TOO_MANY_ATTRIBUTES: Final = "too many attributes of one tag"
TOO_TORN: Final = "too much formatting left open"

_TAG: Final = re.compile(rb"<[A-Za-z]")
_HEAD_BYTES: Final = 4096


class Shape(msgspec.Struct, frozen=True):
    """Bounds from above: none is below what a parser would hold.

    Attributes:
        depth: elements within elements, not counting ``html``, ``body`` and what has no content.
        attributes: of one tag.
        rebuilt: formatting elements that are opened again.
    """

    depth: int
    attributes: int
    rebuilt: int


def complaint_about(page: bytes) -> str | None:
    """Why a page is not to be parsed, or None.

    >>> complaint_about(b"<p>One<p>Two"), complaint_about(b"<div>" * 1000), complaint_about(b"<p " + b"a " * 2000 + b">")
    (None, 'elements too deep in each other', 'too many attributes of one tag')
    """
    shape = shape_of(
        page, max_depth=MAX_DEPTH, max_attributes=MAX_ATTRIBUTES, max_rebuilt=MAX_REBUILT
    )
    if shape.depth > MAX_DEPTH:
        return TOO_DEEP
    if shape.attributes > MAX_ATTRIBUTES:
        return TOO_MANY_ATTRIBUTES
    return TOO_TORN if shape.rebuilt > MAX_REBUILT else None


def shape_of(page: bytes, *, max_depth: int, max_attributes: int, max_rebuilt: int) -> Shape:
    """What a parser would hold of a page, at most; the walk ends where a limit is passed.

    Args:
        page: UTF-8.
        max_depth: room for so many open elements is made.
        max_attributes: of one tag.
        max_rebuilt: formatting elements opened again.
    """
    # Numba takes half a second to import.
    from lc_assets.text.kernels import html_shape, html_stack  # noqa: PLC0415

    counts, limits = np.zeros((2, html_stack.N_COUNTS), np.int64)
    counts[html_stack.SVG], counts[html_stack.QUIRKS] = -1, _table_after_p(page)
    limits[html_stack.DEEPEST], limits[html_stack.ATTRIBUTES], limits[html_stack.REBUILT] = (
        max_depth,
        max_attributes,
        max_rebuilt,
    )
    stack, off = np.zeros((max_depth, 3), np.int64), np.zeros(LEFT_OPEN, np.int64)
    html_shape.walk(np.frombuffer(page, np.uint8), counts, stack, off, limits)
    return Shape(
        int(counts[html_stack.DEEPEST]),
        int(counts[html_stack.ATTRIBUTES]),
        int(counts[html_stack.REBUILT]),
    )


def _table_after_p(page: bytes) -> int:
    """Whether a table ends a paragraph (0), as on pages that say what they are, or not (1), or
    nobody knows (2).

    Which document types do is a list of 60 in the standard; the parser knows it.
    """
    found = _TAG.search(page, 0, _HEAD_BYTES)
    head = page[: found.start() if found else _HEAD_BYTES]
    if b"<!" not in head:
        return 1
    probe = LexborHTMLParser(head + b"<p><table>")
    if probe.css_first("table") is None:  # the head ends within a comment
        return 2
    return 0 if probe.css_first("p table") is None else 1
