"""Measuring documents: what is wanted of `lc_assets.text.measure_names.MEASURES`, and nothing else.

Here: `measure`, and the arithmetic from counts to fractions. Not here: names and definitions
(`lc_assets.text.measure_names`), counting (`lc_assets.text.measured_words`,
`lc_assets.text.line_rules`, `lc_assets.text.licences`).

Every count is a whole number and every measure one division of two of them, so plain and compiled
counting give the same bits.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, TypeAlias

from lc_assets.text.gram_counts import DUPLICATE_LENGTHS, TOP_LENGTHS, GramCounts
from lc_assets.text.licences import licence_of
from lc_assets.text.line_counts import LineCounts
from lc_assets.text.line_rules import C4, REFINEDWEB, Edited, LineRules, edit
from lc_assets.text.measure_names import MEASURES, Measure, columns, parse_column
from lc_assets.text.measured_words import MeasuredWords, measured_lines, measured_words
from lc_assets.text.sentences import n_sentences
from lc_assets.text.word_counts import WORD_KINDS, WordCounts

__all__ = [
    "MEASURES",
    "WORD_KINDS",
    "Measure",
    "MeasuredText",
    "columns",
    "measure",
    "parse_column",
]

GZIP_LEVEL: Final = 6
"""Of `zlib`; the ratio is of its stream with a header of two bytes and a check of four."""


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """What can be measured of a document.

    Attributes:
        text: its text.
        url: its address; None when nobody knows.
    """

    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class _OfWords:
    """What is known of a document's words of one kind."""

    text: str
    words: MeasuredWords
    counts: WordCounts
    grams: Mapping[int, GramCounts]
    seen: Mapping[int, int]


_Value: TypeAlias = float | None
_WordFormula: TypeAlias = Callable[[_OfWords], _Value]


def measure(document: MeasuredText, wanted: Collection[str]) -> dict[str, float | None]:
    """Compute the wanted columns of one document, and nothing else.

    Returns:
        A value per column, in the order of ``wanted``; None where it is a mean over nothing.

    >>> measure(MeasuredText("# To be, or not to be"), ["hash_to_word_ratio:whitespace", "frac_short_lines"])
    {'hash_to_word_ratio:whitespace': 0.14285714285714285, 'frac_short_lines': 1.0}

    Raises:
        BadInput: when a column does not exist.
    """
    plan = _plan(tuple(wanted))
    text = document.text
    values: dict[str, _Value] = {}
    for kind, lengths, seen_lengths, formulas in plan.of_words:
        words = measured_words(text, kind)
        known = _OfWords(
            text, words, words.counts(), words.grams(lengths), words.seen_before_chars(seen_lengths)
        )
        values |= {column: formula(known) for column, formula in formulas}
    if plan.of_lines:
        lines = measured_lines(text)
        values |= {column: _OF_LINES[column](text, lines) for column in plan.of_lines}
    for rules, names in plan.of_edits:
        edited = edit(text, rules)
        values |= {column: _OF_EDITS[column][1](edited) for column in names}
    values |= {column: _OTHERS[column](document) for column in plan.others}
    return {column: values[column] for column in wanted}


def _per(count: float, things: int) -> _Value:
    return count / things if things else None


def _times(text: str, *marks: str) -> int:
    return sum(map(text.count, marks))


def _top_datatrove(length: int, of: _OfWords) -> _Value:
    top = of.grams[length]
    return _per((top.top_chars + length - 1) * top.top_count, len(of.text))


def _top_dolma(length: int, of: _OfWords) -> _Value:
    return of.grams[length].top_chars * of.grams[length].top_count / max(of.counts.n_chars, 1)


def _dupe_datatrove(length: int, of: _OfWords) -> _Value:
    return _per(of.seen[length], len(of.text))


def _dupe_dolma(length: int, of: _OfWords) -> _Value:
    return of.grams[length].repeated_chars / max(of.grams[length].all_chars, 1)


_OF_WORDS: Final[Mapping[str, _WordFormula]] = {
    "word_count": lambda of: of.counts.n_words,
    "mean_word_length": lambda of: _per(of.counts.n_chars, of.counts.n_words),
    "median_word_length": lambda of: of.words.median_chars(),
    "word_count_non_symbol": lambda of: of.counts.n_non_symbol,
    "mean_word_length_non_symbol": lambda of: _per(
        of.counts.n_chars_non_symbol, of.counts.n_non_symbol
    ),
    "hash_to_word_ratio": lambda of: _per(_times(of.text, "#"), of.counts.n_words),
    "ellipsis_to_word_ratio": lambda of: _per(_times(of.text, "...", "\u2026"), of.counts.n_words),
    "frac_words_with_symbol": lambda of: _per(of.counts.n_with_symbol, of.counts.n_words),
    "frac_words_with_letter": lambda of: _per(of.counts.n_with_letter, of.counts.n_words),
    "stop_words_distinct": lambda of: of.counts.n_stop_distinct,
    "stop_words_occurring": lambda of: of.counts.n_stop_occurring,
    "newlines_per_word": lambda of: _per(_times(of.text, "\n"), of.counts.n_words),
    **{
        f"frac_chars_top_{length}gram.datatrove": partial(_top_datatrove, length)
        for length in TOP_LENGTHS
    },
    **{f"frac_chars_top_{length}gram.dolma": partial(_top_dolma, length) for length in TOP_LENGTHS},
    **{
        f"frac_chars_dupe_{length}grams.datatrove": partial(_dupe_datatrove, length)
        for length in DUPLICATE_LENGTHS
    },
    **{
        f"frac_chars_dupe_{length}grams.dolma": partial(_dupe_dolma, length)
        for length in DUPLICATE_LENGTHS
    },
}

