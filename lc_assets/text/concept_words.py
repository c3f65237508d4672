"""Sentences and words of a text, as concepts are made of them.

Here: classes of characters, sentences, words, runs; the plain way, which is the oracle of the
    compiled one
(`lc_assets.text.kernels.concept_words`). Not here: what of it is a concept
(`lc_assets.text.concepts`).

A **word** is letters and digits with the marks that belong to them, with single apostrophes or
hyphens inside; numbers have full stops and commas inside too. It is compared in lower case,
character by character, and without a final ``'s``. Scripts that put no spaces between words (Han,
Hiragana, Thai, Lao, Khmer, Burmese) have a word per character. A word of more than `LONGEST_WORD`
characters is none: addresses, base64, text without spaces.

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
them, of one sentence; stop words end it. Everything is one pass, in linear time, whatever the text.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONGEST_WORD: Final = 64
WRAPPED: Final = range(40, 101)
"""Characters of a line whose end may stand inside a sentence."""

LIMIT: Final = 0x40000
"""No character from here on is a letter, a digit, a mark of one or white space, but for variation
selectors; a test asks each.
"""

CLASSES: Final = "HULCDMAYPKEFQBNSO"
"""A character's class: Han and the like, Upper case, Lower case, Caseless letter, Digit or other
number, Mark, Apostrophe, hYphen, full stoP (``P``), Komma, Ender, Full-width ender, Quote, Bracket
that closes, Newline, Space, Other.
"""

_ALONE: Final = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
_SINGLE: Final = {
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

STOP: Final = 1
PRONOUN: Final = 2
ABBREVIATION: Final = 4
COMMON: Final = 8

JOINED: Final = 1
"""The word goes on with the run of the word before."""
CAPITAL: Final = 2
"""It begins with an upper case letter."""
INITIAL: Final = 4
"""It begins a sentence or stands behind a quotation mark, where a capital says nothing."""


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


def folded(character: str) -> str:
    """What a character of a word is compared as: lower case where that is one character, one kind
    of apostrophe and hyphen.

    >>> folded("É"), folded("’"), folded("İ")
    ('é', "'", 'İ')
    """
    lower = character.lower()
    return {"A": "'", "Y": "-"}.get(
        _SINGLE.get(character, ""), lower if len(lower) == 1 else character
    )


class _ByCharacter(dict[int, str]):
    """A table for `str.translate` that is filled as characters come."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, code: int) -> str:
        self[code] = made = self._function(chr(code))  # type: ignore[operator]
        return str(made)


_CLASS: Final = _ByCharacter(class_of)
_FOLDED: Final = _ByCharacter(folded)
_WORD: Final = re.compile("HM*|[ULCD][ULCDM]*(?:(?:[AY]|(?<=D)[PK](?=D))[ULCD][ULCDM]*)*")
_ENDED: Final = re.compile("[PE][AQB]*[SN]")


