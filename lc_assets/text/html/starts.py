"""Effects of start tags on the stack of open elements.

Source: the HTML standard, 13.2.6.4 "The rules for parsing tokens in HTML content", and 13.2.6.5 for
    svg and math.
"""

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.compiling import borrowing
from lc_assets.text.html.stack import (
    CHOICES,
    FLAGS,
    FORM_SET,
    MARKS,
    N_OFF,
    NAME,
    ODD,
    SURE,
    SVG,
    TANGLED,
    N,
    doubt,
    drop_to,
    end_formatting,
    forget,
    has_kind,
    has_name,
    level,
    lose,
    push,
)
from lc_assets.text.html.tags import (
    BREAKS,
    BUTTON,
    CAPTION,
    CELL,
    ENDS_P,
    FLAGS_OF_NAMES,
    FOREIGN,
    FORM,
    FORMATTING,
    HEADING,
    ITEM,
    ITEM_SCOPE,
    KIND,
    KNOWN,
    LINK,
    MARKER,
    OPTION,
    OPTIONS,
    P_SCOPE,
    PASSED_OVER,
    ROW,
    ROWS,
    SELECT,
    SPECIAL,
    TABLE,
    TERM,
    UNFOLLOWED,
    VOID,
    P,
    number_of,
)

_TBODY, _TR = number_of("tbody"), number_of("tr")
_FLAGS_OF = (0, FLAGS_OF_NAMES["tbody"], FLAGS_OF_NAMES["tr"])


@borrowing
def start(
    counts: Int64s, stack: Int64s, off: Int64s, name: int, flags: int, is_closed: bool
) -> None:
    """A start tag of an element whose content is not only text."""
    kind = flags & KIND
    if kind == SELECT and not counts[ODD]:
        counts[MARKS] = 0
    counts[CHOICES] += counts[MARKS] if kind == OPTION else 0
    if counts[SVG] >= 0:
        if not flags & KNOWN:
            if not is_closed:
                push(counts, stack, name, 0)
            return
        doubt(counts)
    is_sure = True
    if kind in (ITEM, TERM) and not counts[ODD]:
        is_sure = end_open(counts, stack, off, kind, ITEM_SCOPE)
    if flags & ENDS_P:
        is_sure &= end_p(counts, stack, off)
    is_passed = flags & BREAKS or (flags & VOID and is_closed and kind != ROWS)
    if counts[ODD] and flags & VOID:
        lose(counts, stack, SELECT)
    if is_passed or (
        flags & (VOID | PASSED_OVER)
        and kind != ROWS
        and not (counts[ODD] and has_kind(counts, stack, FOREIGN))
    ):
        if not is_sure:
            doubt(counts)
        return
    if counts[ODD]:
        start_unfollowed(counts, stack, off, name, flags)
        return
    if kind in (ROWS, ROW, CELL, CAPTION):
        start_table_part(counts, stack, off, name, flags)
    elif kind == TABLE:
        start_table(counts, stack, name, flags)
    elif kind == LINK:
        start_link(counts, stack, off, name, flags)
    elif not (kind == FOREIGN and is_closed):
        if kind in (HEADING, OPTION, OPTIONS):
            is_sure &= end_current(counts, stack, off, OPTION if kind == OPTIONS else kind)
        is_sure &= (kind != FORM or not counts[FORM_SET]) and not flags & UNFOLLOWED
        is_sure &= kind != BUTTON or not has_kind(counts, stack, BUTTON)
        push(counts, stack, name, flags)
        if kind == FOREIGN:
            counts[SVG] = counts[N] - 1
        elif kind == FORM:
            counts[FORM_SET] = 1
    if not is_sure:
        doubt(counts)


@borrowing
def start_unfollowed(counts: Int64s, stack: Int64s, off: Int64s, name: int, flags: int) -> None:
    """An element begins where rules are not followed.

    Only options end each other. Whatever else begins may have ended a select, which no end tag is
    known to close then.
    """
    is_option = flags & KIND == OPTION or flags & KIND == OPTIONS
    if is_option and not has_kind(counts, stack, FOREIGN):
        end_current(counts, stack, off, OPTION)
    if not is_option:
        lose(counts, stack, SELECT)
    push(counts, stack, name, flags)
    doubt(counts)


