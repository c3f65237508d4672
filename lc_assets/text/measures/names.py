"""Measures that RedPajama-V2 has no signal for, each defined once; where words matter, which words
is a parameter.

Here: their names and what each says. Not here: computing them (`lc_assets.text.measures.measures`),
    thresholds.

A column is a measure's name, and after a colon the kind of words where it depends on words:
``frac_short_lines``, ``word_count:normalized``. The kinds are those of `WORD_KINDS`. A name that
ends in ``.datatrove`` or ``.dolma`` is that program's own way of counting; ``docs/measures.md`` has
the differences.

================================================  ==========================================================================
word_count                                        words
mean_word_length, median_word_length              characters per word
word_count_non_symbol, mean_word_length_non_symbol  the same over words that are not punctuation
alone (datatrove)
hash_to_word_ratio, ellipsis_to_word_ratio        ``#``; ``...`` and ``…``: occurrences in the text, per word
frac_words_with_symbol                            words that hold ``#`` or ``…``, per word (Dolma)
frac_words_with_letter                            words with an alphabetic character, per word
stop_words_distinct, stop_words_occurring         of the eight stop words: how many there are, how often any occurs
newlines_per_word                                 newlines in the text, per word (FineWeb)
frac_chars_top_Ngram.P                            N of 2 to 4, P of datatrove, dolma
frac_chars_dupe_Ngrams.P                          N of 5 to 10, P of datatrove, dolma
frac_lines_bulleted.P, frac_lines_ellipsis.P      P of datatrove, dolma
frac_duplicate_lines.P                            P of datatrove, dolma
frac_chars_duplicate_lines.P                      P of datatrove, dolma, fineweb
frac_duplicate_paragraphs, frac_chars_duplicate_paragraphs  of datatrove: nobody else counts
paragraphs frac_lines_terminal_punctuation, frac_short_lines of FineWeb
gzip_ratio                                        compressed bytes per byte of text
c4_*, refinedweb_*                                what line editing leaves and takes: `lc_assets.text.rules.line_rules`
licence_cc                                        1.0 when the text or its address names a Creative Commons licence
================================================  ==========================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.measures.words import WORD_KINDS


@dataclass(frozen=True, slots=True)
class Measure:
    """What one measure is.

    Attributes:
        name: as in the table above.
        says: its definition, in a sentence.
        unit: such as ``words`` or ``per word``.
        words: the kinds of words that it can be asked of; empty when words do not matter.
        needs: ``("text",)``, or with ``"url"`` where an address helps when there is one.
        users: who counts so.
    """

    name: str
    says: str
    unit: str
    words: tuple[str, ...] = ()
    needs: tuple[str, ...] = ("text",)
    users: tuple[str, ...] = ()


def _of_words(name: str, says: str, unit: str, *users: str) -> Measure:
    return Measure(name, says, unit, WORD_KINDS, ("text",), users)


def _of_lines(name: str, says: str, unit: str, *users: str) -> Measure:
    return Measure(name, says, unit, (), ("text",), users)


_ALL: Final = (
    _of_words("word_count", "words", "words", "gopher-paper", "gopher-dolma"),
    _of_words(
        "mean_word_length", "characters of all words, per word", "characters", "gopher-paper"
    ),
    _of_words(
        "median_word_length",
        "median of the words' lengths; the mean of the middle two",
        "characters",
        "gopher-dolma",
    ),
    _of_words(
        "word_count_non_symbol",
        "words with a character that is no punctuation",
        "words",
        "gopher-datatrove",
    ),
    _of_words(
        "mean_word_length_non_symbol",
        "characters per word, over those words",
        "characters",
        "gopher-datatrove",
    ),
    _of_words(
        "hash_to_word_ratio",
        "times that # occurs in the text, per word",
        "per word",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_words(
        "ellipsis_to_word_ratio",
        "times that ... or … occurs in the text, per word",
        "per word",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_words(
        "frac_words_with_symbol", "words that hold # or …, per word", "per word", "gopher-dolma"
    ),
    _of_words(
        "frac_words_with_letter",
        "words that hold an alphabetic character, per word",
        "per word",
        "gopher-paper",
        "gopher-datatrove",
        "gopher-dolma",
    ),
    _of_words(
        "stop_words_distinct",
        "how many of the, be, to, of, and, that, have, with are among the words",
        "words",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_words("stop_words_occurring", "words that are one of these eight", "words", "gopher-dolma"),
    _of_words("newlines_per_word", "newlines in the text, per word", "per word", "fineweb"),
    *(
        _of_words(
            f"frac_chars_top_{n}gram.datatrove",
            f"characters of the most frequent {n}-gram with its spaces, times its count, per "
            "character of the text",
            "per character",
            "gopher-datatrove",
        )
        for n in (2, 3, 4)
    ),
    *(
        _of_words(
            f"frac_chars_top_{n}gram.dolma",
            f"characters of the most frequent {n}-gram, times its count, per character of the words",
            "per character",
            "gopher-dolma",
        )
        for n in (2, 3, 4)
    ),
    *(
        _of_words(
            f"frac_chars_dupe_{n}grams.datatrove",
            f"characters of {n}-grams seen before, met from the left and skipped when met, per "
            "character of the text",
            "per character",
            "gopher-datatrove",
        )
        for n in range(5, 11)
    ),
    *(
        _of_words(
            f"frac_chars_dupe_{n}grams.dolma",
            f"characters of {n}-grams that occur twice or more, overlaps counted, per character "
            f"of all {n}-grams",
            "per character",
            "gopher-dolma",
        )
        for n in range(5, 11)
    ),
    _of_lines(
        "frac_lines_bulleted.datatrove",
        "lines that start with • or -, whitespace aside, per line",
        "per line",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_lines_bulleted.dolma",
        "lines that start with * or -, per line",
        "per line",
        "gopher-dolma",
    ),
    _of_lines(
        "frac_lines_ellipsis.datatrove",
        "lines that end with ... or …, whitespace aside, per line",
        "per line",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_lines_ellipsis.dolma", "lines that end with …, per line", "per line", "gopher-dolma"
    ),
    _of_lines(
        "frac_duplicate_lines.datatrove",
        "lines seen before, per line",
        "per line",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_duplicate_lines.dolma",
        "lines that occur twice or more, all copies counted, per line",
        "per line",
        "gopher-dolma",
    ),
    _of_lines(
        "frac_chars_duplicate_lines.datatrove",
        "characters of lines seen before, per character of the text",
        "per character",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_chars_duplicate_lines.dolma",
        "characters of lines that occur twice or more, all copies counted, per character that is "
        "no whitespace",
        "per character",
        "gopher-dolma",
    ),
    _of_lines(
        "frac_chars_duplicate_lines.fineweb",
        "characters of lines seen before, blank lines aside, per character that is no newline",
        "per character",
        "fineweb",
    ),
    _of_lines(
        "frac_duplicate_paragraphs",
        "paragraphs seen before, per paragraph",
        "per paragraph",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_chars_duplicate_paragraphs",
        "characters of paragraphs seen before, per character of the text",
        "per character",
        "gopher-paper",
        "gopher-datatrove",
    ),
    _of_lines(
        "frac_lines_terminal_punctuation",
        "lines that end with a mark that ends a sentence in any script, blank lines aside, per line",
        "per line",
        "fineweb",
    ),
    _of_lines(
        "frac_short_lines",
        "lines of at most 30 characters, blank lines aside, per line",
        "per line",
        "fineweb",
    ),
    _of_lines(
        "gzip_ratio", "bytes that zlib's level 6 makes of the text in UTF-8, per byte", "per byte"
    ),
    _of_lines("c4_lines_kept", "lines that C4's editing keeps", "lines", "c4"),
    _of_lines(
        "c4_sentences_kept", "sentences in them, counted as RedPajama-V2 does", "sentences", "c4"
    ),
    _of_lines(
        "c4_frac_words_removed",
        "words in lines that C4's editing removes, per word",
        "per word",
        "c4",
    ),
    _of_lines(
        "c4_lorem_ipsum", "1.0 when a line that C4 would keep holds lorem ipsum", "flag", "c4"
    ),
    _of_lines("c4_curly_bracket", "1.0 when a line that C4 would keep holds {", "flag", "c4"),
    _of_lines(
        "refinedweb_frac_words_removed",
        "words in lines that RefinedWeb's editing removes or edits, per word",
        "per word",
        "refinedweb",
    ),
    Measure(
        "licence_cc",
        "1.0 when the text or its address names a Creative Commons licence",
        "flag",
        (),
        ("text", "url"),
    ),
)

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType(
    {measure.name: measure for measure in _ALL}
)
"""Every measure by its name."""


def parse_column(column: str) -> tuple[Measure, str | None]:
    """Read a column's name: the measure, and its kind of words or None.

    >>> measure, words = parse_column("word_count:raw")
    >>> measure.name, words
    ('word_count', 'raw')

    Raises:
        BadInput: when there is no such measure, it needs a kind of words and has none, or it has
            one that it cannot take.
    """
    name, colon, words = column.partition(":")
    if name not in MEASURES:
        raise BadInput(f"{column}: no such measure; there are {', '.join(MEASURES)}")
    allowed = MEASURES[name].words
    if not allowed and colon:
        raise BadInput(f"{column}: {name} does not depend on words; leave out :{words}")
    if allowed and words not in allowed:
        raise BadInput(
            f"{column}: say of which words: {', '.join(f'{name}:{kind}' for kind in allowed)}"
        )
    return MEASURES[name], words or None


def columns() -> tuple[str, ...]:
    """Every column there is."""
    return tuple(f"{m.name}:{kind}" if kind else m.name for m in _ALL for kind in m.words or ("",))
