r"""Measuring documents: computing the requested columns.

Every count is a whole number and every measure one division of two of them. A column is a measure's
name, and after a colon the kind of words where it depends on words: ``frac_short_lines``,
``word_count:normalized``. The kinds are `lc_assets.text.measures.words.WORD_KINDS`. A name that
ends in ``.datatrove`` or ``.dolma`` is that program's own way of counting; ``docs/measures.md`` has
the differences.

Sentences are counted as RedPajama-V2 does, by matches of ``\b[^.!?]+[.!?]*``, or by spaCy's words,
where an abbreviation ends none.
"""

import re
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from lc_assets.arrays import Bytes
from lc_assets.errors import BadInput, known_names
from lc_assets.text.hashing import hash_seed
from lc_assets.text.measures.licences import licence_of
from lc_assets.text.measures.lines import LineCounts, count_lines
from lc_assets.text.measures.ngrams import (
    DUPLICATE_LENGTHS,
    TOP_LENGTHS,
    GramCounts,
    find_unique_starts,
    seen_before,
)
from lc_assets.text.measures.words import WORD_KINDS, Words, read_words
from lc_assets.text.numbering import count_grams, number_pieces
from lc_assets.text.rules.line_rules import C4, FINEWEB, REFINEDWEB, Edited, edit

GZIP_LEVEL = 6
_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


@dataclass(eq=False)  # if frozen, it would take three times as long to make
class Reading:
    """A text, and what is read of it for measures, each thing when it is first needed.

    Attributes:
        text: the text.
        whole: the text before its lines were edited.
        url: its address, which is also searched for licences.
        kind: of words.
        longest: words of the longest n-grams that are counted.
    """

    text: str
    whole: str
    url: str | None
    kind: str
    longest: int

    @cached_property
    def words(self) -> Words:
        """Its words."""
        return read_words(self.text, self.kind)

    @cached_property
    def lines(self) -> LineCounts:
        """Counts of its lines."""
        return count_lines(self.text)

    @cached_property
    def c4(self) -> Edited:
        """What C4's line editing leaves of it."""
        return edit(self.whole, C4)

    @cached_property
    def fineweb(self) -> Edited:
        """What FineWeb's line editing leaves of it."""
        return edit(self.whole, FINEWEB)

    @cached_property
    def refinedweb(self) -> Edited:
        """What RefinedWeb's line editing leaves of it."""
        return edit(self.whole, REFINEDWEB)

    @cached_property
    def grams(self) -> list[GramCounts]:
        """Counts of n-grams, at n."""
        words, seed = self.words, hash_seed()
        chars, starts, ends = words.chars, words.ends[:-1], words.ends[1:]
        numbers, grams = np.empty(len(starts), np.int32), np.zeros((self.longest + 1, 4), np.int64)
        number_pieces(words.joined, starts, ends, seed, numbers)
        count_grams(numbers, np.bincount(numbers), chars, seed, grams)
        return [
            GramCounts(
                top, top_chars, repeated, int((chars[n:] - chars[: max(len(chars) - n, 0)]).sum())
            )
            for n, (top, top_chars, repeated, _) in enumerate(grams.tolist())
        ]

    @cached_property
    def unique_starts(self) -> Bytes:
        """See `find_unique_starts`."""
        unique = np.empty(len(self.words.ends) - 1, np.uint8)
        find_unique_starts(self.words.joined, self.words.ends, hash_seed(), unique)
        return unique

    def n_chars_seen(self, length: int) -> int:
        """Characters of n-grams of some length that were seen before."""
        words = self.words
        arrays = words.joined, words.ends, words.chars, self.unique_starts
        return seen_before(*arrays, length, hash_seed())


_Value: TypeAlias = float | None
_Formula: TypeAlias = Callable[[Reading], _Value]


def _per(count: float, things: int) -> _Value:
    return count / things if things else None


def _of_words(count: Callable[[Reading], float]) -> _Formula:
    """A count per word."""
    return lambda of: _per(count(of), of.words.counts.n_words)


def _times(text: str, *marks: str) -> int:
    return sum(map(text.count, marks))


def _median_chars(of: Reading) -> _Value:
    """Median of the words' lengths in characters, the mean of the middle two."""
    lengths = np.diff(of.words.chars)
    return float(np.median(lengths)) if len(lengths) else None


def _top_datatrove(length: int, of: Reading) -> _Value:
    top = of.grams[length]
    return _per((top.top_chars + length - 1) * top.top_count, len(of.text))


