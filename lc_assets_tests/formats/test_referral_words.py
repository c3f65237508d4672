"""The lists of words that concepts are not made of: the preset's, and those of a file."""

import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.lists.word_lists import digest_of_words, read_special_words
from lc_assets.text.referrals.words import spelling
from lc_assets_tests.reference.concepts import read_words


def test_the_preset_holds_what_it_should():
    """About as many stop words as other lists have; every entry is a word as texts are read."""
    words = read_special_words()
    assert 300 < len(words.stop) < 450
    assert words.pronouns == {"he", "she", "him", "her", "his"} <= words.stop
    assert {"dr", "mr", "st"} <= words.abbreviations
    for word in words.stop | words.abbreviations:
        found = read_words(word, type(words)())
        assert [spelling(word, *place.tolist()) for place in found.spellings] == [
            word.removesuffix("'s")
        ]


def test_lists_of_ones_own(tmp_path):
    path = tmp_path / "de.txt"
    path.write_text("\ufeff# Woerter\n[stop]\nDer die\n\n[abbreviations]\nd\u2019h bzw\n", "utf-8")
    words = read_special_words(path)
    assert (words.stop, words.pronouns, words.abbreviations) == (
        {"der", "die"},
        frozenset(),
        {"d'h", "bzw"},
    )
    assert digest_of_words(path) != digest_of_words() != digest_of_words(path)[:10]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("der\n", "line 1: words before any list"),
        ("[stop]\n[nouns]\n", "line 2: no list is called 'nouns'"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path, content, problem):
    path = tmp_path / "x.txt"
    path.write_text(content)
    with pytest.raises(BadInput, match=problem):
        read_special_words(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"nowhere.txt: no readable file of words"):
        read_special_words(tmp_path / "nowhere.txt")
