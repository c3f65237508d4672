r"""Measuring documents: computing the requested columns of
`lc_assets.text.measures.words.MEASURES`.

Every count is a whole number and every measure one division of two of them.

Creative Commons licences are found in links, as Dolma's ``cc_re`` tagger and DKPro C4CorpusTools do
(``creativecommons.org/licenses/by-sa/4.0``), and by name: ``CC BY-SA 4.0`` and its spellings, and
"Creative Commons Attribution". A licence that is named is not always the page's own. Sentences are
counted as RedPajama-V2 does: matches of ``\b[^.!?]+[.!?]*``; splitters that know abbreviations,
such as NLTK's Punkt (C4) and spaCy's (datatrove), count a few less.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np

from lc_assets.text.hashing import hash_seed
from lc_assets.text.measures.lines import LineCounts, count_lines
from lc_assets.text.measures.ngrams import (
    DUPLICATE_LENGTHS,
    TOP_LENGTHS,
    GramCounts,
    count_grams,
    find_unique_starts,
    seen_before,
)
from lc_assets.text.measures.words import WordCounts, Words, parse_column, read_words
from lc_assets.text.numbering import number_pieces
from lc_assets.text.rules.line_rules import C4, REFINEDWEB, Edited, LineRules, edit

_LINK = re.compile(
    r"creativecommons\.org/(?:licenses/(by(?:-nc)?(?:-nd|-sa)?|sa|nd|nc)\b|(publicdomain)/(zero|mark|certification))(?:/(\d\.\d))?",
    re.IGNORECASE,
)
_SHORT = re.compile(r"\bCC(?:[ -](BY(?:[ -]NC)?(?:[ -](?:ND|SA))?)|[ -]?(0))\b(?:[ ,]*v?(\d\.\d))?")
_LONG = re.compile(
    r"\bCreative Commons(?:[ '’\u2018]|\bs\b){0,3}(Attribution|Public Domain|Zero|CC0|licen[cs]e)",
    re.IGNORECASE,
)
_HINT = re.compile(r"creative ?commons|\bCC[ -]?(?:BY|0)", re.IGNORECASE)


def licence_of(text: str, url: str | None = None) -> str | None:
    """Name the first Creative Commons licence that a document mentions: links before names, the
    text before the address.

    Returns:
        Such as ``cc-by-sa-4.0``, ``cc-by-nc``, ``cc0``, ``cc-mark``; ``cc`` when it only says
        Creative Commons license; None when it names none.

    >>> licence_of("Text under CC BY-SA 4.0."), licence_of("see https://creativecommons.org/publicdomain/zero/1.0/")
    ('cc-by-sa-4.0', 'cc0-1.0')
    >>> licence_of("All rights reserved.", "https://example.org/") is None
    True
    """
    if _HINT.search(text) is None and (url is None or _HINT.search(url) is None):
        return None
    places = (text, url or "")
    links = (_of_link(found) for place in places if (found := _LINK.search(place)))
    names = (
        _of_name(found)
        for pattern in (_SHORT, _LONG)
        for place in places
        if (found := pattern.search(place))
    )
    return next(links, None) or next(names, None)


def _of_link(found: re.Match[str]) -> str:
    kind, public, which, version = found.groups()
    name = (
        {"zero": "cc0"}.get(which.lower(), f"cc-{which.lower()}")
        if public
        else f"cc-{kind.lower()}"
    )
    return f"{name}-{version}" if version else name


def _of_name(found: re.Match[str]) -> str:
    if found.re is _LONG:
        said = found.group(1).lower()
        return {
            "attribution": "cc-by",
            "zero": "cc0",
            "cc0": "cc0",
            "public domain": "cc-mark",
        }.get(said, "cc")
    kind, zero, version = found.groups()
    name = "cc0" if zero else f"cc-{kind.lower().replace(' ', '-')}"
    return f"{name}-{version}" if version else name


_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


def _n_sentences(text: str) -> int:
    """Number of sentences of a text.

    >>> _n_sentences("It was late. Was it? Yes...")
    3
    """
    return sum(1 for _ in _SENTENCE.finditer(text))


GZIP_LEVEL: Final = 6
"""Overhead of a `zlib` stream: a header of two bytes and a checksum of four."""


@dataclass(frozen=True, slots=True)
class _OfWords:
    """Counts of a document's words of one kind."""

    text: str
    words: Words
    counts: WordCounts
    grams: Mapping[int, GramCounts]
    seen: Mapping[int, int]


_Value: TypeAlias = float | None
_WordFormula: TypeAlias = Callable[[_OfWords], _Value]


