r"""The 29 rule signals of RedPajama-V2 from a text alone, equal to the published ones digit by
digit.

Here: all of them, plainly; and the door to the compiled loops that do the same
    (`lc_assets.text.fast_signals`), which is
taken where numba is installed. Three need a list (`lc_assets.text.signal_lists`). Not here: signals
that need a model, and those that CCNet measured (`lc_assets.text.signal_names` lists them); reading
the published files (`lc_assets.formats.redpajama.signals`).

Scores are rounded to eight digits. Where a mean has nothing to be a mean of, the score is None.

======================================  ===================================================================
rps_doc_word_count                      normalized words
rps_doc_mean_word_length                characters per normalized word
rps_doc_frac_unique_words               distinct normalized words, per normalized word
rps_doc_unigram_entropy                 of the normalized words, natural logarithm
rps_doc_symbol_to_word_ratio            ``#``, ``...`` and ``…`` together, per raw word
rps_doc_frac_no_alph_words              raw words without a letter of ``a-z``, ``A-Z``: punctuation and Cyrillic
                                        words are among them, so ordinary prose scores 0.13 to 0.23
rps_doc_frac_all_caps_words             raw words in upper case
rps_doc_frac_lines_end_with_ellipsis    lines that end with ``...`` or ``…``, whitespace aside
rps_doc_num_sentences                   matches of ``\b[^.!?]+[.!?]*``
rps_doc_lorem_ipsum                     times "lorem ipsum" occurs in the normalized text, per character of it
rps_doc_curly_bracket                   ``{`` and ``}``, per character
rps_doc_frac_chars_*                    `lc_assets.text.repetition`
rps_lines_*                             `lc_assets.text.line_signals`
======================================  ===================================================================

Source: ``app/src/core/quality_signals`` of togethercomputer/RedPajama-Data, commit 6d2cee9; checked
    against what
that code prints.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import log
from operator import add

from lc_assets.compiling import COMPILED
from lc_assets.text.fast_signals import measure_fast
from lc_assets.text.line_signals import line_signals
from lc_assets.text.measured_signals import (
    MeasuredSignals,
    bullet_fraction,
    first_score,
    measured_of_columns,
    measured_of_spans,
)
from lc_assets.text.repetition import repetition_scores
from lc_assets.text.signal_lists import NO_LISTS, WordLists, list_signals
from lc_assets.text.signal_names import (
    BULLET_LINES,
    CCNET_SIGNALS,
    LINE_SIGNALS,
    LIST_SIGNALS,
    MODEL_SIGNALS,
    RULE_SIGNALS,
    TEXT_DOC_SIGNALS,
    Signals,
    Span,
)
from lc_assets.text.words import Document, read_document

DIGITS = 8
"""Decimal places of a score."""

ELLIPSES = ("...", "\u2026")

_LETTER = re.compile("[a-zA-Z]")
_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


def signals_of(
    text: str, lists: WordLists = NO_LISTS, *, language: str = "", source_domain: str = ""
) -> dict[str, list[Span]]:
    r"""Compute the signals of a document's ``raw_content``, fast where numba is installed.

    Args:
        text: the document.
        lists: for the signals that need one; those without a list are left out.
        language: of the document, two letters: which of the lists.
        source_domain: host of the document's page, as it is listed or not.

    Returns:
        ``{name: [(start, end, score), ...]}`` with positions in characters, in RedPajama-V2's key
        order.

    >>> signals = signals_of("The cat sat.\nThe dog ran!")
    >>> signals["rps_doc_word_count"], signals["rps_lines_num_words"]
    ([(0, 25, 6)], [(0, 13, 3), (13, 25, 3)])
    """
    return measure_signals(text, lists, language=language, source_domain=source_domain).spans()


def measure_signals(
    text: str, lists: WordLists = NO_LISTS, *, language: str = "", source_domain: str = ""
) -> MeasuredSignals:
    """Compute the same as `signals_of`, in columns: no line has an object of its own.

    >>> measure_signals("The cat sat.").scalars["rps_doc_mean_word_length"]
    3.0
    """
    if not COMPILED:
        return measured_of_spans(
            text,
            signals_of_document(
                read_document(text), lists, language=language, source_domain=source_domain
            ),
        )
    return measured_of_columns(
        text,
        measure_fast(text, lists, language),
        lists,
        language=language,
        source_domain=source_domain,
    )


def signals_of_document(
    document: Document, lists: WordLists = NO_LISTS, *, language: str = "", source_domain: str = ""
) -> dict[str, list[Span]]:
    """Compute the signals of a text that is split into words and lines already, plainly: the twin
    of the compiled loops.
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
