r"""Plain reference of `lc_assets.text.signals.signals`: RedPajama-V2's rule signals with strings
and counters.

The pattern of raw words is that of NLTK's ``WordPunctTokenizer`` when the data set was made. Later
versions (3.10.4) join format characters and combining marks to the word after them.
Source: ``app/src/core`` of togethercomputer/RedPajama-Data.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, chain, pairwise
from math import log
from operator import add

from lc_assets.text.signals.names import (
    BULLET_LINES,
    CCNET_SIGNALS,
    LINE_SIGNALS,
    LIST_SIGNALS,
    MODEL_SIGNALS,
    NO_LISTS,
    RULE_SIGNALS,
    TEXT_DOC_SIGNALS,
    Signals,
    Span,
    WordLists,
)
from lc_assets.text.signals.signals import (
    bullet_fraction,
    first_score,
)
from lc_assets.text.words import fold, split_lines

_RAW_WORD = re.compile(r"\w+|[^\w\s]+")


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


TERMINAL_MARKS = (".", "!", "?", "\u201d")
BULLETS = tuple("\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013")

Scores = list[tuple[tuple[int, int], float | None]]


def line_signals(document: Document) -> dict[str, Scores]:
    """Compute all six: ``{name: [((start, end), unrounded score), ...]}``."""
    spans, lines, line_words = document.line_spans, document.lines, document.line_words

    def scored(scores: Iterator[float]) -> Scores:
        return list(zip(spans, scores, strict=True))

    return {
        "rps_lines_ending_with_terminal_punctution_mark": scored(
            float(line.rstrip().endswith(TERMINAL_MARKS)) for line in lines
        ),
        "rps_lines_javascript_counts": scored(
            float(words.count("javascript")) for words in line_words
        ),
        "rps_lines_num_words": scored(map(len, line_words)),
        "rps_lines_numerical_chars_fraction": scored(map(_numeric_fraction, line_words)),
        "rps_lines_start_with_bulletpoint": scored(
            float(line.lstrip().startswith(BULLETS)) for line in lines
        )
        or [(document.span, None)],
        "rps_lines_uppercase_letter_fraction": scored(
            sum(map(str.isupper, line)) / len(line) for line in lines
        ),
    }


def _numeric_fraction(words: list[str]) -> float:
    line = " ".join(words)
    return sum(map(str.isnumeric, line)) / (len(line) or 1)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The n-grams of one length that occur more than once.

    Attributes:
        length: words of an n-gram.
        counts: how often each occurs, overlaps counted; in the order of first occurrence.
        starts: position of the first word of every occurrence, the first one included; ascending.
    """

    length: int
    counts: dict[tuple[str, ...], int]
    starts: list[int]


def repeats_by_length(words: Sequence[str], lengths: range) -> Iterator[Repeats]:
    """Yield the repeated n-grams of each length, shortest first; ``lengths`` goes up in steps of
    one.

    >>> [(found.length, found.starts) for found in repeats_by_length("a b c x a b c".split(), range(2, 5))]
    [(2, [0, 1, 4, 5]), (3, [0, 4]), (4, [])]
    """
    starts = list(range(len(words) - lengths.start + 1))
    for length in lengths:
        found = _repeats(words, length, starts)
        yield found
        starts = [
            start
            for start, after in zip(found.starts, found.starts[1:], strict=False)
            if after == start + 1
        ]


def _repeats(words: Sequence[str], length: int, starts: Sequence[int]) -> Repeats:
    grams = [tuple(words[start : start + length]) for start in starts]
    counts = {gram: count for gram, count in Counter(grams).items() if count > 1}
    return Repeats(
        length, counts, [start for start, gram in zip(starts, grams, strict=True) if gram in counts]
    )


_TOP = range(2, 5)
_LENGTHS = range(2, 11)


def repetition_scores(words: Sequence[str]) -> dict[str, float]:
    """Compute both families of fractions, unrounded, by signal name.

    >>> scores = repetition_scores("the end is near the end is far".split())
    >>> round(scores["rps_doc_frac_chars_top_2gram"], 3), scores["rps_doc_frac_chars_dupe_5grams"]
    (0.522, 0.0)
    """
    chars_before = list(accumulate(map(len, words), initial=0))
    return dict(_score(found, chars_before) for found in repeats_by_length(words, _LENGTHS))


def _score(found: Repeats, chars_before: Sequence[int]) -> tuple[str, float]:
    n_chars = chars_before[-1] or 1
    if found.length in _TOP:
        return f"rps_doc_frac_chars_top_{found.length}gram", _top_chars(found) / n_chars
    return f"rps_doc_frac_chars_dupe_{found.length}grams", sum(
        _marked_chars(found, chars_before)
    ) / n_chars


def _top_chars(found: Repeats) -> int:
    # max() keeps the first of equals, and the counts are in the order of first occurrence.
    gram, count = max(found.counts.items(), key=lambda item: item[1], default=((), 0))
    return sum(map(len, gram)) * count


def _marked_chars(found: Repeats, chars_before: Sequence[int]) -> Iterator[int]:
    stop = 0
    for start in found.starts:
        fresh, stop = max(start, stop), start + found.length
        yield chars_before[stop] - chars_before[fresh]


