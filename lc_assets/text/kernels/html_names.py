"""Names of HTML elements as numbers, and how a browser's tree treats each.

Here: the table and looking a name up. Not here: following a page's tags by it (`lc_assets.text.kernels.html_tree`).
Source: the HTML standard, 13.2 "Parsing HTML documents".
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled

Bytes = NDArray[np.uint8]

VOID: Final = 1 << 8
"""Has no content."""
RAW: Final = 1 << 9
"""Its content is text up to its own end tag."""
ENDS_P: Final = 1 << 10
"""Its start ends an open paragraph."""
SPECIAL: Final = 1 << 11
"""Ends of other elements do not reach past it."""
SCOPE: Final = 1 << 12
"""Nothing is looked for beyond it, by most end tags."""
MARKER: Final = 1 << 13
"""Formatting that is left open in it is forgotten at its end."""
FORMATTING: Final = 1 << 14
"""Is opened again after what ended it; those left open multiply with the paragraphs after them."""
PASSED_OVER: Final = 1 << 15
"""Is never on the stack, or adds no depth to speak of."""
BLOCK: Final = 1 << 16
"""Its end tag ends everything within it that is in scope."""
LIST: Final = 1 << 17
"""Nothing is looked for beyond it by the end of a list's item."""
KNOWN: Final = 1 << 18
"""Is HTML's: within svg and math it ends them, or does something else that is not worth following."""
TEXT_ONLY: Final = 1 << 19
"""Within svg and math, mostly holds text alone."""
BREAKS: Final = 1 << 20
"""Has no content, and ends svg and math."""
LOOSE: Final = 1 << 21
"""The start of an item looks beyond it, though it is special."""
UNFOLLOWED: Final = 1 << 22
"""What its start does to what is open is not followed."""

KIND: Final = 0xFF
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

_MODULUS: Final = (1 << 55) - 55
_FACTOR: Final = 131
_SLOTS: Final = 1024

_WORDS: Final[dict[Any, str]] = {
    VOID: "area base basefont bgsound br embed frame hr img image input keygen link meta param source track wbr col",
    RAW: "iframe noembed noframes script style textarea title xmp plaintext",
    ENDS_P: "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main menu "
    "nav ol p search section summary ul h1 h2 h3 h4 h5 h6 pre listing form li dd dt plaintext xmp hr",
    SPECIAL: "address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup dd details dir "
    "div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input "
    "keygen li link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre script search section "
    "select source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp",
    SCOPE: "applet caption html table td th marquee object template select frameset svg math",
    MARKER: "applet caption td th marquee object",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    PASSED_OVER: "html head body colgroup",
    BREAKS: "br embed hr img meta",
    BLOCK: "address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer header hgroup "
    "listing main menu nav ol pre search section summary ul applet marquee object dd dt h1 h2 h3 h4 h5 h6",
    LIST: "ol ul",
    KNOWN: "ruby span sub sup var optgroup noscript",
    TEXT_ONLY: "title desc style script mi mo mn ms mtext annotation",
    LOOSE: "address div p",
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
_ALSO_FOREIGN: Final = frozenset([*_WORDS[TEXT_ONLY].split(), "a"])


def number_of(name: str) -> int:
    """The number of an element's name, in lower case: what `name_at` finds in a page."""
    number = 0
    for byte in name.encode():
        number = (number * _FACTOR + byte) % _MODULUS
    return number


def _table() -> NDArray[np.int64]:
    flags: dict[str, int] = {}
    for flag, words in _WORDS.items():
        for word in words.split():
            flags[word] = flags.get(word, 0) | flag
    table = np.zeros((_SLOTS, 2), np.int64)
    for word, found in flags.items():
        slot = number_of(word) % _SLOTS
        while table[slot, 0]:
            slot = (slot + 1) % _SLOTS
        table[slot] = number_of(word), found if word in _ALSO_FOREIGN else found | KNOWN
    return table


_TABLE: Final = _table()


@compiled
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


@compiled
def flags_of(number: int) -> int:
    """What is known of a name; 0 of one that HTML has no rule for."""
    slot = number % _SLOTS
    while _TABLE[slot, 0]:
        if _TABLE[slot, 0] == number:
            return int(_TABLE[slot, 1])
        slot = (slot + 1) % _SLOTS
    return 0
