"""Values of web pages in Markdown: they are shown, and do nothing."""

import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt

from lc_assets.builds.showing import as_passages, as_table, as_text, cell

HOSTILE = (
    "a|b\n# c <img src=x onerror=alert(1)> ![i](http://x/y) [l](javascript:0) `code` **b** "
    "~~s~~ &lt; <https://x.y> https://x.y/a_b"
)


@given(st.text())
@example(HOSTILE)
def test_a_cell_is_its_text(text):
    """Read again, there is one piece of text and nothing else; white space is one space."""
    wanted = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    read = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .parse(f"| x {cell(text)} |\n|---|\n")
    )
    (inline,) = [token for token in read if token.type == "inline"]
    assert {child.type for child in inline.children} <= {"text", "text_special"}
    assert inline.content.count("|") == wanted.count("|")
    assert "".join(child.content for child in inline.children).removeprefix("x").strip() == wanted


@pytest.mark.parametrize(
    "written",
    [
        as_table([{"url": HOSTILE, HOSTILE: 1}]),
        as_passages([{"id": HOSTILE, "begins": HOSTILE, "ends": HOSTILE}]),
    ],
)
def test_nothing_of_a_page_gets_out_of_its_place(written):
    html = (
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(written)
    )
    assert not [tag for tag in ("<img", "<a ", "<h1", "<code", "<s>") if tag in html]
    assert "://" not in written  # readers that link bare addresses show the backslashes in them


def test_a_table_has_all_columns_of_all_lines():
    assert as_table([{"a": 1}, {"b": "x"}]).splitlines() == [
        "| a | b |",
        "|---:|---|",
        "| 1 |  |",
        "|  | x |",
    ]


def test_fractions_are_short_and_whole_numbers_whole():
    assert [as_text(value) for value in (1e5, 2**53, 1 / 3, -0.0, float("nan"), float("inf"))] == [
        "100,000",
        "9,007,199,254,740,992",
        "0.3333",
        "-0",
        "nan",
        "inf",
    ]