def _top_dolma(length: int, of: Reading) -> _Value:
    top = of.grams[length]
    return top.top_chars * top.top_count / max(of.words.counts.n_chars, 1)


def _dupe_datatrove(length: int, of: Reading) -> _Value:
    return _per(of.n_chars_seen(length), len(of.text))


def _dupe_dolma(length: int, of: Reading) -> _Value:
    return of.grams[length].repeated_chars / max(of.grams[length].all_chars, 1)


def _gzip_ratio(of: Reading) -> _Value:
    data = of.text.encode("utf-8", "surrogatepass")
    return _per(len(zlib.compress(data, GZIP_LEVEL)), len(data))


def _share_removed(edited: Edited) -> _Value:
    return _per(sum(edited.n_words_flagged.values()), edited.n_words)


def _sentences(of: Reading) -> _Value:
    from lc_assets.text.measures.spacy_words import count_sentences

    return count_sentences(of.text)


def _by_length(
    name: str, formula: Callable[[int, Reading], _Value], lengths: Collection[int]
) -> dict[str, _Formula]:
    """One measure per length of n-grams."""
    return {name.format(length): partial(formula, length) for length in lengths}


_OF_WORDS: Mapping[str, _Formula] = {
    "word_count": lambda of: of.words.counts.n_words,
    "mean_word_length": _of_words(lambda of: of.words.counts.n_chars),
    "median_word_length": _median_chars,
    "word_count_non_symbol": lambda of: of.words.counts.n_non_symbol,
    "mean_word_length_non_symbol": lambda of: _per(
        of.words.counts.n_chars_non_symbol, of.words.counts.n_non_symbol
    ),
    "hash_to_word_ratio": _of_words(lambda of: _times(of.text, "#")),
    "ellipsis_to_word_ratio": _of_words(lambda of: _times(of.text, "...", "\u2026")),
    "frac_words_with_symbol": _of_words(lambda of: of.words.counts.n_with_symbol),
    "frac_words_with_letter": _of_words(lambda of: of.words.counts.n_with_letter),
    "stop_words_distinct": lambda of: of.words.counts.n_stop_distinct,
    "stop_words_occurring": lambda of: of.words.counts.n_stop_occurring,
    "newlines_per_word": _of_words(lambda of: _times(of.text, "\n")),
    **_by_length("frac_chars_top_{}gram.datatrove", _top_datatrove, TOP_LENGTHS),
    **_by_length("frac_chars_top_{}gram.dolma", _top_dolma, TOP_LENGTHS),
    **_by_length("frac_chars_dupe_{}grams.datatrove", _dupe_datatrove, DUPLICATE_LENGTHS),
    **_by_length("frac_chars_dupe_{}grams.dolma", _dupe_dolma, DUPLICATE_LENGTHS),
}
"""Measures of words of a kind."""


def _lines(count: str, things: str) -> _Formula:
    """One of `LineCounts` per another."""
    return lambda of: _per(getattr(of.lines, count), getattr(of.lines, things))


_OTHERS: Mapping[str, _Formula] = {
    "frac_lines_bulleted.datatrove": _lines("n_broken_bulleted", "n_broken"),
    "frac_lines_bulleted.dolma": _lines("n_newline_bulleted", "n_newline"),
    "frac_lines_ellipsis.datatrove": _lines("n_broken_ellipsis", "n_broken"),
    "frac_lines_ellipsis.dolma": _lines("n_newline_ellipsis", "n_newline"),
    "frac_duplicate_lines.datatrove": _lines("n_stretches_seen", "n_stretches"),
    "frac_duplicate_lines.dolma": _lines("n_newline_repeated", "n_newline"),
    "frac_chars_duplicate_lines.datatrove": lambda of: _per(
        of.lines.n_stretch_chars_seen, len(of.text)
    ),
    "frac_chars_duplicate_lines.dolma": lambda of: (
        of.lines.n_newline_chars_repeated / max(of.lines.n_chars_dense, 1)
    ),
    "frac_chars_duplicate_lines.fineweb": lambda of: _per(
        of.lines.n_filled_chars_seen, len(of.text) - of.lines.n_newline + 1
    ),
    "frac_duplicate_paragraphs": _lines("n_paragraphs_seen", "n_paragraphs"),
    "frac_chars_duplicate_paragraphs": lambda of: _per(
        of.lines.n_paragraph_chars_seen, len(of.text)
    ),
    "frac_lines_terminal_punctuation": _lines("n_filled_terminal", "n_filled"),
    "frac_short_lines": _lines("n_filled_short", "n_filled"),
    "gzip_ratio": _gzip_ratio,
    "sentences.datatrove": _sentences,
    "c4_lines_kept": lambda of: of.c4.n_lines_kept,
    "c4_sentences_kept": lambda of: sum(1 for _ in _SENTENCE.finditer(of.c4.text)),
    "c4_frac_words_removed": lambda of: _share_removed(of.c4),
    "c4_lorem_ipsum": lambda of: float(of.c4.condemned == "lorem_ipsum"),
    "c4_curly_bracket": lambda of: float(of.c4.condemned == "curly_bracket"),
    "fineweb_lorem_ipsum": lambda of: float(of.fineweb.condemned == "lorem_ipsum"),
    "fineweb_curly_bracket": lambda of: float(of.fineweb.condemned == "curly_bracket"),
    "refinedweb_frac_words_removed": lambda of: _share_removed(of.refinedweb),
    "licence_cc": lambda of: float(licence_of(of.text, of.url) is not None),
}

MEASURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(_OF_WORDS, WORD_KINDS) | dict.fromkeys(_OTHERS, ())
)
"""The kinds of words that each measure can count, by its name; none where words do not matter."""

_FORMULAS = {**_OF_WORDS, **_OTHERS}
_LONGEST = {
    name: formula.args[0]
    for name, formula in _OF_WORDS.items()
    if isinstance(formula, partial) and formula.func is not _dupe_datatrove
}
"""Words of the n-grams that a measure needs in `Reading.grams`."""


def measure(
    text: str, wanted: Collection[str], url: str | None = None, *, whole: str | None = None
) -> dict[str, float | None]:
    """Compute only the requested columns of one document.

    Args:
        text: the document's text.
        wanted: columns.
        url: its address, which is also searched for licences.
        whole: the text before its lines were edited, which measures of line editing are of; by
            default ``text``.

    Returns:
        A value per column, in the order of ``wanted``; None where it is a mean over nothing.

    >>> wanted = ["hash_to_word_ratio:whitespace", "frac_short_lines"]
    >>> measure("# To be, or not to be", wanted)
    {'hash_to_word_ratio:whitespace': 0.14285714285714285, 'frac_short_lines': 1.0}

    Raises:
        BadInput: when a column does not exist.
    """
    values: dict[str, float | None] = {}
    for kind, formulas, longest in _by_kind(tuple(wanted)):
        reading = Reading(text, text if whole is None else whole, url, kind, longest)
        values |= {column: formula(reading) for column, formula in formulas}
    return {column: values[column] for column in wanted}


@lru_cache(maxsize=64)
def _by_kind(wanted: tuple[str, ...]) -> list[tuple[str, list[tuple[str, _Formula]], int]]:
    """The kinds of words, each with the formulas of its columns, and with the longest n-grams that
    they need; cached, because every document has the same few sets.
    """
    parsed = [(column, *parse_column(column)) for column in wanted]
    return [
        (
            kind,
            [(column, _FORMULAS[name]) for column, name, of in parsed if of == kind],
            max(_LONGEST.get(name, 0) for _, name, of in parsed if of == kind),
        )
        for kind in dict.fromkeys(kind for _, _, kind in parsed)
    ]


def parse_column(column: str) -> tuple[str, str]:
    """Read a column's name: the measure, and its kind of words or an empty string.

    >>> parse_column("word_count:raw")
    ('word_count', 'raw')

    Raises:
        BadInput: when there is no such measure, it needs a kind of words and has none, or it has
            one that it cannot take.
    """
    name, colon, words = column.partition(":")
    if name not in MEASURES:
        raise BadInput(f"{column}: no such measure; there are {known_names(MEASURES, column)}")
    allowed = MEASURES[name]
    if not allowed and colon:
        raise BadInput(f"{column}: {name} does not depend on words; leave out :{words}")
    if allowed and words not in allowed:
        raise BadInput(
            f"{column}: name the kind of words: {', '.join(f'{name}:{kind}' for kind in allowed)}"
        )
    return name, words


def columns() -> tuple[str, ...]:
    """Every column there is."""
    return tuple(
        f"{name}:{kind}" if kind else name
        for name, kinds in MEASURES.items()
        for kind in kinds or ("",)
    )