@dataclass(frozen=True, slots=True)
class SpecialWords:
    """Words that are not like others, in lower case.

    Attributes:
        stop: say nothing by themselves; they end runs.
        pronouns: stop words that stand for the person named last.
        abbreviations: after which a full stop ends no sentence.
        common: found in much other text; they are words, but make no concept by themselves.
    """

    stop: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()

    def kinds(self) -> dict[str, int]:
        """Bits of each word that has any."""
        kinds: dict[str, int] = {}
        for bit, words in (
            (STOP, self.stop | self.pronouns),
            (PRONOUN, self.pronouns),
            (ABBREVIATION, self.abbreviations),
        ):
            kinds |= {word: kinds.get(word, 0) | bit for word in words}
        return kinds | {word: kinds.get(word, 0) | COMMON for word in self.common}


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Words of a text but for the stop words, in order.

    Attributes:
        n_sentences: how many sentences hold a word, stop words included.
        spellings: start and length, int64[word kind, 2], of the first place that each kind of word
            stands at; stop words too.
        weights: uint8[word kind]: letters and digits, at most 2; 0 for a stop word, a common one or
            one without a letter.
        words: int32[n], which kind of word; kinds are numbered as they appear.
        sentences: int32[n].
        flags: uint8[n]: `JOINED`, `CAPITAL`, `INITIAL`.
        pronouns: int32[p], how many words stand before each pronoun.
        pronoun_sentences: int32[p].
        parts: int32[sentence], the part that each sentence lies in; parts are numbered from 0 as
            they come.
    """

    n_sentences: int
    spellings: NDArray[np.int64]
    weights: NDArray[np.uint8]
    words: NDArray[np.int32]
    sentences: NDArray[np.int32]
    flags: NDArray[np.uint8]
    pronouns: NDArray[np.int32]
    pronoun_sentences: NDArray[np.int32]
    parts: NDArray[np.int32]


def spelling(text: str, start: int, length: int) -> str:
    """A word as it is compared."""
    return text[start : start + length].translate(_FOLDED)


def read_words(text: str, special: SpecialWords, part_starts: Sequence[int] = ()) -> Words:
    """Read the words of a text the plain way.

    Args:
        text: any.
        special: which words are not like others.
        part_starts: where parts of the text after the first begin, in characters, ascending.
    """
    return _Reader(text, special, part_starts).read()


class _Reader:
    """What is known of a text so far."""

    def __init__(self, text: str, special: SpecialWords, part_starts: Sequence[int]) -> None:
        self._text, self._part_starts, self._kinds = text, part_starts, special.kinds()
        self._classes = text.translate(_CLASS)
        self._numbers: dict[str, int] = {}
        self._spellings: list[tuple[int, int]] = []
        self._weights: list[int] = []
        self._found: list[tuple[int, int, int]] = []
        self._pronouns: list[tuple[int, int]] = []
        self._parts: list[int] = []
        self._line_start = self._part = 0

    def read(self) -> Words:
        end, abbreviated, joined = 0, False, False
        for match in _WORD.finditer(self._classes):
            gap = self._classes[end : match.start()]
            begins = self._begins_sentence(end, gap, match, abbreviated)
            if begins:
                self._parts.append(self._part)
            joined = joined and not begins and not gap.strip("SN")
            end = match.end()
            initial = begins or "A" in gap or "Q" in gap
            length = end - match.start()
            if length > LONGEST_WORD:
                joined = abbreviated = False
                continue
            word = spelling(self._text, match.start(), length)
            if word.endswith("'s"):
                word = word[:-2]
            kind = self._kinds.get(word, 0)
            capital = match.group()[0] == "U"
            abbreviated = bool(kind & ABBREVIATION) or (
                len(word) == 1 and match.group()[0] in "UL" and word != "i"
            )
            number = self._number(word, match.start(), kind, match.group())
            if kind & PRONOUN:
                self._pronouns.append((len(self._found), len(self._parts) - 1))
            if not kind & STOP:
                self._found.append(
                    (
                        number,
                        len(self._parts) - 1,
                        JOINED * joined | CAPITAL * capital | INITIAL * initial,
                    )
                )
            joined = not kind & STOP
        return self._words()

    def _begins_sentence(self, end: int, gap: str, match: re.Match[str], abbreviated: bool) -> bool:
        lines_end = False
        for place in (end + at for at, character in enumerate(gap) if character == "N"):
            lines_end |= place - self._line_start not in WRAPPED
            self._line_start = place + 1
        part = sum(start <= match.start() for start in self._part_starts)
        is_other, self._part = part != self._part, part
        if not self._parts or is_other or lines_end or "F" in gap:
            return True
        if abbreviated and gap.startswith("P") and not gap.startswith(("PP", "PE")):
            gap = gap[1:]
        return bool(_ENDED.search(gap)) and match.group()[0] != "L"

    def _number(self, word: str, start: int, kind: int, classes: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self._numbers)
            self._spellings.append((start, len(word)))
            of_word = classes[: len(word)]
            tells = not kind & (STOP | COMMON) and any(letter in of_word for letter in "HULC")
            self._weights.append(
                min(2, sum(of_word.count(letter) for letter in "HULCD")) if tells else 0
            )
        return self._numbers[word]

    def _words(self) -> Words:
        words, sentences, flags = np.array(self._found, np.int64).reshape(-1, 3).T
        places, their_sentences = np.array(self._pronouns, np.int32).reshape(-1, 2).T
        return Words(
            n_sentences=len(self._parts),
            spellings=np.array(self._spellings, np.int64).reshape(-1, 2),
            weights=np.array(self._weights, np.uint8),
            words=words.astype(np.int32),
            sentences=sentences.astype(np.int32),
            flags=flags.astype(np.uint8),
            pronouns=places,
            pronoun_sentences=their_sentences,
            parts=np.array(self._parts, np.int32),
        )
