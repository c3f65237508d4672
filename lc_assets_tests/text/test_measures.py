"""Measures by name: what exists, what is computed, and the numbers by hand where no peer runs
here.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given

from lc_assets.errors import BadInput
from lc_assets.text.measures import measures, reading
from lc_assets.text.measures.licences import licence_of
from lc_assets.text.measures.measures import MEASURES, columns, measure, parse_column
from lc_assets_tests.strategies import hostile_text


@given(hostile_text())
def test_every_column_has_a_value_for_every_text(text):
    """A number or None, in the order asked; asking for one gives what asking for all gives."""
    every = measure(text, columns())
    assert tuple(every) == columns()
    assert all(value is None or value >= 0 for value in every.values())
    for column in columns()[::7]:
        assert measure(text, [column]) == {column: every[column]}


def test_the_fractions_are_fractions():
    """Of a page where nothing is degenerate; but the most frequent n-gram may overlap itself, and
    Dolma counts spaces above only.
    """
    values = measure("To be, or not to be.\nTo be, or not to be.\n\n- that … is\n" * 3, columns())
    beyond = {
        column
        for column, value in values.items()
        if column.startswith("frac_") and not 0 <= value <= 1
    }
    assert all(
        column.startswith(("frac_chars_top_", "frac_chars_duplicate_lines.dolma"))
        for column in beyond
    )
    assert None not in values.values()


@pytest.mark.parametrize("text", ["", " ", "\n \n"])
def test_a_mean_over_nothing_is_none(text):
    """Words first: there are none in these."""
    values = measure(text, columns())
    assert values["word_count:raw"] == 0
    assert (
        values["frac_words_with_letter:raw"]
        is values["mean_word_length:whitespace"]
        is values["median_word_length:raw"]
        is None
    )
    assert values["frac_short_lines"] is None


def test_dolma_by_hand():
    """Fourteen words, 22 characters; every copy of what repeats counts."""
    text = "* a bb a bb …\n* a bb a bb …\nthe\u2026 Of"
    names = (
        "frac_chars_top_2gram.dolma",
        "frac_chars_top_3gram.dolma",
        "frac_chars_dupe_5grams.dolma",
    )
    values = measure(
        text,
        [f"{name}:whitespace" for name in (*names, "median_word_length", "frac_words_with_symbol")],
    )
    n_chars = 2 * (1 + 1 + 2 + 1 + 2 + 1) + 4 + 2
    assert list(values.values()) == [
        4 * 3 / n_chars,  # a bb, four times
        2 * 4 / n_chars,  # * a bb, twice: the first of those that occur twice
        (7 + 7 + 7 + 7) / (7 + 7 + 7 + 6 + 7 + 6 + 7 + 7 + 10 + 10),  # * a bb a bb and a bb a bb …
        1.0,
        3 / 14,
    ]


def test_dolma_lines_by_hand():
    """Newline lines, copies all counted; characters per character that is no space."""
    values = measure(
        "ab\n\nab\n cd…\n\n*x …",
        [name for name in MEASURES if name.endswith(".dolma") and "lines" in name],
    )
    assert values == {
        "frac_lines_bulleted.dolma": 1 / 6,
        "frac_lines_ellipsis.dolma": 2 / 6,
        "frac_duplicate_lines.dolma": 4 / 6,
        "frac_chars_duplicate_lines.dolma": 4 / 10,
    }


def test_no_more_is_computed_than_is_wanted(monkeypatch):
    """Lines alone need no words, and the other way round."""
    for name in ("read_words", "edit"):
        monkeypatch.setattr(reading, name, None)
    monkeypatch.setattr(measures, "licence_of", None)
    assert measure("a\nb", ["frac_short_lines"]) == {"frac_short_lines": 1.0}
    monkeypatch.undo()
    monkeypatch.setattr(reading, "count_lines", None)
    assert measure("a\nb", ["word_count:raw"]) == {"word_count:raw": 2}


@pytest.mark.parametrize(
    "column",
    ["words", "word_count", "word_count:spacey", "frac_short_lines:raw", "", "word_count:"],
)
def test_a_column_that_does_not_exist_is_named(column):
    """The message says what there is instead."""
    with pytest.raises(BadInput, match=f"^{column}: "):
        parse_column(column)


@pytest.mark.parametrize(
    ("text", "url", "licence"),
    [
        ("Licensed CC BY-NC-SA 4.0 by us", None, "cc-by-nc-sa-4.0"),
        ("cc by the way", None, None),
        ("see creativecommons.org/licenses/by/3.0/us/ and CC0", None, "cc-by-3.0"),
        ("CC0 1.0 Universal", None, "cc0-1.0"),
        ("under a Creative Commons Attribution-ShareAlike License", None, "cc-by"),
        ("a Creative Commons licence", None, "cc"),
        ("nothing", "https://creativecommons.org/publicdomain/mark/1.0/", "cc-mark-1.0"),
        ("ACC BY-PASS", None, None),
        ("", None, None),
    ],
)
def test_licences(text, url, licence):
    """Links before names; a name only where it is spelled as one."""
    assert licence_of(text, url) == licence
    assert measure(text, ["licence_cc"], url) == {"licence_cc": float(licence is not None)}


def test_the_page_names_every_measure():
    """Or its family, where only a number differs."""
    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text("utf-8")
    families = {
        re.sub(r"dupe_\d+", "dupe_5", re.sub(r"top_\d+", "top_2", name)) for name in MEASURES
    }
    assert [family for family in families if f"`{family}`" not in page] == []
