"""Names of HTML elements as numbers, how the tree builder treats them, and tags in a page.

`name_at` and `flags_of` read and look up names; the other kernels find where tags, comments and raw
text end, and count attributes. `lc_assets.text.html.stack` models the effects of tags on the tree.

Source: the HTML standard, 13.2 "Parsing HTML documents", especially 13.2.5 "Tokenization".
"""

from typing import Any

import numpy as np

from lc_assets.arrays import Bytes, Int64s
from lc_assets.compiling import borrowing

VOID = 1 << 8
"""Has no content."""
RAW = 1 << 9
"""Its content is text up to its own end tag."""
ENDS_P = 1 << 10
"""Its start ends an open paragraph."""
ITEM_SCOPE = 1 << 11
"""The start tag of a list item does not search beyond it."""
SCOPE = 1 << 12
"""Most end tags do not search beyond it."""
MARKER = 1 << 13
"""Formatting that is left open in it is forgotten at its end."""
FORMATTING = 1 << 14
"""Is opened again after what ended it; those left open multiply with the paragraphs after them."""
PASSED_OVER = 1 << 15
"""Is never on the stack, or adds no significant depth."""
BLOCK = 1 << 16
"""Its end tag ends everything within it that is in scope."""
LIST = 1 << 17
"""The end tag of a list item does not search beyond it."""
KNOWN = 1 << 18
"""An HTML element: within svg and math it ends them, or has an effect that is not modelled."""
TEXT_ONLY = 1 << 19
"""Within svg and math, mostly contains only text."""
BREAKS = 1 << 20
"""Has no content, and ends svg and math."""
LOOSE = 1 << 21
"""The start tag of a list item searches beyond it, though it is special."""
SPECIAL = ITEM_SCOPE | LOOSE
"""A scope: end tags of other elements do not close elements outside of it."""
ONLY_P = 1 << 23
P_SCOPE = SCOPE | ONLY_P
"""The end of a paragraph is not searched beyond it."""
UNFOLLOWED = 1 << 22
"""The effect of its start tag on open elements is not modelled."""

KIND = 0xFF
"""Lowest bits of the flags: which rule an element has of its own."""
(
    P,
    ITEM,
    TERM,
    HEADING,
    LINK,
    BUTTON,
    FORM,
    TABLE,
    ROWS,
    ROW,
    CELL,
    CAPTION,
    FOREIGN,
    OTHER,
    ROOT,
    OPTION,
    OPTIONS,
    SELECT,
) = (np.int64(kind) for kind in range(1, 19))

_MODULUS = (1 << 55) - 55
_FACTOR = 131
_SLOTS = 1024

_WORDS: dict[Any, str] = {
    VOID: (
        "area base basefont bgsound br embed frame hr img image input keygen link meta param "
        "source track wbr col"
    ),
    RAW: "iframe noembed noframes script style textarea title xmp plaintext",
    ENDS_P: (
        "address article aside blockquote center details dialog dir div dl fieldset figcaption "
        "figure footer header hgroup main menu nav ol p search section summary ul h1 h2 h3 h4 h5 "
        "h6 pre listing form li dd dt plaintext xmp hr"
    ),
    ITEM_SCOPE: (
        "applet area article aside base basefont bgsound blockquote body br button "
        "caption center col colgroup dd details dir dl dt embed fieldset figcaption figure "
        "footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input "
        "keygen li link listing main marquee menu meta nav noembed noframes noscript object ol "
        "param plaintext pre script search section select source style summary table tbody td "
        "template textarea tfoot th thead title tr track ul wbr xmp"
    ),
    SCOPE: "applet caption html table td th marquee object template select frameset svg math",
    MARKER: "applet caption td th marquee object",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    PASSED_OVER: "html head body colgroup",
    BREAKS: "br embed hr img meta",
    BLOCK: (
        "address article aside blockquote button center details dialog dir div dl fieldset "
        "figcaption figure footer header hgroup listing main menu nav ol pre search section "
        "summary ul applet marquee object dd dt h1 h2 h3 h4 h5 h6"
    ),
    LIST: "ol ul",
    KNOWN: "ruby span sub sup var optgroup noscript",
    TEXT_ONLY: "title desc style script mi mo mn ms mtext annotation",
    LOOSE: "address div p",
    ONLY_P: "button",
    UNFOLLOWED: "nobr rb rp rt rtc",
    P: "p",
    ITEM: "li",
    TERM: "dd dt",
    HEADING: "h1 h2 h3 h4 h5 h6",
    LINK: "a",
    BUTTON: "button",
    FORM: "form",
    TABLE: "table",
    ROWS: "tbody thead tfoot colgroup col",
    ROW: "tr",
    CELL: "td th",
    CAPTION: "caption",
    FOREIGN: "svg math",
    OPTION: "option",
    OPTIONS: "optgroup",
    SELECT: "select",
    OTHER: "template frameset foreignobject annotation-xml",
    ROOT: "html body",
}
_ALSO_FOREIGN = frozenset([*_WORDS[TEXT_ONLY].split(), "a"])


