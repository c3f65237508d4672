"""How fast measuring is: the sets that the Gopher presets need, against plain Python and against
datatrove; ``-s`` shows the figures.
"""

import time

import pytest

from lc_assets.text.measures.measures import columns, measure
from lc_assets_tests.benchmarks.test_signals_speed import zipf_prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.measures import (
    count_grams,
    count_lines,
    count_words,
    seen_before_chars,
    words_of,
)

PAGE_CHARACTERS = 4000
SHARED = (
    "hash_to_word_ratio",
    "ellipsis_to_word_ratio",
    "frac_words_with_letter",
    "stop_words_distinct",
    "_non_symbol",
)

GOPHER = [
    column
    for column in columns()
    if (":" not in column or column.endswith(":raw"))
    and any(name in column for name in (".datatrove", "paragraphs", *SHARED))
]
"""Gopher's quality and repetition rules as datatrove measures them, of raw words: 21 columns."""


def book_or_prose(shared_data_folder) -> str:
    """A novel where one lies beside the checkout, made-up prose otherwise."""
    books = sorted(shared_data_folder.glob("books_en/*.txt")) if shared_data_folder else []
    return books[0].read_text("utf-8")[:400_000] if books else zipf_prose(400_000)


def pages(text: str) -> list[str]:
    """The same text as short documents."""
    return [text[start : start + PAGE_CHARACTERS] for start in range(0, len(text), PAGE_CHARACTERS)]


@pytest.fixture
def text(request) -> str:
    """Found by hand: a missing folder must not skip the plain run."""
    from pathlib import Path

    found = [
        folder / "shared" / "data"
        for folder in Path(__file__).resolve().parents
        if (folder / "shared" / "data").is_dir()
    ]
    return book_or_prose(found[0] if found else None)


def counted_by_strings(text: str) -> None:
    """All counts that these columns are made of."""
    words = words_of(text, "raw")
    count_words(words), count_grams(words, (2, 3, 4)), seen_before_chars(words, range(5, 11))
    count_lines(text)


@pytest.mark.parametrize(("what", "times"), [("a book", 10), ("pages", 4)])
def test_measuring_is_faster_than_counting_by_strings(what, times, text):
    """Against the counts by the reference; of pages each call costs more than its text."""
    documents = [text] if what == "a book" else pages(text)
    began = time.process_time()
    measure(documents[0], GOPHER)
    compiling = time.process_time() - began
    fast, ours = cpu_seconds(lambda _: [measure(document, GOPHER) for document in documents])
    slow, _ = cpu_seconds(
        lambda _: [counted_by_strings(document) for document in documents], rounds=1
    )
    assert len(ours) == len(documents)
    say(
        f"Gopher's {len(GOPHER)} measures of {what}",
        len(text.encode()) / 1e6,
        "MB",
        fast,
        reference=slow,
    )
    print(f"first call: {compiling:.1f} CPU-seconds")
    assert fast * times < slow


@pytest.mark.network
def test_measuring_beats_datatroves_filters(text):
    """Its two filters on the same words, which it is given: without spaCy, which takes it most of
    its time.
    """
    pytest.importorskip("datatrove")
    from lc_assets_tests.reference.datatrove_values import quality_values, repetition_values

    parts = pages(text)
    words = [words_of(part, "raw") for part in parts]
    documents = list(parts)
    measure(documents[0], GOPHER)
    fast, ours = cpu_seconds(lambda _: [measure(document, GOPHER) for document in documents])
    slow, theirs = cpu_seconds(
        lambda _: [
            quality_values(*pair) | repetition_values(*pair)
            for pair in zip(parts, words, strict=True)
        ],
        rounds=1,
    )
    for mine, his in zip(ours, theirs, strict=True):
        assert {column.partition(":")[0]: value for column, value in mine.items()} == his
    say(
        "Gopher's measures of pages",
        len(text.encode()) / 1e6,
        "MB",
        fast,
        datatrove_given_words=slow,
    )
    assert fast * 10 < slow
