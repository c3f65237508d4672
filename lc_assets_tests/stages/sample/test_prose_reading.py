"""Reading prose out of markup and out of Python modules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.sample.prose import plain
from lc_assets.sample.prose.docstrings import constant_lines, module_lines
from lc_assets.sample.prose.plain import is_prose, prose_lines, without_markup

MARKUP_TEXT = st.text(alphabet="ab `*|<>[]()!:~_/ .\n", max_size=60)


def slow_without_markup(paragraph: str) -> str:
    """Every pattern in turn, whether or not the paragraph can match it."""
    paragraph = " ".join(paragraph.split())
    for pattern, replacement in plain._MARKUP:
        paragraph = pattern.sub(replacement, paragraph)
    return " ".join(paragraph.split())


@given(MARKUP_TEXT)
def test_paragraphs_without_signs_of_markup_have_none_to_take_off(paragraph: str) -> None:
    assert without_markup(paragraph) == slow_without_markup(paragraph)


@given(st.text(max_size=100))
def test_prose_lines_are_prose_and_single_lines(text: str) -> None:
    """Whatever comes in, what comes out are stripped lines that read like sentences before their
    markup was taken off.
    """
    for line in prose_lines(text):
        assert "\n" not in line
        assert line == line.strip()
        assert is_prose(line)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "One sentence that is\nwrapped over two lines.",
            ["One sentence that is wrapped over two lines."],
        ),
        (
            "- a first thing that is listed here\n- a second thing that is listed here",
            ["a first thing that is listed here", "a second thing that is listed here"],
        ),
        (">>> this is a doctest with words in\nand this is what it prints", []),
        (
            "```\nthis stands in a fence and is code\n```\nthis stands after the fence, it stays",
            ["this stands after the fence, it stays"],
        ),
        (
            "axis : int, which one of the axes to take\n    The axis along which the values run.",
            ["The axis along which the values run."],
        ),
        (
            "Args:\n    width (int, optional): the width of the figure in inches",
            ["the width of the figure in inches"],
        ),
        (
            ":returns: the width of the figure in inches\n:rtype: int or whatever else there may be",
            ["the width of the figure in inches"],
        ),
        (
            ".. versionadded:: 1.2\n   The width may be given in inches.",
            ["The width may be given in inches."],
        ),
        (
            "# A Markdown heading of more words than six",
            ["A Markdown heading of more words than six"],
        ),
        (
            (
                "* a first thing that\n  hangs below its bullet here\nwhat comes after the list is "
                "apart"
            ),
            [
                "a first thing that hangs below its bullet here",
                "what comes after the list is apart",
            ],
        ),
        (
            "See [the manual](https://a.example) and ![a picture](b.png) all you like",
            ["See the manual and all you like"],
        ),
        ("================================\nToo short", []),
    ],
)
def test_markup_of_each_kind(text: str, lines: list[str]) -> None:
    assert prose_lines(text) == lines


HOSTILE = ["`", "*", "[", "<", "|", "![", "`<", " ", "#", ":a:`", "(((", "- ", ">>> ", "\t", "a: "]


@pytest.mark.parametrize("sign", HOSTILE)
def test_no_text_takes_quadratic_time(sign: str) -> None:
    """Two hundred thousand signs of markup in a row, where a quadratic search would take minutes."""
    lines = prose_lines(sign * (200_000 // len(sign)))
    assert sum(map(len, lines)) <= 200_000


def test_docstrings_and_comments_come_in_the_order_of_the_file() -> None:
    source = b'''"""The module comes before all that is in it."""
# A comment that is written on two lines
# comes when its turn has come.

class Pot:
    """The class comes after the comment above."""
    def pour(self):
        """The method comes after the class it is in."""
    # one line alone is left out however long it may be
async def boil():
    """The function comes last of all that is here."""
'''
    assert module_lines(source, name="pot.py") == [
        "The module comes before all that is in it.",
        "A comment that is written on two lines comes when its turn has come.",
        "The class comes after the comment above.",
        "The method comes after the class it is in.",
        "The function comes last of all that is here.",
    ]


def test_nothing_is_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert module_lines(
        b'"""A module that shouts as soon as it is run."""\nprint("I ran")\nraise SystemExit',
        name="loud.py",
    )
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "source",
    [b'"""never closed', b"\xff\xfe", b'"""a null"""\0', b'"""deep"""\n' + b"-" * 20_000 + b"1"],
)
def test_what_is_not_python_is_called_by_name(source: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"odd\.py"):
        module_lines(source, name="odd.py")


def test_surrogates_in_a_constant_become_text_that_utf8_can_hold() -> None:
    (line,) = module_lines(rb'"""A character that is half of one: \ud800 is it."""', name="half.py")
    assert line.encode() == "A character that is half of one: \ufffd is it.".encode()


def test_tables_of_texts_give_their_values() -> None:
    source = b'topics = {"assert": "The assert statement is a way to insert checks.", "none": None, "n": 1}'
    assert constant_lines(source, name="topics.py") == [
        "The assert statement is a way to insert checks."
    ]
