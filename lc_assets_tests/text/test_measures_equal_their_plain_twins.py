"""Compiled counting is plain counting, of any text; and no text takes it long."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lc_assets.compiling import COMPILED
from lc_assets.text.gram_counts import DUPLICATE_LENGTHS, TOP_LENGTHS
from lc_assets.text.line_counts import count_lines
from lc_assets.text.measured_words import PlainWords
from lc_assets.text.word_counts import WORD_KINDS, words_of
from lc_assets.text.words import fold
from lc_assets_tests.strategies import hostile_text

pytestmark = pytest.mark.skipif(
    not COMPILED, reason="there is no compiler here, only the plain twins"
)

LENGTHS = (*TOP_LENGTHS, *DUPLICATE_LENGTHS)
BITS = [
    "a",
    "b",
    "1",
    "11",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    ".",
    "...",
    "\u2026",
    "#",
    "\u2022",
    "-",
    "*",
    "\ud800",
    "\x00",
    "the ",
    "\u0323",
    "\u0301",
    "\u03a3",
]
LONG = ["x" * 40, "y" * 300, " ", "be ", "e\u0301" * 20]


def texts() -> st.SearchStrategy[str]:
    """Hostile texts, texts of few pieces that repeat, texts of long words."""
    few = st.lists(st.sampled_from(BITS), max_size=120).map("".join)
    return hostile_text() | few | st.lists(st.sampled_from(LONG), max_size=60).map("".join)


@given(texts())
@example("\x00the be")  # a leading NUL is part of its word
@example("")
def test_words_and_grams(text):
    """The words, their counts, and both kinds of repeated n-grams."""
    from lc_assets.text.kernels.measure_facade import compiled_words

    for kind in WORD_KINDS:
        fast, plain = compiled_words(text, kind), PlainWords(words_of(text, kind))
        assert fast.words() == plain.words
        assert fast.counts() == plain.counts()
        assert fast.median_chars() == plain.median_chars()
        assert fast.grams(LENGTHS) == plain.grams(LENGTHS)
        assert fast.seen_before_chars(LENGTHS) == plain.seen_before_chars(LENGTHS)


@given(texts())
@example(" \n\n a \n\n \n\n b\n\n a")
def test_lines(text):
    """Lines of every kind, and paragraphs."""
    from lc_assets.text.kernels.measure_facade import compiled_lines

    assert compiled_lines(text) == count_lines(text)


def test_glued_words_are_compared_as_text():
    """1 11 and 11 1 are the same five words on when nothing lies between them."""
    from lc_assets.text.kernels.measure_facade import compiled_words

    words = compiled_words("1 11 1 1 1 x 11 1 1 1 1 y", "raw")
    assert words.seen_before_chars([5]) == {5: 6}
    assert words.grams([5])[5].repeated_chars == 0


def test_every_character_is_read_alike():
    """One document with each character there is, by itself and inside a word."""
    from lc_assets.text.kernels.measure_characters import N_CODE_POINTS
    from lc_assets.text.kernels.measure_facade import compiled_lines, compiled_words, folded_bytes

    beyond = "".join(map(chr, range(N_CODE_POINTS, 0x110000)))
    assert re.search(r"[\w\s]", beyond) is None
    assert fold(beyond) == beyond
    text = "".join(f"a{chr(code)} " for code in range(0x3400) if code != 0x03A3) + "".join(
        map(chr, range(0xA000, 0xE000))
    )
    for kind in WORD_KINDS:
        fast, plain = compiled_words(text, kind), PlainWords(words_of(text, kind))
        assert fast.counts() == plain.counts()
    assert compiled_lines(text) == count_lines(text)
    apart = "\n".join(chr(code) for code in range(0x110000) if code != 0x03A3)
    assert folded_bytes(apart).tobytes() == fold(apart).encode("utf-8", "surrogatepass")


def test_nothing_becomes_more_than_three_times_as_long():
    """So the room that folding has is enough."""
    from lc_assets.text.kernels.measure_characters import N_CODE_POINTS
    from lc_assets.text.kernels.measure_folding import WIDEST, folding_tables

    _, places, entries = folding_tables()
    assert all(
        entries[place] <= WIDEST * len(chr(code).encode("utf-8", "surrogatepass"))
        for code, place in zip(range(N_CODE_POINTS), places.tolist(), strict=True)
        if place
    )


def test_the_plain_twin_takes_over_where_patience_runs_out(monkeypatch):
    """The same counts; nobody learns of it."""
    from lc_assets.text.kernels import measure_facade, measure_grams, measure_seen

    text = "to be or not to be\nto be or not to be\n"
    words = measure_facade.compiled_words(text, "raw")
    wanted = (
        words.grams(LENGTHS),
        words.seen_before_chars(LENGTHS),
        measure_facade.compiled_lines(text),
    )
    for module, name in (
        (measure_grams, "number_words"),
        (measure_seen, "seen_before"),
        (measure_grams, "number_pieces"),
    ):
        monkeypatch.setattr(module, name, lambda *_: -1)
    assert (
        words.grams(LENGTHS),
        words.seen_before_chars(LENGTHS),
        measure_facade.compiled_lines(text),
    ) == wanted


def colliding(n_pieces: int) -> bytes:
    """Different pieces of 16 bytes with one hash: the second half undoes what the first one did."""
    from lc_assets.text.kernels import measure_grams

    whole = (1 << 64) - 1
    mix, mix_2 = int(measure_grams.MIX), int(measure_grams.MIX_2)

    def after(first: int) -> int:
        made = ((16 * mix & whole) ^ first) * mix & whole
        made = (made ^ made >> 32) * mix_2 & whole
        return made ^ made >> 32

    halves = [(first, after(first)) for first in range(n_pieces)]
    return b"".join(half.to_bytes(8, "little") for pair in halves for half in pair)


def test_a_hash_finds_and_does_not_decide():
    """Two that collide are told apart; more than patience allows for are given back."""
    import numpy as np

    from lc_assets.text.kernels import measure_grams, measure_seen

    def numbers_of(n_pieces: int) -> tuple[int, list[int]]:
        starts, numbers = np.arange(n_pieces, dtype=np.int32) * 16, np.empty(n_pieces, np.int32)
        data = np.frombuffer(colliding(n_pieces), np.uint8)
        return measure_grams.number_pieces(
            data, starts, starts + np.int32(16), numbers
        ), numbers.tolist()

    data = np.frombuffer(colliding(2), np.uint8)
    assert measure_grams.hash_bytes(data, 0, 16) == measure_grams.hash_bytes(data, 16, 32)
    assert numbers_of(3) == (3, [0, 1, 2])
    assert numbers_of(measure_grams.PATIENCE + 5)[0] == -1

    ends = np.array([0, 4, 7, 10, 13, 16, 20, 23, 26, 29, 32], np.int32)
    never = np.full(10, measure_seen.NEVER, np.uint8)
    assert measure_seen.seen_before(data, ends, ends, 10, never, 5) == 0
    twice = np.concatenate([data[:16], data[:16]])
    assert measure_seen.seen_before(twice, ends, ends, 10, never, 5) == 16


@pytest.mark.parametrize(
    "piece",
    ["a", " ", "\n", "a ", "a\n", ".", "\u0301", "\u0301\u0323", "\ud800", "ab. ", "\n\n", "x\n\n"],
    ids=ascii,
)
def test_many_of_the_same_are_measured(piece):
    """400,000 pieces; quadratic loops would take minutes."""
    from lc_assets.text.kernels.measure_facade import compiled_lines, compiled_words

    text = piece * 400_000
    for kind in WORD_KINDS:
        words = compiled_words(text, kind)
        words.counts(), words.grams(LENGTHS), words.seen_before_chars(LENGTHS)
    compiled_lines(text)
