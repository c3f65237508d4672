"""Counts of words, lines and n-grams equal their reference on any text, in linear time."""

import re
from dataclasses import astuple
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.text.characters import N_CODE_POINTS
from lc_assets.text.hashing import absorb
from lc_assets.text.measures import lines, ngrams
from lc_assets.text.measures.measures import measure
from lc_assets.text.measures.ngrams import DUPLICATE_LENGTHS, TOP_LENGTHS, GramCounts
from lc_assets.text.measures.reading import Reading
from lc_assets.text.measures.words import (
    MAX_BYTES,
    WORD_KINDS,
    read_words,
    require_measurable,
)
from lc_assets.text.numbering import hash_bytes, number_pieces
from lc_assets.text.texts import Texts
from lc_assets.text.words import fold
from lc_assets_tests.reference.measures import (
    count_grams,
    count_lines,
    count_words,
    seen_before_chars,
    words_of,
)
from lc_assets_tests.strategies import hostile_text

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


def read_each(texts: list[str], kind: str) -> Reading:
    """The texts, measured together."""
    return Reading(Texts(texts), texts, [None] * len(texts), kind, max(LENGTHS))


def of_each(counts):
    """Counts of each of several texts, as the reference has them of one."""
    return [type(counts)(*found) for found in np.array(tuple(counts)).T.tolist()]


def same_words(texts: list[str], kind: str) -> None:
    """Compare everything that is counted of the words of some texts."""
    reading, plain = read_each(texts, kind), [words_of(text, kind) for text in texts]
    for words, own in zip(reading.words.each(), plain, strict=True):
        data, ends = words.joined.tobytes(), words.ends.tolist()
        spelt = [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]
        assert spelt == own
        assert np.diff(words.chars).tolist() == list(map(len, own))
    assert of_each(reading.words.counts) == list(map(count_words, plain))
    for n in LENGTHS:
        grams = [GramCounts(*counts) for counts in np.array(astuple(reading.grams[n])).T.tolist()]
        assert grams == [count_grams(own, [n])[n] for own in plain]
        seen = [seen_before_chars(own, [n])[n] for own in plain]
        assert reading.n_chars_seen(n).tolist() == seen
    found = [measure(text, [f"median_word_length:{kind}"]) for text in texts]
    expected = [median(map(len, own)) if own else None for own in plain]
    assert [value for values in found for value in values.values()] == expected


@given(st.lists(texts(), min_size=1, max_size=3))
@example(["\x00the be"])  # a leading NUL is part of its word
@example([""])
@example(["", "the be", "", "\u03a3 \u03a3", "the", ""])
def test_words_and_grams(texts):
    """The words, their counts, and both kinds of repeated n-grams, of texts that are measured
    together.
    """
    for kind in WORD_KINDS:
        same_words(texts, kind)


@given(st.lists(texts(), min_size=1, max_size=5))
@example([" \n\n a \n\n \n\n b\n\n a", "", "\n", "a"])
def test_lines(texts):
    """Lines of every kind, and paragraphs, of texts that are measured together."""
    assert of_each(lines.count_lines(Texts(texts))) == list(map(count_lines, texts))


def test_joined_words_are_compared_as_text():
    """1 11 and 11 1 are the same when nothing lies between the words."""
    text = "1 11 1 1 1 x 11 1 1 1 1 y"
    reading = read_each([text], "raw")
    assert reading.n_chars_seen(5) == 6
    assert reading.grams[5].repeated_chars == 0


def test_every_character_is_read_alike():
    """A document with each character by itself and inside a word."""
    beyond = "".join(map(chr, range(N_CODE_POINTS, 0x110000)))
    assert re.search(r"[\w\s]", beyond) is None
    assert fold(beyond) == beyond
    text = "".join(f"a{chr(code)} " for code in range(0x3400) if code != 0x03A3) + "".join(
        map(chr, range(0xA000, 0xE000))
    )
    for kind in WORD_KINDS:
        counts = read_words(Texts([text]), kind).counts
        assert of_each(counts) == [count_words(words_of(text, kind))]
    assert of_each(lines.count_lines(Texts([text]))) == [count_lines(text)]


def test_a_text_that_is_too_long_is_refused():
    with pytest.raises(BadInput, match="measures take at most"):
        require_measurable(np.array([7, MAX_BYTES + 8]))


def colliding(n_pieces: int) -> NDArray[np.uint8]:
    """Different pieces of 16 bytes with one hash for seed 0: the second half undoes the first."""
    length = absorb(np.uint64(0), np.uint64(16))
    halves = [(i, int(absorb(length, np.uint64(i)))) for i in range(n_pieces)]
    content = b"".join(half.to_bytes(8, "little") for pair in halves for half in pair)
    return np.frombuffer(content, np.uint8)


def test_pieces_that_collide_are_told_apart():
    """Equal hashes are compared byte by byte."""
    data, seed = colliding(300), np.uint64(0)
    hashes = {int(hash_bytes(data, 16 * i, 16 * i + 16, seed)) for i in range(300)}
    starts, numbers = np.arange(300, dtype=np.int32) * 16, np.empty(300, np.int32)
    n_distinct = number_pieces(data, starts, starts + np.int32(16), seed, numbers)
    assert (len(hashes), n_distinct, numbers.tolist()) == (1, 300, list(range(300)))
    ends = np.array([0, 4, 7, 10, 13, 16, 20, 23, 26, 29, 32], np.int32)
    never = np.full(10, ngrams._NEVER, np.uint8)
    assert ngrams.seen_before(data, ends, ends, never, 5, seed) == 0
    twice = np.concatenate([data[:16], data[:16]])
    assert ngrams.seen_before(twice, ends, ends, never, 5, seed) == 16


@pytest.mark.parametrize(
    "piece",
    ["a", " ", "\n", "a ", "a\n", ".", "\u0301", "\u0301\u0323", "\ud800", "ab. ", "\n\n", "x\n\n"],
    ids=ascii,
)
def test_many_of_the_same_are_measured(piece):
    """400,000 pieces; quadratic loops would take minutes."""
    text = piece * 400_000
    for kind in WORD_KINDS:
        reading = read_each([text], kind)
        assert len(reading.grams) == max(LENGTHS) + 1
        assert all(reading.n_chars_seen(length) >= 0 for length in LENGTHS)
    lines.count_lines(Texts([text]))