@borrowing
def start_table_part(counts: Int64s, stack: Int64s, off: Int64s, name: int, flags: int) -> None:
    """A caption, a group of rows, a row or a cell begins: open parts of the same or a higher level
    end.
    """
    if not has_kind(counts, stack, TABLE):
        return
    wanted = 1 if flags & KIND == CAPTION else level(flags)
    place = counts[N] - 1
    while place >= counts[SURE]:
        found = level(stack[place, FLAGS])
        if 0 <= found < wanted:
            break
        place -= 1
    if place < counts[SURE]:
        push(counts, stack, name, flags)
        doubt(counts)
        return
    if counts[N] > place + 1:
        drop_to(counts, stack, off, place + 1, False)
    if flags & KIND == ROWS and flags & (VOID | PASSED_OVER):
        return
    for implied in range(level(stack[place, FLAGS]) + 1, wanted):
        push(counts, stack, _TBODY if implied == 1 else _TR, _FLAGS_OF[implied])
    push(counts, stack, name, flags)


@borrowing
def start_table(counts: Int64s, stack: Int64s, name: int, flags: int) -> None:
    """A table begins: within a cell of another table, else it may replace that table; it ends a
    paragraph or not, by the page's document type.
    """
    if has_kind(counts, stack, P):
        doubt(counts)
    place = counts[N] - 1
    while place >= counts[SURE] and level(stack[place, FLAGS]) < 0:
        place -= 1
    is_in_cell = place >= counts[SURE] and level(stack[place, FLAGS]) == 3
    if not is_in_cell and has_kind(counts, stack, TABLE):
        doubt(counts)
    push(counts, stack, name, flags)


@borrowing
def start_link(counts: Int64s, stack: Int64s, off: Int64s, name: int, flags: int) -> None:
    """A link begins: an open link ends."""
    if counts[TANGLED]:
        push(counts, stack, name, flags)
        doubt(counts)
        return
    is_sure = not forget(counts, stack, off, name)
    place, is_special = counts[N] - 1, False
    while place >= counts[SURE] and stack[place, NAME] != name and not stack[place, FLAGS] & MARKER:
        is_special |= stack[place, FLAGS] & SPECIAL != 0
        place -= 1
    is_sure &= place >= counts[SURE] or not has_name(counts, stack, name)
    if place >= counts[SURE] and stack[place, NAME] == name:
        end_formatting(counts, stack, off, place, is_special)
    push(counts, stack, name, flags)
    if not is_sure:
        doubt(counts)


@borrowing
def end_open(
    counts: Int64s, stack: Int64s, off: Int64s, kind: int | np.int64, barrier: int
) -> bool:
    """The element of a kind that is open ends, with its content, unless a barrier is around the new
    element; returns whether it is known which.
    """
    place = counts[N] - 1
    if place >= 0 and stack[place, FLAGS] & KIND == kind:
        drop_to(counts, stack, off, place, True)
        return True
    while place >= counts[SURE] and not counts[ODD]:
        if stack[place, FLAGS] & KIND == kind:
            drop_to(counts, stack, off, place, True)
            return True
        if stack[place, FLAGS] & barrier:
            return True
        place -= 1
    return not has_kind(counts, stack, kind)


@borrowing
def end_p(counts: Int64s, stack: Int64s, off: Int64s) -> bool:
    """A block begins: the paragraph around it ends; returns whether it is known which."""
    return end_open(counts, stack, off, P, P_SCOPE)


@borrowing
def end_current(counts: Int64s, stack: Int64s, off: Int64s, kind: int | np.int64) -> bool:
    """The innermost element ends if it is of this kind and nothing may have been opened again in
    it; returns whether that is known.
    """
    if not counts[N] or stack[counts[N] - 1, FLAGS] & KIND != kind:
        return True
    if counts[N_OFF]:
        return False
    for place in range(counts[SURE]):
        if stack[place, FLAGS] & FORMATTING:
            return False
    drop_to(counts, stack, off, counts[N] - 1, True)
    return True
