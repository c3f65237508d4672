"""Effects of end tags on the stack of open elements.

Source: the HTML standard, 13.2.6.4 "The rules for parsing tokens in HTML content", and 13.2.6.5 for
    svg and math.
"""

import numpy as np

from lc_assets.compiling import compiled
from lc_assets.text.html.stack import (
    FLAGS,
    FORM_SET,
    NAME,
    ODD,
    SURE,
    SVG,
    Counts,
    N,
    Names,
    Stack,
    doubt,
    drop,
    drop_to,
    end_formatting,
    forget,
    has_kind,
    has_name,
    lose,
    rebuild,
    take_out,
)
from lc_assets.text.html.tags import (
    BLOCK,
    BUTTON,
    CAPTION,
    CELL,
    FORM,
    FORMATTING,
    HEADING,
    ITEM,
    KIND,
    LIST,
    OPTION,
    OPTIONS,
    PASSED_OVER,
    ROW,
    ROWS,
    SCOPE,
    SELECT,
    SPECIAL,
    TABLE,
    TERM,
    TEXT_ONLY,
    VOID,
    P,
    flags_of,
)


@compiled
def end(counts: Counts, stack: Stack, off: Names, name: int, flags: int) -> None:
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
    elif kind == FORM:
        while counts[N] > place + 1 and stack[counts[N] - 1, FLAGS] & KIND in (
            P,
            ITEM,
            TERM,
            OPTION,
            OPTIONS,
        ):
            drop(counts, stack, off, False)
        take_out(counts, stack, place)
        rebuild(counts, stack)
    elif flags & FORMATTING:
        end_formatting(counts, stack, off, place, is_special)
    else:
        drop_to(counts, stack, off, place, True)


@compiled
def end_unfound(counts: Counts, stack: Stack, name: int, flags: int, is_stopped: bool) -> None:
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


@compiled
def end_within_svg(counts: Counts, stack: Stack, off: Names, name: int) -> None:
    """An end tag within svg or math that is not the innermost element's."""
    place = counts[N] - 1
    while place > counts[SVG] and stack[place, NAME] != name:
        place -= 1
    if stack[place, NAME] == name:
        drop_to(counts, stack, off, place, True)
    elif not flags_of(name) & TEXT_ONLY or has_name(counts, stack, name):
        doubt(counts)


@compiled
def matches(open_name: int, open_flags: int, name: int, kind: int | np.int64) -> bool:
    """Whether an end tag closes this element: any heading's end tag closes any heading."""
    return open_name == name or (kind == HEADING and open_flags & KIND == HEADING)


@compiled
def is_barrier(found: int, flags: int) -> bool:
    """Whether an element limits the search of an end tag."""
    kind = flags & KIND
    if kind in (TABLE, ROWS, ROW, CELL, CAPTION):
        return found & KIND == TABLE
    if kind == P:
        return found & SCOPE != 0 or found & KIND == BUTTON
    if kind == ITEM:
        return found & (SCOPE | LIST) != 0
    if flags & (BLOCK | FORMATTING) or kind == FORM:
        return found & SCOPE != 0
    return found & SPECIAL != 0
