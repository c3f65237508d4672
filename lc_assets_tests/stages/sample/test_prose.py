"""Prose of installed packages: what is read of a module, what reads like a sentence, what
repeats.
"""

import pytest
from hypothesis import given, strategies as st

from lc_assets.execution.local import LocalExecutor
from lc_assets.sample.prose import installed_prose, is_new, is_prose, module_lines, prose_lines

MODULE = b'''"""Reads the parish registers of a village.

Another paragraph of this docstring, which has two
lines that belong together.
"""
# A comment of two lines that says at some length
# why the next function is as slow as it is.
def f():
    """Return the ``mean`` of all values, see :func:`os.path.join` or `a page <https://x.org>`_.

    >>> f()
    1

    :param values: numbers whose mean is wanted, in any order
    width : float
        The width of the figure in inches, without its frame.
    """
'''


def test_docstrings_and_comments_become_lines_in_the_order_of_the_file():
    assert module_lines(MODULE) == [
        "Reads the parish registers of a village.",
        "Another paragraph of this docstring, which has two lines that belong together.",
        "A comment of two lines that says at some length why the next function is as slow as it is.",
        "Return the mean of all values, see os.path.join or a page.",
        "numbers whose mean is wanted, in any order",
        "The width of the figure in inches, without its frame.",
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


def test_the_documentation_of_one_small_package_is_real_prose():
    prose = installed_prose(executor=LocalExecutor(), subjects={"one": "msgspec no-such-package"})
    page = prose.pages[0]
    assert page.url.startswith("https://packages.invalid/msgspec/msgspec")
    assert "Generate a JSON Schema for a given type." in page.lines
    assert len({found.url for found in prose.pages}) == len(prose.pages)
    assert {"msgspec", "python"} <= prose.sources.keys()
