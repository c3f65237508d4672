"""One walk along a page: how deep its tree may become, how many attributes a tag has, how much is
built again.

Here: the loop. Its parts: tags (`lc_assets.text.kernels.html_tags`), names
    (`lc_assets.text.kernels.html_names`), the stack of open
elements (`lc_assets.text.kernels.html_stack`) and what tags do to it (``html_starts`` and
``html_ends`` beside it).
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.html_ends import end
from lc_assets.text.kernels.html_names import (
    ENDS_P,
    KIND,
    RAW,
    ROOT,
    SELECT,
    TEXT_ONLY,
    flags_of,
    name_at,
    number_of,
)
from lc_assets.text.kernels.html_stack import (
    ATTRIBUTES,
    BEYOND,
    DEEPEST,
    ODD,
    REBUILT,
    ROOT_ATTRIBUTES,
    SVG,
    Counts,
    Names,
    Stack,
    doubt,
    lose,
    push,
)
from lc_assets.text.kernels.html_starts import end_p, start
from lc_assets.text.kernels.html_tags import (
    attributes_at,
    begins_comment,
    is_letter,
    is_named,
    is_section,
    markup_end,
    raw_end,
    section_end,
)

Bytes = NDArray[np.uint8]

_LESS, _SLASH, _BANG, _QUESTION = 60, 47, 33, 63
_DOUBTED = 4  # a page is left where more than so many times its length is read twice
_PLAINTEXT = number_of("plaintext")


@compiled
def walk(page: Bytes, counts: Counts, stack: Stack, off: Names, limits: Counts) -> None:
    """Fill ``counts`` with what a page's tags amount to; stop where a limit is passed.

    Args:
        page: UTF-8.
        counts: ``(N_COUNTS,)`` see `lc_assets.text.kernels.html_stack`; all 0 but for the followed
            svg, which is -1, and quirks.
        stack: ``(d, 3)`` room for ``d`` open elements.
        off: ``(f,)`` room for ``f`` formatting elements that are left open.
        limits: ``(N_COUNTS,)`` greatest values that are followed.
    """
    size, at, doubted, n_doubted = len(page), 0, 0, 0
    ends = np.zeros(3, np.int64)
    while at < size:
        if page[at] != _LESS:
            at += 1
            continue
        is_end = at + 1 < size and page[at + 1] == _SLASH
        name_start = at + 2 if is_end else at + 1
        if not is_letter(page, name_start):
            is_markup = name_start < size and (is_end or page[name_start] in (_BANG, _QUESTION))
            if is_markup and not counts[ODD]:
                at = markup_end(page, at)
            else:
                doubted = max(doubted, doubted_up_to(page, at, ends)) if is_markup else doubted
                at += 1
            continue
        name, after = name_at(page, name_start)
        flags = flags_of(name)
        n_attributes, stop, is_closed = attributes_at(page, after)
        is_doubted = at < doubted
        # whether a quote begins or ends here is not known either: every tag counts, none swallows
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
            stop, doubted = start_text(page, stop, doubted, name, flags, counts, stack, off)
        else:
            start(counts, stack, off, name, flags, is_closed)
        at = stop
        if (
            counts[DEEPEST] > limits[DEEPEST]
            or counts[REBUILT] > limits[REBUILT]
            or counts[ATTRIBUTES] > limits[ATTRIBUTES]
        ):
            return


@compiled
def doubted_up_to(page: Bytes, at: int, ends: Counts) -> int:
    """Where a comment or CDATA section ends, if it is one: what looks like tags within may begin
    elements, and end none.

    ``ends`` holds the last such place of each of the three kinds, so that no stretch is searched
    twice.
    """
    is_cdata = is_section(page, at)
    kind = 1 if is_cdata else int(begins_comment(page, at)) * 2
    if at >= ends[kind]:
        ends[kind] = section_end(page, at) if is_cdata else markup_end(page, at)
    return int(ends[kind])


@compiled
def start_text(
    page: Bytes,
    at: int,
    doubted: int,
    name: int,
    flags: int,
    counts: Counts,
    stack: Stack,
    off: Names,
) -> tuple[int, int]:
    """An element begins that holds text alone, or would outside svg and math; returns where to go
    on, and up to where to doubt.
    """
    if counts[SVG] >= 0 and closes_at(page, next_tag(page, at), name):
        return next_tag(page, at), doubted
    if counts[ODD]:
        lose(counts, stack, SELECT)
        push(counts, stack, name, flags)
        doubt(counts)
        return at, max(doubted, raw_end(page, at, name)) if flags & RAW else doubted
    if flags & ENDS_P and not end_p(counts, stack, off):
        doubt(counts)
    return len(page) if name == _PLAINTEXT else raw_end(page, at, name), doubted


@compiled
def next_tag(page: Bytes, at: int) -> int:
    """Where the next ``<`` stands; the page's length when there is none."""
    while at < len(page) and page[at] != _LESS:
        at += 1
    return at


@compiled
def closes_at(page: Bytes, at: int, name: int) -> bool:
    """Whether the end tag of an element of this name begins there."""
    if at + 1 >= len(page) or page[at + 1] != _SLASH:
        return False
    return is_named(page, at + 2, name)
