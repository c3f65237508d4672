"""Line editing: what goes, by which rule, and the proof of it."""

import re

import pytest
from hypothesis import example, given

from lc_assets.text.rules.line_rules import C4, EDITS, REFINEDWEB, LineRules, Taken, edit
from lc_assets_tests.strategies import hostile_text


@given(hostile_text())
@example("a\r\nb\x1c\x85c")
def test_counts_add_up_and_spans_lie_in_the_text(text):
    """Every line is kept or removed by a named rule; its span is a whole line of the original."""
    for rules, lines in ((C4, text.splitlines()), (REFINEDWEB, text.split("\n"))):
        edited = edit(text, rules)
        removed = [
            taken
            for taken in edited.taken
            if taken.reason in edited.n_lines_removed and text[taken.start : taken.end] in lines
        ]
        assert edited.n_lines == len(lines)
        assert edited.n_lines_kept == edited.n_lines - sum(edited.n_lines_removed.values()) >= 0
        assert len(removed) >= sum(edited.n_lines_removed.values())
        assert edited.n_words == len(text.split())
        assert sum(edited.n_words_flagged.values()) <= edited.n_words
        assert list(edited.taken) == sorted(edited.taken, key=lambda taken: taken.start)


@given(hostile_text())
def test_no_rules_change_nothing_but_the_ends(text):
    """Rules that object to nothing take nothing."""
    edited = edit(text, LineRules(name="none", broken=False))
    assert (edited.text, edited.taken) == (
        "\n".join(line.strip() for line in text.split("\n")).strip(),
        (),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("SHOUTING ALL DAY", "uppercase"),
        ("12 345", "numeric"),
        ("3 likes", "counter"),
        ("1,204K views!", "counter"),
        ("Menu", "few_words"),
        ("Read more...", "boilerplate"),
        ("It has 3 likes", None),
        ("A plain line", None),
        ("", None),
    ],
)
def test_refinedweb_takes_out_lines(line, reason):
    """One rule each; a blank line parts paragraphs and stays."""
    edited = edit(f"First of them.\n{line}\nLast of them.", REFINEDWEB)
    assert dict(edited.n_lines_removed) == ({reason: 1} if reason else {})
    assert [(taken.start, taken.end) for taken in edited.taken] == (
        [(15, 15 + len(line))] if reason else []
    )


def test_refinedweb_edits_short_lines():
    """At the start, at the end, anywhere; long lines keep theirs; words of edited lines are
    flagged, all of them.
    """
    text = (
        "Sign in to see it\nA tale, read more…\nNow 2 items in cart today\n"
        + "word " * 10
        + "read more"
    )
    edited = edit(text, REFINEDWEB)
    assert edited.text.split("\n") == [
        "to see it",
        "A tale, ",
        "Now 2  today",
        "word " * 10 + "read more",
    ]
    assert [text[taken.start : taken.end] for taken in edited.taken] == [
        "Sign in",
        "read more…",
        "items in cart",
    ]
    assert edited.n_words_flagged == {"boilerplate": 15}


def test_c4_says_why():
    """Each of its reasons once, in the order of the text."""
    lines = [
        "no end",
        "Two.",
        f"{'x' * 1001} is long.",
        "Javascript must be on.",
        "Our privacy policy is here.",
        "It is so.[1]",
        "Well, then...",
    ]
    edited = edit("\n".join(lines), C4)
    reasons = [
        "no_end_mark",
        "few_words",
        "long_word",
        "javascript",
        "policy",
        "citation",
        "no_end_mark",
    ]
    assert [taken.reason for taken in edited.taken] == reasons
    assert (edited.text, edited.n_lines_kept, edited.condemned) == ("It is so.", 1, None)


def test_a_condemned_document_is_edited_all_the_same():
    """Lorem ipsum before anything that comes later; a bracket beside JavaScript is spared."""
    assert edit("Lorem ipsum dolor sit.\nA { is here.", C4).condemned == "lorem_ipsum"
    assert edit("It says javascript { here.", C4).condemned is None
    assert edit("See { our privacy policy.", C4).condemned == "curly_bracket"
    assert edit("a { without an end mark", C4) == edit("a { without an end mark", C4)
    assert edit("a { without an end mark", C4).taken == (Taken(0, 23, "no_end_mark"),)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "[" * 1_000_000,
        "1" * 1_000_000,
        " " * 1_000_000,
        "read more " * 100_000,
        "\n" * 50_000,
    ],
)
def test_long_lines_take_linear_time(text):
    """Within the limit of a test; a quadratic pattern would take minutes."""
    for rules in (C4, REFINEDWEB):
        assert edit(text, rules).n_lines >= 1


@given(hostile_text())
@example("  Menu\r\n a b c.[3] \u2028\x1c 'It is so.'\r")
def test_places_lead_from_what_is_left_to_the_original(text):
    """Put together they are the edited text, but for other kinds of line breaks."""
    for rules in EDITS.values():
        edited = edit(text, rules)
        places = edited.places(text)
        parts = zip(places[::2], places[1::2], strict=True)
        left = "".join(text[start:stop] for start, stop in parts)
        if rules.broken:
            left = re.sub("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "\n", left)
        assert left == edited.text
        assert places == sorted(set(places))
