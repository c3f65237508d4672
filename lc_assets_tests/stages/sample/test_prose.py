"""Prose of installed packages: what is read of a module, what reads like a sentence, what
repeats.
"""

import pytest
from hypothesis import given, strategies as st

from lc_assets.execution.local import LocalExecutor
from lc_assets.sample.prose import (
    PAGES_OF_SUBJECT,
    installed_prose,
    is_new,
    is_prose,
    module_lines,
    prose_lines,
)

SENTENCE = "The width of the figure {} is given in inches, without its frame. "
LONG = "".join(SENTENCE.format(name) for name in "abcdefghijk")
HELP = LONG.replace("figure", "page")


def test_long_docstrings_and_help_texts_become_lines_in_the_order_of_the_file():
    source = f'''"""{LONG}

Another paragraph of ``this`` docstring, which has two
lines that belong together.

>>> f()
"""
def f():
    """A short docstring is a fragment, however well it reads."""
topics = {{"f": "{HELP}"}}
'''
    assert module_lines(source.encode()) == [
        LONG.strip(),
        "Another paragraph of this docstring, which has two lines that belong together.",
        HELP.strip(),
    ]


@pytest.mark.parametrize("source", [b"def (", b"\xff\xfe\x00", b"(" * 10_000, b""])
def test_what_is_no_python_has_no_lines(source):
    assert module_lines(source) == []


@given(st.text(max_size=300))
def test_lines_are_sentences_on_one_line_each(text):
    for line in prose_lines(text):
        assert is_prose(line)
        assert "\n" not in line


def test_a_line_that_says_nothing_new_is_a_repeat():
    lines = [
        "The width of the figure in inches, without its frame.",
        "The height of the figure in inches, without its frame.",
        "Colours are names, or three numbers between nought and one.",
    ]
    seen: set[str] = set()
    assert [is_new(line, seen) for line in [*lines, lines[0]]] == [True, False, True, False]


def test_the_documentation_of_one_package_is_real_prose():
    """The largest module comes first; packages that are not installed are skipped; no other is
    read.
    """
    prose = installed_prose(executor=LocalExecutor(), subjects={"one": "no-such-package alembic"})
    page = prose.pages[0]
    assert page.url == "https://packages.invalid/alembic/alembic.operations.ops"
    assert any(line.startswith('Issue an "alter column" instruction') for line in page.lines)
    assert len({found.url for found in prose.pages}) == len(prose.pages)
    assert prose.sources.keys() == {"alembic", "python"}


def test_a_subject_is_read_until_its_pages_are_full(monkeypatch):
    monkeypatch.setattr("lc_assets.sample.prose.PAGE_CHARS", 2_000)
    found = installed_prose(executor=LocalExecutor(), subjects={"one": "alembic"}).pages
    long_pages = [
        page for page in found if "alembic-" not in page.url and "LICENSE" not in page.url
    ]
    assert len(long_pages) == PAGES_OF_SUBJECT
