"""Finding the tags of a page, as the HTML standard's tokenizer does, in one walk over its bytes.

Here: where tags, comments and raw text end, and how many attributes a tag has. Not here: what the
    tags do to a browser's tree
(`lc_assets.text.kernels.html_tree`).
Source: the HTML standard, 13.2.5 "Tokenization".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.html_names import name_at, number_of

Bytes = NDArray[np.uint8]

_LONGEST: Final = 16
_SCRIPT: Final = number_of("script")
_LESS, _MORE, _SLASH, _EQUALS, _QUOTE, _APOSTROPHE = 60, 62, 47, 61, 34, 39
_DASH, _BANG, _OPEN_BRACKET = 45, 33, 91


@compiled
def is_white(byte: int) -> bool:
    """Whether a byte separates attributes."""
    return byte in (9, 10, 12, 13, 32)


@compiled
def is_letter(page: Bytes, at: int) -> bool:
    """Whether there is an ASCII letter."""
    return at < len(page) and (65 <= page[at] <= 90 or 97 <= page[at] <= 122)


@compiled
def attributes_at(page: Bytes, at: int) -> tuple[int, int, bool]:
    """Attributes of a tag whose name ends at ``at``: how many, where the tag ends, whether it
    closes itself.

    The end is one past ``>``; one past the page's length when the page ends within the tag, which
    is none then.
    """
    size, n_attributes = len(page), 0
    while True:
        while at < size and (is_white(page[at]) or page[at] == _SLASH):
            at += 1
        if at >= size:
            return n_attributes, size + 1, False
        if page[at] == _MORE:
            return n_attributes, at + 1, page[at - 1] == _SLASH
        n_attributes += 1
        at += 1  # an equals sign may begin a name
        while at < size and not is_white(page[at]) and page[at] not in (_SLASH, _MORE, _EQUALS):
            at += 1
        while at < size and is_white(page[at]):
            at += 1
        if at >= size or page[at] != _EQUALS:
            continue
        at += 1
        while at < size and is_white(page[at]):
            at += 1
        if at < size and page[at] in (_QUOTE, _APOSTROPHE):
            quote = page[at]
            at += 1
            while at < size and page[at] != quote:
                at += 1
            at += 1
        elif at < size:
            while at < size and not is_white(page[at]) and page[at] != _MORE:
                at += 1
            if at < size and page[at] == _MORE:
                return n_attributes, at + 1, False


@compiled
def begins_comment(page: Bytes, at: int) -> bool:
    """Whether ``<!--`` stands there."""
    return (
        at + 3 < len(page)
        and page[at + 1] == _BANG
        and page[at + 2] == _DASH
        and page[at + 3] == _DASH
    )


@compiled
def is_named(page: Bytes, at: int, name: int) -> bool:
    """Whether a tag's whole name, beginning there, is this one; looks no further than names that
    HTML has are long.
    """
    found, stop = name_at(page[: at + _LONGEST], at)
    return found == name and stop < len(page) and (stop < at + _LONGEST)


@compiled
def markup_end(page: Bytes, at: int) -> int:
    """Where what begins with ``<!``, ``<?`` or ``</`` and is no tag ends; ``at`` is that of its
    ``<``.
    """
    size = len(page)
    if begins_comment(page, at):
        place = at + 2
        while place + 2 < size:
            if page[place] == _DASH and page[place + 1] == _DASH:
                if page[place + 2] == _MORE:
                    return place + 3
                if (
                    place >= at + 4
                    and place + 3 < size
                    and page[place + 2] == _BANG
                    and page[place + 3] == _MORE
                ):
                    return place + 4
            place += 1
        return size
    place = at + 2
    while place < size and page[place] != _MORE:
        place += 1
    return place + 1


@compiled
def is_section(page: Bytes, at: int) -> bool:
    """Whether ``<![`` stands there: the start of a CDATA section, which svg and math have."""
    return at + 2 < len(page) and page[at + 1] == _BANG and page[at + 2] == _OPEN_BRACKET


@compiled
def section_end(page: Bytes, at: int) -> int:
    """Where a CDATA section ends."""
    size = len(page)
    while at + 2 < size:
        if page[at] == 93 and page[at + 1] == 93 and page[at + 2] == _MORE:
            return at + 3
        at += 1
    return size


@compiled
def raw_end(page: Bytes, at: int, name: int) -> int:
    """Where the end tag of an element that holds text alone begins; the page's length when there is
    none.

    A script's end tag does not count between ``<!--``, ``<script`` and the next end tag or ``-->``.
    """
    size, escaped = len(page), 0
    while at < size:
        byte = page[at]
        if byte == _LESS:
            is_end = at + 1 < size and page[at + 1] == _SLASH
            if is_named(page, at + 2 if is_end else at + 1, name):
                if is_end and escaped < 2:
                    return at
                if name == _SCRIPT and escaped:
                    escaped = 1 if is_end else 2
            elif name == _SCRIPT and not escaped and begins_comment(page, at):
                escaped = 1
                at += 1
        elif (
            byte == _DASH
            and escaped
            and at + 2 < size
            and page[at + 1] == _DASH
            and page[at + 2] == _MORE
        ):
            escaped = 0
        at += 1
    return size
