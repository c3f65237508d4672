"""Measures that RedPajama-V2 has no signal for, by name.

A column is a measure's name, and after a colon the kind of words where it depends on words:
``frac_short_lines``, ``word_count:normalized``. The kinds are `WORD_KINDS`. A name that ends in
``.datatrove`` or ``.dolma`` is that program's own way of counting; ``docs/measures.md`` has the
differences. `lc_assets.text.measures.measures` computes them.

===================================  ===============================================================
word_count                           words
mean_word_length,                    characters per word; of the median, the mean of the middle two
median_word_length
word_count_non_symbol,               the same over words with a character that is no punctuation
mean_word_length_non_symbol          (datatrove)
hash_to_word_ratio,                  ``#``; ``...`` and ``…``: occurrences in the text, per word
ellipsis_to_word_ratio
frac_words_with_symbol               words that hold ``#`` or ``…``, per word (Dolma)
frac_words_with_letter               words with an alphabetic character, per word
stop_words_distinct,                 of the eight stop words: how many there are, how often any of
stop_words_occurring                 them occurs
newlines_per_word                    newlines in the text, per word (FineWeb)
frac_chars_top_Ngram.P               characters of the most frequent n-gram, times its count, N of 2
                                     to 4; datatrove: with its spaces, per character of the text;
                                     dolma: per character of the words
frac_chars_dupe_Ngrams.P             N of 5 to 10; datatrove: characters of n-grams seen before, met
                                     from the left and skipped when met, per character of the text;
                                     dolma: of all n-grams that occur twice or more, overlaps
                                     counted, per character of all n-grams
frac_lines_bulleted.P                datatrove: lines that start with • or -, white space aside;
                                     dolma: with * or -
frac_lines_ellipsis.P                datatrove: lines that end with ``...`` or ``…``, white space
                                     aside; dolma: with ``…``
frac_duplicate_lines.P               datatrove: lines seen before; dolma: lines that occur twice or
                                     more, all copies counted
frac_chars_duplicate_lines.P         their characters; datatrove: per character of the text; dolma:
                                     per character that is no white space; fineweb: of filled lines
                                     seen before, per character that is no newline
frac_duplicate_paragraphs,           paragraphs seen before, per paragraph; their characters, per
frac_chars_duplicate_paragraphs      character of the text (datatrove)
frac_lines_terminal_punctuation      filled lines that end with a mark that ends a sentence in any
                                     script, per filled line (FineWeb)
frac_short_lines                     filled lines of up to 30 characters, per filled line (FineWeb)
gzip_ratio                           bytes that zlib's level 6 makes of the text, per byte of UTF-8
c4_*, refinedweb_*                   what line editing leaves and removes:
                                     `lc_assets.text.rules.line_rules`
licence_cc                           1.0 when the text or its address names a Creative Commons
                                     licence
===================================  ===============================================================
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.measures.words import WORD_KINDS

_OF_WORDS: Final = (
    "word_count",
    "mean_word_length",
    "median_word_length",
    "word_count_non_symbol",
    "mean_word_length_non_symbol",
    "hash_to_word_ratio",
    "ellipsis_to_word_ratio",
    "frac_words_with_symbol",
    "frac_words_with_letter",
    "stop_words_distinct",
    "stop_words_occurring",
    "newlines_per_word",
    *(f"frac_chars_top_{n}gram.datatrove" for n in (2, 3, 4)),
    *(f"frac_chars_top_{n}gram.dolma" for n in (2, 3, 4)),
    *(f"frac_chars_dupe_{n}grams.datatrove" for n in range(5, 11)),
    *(f"frac_chars_dupe_{n}grams.dolma" for n in range(5, 11)),
)
_OTHERS: Final = (
    "frac_lines_bulleted.datatrove",
    "frac_lines_bulleted.dolma",
    "frac_lines_ellipsis.datatrove",
    "frac_lines_ellipsis.dolma",
    "frac_duplicate_lines.datatrove",
    "frac_duplicate_lines.dolma",
    "frac_chars_duplicate_lines.datatrove",
    "frac_chars_duplicate_lines.dolma",
    "frac_chars_duplicate_lines.fineweb",
    "frac_duplicate_paragraphs",
    "frac_chars_duplicate_paragraphs",
    "frac_lines_terminal_punctuation",
    "frac_short_lines",
    "gzip_ratio",
    "c4_lines_kept",
    "c4_sentences_kept",
    "c4_frac_words_removed",
    "c4_lorem_ipsum",
    "c4_curly_bracket",
    "refinedweb_frac_words_removed",
    "licence_cc",
)

MEASURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(_OF_WORDS, WORD_KINDS) | dict.fromkeys(_OTHERS, ())
)
"""The kinds of words that each measure can count, by its name; none where words do not matter."""


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
        raise BadInput(f"{column}: no such measure; there are {', '.join(MEASURES)}")
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
