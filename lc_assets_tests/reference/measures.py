r"""Plain reference of the counts of `lc_assets.text.measures.measures`, with strings and
counters.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate

from lc_assets.errors import BadInput
from lc_assets.text.characters import PUNCTUATION, TERMINAL_MARKS
from lc_assets.text.measures.lines import SHORT_LINE, LineCounts
from lc_assets.text.measures.ngrams import GramCounts
from lc_assets.text.measures.spacy_words import spaced
from lc_assets.text.measures.words import (
    STOP_WORDS,
    WORD_KINDS,
    WordCounts,
)
from lc_assets.text.words import fold

_RAW_WORD = re.compile(r"\w+|[^\w\s]+")
_NO_PUNCTUATION = re.compile(f"[^{PUNCTUATION.pattern[1:-1]}]")


def words_of(text: str, kind: str) -> list[str]:
    """Split a text into its words of a kind.

    >>> [words_of("Don't go!", kind) for kind in WORD_KINDS]
    [['dont', 'go'], ['Don', "'", 't', 'go', '!'], ['Do', "n't", 'go', '!'], ["Don't", 'go!']]

    Raises:
        BadInput: when there is no such kind.
    """
    if kind == "raw":
        return _RAW_WORD.findall(text)
    if kind == "spacy":
        return spaced(text).split()
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


_STRETCH = re.compile("\n+")
_PARAGRAPH = re.compile(r"\n{2,}")


def count_lines(text: str) -> LineCounts:
    r"""Count what measures of lines need.

    >>> counts = count_lines("- one\n- one\n\n  - two …\n")
    >>> counts.n_broken, counts.n_broken_bulleted, counts.n_stretches_seen, counts.n_newline_repeated, counts.n_paragraphs
    (4, 3, 1, 4, 2)
    """
    broken, newline = text.splitlines(), text.split("\n")
    filled = [line for line in newline if line.strip()]
    repeated = {line: count for line, count in Counter(newline).items() if count > 1}
    stretches, paragraphs = _STRETCH.split(text), _PARAGRAPH.split(text.strip())
    n_stretches_seen, n_stretch_chars_seen = _seen_before(stretches)
    n_paragraphs_seen, n_paragraph_chars_seen = _seen_before(paragraphs)
    return LineCounts(
        n_broken=len(broken),
        n_broken_bulleted=sum(line.lstrip().startswith(("\u2022", "-")) for line in broken),
        n_broken_ellipsis=sum(line.rstrip().endswith(("...", "\u2026")) for line in broken),
        n_stretches=len(stretches),
        n_stretches_seen=n_stretches_seen,
        n_stretch_chars_seen=n_stretch_chars_seen,
        n_newline=len(newline),
        n_newline_bulleted=sum(line.startswith(("*", "-")) for line in newline),
        n_newline_ellipsis=sum(line.endswith("\u2026") for line in newline),
        n_newline_repeated=sum(repeated.values()),
        n_newline_chars_repeated=sum(len(line) * count for line, count in repeated.items()),
        n_filled=len(filled),
        n_filled_terminal=sum(bool(TERMINAL_MARKS.match(line[-1])) for line in filled),
        n_filled_short=sum(len(line) <= SHORT_LINE for line in filled),
        n_filled_chars_seen=_seen_before(filled)[1],
        n_paragraphs=len(paragraphs),
        n_paragraphs_seen=n_paragraphs_seen,
        n_paragraph_chars_seen=n_paragraph_chars_seen,
        n_chars_dense=sum(map(len, text.split())),
    )


def _seen_before(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces are copies of an earlier one, and the characters of these."""
    distinct = set(pieces)
    return len(pieces) - len(distinct), sum(map(len, pieces)) - sum(map(len, distinct))


def count_grams(words: Sequence[str], lengths: Collection[int]) -> dict[int, GramCounts]:
    """Count n-grams of each length, as tuples of words.

    >>> count_grams("a bb a bb c".split(), [2])[2]
    GramCounts(top_count=2, top_chars=3, repeated_chars=6, all_chars=12)
    """
    return {length: _count(words, length) for length in lengths}


def _count(words: Sequence[str], length: int) -> GramCounts:
    chars_before = list(accumulate(map(len, words), initial=0))
    counts = Counter(
        tuple(words[start : start + length]) for start in range(len(words) - length + 1)
    )
    # max() keeps the first of equals, and a Counter is in the order of first occurrence.
    gram, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
    repeated = sum(count * sum(map(len, gram)) for gram, count in counts.items() if count > 1)
    every = sum(
        chars_before[start + length] - chars_before[start]
        for start in range(len(words) - length + 1)
    )
    return GramCounts(count, sum(map(len, gram)), repeated, every)


def seen_before_chars(words: Sequence[str], lengths: Collection[int]) -> dict[int, int]:
    """Characters of n-grams seen before, by length, as datatrove walks.

    >>> seen_before_chars("a b c a b c a b".split(), [2, 3])
    {2: 4, 3: 3}
    """
    return {length: _walk(words, length) for length in lengths}


def _walk(words: Sequence[str], length: int) -> int:
    seen: set[str] = set()
    chars = start = 0
    while start <= len(words) - length:
        gram = "".join(words[start : start + length])
        if gram in seen:
            chars += len(gram)
            start += length
        else:
            seen.add(gram)
            start += 1
    return chars
