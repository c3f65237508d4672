"""Words, lines and repeated n-grams."""

import unicodedata

from hypothesis import example, given

from lc_assets.text.words import fold, normalize, split_lines
from lc_assets_tests.reference import redpajama_signals as slow
from lc_assets_tests.reference.signals import read_document, repetition_scores
from lc_assets_tests.strategies import hostile_text, repetitive_words


@given(hostile_text())
def test_words_of_the_lines_are_the_words_of_the_text(text):
    """Folding the text once gives what folding each line by itself gives."""
    document = read_document(text)
    assert document.line_words == [slow.normalize(line).split() for line in document.lines]
    assert document.words == slow.normalize(text).split()
    assert normalize(text) == " ".join(document.words)


@given(hostile_text())
def test_lines_join_to_the_text(text):
    """Nothing is lost, and only a newline ends a line."""
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines[:-1])
    assert read_document(text).line_spans == [
        (start, start + len(line)) for start, line in zip(starts(lines), lines, strict=True)
    ]


def starts(lines: list[str]) -> list[int]:
    return [len("".join(lines[:place])) for place in range(len(lines))]


@given(repetitive_words())
@example(["ha"] * 8)
@example(["a", "b", "a", "b", "x", "y", "x", "y"])  # two top 2-grams: the first seen wins
def test_repetition_is_what_counting_every_ngram_gives(words):
    """Starts that are left out of longer n-grams never hid a repeat."""
    scores = repetition_scores(words)
    assert scores == {
        **{f"rps_doc_frac_chars_top_{n}gram": slow.top_fraction(words, n) for n in (2, 3, 4)},
        **{f"rps_doc_frac_chars_dupe_{n}grams": slow.dupe_fraction(words, n) for n in range(5, 11)},
    }


def test_overlapping_repeats_score_above_one():
    """The text "ha" eight times has the 2-gram "ha ha" seven times: 28 characters of 16."""
    assert repetition_scores(["ha"] * 8)["rps_doc_frac_chars_top_2gram"] == 1.75


def test_piled_up_accents_take_linear_time():
    """100,000 pairs of marks out of order: sorting them by insertion would take half a minute."""
    text = "\u00e9" + "\u0301\u0327" * 100_000
    folded = fold(text)
    assert folded == "e" + "\u0327" * 100_000 + "\u0301" * 100_001


def test_long_runs_of_marks_are_folded_as_nfd_folds_them():
    """Marks that decompose into marks, bases among them, punctuation around: the detour changes
    nothing.
    """
    for text in [
        "\u00e9" + "\u0301\u0f73\u0327" * 50 + "x\u0301",
        "\u2014" * 70 + "\u0344\u0327" * 70 + "\u2014",
        "\u0f73" * 64,
    ]:
        assert fold(text) == unicodedata.normalize("NFD", text)