def measure(text: str, wanted: Collection[str], url: str | None = None) -> dict[str, float | None]:
    """Compute only the requested columns of one document.

    Args:
        text: the document's text.
        wanted: columns.
        url: its address, which is also searched for licences.

    Returns:
        A value per column, in the order of ``wanted``; None where it is a mean over nothing.

    >>> wanted = ["hash_to_word_ratio:whitespace", "frac_short_lines"]
    >>> measure("# To be, or not to be", wanted)
    {'hash_to_word_ratio:whitespace': 0.14285714285714285, 'frac_short_lines': 1.0}

    Raises:
        BadInput: when a column does not exist.
    """
    plan = _plan(tuple(wanted))
    values: dict[str, _Value] = {}
    for kind, lengths, seen_lengths, formulas in plan.of_words:
        words = read_words(text, kind)
        known = _OfWords(
            text, words, words.counts, _grams(words, lengths), _seen_before(words, seen_lengths)
        )
        values |= {column: formula(known) for column, formula in formulas}
    if plan.of_lines:
        lines = count_lines(text)
        values |= {column: _OF_LINES[column](text, lines) for column in plan.of_lines}
    for rules, names in plan.of_edits:
        edited = edit(text, rules)
        values |= {column: _OF_EDITS[column][1](edited) for column in names}
    values |= {column: _OTHERS[column](text, url) for column in plan.others}
    return {column: values[column] for column in wanted}


def _grams(words: Words, lengths: Collection[int]) -> dict[int, GramCounts]:
    """Counts of n-grams by length."""
    if not lengths:
        return {}
    seed, numbers = hash_seed(), np.empty(len(words.ends) - 1, np.int32)
    counts = np.zeros((max(lengths) + 1, 4), np.int64)
    number_pieces(
        words.joined, words.ends[:-1], words.ends[1:], seed, numbers, np.empty_like(numbers)
    )
    count_grams(numbers, words.chars, max(lengths), seed, counts)
    return {length: GramCounts(*counts[length].tolist()) for length in lengths}


def _seen_before(words: Words, lengths: Collection[int]) -> dict[int, int]:
    """Characters of n-grams seen before, by length."""
    if not lengths:
        return {}
    seed, unique = hash_seed(), np.empty(len(words.ends) - 1, np.uint8)
    find_unique_starts(words.joined, words.ends, seed, unique)
    arrays = words.joined, words.ends, words.chars, unique
    return {length: seen_before(*arrays, length, seed) for length in lengths}


def _median_chars(words: Words) -> float | None:
    """Median of the words' lengths in characters, the mean of the middle two; None without
    words.
    """
    lengths = np.diff(words.chars)
    return float(np.median(lengths)) if len(lengths) else None


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
    "median_word_length": lambda of: _median_chars(of.words),
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
    "c4_sentences_kept": ("c4", lambda of: _n_sentences(of.text)),
    "c4_frac_words_removed": ("c4", lambda of: _per(sum(of.n_words_flagged.values()), of.n_words)),
    "c4_lorem_ipsum": ("c4", lambda of: float(of.condemned == "lorem_ipsum")),
    "c4_curly_bracket": ("c4", lambda of: float(of.condemned == "curly_bracket")),
    "refinedweb_frac_words_removed": (
        "refinedweb",
        lambda of: _per(sum(of.n_words_flagged.values()), of.n_words),
    ),
}


def _gzip_ratio(text: str, _url: str | None) -> _Value:
    data = text.encode("utf-8", "surrogatepass")
    return _per(len(zlib.compress(data, GZIP_LEVEL)), len(data))


_OTHERS: Final[Mapping[str, Callable[[str, str | None], _Value]]] = {
    "gzip_ratio": _gzip_ratio,
    "licence_cc": lambda text, url: float(licence_of(text, url) is not None),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """Columns to compute, grouped by their inputs."""

    of_words: tuple[
        tuple[str, tuple[int, ...], tuple[int, ...], tuple[tuple[str, _WordFormula], ...]], ...
    ]
    of_lines: tuple[str, ...]
    of_edits: tuple[tuple[LineRules, tuple[str, ...]], ...]
    others: tuple[str, ...]


@lru_cache(maxsize=64)
def _plan(wanted: tuple[str, ...]) -> _Plan:
    """Group columns by their inputs; cached, because every document has the same few sets."""
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for column in wanted:
        name, kind = parse_column(column)
        by_kind[kind].append(name)
    plain = by_kind.pop("", [])
    return _Plan(
        tuple(
            (
                kind,
                _lengths(names, _GRAMS),
                _lengths(names, _SEEN),
                tuple((f"{name}:{kind}", _OF_WORDS[name]) for name in names),
            )
            for kind, names in by_kind.items()
        ),
        tuple(name for name in plain if name in _OF_LINES),
        tuple(
            (rules, names)
            for rules in (C4, REFINEDWEB)
            if (names := tuple(n for n in plain if _OF_EDITS.get(n, ("",))[0] == rules.name))
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
