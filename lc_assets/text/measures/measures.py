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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from lc_assets.arrays import Booleans, Floats, Int64s
from lc_assets.errors import BadInput, known_names
from lc_assets.text.measures.licences import licence_of
from lc_assets.text.measures.ngrams import DUPLICATE_LENGTHS, TOP_LENGTHS
from lc_assets.text.measures.reading import Reading
from lc_assets.text.measures.words import WORD_KINDS
from lc_assets.text.rules.line_rules import Edited
from lc_assets.text.texts import Texts, none_for_nan, parts

Numbers: TypeAlias = int | Int64s | Floats | Booleans
"""One per text."""

GZIP_LEVEL = 6
_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


_Formula: TypeAlias = Callable[[Reading], Numbers]


def _per(count: Numbers, things: Numbers) -> Floats:
    """NaN where there are no things."""
    shares: Floats = np.full(np.shape(things), np.nan)
    np.divide(count, things, out=shares, where=things != 0)
    return shares


def _of_words(count: Callable[[Reading], Numbers]) -> _Formula:
    """A count per word."""
    return lambda of: _per(count(of), of.words.counts.n_words)


def _median_chars(of: Reading) -> Floats:
    """Median of the words' lengths in characters, the mean of the middle two."""
    lengths = (np.diff(words.chars) for words in of.words.each())
    return np.array([np.median(some) if len(some) else np.nan for some in lengths])


def _top_datatrove(length: int, of: Reading) -> Floats:
    top = of.grams[length]
    return _per((top.top_chars + length - 1) * top.top_count, of.texts.n_chars)


def _top_dolma(length: int, of: Reading) -> Floats:
    top = of.grams[length]
    return _per(top.top_chars * top.top_count, np.maximum(of.words.counts.n_chars, 1))


def _dupe_datatrove(length: int, of: Reading) -> Floats:
    return _per(of.n_chars_seen(length), of.texts.n_chars)


def _dupe_dolma(length: int, of: Reading) -> Floats:
    return _per(of.grams[length].repeated_chars, np.maximum(of.grams[length].all_chars, 1))


def _gzip_ratio(of: Reading) -> Floats:
    data, ends = of.texts.utf8
    sizes = [len(zlib.compress(text.data, GZIP_LEVEL)) for text in parts(data, ends)]
    return _per(np.array(sizes), np.diff(ends, prepend=0))


def _share_removed(edited: Iterable[Edited]) -> Floats:
    counts = [(sum(one.n_words_flagged.values()), one.n_words) for one in edited]
    return _per(*np.array(counts).T)


def _condemned(edited: Iterable[Edited], why: str) -> Booleans:
    return np.array([one.condemned == why for one in edited])


def _sentences(of: Reading) -> Int64s:
    from lc_assets.text.measures.spacy_words import count_sentences

    return np.array(list(map(count_sentences, of.texts.texts)))


def _c4_sentences(of: Reading) -> Int64s:
    return np.array([sum(1 for _ in _SENTENCE.finditer(edited.text)) for edited in of.c4])


def _licences(of: Reading) -> Booleans:
    pairs = zip(of.texts.texts, of.urls, strict=True)
    return np.array([licence_of(text, url) is not None for text, url in pairs])


def _by_length(
    name: str, formula: Callable[[int, Reading], Numbers], lengths: Collection[int]
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
    "hash_to_word_ratio": _of_words(lambda of: of.texts.count("#")),
    "ellipsis_to_word_ratio": _of_words(lambda of: of.texts.count("...", "\u2026")),
    "frac_words_with_symbol": _of_words(lambda of: of.words.counts.n_with_symbol),
    "frac_words_with_letter": _of_words(lambda of: of.words.counts.n_with_letter),
    "stop_words_distinct": lambda of: of.words.counts.n_stop_distinct,
    "stop_words_occurring": lambda of: of.words.counts.n_stop_occurring,
    "newlines_per_word": _of_words(lambda of: of.texts.n_newlines),
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
        of.lines.n_stretch_chars_seen, of.texts.n_chars
    ),
    "frac_chars_duplicate_lines.dolma": lambda of: _per(
        of.lines.n_newline_chars_repeated, np.maximum(of.lines.n_chars_dense, 1)
    ),
    "frac_chars_duplicate_lines.fineweb": lambda of: _per(
        of.lines.n_filled_chars_seen, of.texts.n_chars - of.lines.n_newline + 1
    ),
    "frac_duplicate_paragraphs": _lines("n_paragraphs_seen", "n_paragraphs"),
    "frac_chars_duplicate_paragraphs": lambda of: _per(
        of.lines.n_paragraph_chars_seen, of.texts.n_chars
    ),
    "frac_lines_terminal_punctuation": _lines("n_filled_terminal", "n_filled"),
    "frac_short_lines": _lines("n_filled_short", "n_filled"),
    "gzip_ratio": _gzip_ratio,
    "sentences.datatrove": _sentences,
    "c4_lines_kept": lambda of: np.array([edited.n_lines_kept for edited in of.c4]),
    "c4_sentences_kept": _c4_sentences,
    "c4_frac_words_removed": lambda of: _share_removed(of.c4),
    "c4_lorem_ipsum": lambda of: _condemned(of.c4, "lorem_ipsum"),
    "c4_curly_bracket": lambda of: _condemned(of.c4, "curly_bracket"),
    "fineweb_lorem_ipsum": lambda of: _condemned(of.fineweb, "lorem_ipsum"),
    "fineweb_curly_bracket": lambda of: _condemned(of.fineweb, "curly_bracket"),
    "refinedweb_frac_words_removed": lambda of: _share_removed(of.refinedweb),
    "licence_cc": _licences,
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
    found = measure_each(Texts([text]), wanted, [url], [text if whole is None else whole])
    values = none_for_nan(values.item() for values in found.values())
    return dict(zip(found, values, strict=True))


def measure_each(
    texts: Texts, wanted: Collection[str], urls: Sequence[str | None], wholes: Sequence[str]
) -> dict[str, Floats]:
    """Compute the columns of some documents: float64[texts] by column, NaN for a mean over nothing;
    arguments as of `measure`.
    """
    values: dict[str, Floats] = {}
    for kind, formulas, longest in _by_kind(tuple(wanted)):
        reading = Reading(texts, wholes, urls, kind, longest)
        values |= {column: np.asarray(formula(reading), np.float64) for column, formula in formulas}
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
