"""What datatrove measures of a text: the numbers that its own filters compare with their
thresholds.

Each threshold is a spy: it is true, lets everything pass, and remembers what it was compared with.
So nothing of datatrove is written down here but the names of its settings. Words are handed in, in
place of spaCy's. Needs datatrove 0.10.
"""

import math
import warnings
from collections.abc import Sequence
from unittest.mock import patch


class Spy:
    """A threshold that remembers what it was asked about."""

    __array_ufunc__ = None  # numpy's numbers leave the comparison to us
    __hash__ = None

    def __init__(self):
        self.seen = []

    def __lt__(self, value):
        self.seen.append(float(value))
        return False

    __gt__ = __lt__


def filtered(module, filter_, text, words):
    """Run a filter on a text whose words are given; returns what it says."""
    from datatrove.data import Document

    with (
        patch.object(module, "split_into_words", lambda *_: list(words)),
        warnings.catch_warnings(action="ignore"),
    ):
        return filter_.filter(Document(text=text, id="0"))


def quality_values(text: str, words: Sequence[str]) -> dict[str, float]:
    """What `GopherQualityFilter` measures; empty where it divides by nothing."""
    from datatrove.pipeline.filters import gopher_quality_filter as module

    names = (
        "min_doc_words",
        "min_avg_word_length",
        "max_symbol_word_ratio",
        "max_bullet_lines_ratio",
        "max_ellipsis_lines_ratio",
    )
    spies = {name: Spy() for name in (*names, "max_non_alpha_words_ratio", "min_stop_words")}
    if not words or not text.splitlines():
        return {}
    unbounded = {"max_doc_words": None, "max_avg_word_length": None}
    assert filtered(module, module.GopherQualityFilter(**spies, **unbounded), text, words) is True
    hashes, ellipses = spies["max_symbol_word_ratio"].seen
    return {
        "word_count_non_symbol": spies["min_doc_words"].seen[0],
        "mean_word_length_non_symbol": spies["min_avg_word_length"].seen[0],
        "hash_to_word_ratio": hashes,
        "ellipsis_to_word_ratio": ellipses,
        "frac_lines_bulleted.datatrove": spies["max_bullet_lines_ratio"].seen[0],
        "frac_lines_ellipsis.datatrove": spies["max_ellipsis_lines_ratio"].seen[0],
        "frac_words_with_letter": spies["max_non_alpha_words_ratio"].seen[0],
        "stop_words_distinct": spies["min_stop_words"].seen[0],
    }


def repetition_values(text: str, words: Sequence[str]) -> dict[str, float]:
    """What `GopherRepetitionFilter` measures; n-grams that it has none of are left out."""
    from datatrove.pipeline.filters import gopher_repetition_filter as module

    if not text:
        return {}
    spies = {
        name: Spy()
        for name in ("dup_line_frac", "dup_para_frac", "dup_line_char_frac", "dup_para_char_frac")
    }
    top, dupes = [(n, Spy()) for n in (2, 3, 4)], [(n, Spy()) for n in range(5, 11)]
    assert (
        filtered(
            module,
            module.GopherRepetitionFilter(**spies, top_n_grams=top, dup_n_grams=dupes),
            text,
            words,
        )
        is True
    )
    ours = {
        "frac_duplicate_lines.datatrove": "dup_line_frac",
        "frac_duplicate_paragraphs": "dup_para_frac",
        "frac_chars_duplicate_lines.datatrove": "dup_line_char_frac",
        "frac_chars_duplicate_paragraphs": "dup_para_char_frac",
    }
    values = {name: spies[theirs].seen[0] for name, theirs in ours.items()}
    values |= {f"frac_chars_top_{n}gram.datatrove": spy.seen[0] for n, spy in top if spy.seen}
    return values | {f"frac_chars_dupe_{n}grams.datatrove": spy.seen[0] for n, spy in dupes}


def fineweb_values(text: str, words: Sequence[str]) -> dict[str, float]:
    """What `FineWebQualityFilter` measures; empty where it divides by nothing."""
    from datatrove.pipeline.filters import fineweb_quality_filter as module

    if not words or not text.strip():
        return {}
    spies = {
        name: Spy()
        for name in ("line_punct_thr", "short_line_thr", "char_duplicates_ratio", "new_line_ratio")
    }
    assert filtered(module, module.FineWebQualityFilter(**spies), text, words) is True
    ours = (
        "frac_lines_terminal_punctuation",
        "frac_short_lines",
        "frac_chars_duplicate_lines.fineweb",
        "newlines_per_word",
    )
    return {name: spy.seen[0] for name, spy in zip(ours, spies.values(), strict=True)}


def c4_values(text: str) -> dict[str, object]:
    """The text that `C4QualityFilter` leaves, or why it drops the document; sentences are not
    counted.
    """
    from datatrove.data import Document
    from datatrove.pipeline.filters.c4_filters import C4QualityFilter

    document = Document(text=text, id="0")
    said = C4QualityFilter(min_num_sentences=-1).filter(document)
    return (
        {"text": document.text, "condemned": None}
        if said is True
        else {"text": None, "condemned": said[1]}
    )


def values_of(text: str, words: Sequence[str]) -> dict[str, float]:
    """All of datatrove's measures of a text with these words, by our names without the kind of
    words.
    """
    values = (
        quality_values(text, words) | repetition_values(text, words) | fineweb_values(text, words)
    )
    return {
        name: value for name, value in values.items() if not math.isnan(value)
    }  # a mean over no words is none