_OF_LINES: Final[Mapping[str, Callable[[str, LineCounts], _Value]]] = {
    "frac_lines_bulleted.datatrove": lambda _, of: _per(of.n_broken_bulleted, of.n_broken),
    "frac_lines_bulleted.dolma": lambda _, of: _per(of.n_newline_bulleted, of.n_newline),
    "frac_lines_ellipsis.datatrove": lambda _, of: _per(of.n_broken_ellipsis, of.n_broken),
    "frac_lines_ellipsis.dolma": lambda _, of: _per(of.n_newline_ellipsis, of.n_newline),
    "frac_duplicate_lines.datatrove": lambda _, of: _per(of.n_stretches_seen, of.n_stretches),
    "frac_duplicate_lines.dolma": lambda _, of: _per(of.n_newline_repeated, of.n_newline),
    "frac_chars_duplicate_lines.datatrove": lambda text, of: _per(
        of.n_stretch_chars_seen, len(text)
    ),
    "frac_chars_duplicate_lines.dolma": lambda _, of: (
        of.n_newline_chars_repeated / max(of.n_chars_dense, 1)
    ),
    "frac_chars_duplicate_lines.fineweb": lambda text, of: _per(
        of.n_filled_chars_seen, len(text) - of.n_newline + 1
    ),
    "frac_duplicate_paragraphs": lambda _, of: _per(of.n_paragraphs_seen, of.n_paragraphs),
    "frac_chars_duplicate_paragraphs": lambda text, of: _per(of.n_paragraph_chars_seen, len(text)),
    "frac_lines_terminal_punctuation": lambda _, of: _per(of.n_filled_terminal, of.n_filled),
    "frac_short_lines": lambda _, of: _per(of.n_filled_short, of.n_filled),
}

_OF_EDITS: Final[Mapping[str, tuple[str, Callable[[Edited], _Value]]]] = {
    "c4_lines_kept": ("c4", lambda of: of.n_lines_kept),
    "c4_sentences_kept": ("c4", lambda of: n_sentences(of.text)),
    "c4_frac_words_removed": ("c4", lambda of: _per(sum(of.n_words_flagged.values()), of.n_words)),
    "c4_lorem_ipsum": ("c4", lambda of: float(of.condemned == "lorem_ipsum")),
    "c4_curly_bracket": ("c4", lambda of: float(of.condemned == "curly_bracket")),
    "refinedweb_frac_words_removed": (
        "refinedweb",
        lambda of: _per(sum(of.n_words_flagged.values()), of.n_words),
    ),
}


def _gzip_ratio(document: MeasuredText) -> _Value:
    data = document.text.encode("utf-8", "surrogatepass")
    return _per(len(zlib.compress(data, GZIP_LEVEL)), len(data))


_OTHERS: Final[Mapping[str, Callable[[MeasuredText], _Value]]] = {
    "gzip_ratio": _gzip_ratio,
    "licence_cc": lambda document: float(licence_of(document.text, document.url) is not None),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to compute, sorted by what it is computed from."""

    of_words: tuple[
        tuple[str, tuple[int, ...], tuple[int, ...], tuple[tuple[str, _WordFormula], ...]], ...
    ]
    of_lines: tuple[str, ...]
    of_edits: tuple[tuple[LineRules, tuple[str, ...]], ...]
    others: tuple[str, ...]


@lru_cache(maxsize=64)
def _plan(wanted: tuple[str, ...]) -> _Plan:
    """Sort columns; the same few sets are asked of millions of documents."""
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for column in wanted:
        measure_, kind = parse_column(column)
        by_kind[kind or ""].append(measure_.name)
    plain = by_kind.pop("", [])
    return _Plan(
        tuple(
            (kind, _lengths(names, _GRAMS), _lengths(names, _SEEN), _formulas(kind, names))
            for kind, names in by_kind.items()
        ),
        tuple(name for name in plain if name in _OF_LINES),
        tuple(
            (rules, names)
            for rules in (C4, REFINEDWEB)
            if (names := tuple(n for n in plain if _edited_by(n) == rules.name))
        ),
        tuple(name for name in plain if name in _OTHERS),
    )


_GRAMS: Final = {
    **{
        f"frac_chars_top_{length}gram.{who}": length
        for length in TOP_LENGTHS
        for who in ("datatrove", "dolma")
    },
    **{f"frac_chars_dupe_{length}grams.dolma": length for length in DUPLICATE_LENGTHS},
}
_SEEN: Final = {f"frac_chars_dupe_{length}grams.datatrove": length for length in DUPLICATE_LENGTHS}


def _lengths(names: Iterable[str], table: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted({table[name] for name in names if name in table}))


def _formulas(kind: str, names: Iterable[str]) -> tuple[tuple[str, _WordFormula], ...]:
    return tuple((f"{name}:{kind}", _OF_WORDS[name]) for name in names)


def _edited_by(name: str) -> str | None:
    return _OF_EDITS[name][0] if name in _OF_EDITS else None
