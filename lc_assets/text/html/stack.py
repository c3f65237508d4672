"""The stack of open elements of a page, and the formatting left open: an upper bound of what a
browser's parser keeps; and the effects of end tags.

The elements from `SURE` on are the parser's own, except for formatting that it opened again. Of the
elements below, and where rules are not followed (within ``select``, ``template``, ``frameset`` and
malformed ``svg``), only the innermost one ends, and only by its own end tag. So the depth counted
is never below the true one, and far above it only for malformed pages.
`lc_assets.text.html.starts` has the effects of start tags.

Source: the HTML standard, 13.2.4 "Parse state", 13.2.6.4 "The rules for parsing tokens in HTML
    content", and 13.2.6.5 for svg and math.
"""

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.compiling import borrowing
from lc_assets.text.html.tags import (
    BLOCK,
    CAPTION,
    CELL,
    FOREIGN,
    FORM,
    FORMATTING,
    HEADING,
    ITEM,
    KIND,
    LIST,
    MARKER,
    OPTION,
    OTHER,
    P_SCOPE,
    PASSED_OVER,
    ROW,
    ROWS,
    SCOPE,
    SELECT,
    SPECIAL,
    TABLE,
    TEXT_ONLY,
    VOID,
    P,
    flags_of,
)

BEYOND = 1 << 40
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
    TANGLED,
    FORM_SET,
    MARKS,
    CHOICES,
    LEVELS,
) = range(14)
"""Places in the counts: elements on the stack; the first that is sure; the svg or math that is
followed, or -1; elements within which rules are not followed; formatting that is left open. The
greatest depth; elements that may be built again; the greatest number of attributes of a tag, and of
all tags of html and body together. Whether it is no longer known which formatting ends with what;
whether a form began that no end tag ended. Tags and comments since the last surely outermost
select began, and their sum over all options. The depth of all tags, summed.
"""

N_COUNTS = 14
NAME, FLAGS, OFF_BEFORE = range(3)
"""Columns of the stack: name, flags, and how much formatting was left open before it."""


@borrowing
def is_odd(flags: int) -> bool:
    """Whether the rules within an element are not followed, but for those of svg and math while
    they are sure.
    """
    return flags & KIND in (FOREIGN, OTHER, SELECT)


@borrowing
def doubt(counts: Int64s) -> None:
    """After a tag whose effect is not modelled: none of the open elements is sure."""
    counts[SURE] = counts[N]
    counts[SVG] = -1


@borrowing
def depth_of(counts: Int64s) -> int:
    """How deep an element would be that begins now."""
    return int(counts[N] + counts[N_OFF])


@borrowing
def push(counts: Int64s, stack: Int64s, name: int, flags: int) -> None:
    """An element begins."""
    n = counts[N]
    if n >= len(stack):
        counts[DEEPEST] = n + 1
        return
    stack[n, NAME], stack[n, FLAGS], stack[n, OFF_BEFORE] = name, flags, counts[N_OFF]
    counts[N] = n + 1
    counts[DEEPEST] = max(counts[DEEPEST], n + 1 + counts[N_OFF])
    counts[ODD] += is_odd(flags)


@borrowing
def drop(counts: Int64s, stack: Int64s, off: Int64s, by_itself: bool) -> None:
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


@borrowing
def leave_open(counts: Int64s, off: Int64s, name: int) -> None:
    """Formatting is left open: it is reopened in later elements."""
    if counts[N_OFF] >= len(off):
        counts[REBUILT] = BEYOND
        return
    off[counts[N_OFF]] = name
    counts[N_OFF] += 1


@borrowing
def rebuild(counts: Int64s, stack: Int64s) -> None:
    """An element ended: formatting that is or may be left open is reopened in later elements."""
    n_rebuilt = counts[N_OFF]
    for place in range(counts[SURE]):
        n_rebuilt += stack[place, FLAGS] & FORMATTING != 0
    counts[REBUILT] += n_rebuilt
    counts[LEVELS] += n_rebuilt * depth_of(counts)


@borrowing
def drop_to(counts: Int64s, stack: Int64s, off: Int64s, place: int, by_itself: bool) -> None:
    """All elements from ``place`` on end, this one by its own end tag or not."""
    while counts[N] > place:
        drop(counts, stack, off, by_itself and counts[N] == place + 1)
    rebuild(counts, stack)


@borrowing
def take_out(counts: Int64s, stack: Int64s, place: int) -> None:
    """One element ends, and those within it do not."""
    for after in range(place + 1, counts[N]):
        for column in range(3):
            stack[after - 1, column] = stack[after, column]
    counts[N] -= 1
    counts[SURE] = min(counts[SURE], counts[N])


