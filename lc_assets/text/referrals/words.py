"""Sentences and words of a text, as concepts are made of them.

A **word** is letters and digits with the marks that belong to them, with single apostrophes or
hyphens inside; numbers have full stops and commas inside too. It is compared in lower case,
character by character, and without a final ``'s``. Scripts without spaces between words (Han,
Hiragana, Thai, Lao, Khmer, Burmese) have a word per character. More than `LONGEST_WORD` characters
are not a word: base64, text without spaces. Addresses of the web have no words.

A **sentence** ends

- after full stops, question and exclamation marks, with the quotes and brackets that close after
  them, and white space, unless a lower case letter begins the next word; a full stop after an
  abbreviation or an initial ends nothing;
- after the marks of scripts that need no white space, such as ``。`` and ``؟``;
- where a line ends, unless the line has `WRAPPED` characters: then it may be prose wrapped at a
  column. A blank line is shorter. So headings, items of lists and paragraphs of one line, as in
  crawled text, are sentences of their own;
- where another part of the text begins, when the caller says that it has parts.

Sentences without a word are not counted. A **run** is words with nothing but white space between
them, of one sentence; stop words end it.
`lc_assets.text.referrals.reading` reads them in one pass.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from lc_assets.arrays import Bytes, Int32s, Int64s
from lc_assets.records import frozen

LONGEST_WORD = 64
WRAPPED = range(40, 101)
"""Characters of a line whose end may be within a sentence."""

LIMIT = 0x40000
"""No character from here on is a letter, a digit, a mark or white space, except variation
selectors; a test checks each.
"""

CLASSES = "HULCDMAYPKEFQBNSO"
"""A character's class: Han and the like, Upper case, Lower case, Caseless letter, Digit or other
number, Mark, Apostrophe, hYphen, full stoP (``P``), Komma, Ender, Full-width ender, Quote, Bracket
that closes, Newline, Space, Other.
"""

_ALONE = (
    (0x20000, 0x3FFFF), (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x0E00, 0x0EFF), (0x1000, 0x109F),
    (0x1780, 0x17FF), (0x3041, 0x309F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF),
)  # fmt: skip
_SINGLE = {
    **dict.fromkeys("'\u2019", "A"),
    **dict.fromkeys("-\u2010\u2011", "Y"),
    ".": "P",
    ",": "K",
    **dict.fromkeys("!?\u2026", "E"),
    **dict.fromkeys("\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964\u0965", "F"),
    **dict.fromkeys(
        '"\u2018\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f', "Q"
    ),
    **dict.fromkeys(")]}\uff09\u3011", "B"),
    **dict.fromkeys("\n\x0b\x0c\x85\u2028\u2029", "N"),
    **dict.fromkeys("\u200c\u200d", "M"),
}

STOP = 1
PRONOUN = 2
ABBREVIATION = 4
COMMON = 8
DATE = 16
"""Also a flag of a word: a day of the week or a month, which no pronoun refers to."""

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january", "february", "july", "september", "october", "november", "december")
DATES = frozenset((*_DAYS, *_MONTHS))
"""Without months that are also names or other words; pronouns are in English too."""

ADDRESS = re.compile(r"""(?:https?://|www\.)\S*[^\s.,;:!?)\]}'"]""")
"""Addresses, whose parts are not words."""

JOINED = 1
"""The word continues the run of the word before."""
CAPITAL = 2
"""It begins with an upper case letter."""
INITIAL = 4
"""It begins a sentence or follows a quotation mark, where a capital is not informative."""


def class_of(character: str) -> str:
    """A character's class, one of `CLASSES`.

    >>> "".join(map(class_of, "Né 7.—中"))
    'ULSDPOH'
    """
    if character in _SINGLE:
        return _SINGLE[character]
    if character.isalnum():
        if any(low <= ord(character) <= high for low, high in _ALONE) and not character.isdigit():
            return "H"
        if character.isupper() or character.istitle():
            return "U"
        return "L" if character.islower() else "C" if character.isalpha() else "D"
    if character.isspace():
        return "S"
    return (
        "M" if unicodedata.category(character).startswith("M") and ord(character) < LIMIT else "O"
    )


@cache
def folded(character: str) -> str:
    """The form in which a character of a word is compared: lower case where that is one character,
    and one kind of apostrophe and hyphen.

    >>> folded("É"), folded("’"), folded("İ")
    ('é', "'", 'İ')
    """
    lower = character.lower()
    return {"A": "'", "Y": "-"}.get(
        _SINGLE.get(character, ""), lower if len(lower) == 1 else character
    )


@frozen
class SpecialWords:
    """Words with a special role, in lower case.

    Attributes:
        stop: words without meaning of their own; they end runs.
        pronouns: stop words that refer to the person named last.
        abbreviations: after which a full stop ends no sentence.
        common: frequent in other text; they are words, but not concepts by themselves.
    """

    stop: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()

    def kinds(self) -> dict[str, int]:
        """The bits of each of these words."""
        kinds: dict[str, int] = {}
        for bit, words in (
            (STOP, self.stop | self.pronouns),
            (PRONOUN, self.pronouns),
            (ABBREVIATION, self.abbreviations),
            (DATE, DATES),
        ):
            kinds |= {word: kinds.get(word, 0) | bit for word in words}
        return kinds | {word: kinds.get(word, 0) | COMMON for word in self.common}


class Words(NamedTuple):
    """Words of a text without the stop words, in order.

    Attributes:
        n_sentences: how many sentences hold a word, stop words included.
        spellings: int64[word kind, 2], start and length of the first occurrence of each kind of
            word, stop words included.
        weights: uint8[word kind]: letters and digits, at most 2; 0 for a stop word, a common one or
            one without a letter.
        words: int32[n], which kind of word; kinds are numbered as they appear.
        sentences: int32[n].
        flags: uint8[n]: `JOINED`, `CAPITAL`, `INITIAL`, `DATE`.
        pronouns: int32[p], how many words come before each pronoun.
        pronoun_sentences: int32[p].
        parts: int32[sentence], the part that each sentence is in, from 0.
    """

    n_sentences: int
    spellings: Int64s
    weights: Bytes
    words: Int32s
    sentences: Int32s
    flags: Bytes
    pronouns: Int32s
    pronoun_sentences: Int32s
    parts: Int32s


def spelling(text: str, start: int, length: int) -> str:
    """A word as it is compared."""
    return "".join(map(folded, text[start : start + length]))
