r"""Kinds of words, and what is counted of a document's words.

Here: splitting a text into words of a kind, and the counts that measures of words need, as
    integers. This is the plain
way; the compiled one gives the same counts (`lc_assets.text.fast_counts`). Not here: words in a row
(`lc_assets.text.gram_counts`), the fractions (`lc_assets.text.measures`).

==========  ================================================================================
normalized  `lc_assets.text.words.fold`, then ``str.split``: RedPajama-V2's words
raw         ``\w+|[^\w\s]+``: RedPajama-V2's raw words, and the nearest to datatrove's words
whitespace  ``str.split``: the words of Dolma and NeMo Curator
==========  ================================================================================

datatrove splits English with spaCy's tokenizer, which cuts ``don't`` into ``do`` and ``n't`` and
knows abbreviations by heart. Nothing here does so: its measures are had of these three kinds, and
equal its own on the same words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.words import fold

WORD_KINDS: Final = ("normalized", "raw", "whitespace")
"""What a measure of words can be asked of."""

STOP_WORDS: Final = ("the", "be", "to", "of", "and", "that", "have", "with")
"""The eight of Rae et al. 2021, A.1.1."""

TERMINAL_MARKS: Final = re.compile(
    r"[\x21\x2e\x3f\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    r"\u166e\u1735\u1736\u17d4-\u17d6\u17d9\u17da\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d\u1b7e\u1c3b"
    r"\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce"
    r"\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    r"\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1\U00011141-\U00011143\U000111c5\U000111c6"
    r"\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2\U000115c3"
    r"\U000115c9-\U000115d7\U00011641\U00011642\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c"
    r"\U00011c41\U00011c42\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44"
    r"\U00016e98\U0001bc9f\U0001da88]"
)
"""One character that ends a sentence in some script: ``TERMINAL_PUNCTUATION`` of datatrove 0.10,
159 characters.
"""

PUNCTUATION: Final = re.compile(
    f"[{TERMINAL_MARKS.pattern[1:-1]}"
    r"\x00-\x08\x0b-\x1f\x22-\x2d\x2f\x3a-\x3e\x40\x5b-\x60\x7b-\x9f\xab\xb4\xbb\u2013\u2014\u2019\u201c-\u201e\u2026\u2236\u2501\u25ba"
    r"\u3001\u3008-\u300d\u3010\u3011\uff05\uff08\uff09\uff0c\uff11\uff1a\uff1b\uff5e]"
)
"""One character of ``PUNCTUATION_SET`` of datatrove 0.10: 440 characters, control characters and a
full-width 1 among them.
"""

_RAW_WORD = re.compile(r"\w+|[^\w\s]+")
_NO_PUNCTUATION = re.compile(f"[^{PUNCTUATION.pattern[1:-1]}]")


@dataclass(frozen=True, slots=True)
class WordCounts:
    """What is counted of a list of words; lengths in characters.

    Attributes:
        n_words: words.
        n_chars: characters of all words.
        n_non_symbol: words with a character that is not `PUNCTUATION`.
        n_chars_non_symbol: characters of these.
        n_with_letter: words with an alphabetic character (``str.isalpha``).
        n_with_symbol: words that hold ``#`` or ``…``.
        n_stop_distinct: how many of `STOP_WORDS` occur.
        n_stop_occurring: words that are one of them.
    """

    n_words: int
    n_chars: int
    n_non_symbol: int
    n_chars_non_symbol: int
    n_with_letter: int
    n_with_symbol: int
    n_stop_distinct: int
    n_stop_occurring: int


def words_of(text: str, kind: str) -> list[str]:
    """Split a text into its words of a kind.

    >>> [words_of("Don't go!", kind) for kind in WORD_KINDS]
    [['dont', 'go'], ['Don', "'", 't', 'go', '!'], ["Don't", 'go!']]

    Raises:
        BadInput: when there is no such kind.
    """
    if kind == "raw":
        return _RAW_WORD.findall(text)
    if kind == "whitespace":
        return text.split()
    if kind == "normalized":
        return fold(text).split()
    raise BadInput(f"no words are called {kind!r}; there are {', '.join(WORD_KINDS)}")


def count_words(words: Sequence[str]) -> WordCounts:
    """Count what measures of words need.

    >>> counts = count_words("The # of the $5 to-do…".split())
    >>> counts.n_words, counts.n_non_symbol, counts.n_with_letter, counts.n_with_symbol, counts.n_stop_distinct
    (6, 5, 4, 2, 2)
    """
    lengths = list(map(len, words))
    non_symbol = [len(word) for word in words if _NO_PUNCTUATION.search(word)]
    stops = [word for word in words if word in STOP_WORDS]
    return WordCounts(
        n_words=len(words),
        n_chars=sum(lengths),
        n_non_symbol=len(non_symbol),
        n_chars_non_symbol=sum(non_symbol),
        n_with_letter=sum(any(map(str.isalpha, word)) for word in words),
        n_with_symbol=sum("#" in word or "\u2026" in word for word in words),
        n_stop_distinct=len(set(stops)),
        n_stop_occurring=len(stops),
    )
