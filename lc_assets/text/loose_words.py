r"""Loose words: what is left of a text's words when case, accents and punctuation are forgotten.

Two copies of a sentence seldom agree to the letter: quotes are curled, dashes lengthened, accents
lost, lines wrapped. Contamination is looked for in words that do not see that. A character is
folded by itself, never by its neighbours:

=============================  ====================================================================================
character                      becomes
=============================  ====================================================================================
letter or number               case-folded, compatibility forms resolved: ``É`` is ``e``, ``ß`` is ``ss``, ``ﬁ`` is ``fi``
mark without width, format     nothing: combining accents, soft hyphens, joiners
apostrophe, straight or not    nothing: ``don't`` is one word
of a script without spaces     a word of its own: Han, kana, Thai, Lao, Burmese, Khmer
anything else                  the end of a word: white space, punctuation, symbols, controls, lone surrogates
=============================  ====================================================================================

These are not RedPajama-V2's normalized words (`lc_assets.text.words`), which keep accents and
curled quotes and glue what a dash parts. Here: the folding, as the plain twin does it and as a
table for `lc_assets.text.kernels.loose_words`.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

SEPARATOR, DROPPED = 0, 1
"""What the table says of a character that ends a word, and of one that becomes nothing."""
ALONE, MANY = 1 << 30, 1 << 31
"""Marks in the table: a word of its own; becomes several code points, and the rest of the entry
says where they are.
"""

PAGE = 256
N_CODES = 0x110000

_APOSTROPHES = frozenset("'\u2018\u2019\u02bc\u02bb\u2032\u00b4`")
_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFD),
)
_VANISHING = frozenset(("Mn", "Me", "Cf"))


def loose_words(text: str) -> list[str]:
    """The loose words of a text, in order.

    >>> loose_words("“Don’t”—said the CAFÉ’s owner — 1,000×!")
    ['dont', 'said', 'the', 'cafes', 'owner', '1', '000']
    """
    return [word for word, _, _ in placed_words(text)]


def placed_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each loose word with where it starts and ends in ``text``, in characters; the plain
    twin of the kernels.

    A word starts at the first character that adds to it and ends after the last one.
    """
    letters: list[str] = []
    start = end = 0
    for place, char in enumerate(text):
        folded = fold_character(char)
        if not folded:
            continue
        alone = is_alone(char)
        if letters and (alone or folded == " "):
            yield "".join(letters), start, end
            letters = []
        if folded == " ":
            continue
        if not letters:
            start = place
        letters.append(folded)
        end = place + 1
        if alone:
            yield folded, start, end
            letters = []
    if letters:
        yield "".join(letters), start, end


@cache
def fold_character(char: str) -> str:
    """What a character becomes: letters, nothing, or a space where it ends a word.

    >>> [fold_character(char) for char in "Éßﬁ½'-\u0301"]
    ['e', 'ss', 'fi', '12', '', ' ', '']
    """
    if char in _APOSTROPHES or unicodedata.category(char) in _VANISHING:
        return ""
    resolved = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(part for part in resolved if _spells(part)) or " "


@cache
def is_alone(char: str) -> bool:
    """Whether a character is a word of its own.

    >>> [is_alone(char) for char in "a東ア한"]
    [False, True, True, False]
    """
    code = ord(char)
    return any(first <= code <= last for first, last in _WITHOUT_SPACES) and fold_character(
        char
    ) not in {"", " "}


def _spells(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LN" or category == "Mc"


class FoldingTable:
    """What each code point becomes, for the kernels; filled page by page as texts need it.

    Attributes:
        codes: ``(1114112,)`` uint32: `SEPARATOR`, `DROPPED`, a folded code point (perhaps marked
            `ALONE`), or `MANY` and where in ``several`` its folded code points are. Untouched pages
            take no memory.
        several: uint32: how many code points, then these, for each character that becomes several.
        known: ``(4352,)`` bool: the pages that are filled.
    """

    def __init__(self) -> None:
        self.codes: NDArray[np.uint32] = np.zeros(N_CODES, np.uint32)
        self.several: NDArray[np.uint32] = np.zeros(1, np.uint32)
        self.known: NDArray[np.bool_] = np.zeros(N_CODES // PAGE, np.bool_)
        self.fill(0)

    def fill(self, page: int) -> None:
        """Fill one page of 256 code points."""
        several: list[int] = []
        entries = [
            self._entry(chr(code), several) for code in range(page * PAGE, (page + 1) * PAGE)
        ]
        if several:  # before the entries that point into it: another thread may be reading
            self.several = np.concatenate([self.several, np.array(several, np.uint32)])
        self.codes[page * PAGE : (page + 1) * PAGE] = entries
        self.known[page] = True

    def _entry(self, char: str, several: list[int]) -> int:
        folded = fold_character.__wrapped__(char)
        if folded in {"", " "}:
            return SEPARATOR if folded else DROPPED
        mark = ALONE if is_alone(char) else 0
        if len(folded) == 1:
            return mark | ord(folded)
        place = len(self.several) + len(several)
        several += [len(folded), *map(ord, folded)]
        return MANY | mark | place


@cache
def folding_table() -> FoldingTable:
    """The one table of this process; a function of nothing, filled lazily."""
    return FoldingTable()


def code_points(text: str) -> NDArray[np.uint32]:
    """The code points of a text; lone surrogates are code points too.

    Returns:
        ``(n,)`` uint32, read-only.
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
