"""Names of RedPajama-V2's quality signals in the order of its files, and the lists that three need.

A signal is a list of ``(start, end, score)``, positions in characters of ``raw_content``.
``rps_doc_*`` and ``ccnet_*`` hold one such triple for the whole document, ``rps_lines_*`` one per
line. Names are kept as published, misspellings included.

These signals need a list; without a list, or without one for the document's language, they are
absent.

===========================  =======================================================================
rps_doc_stop_word_fraction   raw words that are on the language's list as spelt, per raw word; 0 for
                             a document without normalized words
rps_doc_ldnoobw_words        runs of normalized words that, joined by spaces, are on the language's
                             list. The list itself is not normalized, so an entry with a capital, a
                             precomposed accented letter or ASCII punctuation never matches
rps_doc_ut1_blacklist        number of the domain's set of categories; None for an unlisted domain
===========================  =======================================================================

Source: sections 2.2 and 2.5 of the data set's card, and ``app/src/core/quality_signals`` of
togethercomputer/RedPajama-Data. `lc_assets.formats.lists.word_lists` reads lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from lc_assets.records import record

Span: TypeAlias = tuple[int, int, float | int | None]
"""Start, end, score; the score is None where it cannot be computed (a mean over no words)."""

Signals: TypeAlias = Mapping[str, Sequence[Span]]

CCNET_SIGNALS = (
    "ccnet_length",
    "ccnet_original_length",
    "ccnet_nlines",
    "ccnet_original_nlines",
    "ccnet_language_score",
    "ccnet_perplexity",
    "ccnet_bucket",
)
"""Copied from the document's record, as floats; the bucket as 0.0 (head), 1.0 (middle) or 2.0
(tail).
"""

TEXT_DOC_SIGNALS = (
    "rps_doc_curly_bracket",
    "rps_doc_lorem_ipsum",
    "rps_doc_frac_chars_dupe_10grams",
    "rps_doc_frac_chars_dupe_5grams",
    "rps_doc_frac_chars_dupe_6grams",
    "rps_doc_frac_chars_dupe_7grams",
    "rps_doc_frac_chars_dupe_8grams",
    "rps_doc_frac_chars_dupe_9grams",
    "rps_doc_frac_chars_top_2gram",
    "rps_doc_frac_chars_top_3gram",
    "rps_doc_frac_chars_top_4gram",
    "rps_doc_frac_all_caps_words",
    "rps_doc_frac_lines_end_with_ellipsis",
    "rps_doc_frac_no_alph_words",
    "rps_doc_frac_unique_words",
    "rps_doc_mean_word_length",
    "rps_doc_num_sentences",
    "rps_doc_symbol_to_word_ratio",
    "rps_doc_unigram_entropy",
    "rps_doc_word_count",
)
"""Of the whole document, computed from its text alone."""

LINE_SIGNALS = (
    "rps_lines_ending_with_terminal_punctution_mark",
    "rps_lines_javascript_counts",
    "rps_lines_num_words",
    "rps_lines_numerical_chars_fraction",
    "rps_lines_start_with_bulletpoint",
    "rps_lines_uppercase_letter_fraction",
)
"""Of every line, computed from its text alone."""

LIST_SIGNALS = {
    "rps_doc_ldnoobw_words": "bad_words",
    "rps_doc_stop_word_fraction": "stop_words",
    "rps_doc_ut1_blacklist": "domains",
}
"""Signals that need a list, and which of `WordLists`."""

RULE_SIGNALS = (
    "rps_doc_curly_bracket",
    "rps_doc_ldnoobw_words",
    "rps_doc_lorem_ipsum",
    "rps_doc_stop_word_fraction",
    "rps_doc_ut1_blacklist",
    *TEXT_DOC_SIGNALS[2:],
    *LINE_SIGNALS,
)
"""All that need no model, in the published order."""

MODEL_SIGNALS = (
    "rps_doc_ml_palm_score",
    "rps_doc_ml_wikipedia_score",
    "rps_doc_ml_wikiref_score",
    "rps_doc_books_importance",
    "rps_doc_books_importance_length_correction",
    "rps_doc_openwebtext_importance",
    "rps_doc_openwebtext_importance_length_correction",
    "rps_doc_wikipedia_importance",
    "rps_doc_wikipedia_importance_length_correction",
)
"""Need a model of the data set's authors; the first three are computed where it is given
(`lc_assets.text.rules.models`).
"""

BULLET_LINES = "frac_lines_start_with_bulletpoint"
"""Needed by the Gopher rule on bullets, and no published signal: see
`lc_assets.text.signals.signals.bullet_fraction`.
"""

SCALARS = (*CCNET_SIGNALS, *TEXT_DOC_SIGNALS, *LIST_SIGNALS, *MODEL_SIGNALS, BULLET_LINES)
"""Every name with one value per document, which a rule can test."""


@record
class WordLists:
    """What the signals of `LIST_SIGNALS` are computed from.

    Attributes:
        stop_words: by language.
        bad_words: by language; an entry may be several words, with a space between two.
        domains: number of the domain's set of categories, by domain; None when no list was given.
        digests: SHA-256 of each file read, in hexadecimal, by what it was read for and its name;
            for receipts.
    """

    stop_words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bad_words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    domains: Mapping[str, int] | None = None
    digests: Mapping[str, str] = field(default_factory=dict)


NO_LISTS = WordLists()