@borrowing
def lose(counts: Int64s, stack: Int64s, kind: int | np.int64) -> None:
    """Elements of a kind may have ended or not: no later end tag is sure to close them."""
    for place in range(counts[N]):
        if stack[place, FLAGS] & KIND == kind:
            stack[place, NAME] = -1


@borrowing
def has_kind(counts: Int64s, stack: Int64s, kind: int | np.int64) -> bool:
    """Whether an element of this kind may be open at all."""
    for place in range(counts[N]):  # noqa: SIM110 - numba compiles no generators
        if stack[place, FLAGS] & KIND == kind:
            return True
    return False


@borrowing
def has_name(counts: Int64s, stack: Int64s, name: int) -> bool:
    """Whether an element of this name may be open at all."""
    for place in range(counts[N]):  # noqa: SIM110 - as above
        if stack[place, NAME] == name:
            return True
    return False


@borrowing
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


@borrowing
def forget(counts: Int64s, stack: Int64s, off: Int64s, name: int) -> bool:
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


@borrowing
def end_formatting(
    counts: Int64s, stack: Int64s, off: Int64s, place: int, is_special: bool
) -> None:
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


@borrowing
def end(counts: Int64s, stack: Int64s, off: Int64s, name: int, flags: int) -> None:
    """An end tag."""
    n, kind = counts[N], flags & KIND
    if kind == FORM and not counts[ODD]:
        counts[FORM_SET] = 0
    if counts[SVG] >= 0:
        end_within_svg(counts, stack, off, name)
        return
    if flags & FORMATTING and forget(counts, stack, off, name):
        doubt(counts)
        return
    if n and stack[n - 1, NAME] == name:
        drop_to(counts, stack, off, n - 1, True)
        return
    if (
        kind == SELECT
        and n > 1
        and stack[n - 1, FLAGS] & KIND == OPTION
        and stack[n - 2, NAME] == name
    ):
        drop_to(counts, stack, off, n - 2, True)
        return
    if flags & (PASSED_OVER | VOID):
        return
    place, is_special, is_stopped = n - 1, False, False
    while (
        place >= counts[SURE]
        and not counts[ODD]
        and not matches(stack[place, NAME], stack[place, FLAGS], name, kind)
    ):
        found = stack[place, FLAGS]
        if is_barrier(found, flags):
            is_stopped = True
            break
        is_special |= found & SPECIAL != 0
        place -= 1
    if is_stopped or place < counts[SURE] or counts[ODD]:
        end_unfound(counts, stack, name, flags, is_stopped)
    elif kind == FORM and place < n - 1:
        take_out(counts, stack, place)
        doubt(counts)
        rebuild(counts, stack)
    elif flags & FORMATTING:
        end_formatting(counts, stack, off, place, is_special)
    else:
        drop_to(counts, stack, off, place, True)


@borrowing
def end_unfound(counts: Int64s, stack: Int64s, name: int, flags: int, is_stopped: bool) -> None:
    """An end tag that closes nothing, or an unknown element.

    A ``</form>`` that closes nothing still prevents later end tags from closing the form.
    """
    kind = flags & KIND
    if kind == FORM:
        lose(counts, stack, FORM)
        doubt(counts)
    elif is_stopped:
        return
    elif has_name(counts, stack, name) or (kind == HEADING and has_kind(counts, stack, HEADING)):
        doubt(counts)


@borrowing
def end_within_svg(counts: Int64s, stack: Int64s, off: Int64s, name: int) -> None:
    """An end tag within svg or math that is not the innermost element's."""
    place = counts[N] - 1
    while place > counts[SVG] and stack[place, NAME] != name:
        place -= 1
    if stack[place, NAME] == name:
        drop_to(counts, stack, off, place, True)
    elif not flags_of(name) & TEXT_ONLY or has_name(counts, stack, name):
        doubt(counts)


@borrowing
def matches(open_name: int, open_flags: int, name: int, kind: int | np.int64) -> bool:
    """Whether an end tag closes this element: any heading's end tag closes any heading."""
    return open_name == name or (kind == HEADING and open_flags & KIND == HEADING)


@borrowing
def is_barrier(found: int, flags: int) -> bool:
    """Whether an element limits the search of an end tag."""
    kind = flags & KIND
    if kind in (TABLE, ROWS, ROW, CELL, CAPTION):
        return found & KIND == TABLE
    if kind == P:
        return found & P_SCOPE != 0
    if kind == ITEM:
        return found & (SCOPE | LIST) != 0
    if flags & (BLOCK | FORMATTING) or kind == FORM:
        return found & SCOPE != 0
    return found & SPECIAL != 0
