"""Texts that are measured together: which they are, and their bytes."""

from itertools import pairwise

from hypothesis import given, strategies as st

from lc_assets.text import texts
from lc_assets.text.texts import CHARS_TOGETHER, TEXTS_TOGETHER, Texts, together
from lc_assets_tests.strategies import hostile_text

MARKS = ("a", "word with letters", ".", "..", "\u2026", "\u2025", "\u20ac", "\n", "#", "\ud800")
FEW, MANY = st.integers(0, 99), st.integers(CHARS_TOGETHER - 99, 3 * CHARS_TOGETHER)


@given(st.lists(FEW | MANY, max_size=30))
def test_a_long_text_is_measured_alone(sizes):
    """None is lost, their order stays, and memory is bounded by the limit or one text."""
    batches = list(together(sizes, int))
    assert [size for batch in batches for size in batch] == sizes
    assert all(sum(batch) <= CHARS_TOGETHER or len(batch) == 1 for batch in batches)
    pairs = pairwise(batches)
    assert all(sum(one) + other[0] > CHARS_TOGETHER for one, other in pairs)


def test_empty_texts_are_not_put_together_without_end():
    assert max(map(len, together([0] * (3 * TEXTS_TOGETHER), int))) == TEXTS_TOGETHER


@given(st.lists(hostile_text(), min_size=1, max_size=5))
def test_bytes_are_those_of_each_text(some):
    """One behind the other, surrogates included."""
    data, ends = Texts(some).utf8
    contents = [text.encode("utf-8", "surrogatepass") for text in some]
    assert data.tobytes() == b"".join(contents)
    assert ends.tolist() == [sum(map(len, contents[: at + 1])) for at in range(len(some))]


@given(st.lists(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), min_size=1))
def test_marks_are_counted_as_strings_count_them(some):
    """They do not overlap, and none lies in two texts."""
    for marks in (["\n"], ["#"], ["...", "\u2026"]):
        found = Texts(some).count(*marks).tolist()
        assert found == [sum(map(text.count, marks)) for text in some]


def test_bytes_of_a_long_text_are_not_kept(monkeypatch):
    """They would lie beside its n-grams."""
    short = Texts(["a", "b"])
    assert short.utf8 is short.utf8
    monkeypatch.setattr(texts, "CHARS_TOGETHER", 0)
    long = Texts(["a", "b"])
    assert long.utf8 is not long.utf8
