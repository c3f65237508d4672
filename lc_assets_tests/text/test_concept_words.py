"""Sentences and words, as they are said to be; compiled reading is plain reading, of any text; and
no text takes it long.
"""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text.referrals.reading import WordReader, class_table
from lc_assets.text.referrals.words import (
    CAPITAL,
    CLASSES,
    INITIAL,
    JOINED,
    LIMIT,
    LONGEST_WORD,
    SpecialWords,
    class_of,
    spelling,
)
from lc_assets_tests.reference.concepts import read_words
from lc_assets_tests.strategies import hostile_text

SPECIAL = SpecialWords(
    stop=frozenset({"the", "of", "don't", "and"}),
    pronouns=frozenset({"he", "her"}),
    abbreviations=frozenset({"dr", "fig"}),
    common=frozenset({"thing", "says"}),
)

BITS = [
    *(
        "The ",
        "the ",
        "cat ",
        "Cat",
        " he ",
        "Dr",
        "dr. ",
        "Fig",
        ". ",
        ".",
        "..",
        "! ",
        "?\u201d ",
        ".) ",
        "\u2026 ",
        "\u3002",
        "\u061f ",
    ),
    *(
        "'",
        "\u2019",
        "'s ",
        "\u2019s",
        "don't ",
        "\u2018",
        '"',
        "-",
        "\u2010",
        "well-known ",
        "1,000 ",
        "3.14",
        "7",
        "7. ",
        "a ",
        "A. ",
    ),
    *(
        "I. ",
        " ",
        "\n",
        "\n\n",
        "\r\n",
        "\x0c",
        "\u2028",
        "x" * 38,
        "y" * 63,
        "z" * 64,
        " " * 45,
        "\u4e2d\u6587",
        "\u3042",
    ),
    *(
        "\u30bf\u30ef\u30fc",
        "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
        "\u05e9\u05dc\u05d5\u05dd ",
        "\u0633\u0644\u0627\u0645 ",
    ),
    *(
        "\u0939\u093f\u0928\u094d\u0926\u0940\u0964 ",
        "e\u0301",
        "\u0301",
        "\u200c",
        "\u0130",
        "\u01c5x",
        "\u2167",
        "\ud800",
        "\x00",
    ),
    *("\U0001f600", "\U00020000", "\U000e0100", "_", ",", ":", "(", "]", "\u2014"),
]


def texts() -> st.SearchStrategy[str]:
    """Hostile texts, and texts of pieces that mean something here."""
    return hostile_text() | st.lists(st.sampled_from(BITS), max_size=80).map("".join)


def sentences_of(text: str, special: SpecialWords = SPECIAL) -> list[list[str]]:
    """Words by sentence, stop words left out."""
    found = read_words(text, special)
    lines: list[list[str]] = [[] for _ in range(found.n_sentences)]
    for word, sentence in zip(found.words.tolist(), found.sentences.tolist(), strict=True):
        lines[sentence].append(spelling(text, *found.spellings[word].tolist()))
    return lines


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("  ...\n\n* * *", ""),
        ("The cat sat. A dog ran! Why? so", "cat sat/a dog ran/why so"),
        ("\u201cStop.\u201d \u201cWhy?\u201d", "stop/why"),
        (
            "At 5 p.m. and so. Dr. Smith of Fig. 3 knew J. Doe.",
            "at 5 p m so/dr smith fig 3 knew j doe",
        ),
        ("It was I. You know. 7 came.", "it was i/you know/7 came"),
        ("Say 3.14 or 1,000.5, not 3. Four", "say 3.14 or 1,000.5 not 3/four"),
        (
            "Cat's cats' rock'n'roll well-known O\u2019Hara\u2019s",
            "cat cats rock'n'roll well-known o'hara",
        ),
        ("\u4e2d\u6587\u3002\u5f88\u597d", "\u4e2d \u6587/\u5f88 \u597d"),
        (
            "\u0643\u064a\u0641\u061f \u062c\u064a\u062f. \u0634\u0643\u0631\u0627",
            "\u0643\u064a\u0641/\u062c\u064a\u062f/\u0634\u0643\u0631\u0627",
        ),
        ("Menu\nHome\nabout us", "menu/home/about us"),
        (
            "a line of forty characters and some more,\nand so on",
            "a line forty characters some more so on",
        ),
        (
            "a line of forty characters and some more,\n \nand so",
            "a line forty characters some more/so",
        ),
        (f"a word {'x' * (LONGEST_WORD + 1)} b", "a word b"),
    ],
)
def test_sentences_and_words(text, wanted):
    """What ends a sentence, what is in a word."""
    assert "/".join(map(" ".join, sentences_of(text))) == wanted