def list_signals(
    lists: WordLists,
    *,
    words: Sequence[str],
    raw_words: Sequence[str],
    language: str,
    source_domain: str,
    span: tuple[int, int],
) -> dict[str, list[Span]]:
    """Compute the signals whose lists are given.

    >>> lists = WordLists(bad_words={"en": frozenset({"darn", "darn it"})}, domains={"example.org": 3})
    >>> list_signals(lists, words=["darn", "it"], raw_words=[], language="en", source_domain="example.org", span=(0, 7))
    {'rps_doc_ldnoobw_words': [(0, 7, 2.0)], 'rps_doc_ut1_blacklist': [(0, 7, 3)]}
    """
    scores: dict[str, float | int | None] = {}
    if language in lists.bad_words:
        scores["rps_doc_ldnoobw_words"] = float(_n_listed(words, lists.bad_words[language]))
    if language in lists.stop_words:
        stop_words = lists.stop_words[language]
        scores["rps_doc_stop_word_fraction"] = (
            round(sum(word in stop_words for word in raw_words) / len(raw_words), 8)
            if words
            else 0.0
        )
    if lists.domains is not None:
        scores["rps_doc_ut1_blacklist"] = lists.domains.get(source_domain)
    return {name: [(*span, score)] for name, score in scores.items()}


def _n_listed(words: Sequence[str], listed: frozenset[str]) -> int:
    lengths = {phrase.count(" ") + 1 for phrase in listed}
    return sum(
        " ".join(words[start : start + n]) in listed
        for n in lengths
        for start in range(len(words) - n + 1)
    )


DIGITS = 8
"""Decimal places of a score."""

ELLIPSES = ("...", "\u2026")

_LETTER = re.compile("[a-zA-Z]")
_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


def signals_of_document(
    document: Document, lists: WordLists = NO_LISTS, *, language: str = "", source_domain: str = ""
) -> dict[str, list[Span]]:
    """Compute the signals of a text that is split into words and lines already, plainly: the
    reference of the compiled loops.
    """
    scores = (
        _character_scores(document)
        | repetition_scores(document.words)
        | _word_scores(document)
        | _raw_word_scores(document)
    )
    whole = {name: [(*document.span, _rounded(scores[name]))] for name in TEXT_DOC_SIGNALS}
    listed = list_signals(
        lists,
        words=document.words,
        raw_words=document.raw_words,
        language=language,
        source_domain=source_domain,
        span=document.span,
    )
    lines = line_signals(document)
    found = (
        whole
        | listed
        | {name: [(*span, _rounded(score)) for span, score in lines[name]] for name in LINE_SIGNALS}
    )
    return {name: found[name] for name in RULE_SIGNALS if name in found}


def scalar_values(signals: Signals) -> dict[str, float | None]:
    """Take the one value per document that a rule can judge: ``ccnet_*``, ``rps_doc_*``, and the
    share of bulleted lines.

    Only what is there is taken; the share of bullets is always there, and None unless both its
    signals are.

    >>> scalar_values({"rps_doc_word_count": [(0, 25, 6)], "rps_lines_num_words": [(0, 13, 3), (13, 25, 3)]})
    {'rps_doc_word_count': 6, 'frac_lines_start_with_bulletpoint': None}
    """
    single = (*CCNET_SIGNALS, *TEXT_DOC_SIGNALS, *LIST_SIGNALS, *MODEL_SIGNALS)
    values = {name: first_score(signals[name]) for name in single if name in signals}
    bullets = bullet_fraction(
        signals.get("rps_lines_start_with_bulletpoint", ()),
        first_score(signals.get("ccnet_nlines", ())),
    )
    return values | {BULLET_LINES: bullets}


def _character_scores(document: Document) -> dict[str, float | None]:
    text, normalized = document.text, " ".join(document.words)
    return {
        "rps_doc_curly_bracket": (text.count("{") + text.count("}")) / (len(text) or 1),
        "rps_doc_lorem_ipsum": normalized.count("lorem ipsum") / (len(normalized) or 1),
        "rps_doc_frac_lines_end_with_ellipsis": _mean(
            sum(line.rstrip().endswith(ELLIPSES) for line in document.lines), document.lines
        ),
        "rps_doc_num_sentences": float(len(_SENTENCE.findall(text))),
        "rps_doc_symbol_to_word_ratio": _mean(
            sum(map(text.count, ("#", *ELLIPSES))), document.raw_words
        ),
    }


def _word_scores(document: Document) -> dict[str, float | None]:
    words = document.words
    counts = Counter(words)
    return {
        "rps_doc_frac_unique_words": _mean(len(counts), words),
        "rps_doc_mean_word_length": _mean(sum(map(len, words)), words),
        "rps_doc_unigram_entropy": _entropy(list(counts.values()), len(words)),
        "rps_doc_word_count": len(words),
    }


def _raw_word_scores(document: Document) -> dict[str, float | None]:
    counts = Counter(document.raw_words)
    n_words = len(document.raw_words)
    n_alphabetic = sum(count for word, count in counts.items() if _LETTER.search(word))
    return {
        "rps_doc_frac_all_caps_words": _mean(
            sum(count for word, count in counts.items() if word.isupper()), document.raw_words
        ),
        "rps_doc_frac_no_alph_words": 1 - n_alphabetic / n_words if n_words else None,
    }


def _entropy(counts: Sequence[int], n_words: int) -> float | None:
    """Entropy of words by their counts, in the order of first occurrence.

    Plain additions from the left: the order shows in the eighth digit, and ``sum`` adds otherwise
    since Python 3.12.
    """
    terms = {count: -count / n_words * log(count / n_words) for count in set(counts)}
    return reduce(add, map(terms.__getitem__, counts), 0.0) if counts else None


def _mean(total: float, things: Sequence[object]) -> float | None:
    return total / len(things) if things else None


def _rounded(score: float | None) -> float | None:
    return score if score is None else round(score, DIGITS)