def number_of(name: str) -> int:
    """The number of an element's name, in lower case: what `name_at` finds in a page."""
    number = 0
    for byte in name.encode():
        number = (number * _FACTOR + byte) % _MODULUS
    return number


def _flags() -> dict[str, int]:
    flags: dict[str, int] = {}
    for flag, words in _WORDS.items():
        for word in words.split():
            flags[word] = flags.get(word, 0) | flag
    return {word: bits if word in _ALSO_FOREIGN else bits | KNOWN for word, bits in flags.items()}


FLAGS_OF_NAMES = _flags()
"""The flags of each name that HTML has a rule for."""


def _table() -> Int64s:
    table = np.zeros((_SLOTS, 2), np.int64)
    for word, bits in FLAGS_OF_NAMES.items():
        slot = number_of(word) % _SLOTS
        while table[slot, 0]:
            slot = (slot + 1) % _SLOTS
        table[slot] = number_of(word), bits
    return table


_TABLE = _table()


@borrowing
def name_at(page: Bytes, start: int) -> tuple[int, int]:
    """Number of the tag's name that begins at ``start``, and where it ends."""
    number, at = 0, start
    while at < len(page):
        byte = int(page[at])
        if byte in (9, 10, 12, 13, 32, 47, 62):
            break
        if 65 <= byte <= 90:
            byte += 32
        number = (number * _FACTOR + byte) % _MODULUS
        at += 1
    return number, at


@borrowing
def flags_of(number: int) -> int:
    """The flags of a name; 0 for one that HTML has no rule for."""
    slot = number % _SLOTS
    while _TABLE[slot, 0]:
        if _TABLE[slot, 0] == number:
            return int(_TABLE[slot, 1])
        slot = (slot + 1) % _SLOTS
    return 0


_LONGEST = 16
_SCRIPT = number_of("script")
_LESS, _MORE, _SLASH, _EQUALS, _QUOTE, _APOSTROPHE = 60, 62, 47, 61, 34, 39
_DASH, _BANG, _OPEN_BRACKET = 45, 33, 91


@borrowing
def is_white(byte: int) -> bool:
    """Whether a byte separates attributes."""
    return byte in (9, 10, 12, 13, 32)


@borrowing
def is_letter(page: Bytes, at: int) -> bool:
    """Whether there is an ASCII letter."""
    return at < len(page) and (65 <= page[at] <= 90 or 97 <= page[at] <= 122)


@borrowing
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


@borrowing
def begins_comment(page: Bytes, at: int) -> bool:
    """Whether ``<!--`` is at this position."""
    return (
        at + 3 < len(page)
        and page[at + 1] == _BANG
        and page[at + 2] == _DASH
        and page[at + 3] == _DASH
    )


@borrowing
def is_named(page: Bytes, at: int, name: int) -> bool:
    """Whether a tag's whole name, beginning there, is this one; looks no further than names that
    HTML has are long.
    """
    found, stop = name_at(page[: at + _LONGEST], at)
    return found == name and stop < len(page) and (stop < at + _LONGEST)


@borrowing
def markup_end(page: Bytes, at: int) -> int:
    """Where what begins with ``<!``, ``<?`` or ``</`` and is not a tag ends; ``at`` is that of its
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


@borrowing
def is_section(page: Bytes, at: int) -> bool:
    """Whether ``<![`` is at this position: the start of a CDATA section of svg or math."""
    return at + 2 < len(page) and page[at + 1] == _BANG and page[at + 2] == _OPEN_BRACKET


@borrowing
def section_end(page: Bytes, at: int) -> int:
    """Where a CDATA section ends."""
    size = len(page)
    while at + 2 < size:
        if page[at] == 93 and page[at + 1] == 93 and page[at + 2] == _MORE:
            return at + 3
        at += 1
    return size


@borrowing
def raw_end(page: Bytes, at: int, name: int) -> int:
    """Where the end tag of an element that contains only text begins; the page's length when there
    is none.

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
