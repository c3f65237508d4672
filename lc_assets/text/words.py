r"""Words and lines of a document, as RedPajama-V2 counts them.

Here: folding a text, its two kinds of words, its lines. Not here: what is counted of them
    (`lc_assets.text.signals`).

Two kinds of words, and each signal says which it means:

==========  ==========================================================================================
normalized  ASCII punctuation removed, lower case, NFD, split at whitespace. After NFD an accented
letter
            is two characters, and counts as two wherever lengths are added up.
raw         runs of word characters *or* runs of punctuation: ``\w+|[^\w\s]+``. So "Yes." is two words.
==========  ==========================================================================================

A line ends at ``"\n"`` alone (not at ``"\r"``, nor at U+2028) and its span holds that newline; what
follows the last newline is a line only when there is something.

Source: ``app/src/core/document.py`` and ``utilities/text/normalization.py`` of
    togethercomputer/RedPajama-Data.
The pattern of the raw words is that of NLTK's ``WordPunctTokenizer`` when the data set was made;
since then NLTK glues joiners and combining marks to the word after them (3.10.4 does), so it is
spelled out here.
"""

import re
import string
import unicodedata
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise

_PUNCTUATION = string.punctuation.encode()
_LOWER_ASCII = bytes(range(256)).lower()
_BY_ASCII = bytes([0] * 128 + [255] * 128)
_LONG_BYTES = b"\xff" * 128
_RAW_WORD = re.compile(r"\w+|[^\w\s]+")
_LONG_RUN = re.compile(r"[^\w\s]{64,}")
"""64 marks are 128 bytes of UTF-8 or more, none of them ASCII: `fold` looks for those before it
looks for these.
"""


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its words and lines.

    Attributes:
        text: the document's ``raw_content``.
        raw_words: see above, in order.
        words: the normalized words, in order.
        lines: each line with its newline; joined they are the text.
        line_words: normalized words of each line; chained they are ``words``.
    """

    text: str
    raw_words: list[str]
    words: list[str]
    lines: list[str]
    line_words: list[list[str]]

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the document, in characters."""
        return 0, len(self.text)

    @property
    def line_spans(self) -> list[tuple[int, int]]:
        """Start and end of each line, in characters, its newline included."""
        return list(pairwise(accumulate(map(len, self.lines), initial=0)))


def read_document(text: str) -> Document:
    r"""Split ``text`` into words and lines.

    >>> document = read_document("Ça va?\nYes, it's 1 o'clock.")
    >>> document.raw_words
    ['Ça', 'va', '?', 'Yes', ',', 'it', "'", 's', '1', 'o', "'", 'clock', '.']
    >>> document.words == ["c\u0327a", "va", "yes", "its", "1", "oclock"]
    True
    >>> document.line_spans
    [(0, 7), (7, 27)]
    """
    lines = split_lines(text)
    # Folding never makes or removes a newline and never looks across one, so it is done once for
    # all lines.
    line_words = [line.split() for line in fold(text).split("\n")[: len(lines)]]
    return Document(
        text, _RAW_WORD.findall(text), list(chain.from_iterable(line_words)), lines, line_words
    )


def split_lines(text: str) -> list[str]:
    r"""Split at newlines and keep them.

    >>> split_lines("a\n\nb\r\n")
    ['a\n', '\n', 'b\r\n']
    """
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


def fold(text: str) -> str:
    """Remove ASCII punctuation, lower the case, decompose; whitespace stays as it is.

    >>> fold("“Don't” – É!") == "“dont” – e\u0301"
    True
    """
    # All that is removed is ASCII, so it can go from the bytes: twenty times as fast as
    # str.translate.
    kept = text.encode("utf-8", "surrogatepass").translate(_LOWER_ASCII, _PUNCTUATION)
    if text.isascii():
        return kept.decode()
    lowered = kept.decode("utf-8", "surrogatepass").lower()
    if _LONG_BYTES in kept.translate(_BY_ASCII):
        lowered = _LONG_RUN.sub(_marks_in_order, lowered)
    return unicodedata.normalize("NFD", lowered)


def _marks_in_order(run: re.Match[str]) -> str:
    """Bring combining marks into canonical order, as NFD would.

    CPython sorts a run of marks by insertion, so 20,000 pairs out of order take it 1.2 s and
    200,000 two minutes (measured 2026-11, CPython 3.11); what is in order already takes it no time.
    """
    characters = "".join(unicodedata.normalize("NFD", character) for character in run.group())
    groups = groupby(characters, key=lambda character: unicodedata.combining(character) == 0)
    return "".join(
        chain.from_iterable(
            marks if is_base else sorted(marks, key=unicodedata.combining)
            for is_base, marks in groups
        )
    )


def normalize(text: str) -> str:
    r"""Fold, strip, and make every run of whitespace one space.

    >>> normalize("  The U.S.A.\t– today ")
    'the usa – today'
    """
    return " ".join(fold(text).split())
