"""The stack of open elements of a page, and the formatting left open: an upper bound of what a
browser's parser keeps.

The elements from `SURE` on are the parser's own, except for formatting that it opened again. Of the
elements below, and where rules are not followed (within ``select``, ``template``, ``frameset`` and
malformed ``svg``), only the innermost one ends, and only by its own end tag. So the depth counted
is never below the true one, and far above it only for malformed pages.
`lc_assets.text.html.starts` and `lc_assets.text.html.ends` say which tags do what.

Source: the HTML standard, 13.2.4 "Parse state".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.html.tags import (
    CAPTION,
    CELL,
    FOREIGN,
    FORMATTING,
    KIND,
    MARKER,
    OTHER,
    ROW,
    ROWS,
    SCOPE,
    SELECT,
    TABLE,
)

Counts = NDArray[np.int64]
Stack = NDArray[np.int64]
Names = NDArray[np.int64]

BEYOND: Final = 1 << 40
"""A count above any limit."""

(
    N,
    SURE,
    SVG,
    ODD,
    N_OFF,
    DEEPEST,
    REBUILT,
    ATTRIBUTES,
    ROOT_ATTRIBUTES,
    QUIRKS,
    TANGLED,
    FORM_SET,
) = range(12)
"""Places in the counts: elements on the stack; the first that is sure; the svg or math that is
followed, or -1; elements within which rules are not followed; formatting that is left open. The
greatest depth; elements that may be built again; the greatest number of attributes of a tag, and of
all tags of html and body together. Whether a table ends a paragraph (0), or does not (1: quirks
mode), or this is unknown (2); whether it is no longer known which formatting ends with what;
whether a form began that no end tag ended.
"""

N_COUNTS: Final = 12
NAME, FLAGS, OFF_BEFORE = range(3)
"""Columns of the stack: name, flags, and how much formatting was left open before it."""


@compiled
def is_odd(flags: int) -> bool:
    """Whether the rules within an element are not followed, but for those of svg and math while
    they are sure.
    """
    return flags & KIND in (FOREIGN, OTHER, SELECT)


@compiled
def doubt(counts: Counts) -> None:
    """After a tag whose effect is not modelled: none of the open elements is sure."""
    counts[SURE] = counts[N]
    counts[SVG] = -1


@compiled
def push(counts: Counts, stack: Stack, name: int, flags: int) -> None:
    """An element begins."""
    n = counts[N]
    if n >= len(stack):
        counts[DEEPEST] = n + 1
        return
    stack[n, NAME], stack[n, FLAGS], stack[n, OFF_BEFORE] = name, flags, counts[N_OFF]
    counts[N] = n + 1
    counts[DEEPEST] = max(counts[DEEPEST], n + 1 + counts[N_OFF])
    counts[ODD] += is_odd(flags)


@compiled
def drop(counts: Counts, stack: Stack, off: Names, by_itself: bool) -> None:
    """The innermost element ends: by its own end tag, or with an enclosing element."""
    n = counts[N] - 1
    flags = stack[n, FLAGS]
    counts[N] = n
    counts[SURE] = min(counts[SURE], n)
    counts[ODD] -= is_odd(flags)
    if counts[SVG] >= n:
        counts[SVG] = -1
    if flags & MARKER:
        if not by_itself and level(flags) < 0:
            counts[TANGLED] = 1
        elif not counts[TANGLED]:
            counts[N_OFF] = min(counts[N_OFF], stack[n, OFF_BEFORE])
    elif flags & FORMATTING and (counts[TANGLED] or not by_itself):
        leave_open(counts, off, stack[n, NAME])


@compiled
def leave_open(counts: Counts, off: Names, name: int) -> None:
    """Formatting is left open: it is reopened in later elements."""
    if counts[N_OFF] >= len(off):
        counts[REBUILT] = BEYOND
        return
    off[counts[N_OFF]] = name
    counts[N_OFF] += 1


@compiled
def rebuild(counts: Counts, stack: Stack) -> None:
    """An element ended: formatting that is or may be left open is reopened in later elements."""
    counts[REBUILT] += counts[N_OFF]
    for place in range(counts[SURE]):
        counts[REBUILT] += stack[place, FLAGS] & FORMATTING != 0


@compiled
def drop_to(counts: Counts, stack: Stack, off: Names, place: int, by_itself: bool) -> None:
    """All elements from ``place`` on end, this one by its own end tag or not."""
    while counts[N] > place:
        drop(counts, stack, off, by_itself and counts[N] == place + 1)
    rebuild(counts, stack)


@compiled
def take_out(counts: Counts, stack: Stack, place: int) -> None:
    """One element ends, and those within it do not."""
    for after in range(place + 1, counts[N]):
        for column in range(3):
            stack[after - 1, column] = stack[after, column]
    counts[N] -= 1
    counts[SURE] = min(counts[SURE], counts[N])


@compiled
def lose(counts: Counts, stack: Stack, kind: int | np.int64) -> None:
    """Elements of a kind may have ended or not: no later end tag is sure to close them."""
    for place in range(counts[N]):
        if stack[place, FLAGS] & KIND == kind:
            stack[place, NAME] = -1


@compiled
def has_kind(counts: Counts, stack: Stack, kind: int | np.int64) -> bool:
    """Whether an element of this kind may be open at all."""
    for place in range(counts[N]):  # noqa: SIM110 - numba compiles no generators
        if stack[place, FLAGS] & KIND == kind:
            return True
    return False


@compiled
def has_name(counts: Counts, stack: Stack, name: int) -> bool:
    """Whether an element of this name may be open at all."""
    for place in range(counts[N]):  # noqa: SIM110 - as above
        if stack[place, NAME] == name:
            return True
    return False


@compiled
def level(flags: int) -> int:
    """Level of a table part within its table; its content must have a higher level; -1 for other
    elements.
    """
    kind = flags & KIND
    if kind == TABLE:
        return 0
    if kind == ROWS:
        return 1
    if kind == ROW:
        return 2
    return 3 if kind in (CELL, CAPTION) else -1


@compiled
def forget(counts: Counts, stack: Stack, off: Names, name: int) -> bool:
    """Formatting that was left open ends, with what was opened in it since, unless a scope began
    between.

    Returns whether there is any of this name, so that something may have ended.
    """
    if not counts[N_OFF]:
        return False
    place = counts[N] - 1
    while place >= 0 and not stack[place, FLAGS] & SCOPE:
        place -= 1
    first = stack[place, OFF_BEFORE] if place >= 0 else 0
    for found in range(counts[N_OFF] - 1, -1, -1):
        if off[found] == name:
            if found >= first and not counts[TANGLED]:
                for after in range(found + 1, counts[N_OFF]):
                    off[after - 1] = off[after]
                counts[N_OFF] -= 1
            return True
    return False


@compiled
def end_formatting(counts: Counts, stack: Stack, off: Names, place: int, is_special: bool) -> None:
    """A formatting element ends; a block element within it stays open."""
    if is_special or counts[TANGLED]:
        if counts[TANGLED]:
            doubt(counts)
            return
        take_out(counts, stack, place)
        doubt(counts)
        rebuild(counts, stack)
    else:
        drop_to(counts, stack, off, place, True)
