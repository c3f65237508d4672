"""Printing: nothing is cut in a pipe, nothing from data is obeyed."""

import ast
import re
import sys

import pytest
from hypothesis import given, strategies as st

from lc_assets.cli import printing


@given(st.text())
def test_visible_text_is_printable_and_says_it_all(text):
    """What is shown is a Python literal's inside: nothing unprintable is left, and nothing is
    lost.
    """
    shown = printing.visible(text)
    assert shown.isprintable()
    assert ast.literal_eval('"' + shown.replace('"', '\\"') + '"') == text


@given(st.text())
def test_harmless_text_keeps_its_lines_and_no_control(text):
    assert all(line.isprintable() for line in printing.harmless(text).split("\n"))
    assert printing.harmless(text).count("\n") == text.count("\n")


def test_markup_and_escapes_in_cells_are_shown_not_obeyed(capsys):
    printing.table(
        ("a[b]", "n"), [("[red]x[/red]", 1), ("\x1b[31m", 12345), (None, 2)], title="[bold]"
    )
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert all(words in out for words in ("[red]x[/red]", "\\x1b[31m", "12,345", "a[b]", "[bold]"))


def test_a_piped_cell_is_never_cut_or_folded(capsys):
    long = "x" * 3000
    printing.table(("a", "b"), [(long, long)])
    printing.facts([("name", long)])
    printing.say(long)
    lines = capsys.readouterr().out.splitlines()
    assert sum(long in line for line in lines) == 3
    assert all(line == line.rstrip() for line in lines)


def test_errors_go_to_standard_error_on_one_line(capsys):
    printing.print_error("a" * 300 + "\x07")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "a" * 300 + "\\x07\n"


def test_a_terminal_gets_its_own_width(monkeypatch, capsys):
    """On a terminal lines are folded to its width; nothing is lost."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    printing.table(("a",), [("y" * 100,)])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.count("y") for line in lines) == 100


@given(st.integers(0, 10**18), st.integers(1, 10**6))
def test_sizes_keep_four_characters_of_number(n_bytes, more):
    """A size is within 5 % of what it says, and never shows a thousand of a unit where the next
    would do.
    """
    words = printing.sized(n_bytes)
    number, unit = words.split()
    scale = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}[unit]
    assert abs(float(number) * scale - n_bytes) <= 0.05 * n_bytes
    assert float(number) < 1000 or unit == "PB"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (86_400, "24 h 00 min"),
    ],
)
def test_durations_roll_over(seconds, words):
    assert printing.lasted(seconds) == words