def test_runs_capitals_and_beginnings():
    """A run ends at stop words and marks; a capital says nothing where a sentence or a quotation
    begins.
    """
    text = "Big Red dog of Paris, \u201cCome home\u201d said Rex"
    found = read_words(text, SPECIAL)
    names = [spelling(text, *found.spellings[word].tolist()) for word in found.words.tolist()]
    flags = dict(zip(names, found.flags.tolist(), strict=True))
    assert flags == {
        "big": CAPITAL | INITIAL,
        "red": CAPITAL | JOINED,
        "dog": JOINED,
        "paris": CAPITAL,
        "come": CAPITAL | INITIAL,
        "home": JOINED,
        "said": INITIAL,  # behind a quotation mark, whichever side it is of
        "rex": CAPITAL | JOINED,
    }


def test_words_weigh_their_letters():
    """At most two; stop words, common ones and numbers nothing."""
    text = "a cat x1 42 thing the \u4e2d \u05d0"
    found = read_words(text, SPECIAL)
    weights = {
        spelling(text, *place.tolist()): weight
        for place, weight in zip(found.spellings, found.weights.tolist(), strict=True)
    }
    assert weights == {
        "a": 1,
        "cat": 2,
        "x1": 2,
        "42": 0,
        "thing": 0,
        "the": 0,
        "\u4e2d": 1,
        "\u05d0": 1,
    }


def test_a_sentence_lies_in_one_part():
    """Where a part begins, so does a sentence; one without words has none."""
    text = "one two three four five"
    found = read_words(text, SPECIAL, [4, 5, 8, 8])
    assert found.sentences.tolist() == [0, 1, 2, 2, 2]
    assert found.parts.tolist() == [0, 1, 4]


@given(texts(), st.lists(st.integers(0, 90), max_size=3).map(sorted))
@example("don't don\u2019t DON\u2010T", [])
@example("A" * 64 + " " + "B" * 65 + "'s", [])
@example("xy's y's 's", [2])
def test_compiled_reading_is_plain_reading(text, part_starts):
    """Every array, every type."""
    fast, plain = (
        WordReader(SPECIAL).read(text, part_starts),
        read_words(text, SPECIAL, part_starts),
    )
    for name, ours, theirs in zip(plain._fields, fast, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert getattr(ours, "dtype", int) == getattr(theirs, "dtype", int), name


def test_more_different_words_than_were_expected():
    """The table of words is enlarged until they fit."""
    text = " ".join(f"w{number}x" for number in range(5000))
    assert len(WordReader(SPECIAL).read(text).weights) == 5000


def test_no_character_beyond_the_table_means_anything():
    """But for variation selectors, which go with other marks: they are no words, so nothing is
    lost.
    """
    meaning = [code for code in range(LIMIT, 0x110000) if class_of(chr(code)) != "O"]
    assert meaning == []


HOSTILE = {
    "one line of letters": "x" * 10**6,
    "one line without spaces": "word-" * 200_000,
    "only marks": ".,;!?" * 200_000,
    "only line ends": "\n" * 10**6,
    "only quotes": "\u201d'" * 500_000,
    "open ends": ". ' " * 250_000,
    "numbers": "1.1," * 250_000,
    "short words": "a b " * 250_000,
    "different words": " ".join(f"{number:x}" for number in range(150_000)),
    "han": "\u4e2d\u6587\u6587" * 333_333,
    "arabic": "\u0633\u0644\u0627\u0645 " * 200_000,
    "marks that combine": "e" + "\u0301" * 10**6,
    "emoji": "\U0001f600" * 10**6,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_much_memory(name):
    """A megabyte of anything takes under 100 bytes a character."""
    from lc_assets.text.referrals.concepts import LexicalConcepts
    from lc_assets.text.referrals.referrals import count_referrals

    finder = LexicalConcepts(SPECIAL)
    count_referrals(finder.mentions("A cat sat. The cat ran."))  # compiles
    tracemalloc.start()
    found = count_referrals(finder.mentions(HOSTILE[name]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.n_mentions <= 3 * len(HOSTILE[name])
    assert peak < 100 * 10**6


def test_classes_are_named():
    assert set(map(class_of, map(chr, range(LIMIT)))) == set(CLASSES)


def test_the_table_of_classes_has_the_class_of_every_character():
    """Also beyond U+20000, where it is made without asking for each."""
    classes = [CLASSES[place] for place in class_table().tolist()]
    assert classes == [*map(class_of, map(chr, range(LIMIT))), "O"]
