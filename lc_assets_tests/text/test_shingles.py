"""Folded bytes, shingles and their similarity: the compiled way is the plain way."""

import hashlib
import string
import struct
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text import folding
from lc_assets.text.duplicates.keys import (
    Shingles,
    grams_of,
    jaccard,
    shingle_hashes,
    shingles_each,
    text_key,
    text_keys,
)
from lc_assets.text.duplicates.sketches import NONE, SKETCH_HASHES, sketches_each
from lc_assets.text.folding import normalized_utf8
from lc_assets.text.texts import Texts, parts
from lc_assets.text.words import fold, normalize
from lc_assets_tests.reference.minhash import plain_grams
from lc_assets_tests.strategies import TRICKY_CHARACTERS
from lc_assets_tests.text.together import normalized_together
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

PUNCTUATION = str.maketrans("", "", string.punctuation)
TEXT = HOSTILE_TEXT | st.text(
    st.sampled_from(TRICKY_CHARACTERS + "\u03a3\u0300\u0316\uac00\U0001d15e\U00010400\ud800"),
    max_size=40,
)


def fold_as_published(text: str) -> str:
    """The reference's own three calls, one after the other."""
    return unicodedata.normalize("NFD", text.translate(PUNCTUATION).lower())


@given(TEXT)
@example("\u0301" * 63 + "\x00" + "\u0327" * 64)
def test_folding_by_bytes_is_folding_by_characters(text):
    """Removing ASCII from UTF-8 bytes touches no other character, lone surrogates included."""
    assert fold(text) == fold_as_published(text)
    assert bytes(normalized_utf8(text)) == normalize(text).encode("utf-8", "surrogatepass")


def test_every_character_is_folded_as_published():
    """Each code point between letters, spaces and after a mark: one wrong entry of the tables would
    show.
    """
    points = [chr(point) for point in range(sys.maxunicode + 1)]
    for frame in ("A{} b", "{}", "e\u0301{}"):
        text = "\n".join(map(frame.format, points))
        assert fold(text) == fold_as_published(text)
        # In small pieces, so that a character that goes the plain way does not take the others
        # along.
        for start in range(0, 0x10000, 64):
            piece = "\n".join(map(frame.format, points[start : start + 64]))
            assert bytes(normalized_utf8(piece)).decode("utf-8", "surrogatepass") == normalize(
                piece
            ), hex(start)
    for start in (*range(0x1F000, 0x1FBF0, 16), *range(0x20000, 0x2F800, 1024)):
        piece = "x".join(points[start : start + 16])
        assert bytes(normalized_utf8(piece)).decode() == normalize(piece), hex(start)


@given(TEXT, st.integers(0, 12))
def test_folding_in_pieces_is_folding_at_once(text, n_bytes):
    """However small the pieces: joints between empty ones, the plain way for some of them, white
    space at a cut.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "_PIECE_BYTES", n_bytes)
        assert bytes(normalized_utf8(text)) == normalize(text).encode("utf-8", "surrogatepass")


@given(st.text(st.sampled_from("aZ09 .\n\tÉ\u3000@[`{\x7f"), max_size=80))
def test_eight_characters_are_folded_as_one_by_one(text):
    """Runs of letters, digits and spaces, and what interrupts them; also where lines are kept."""
    assert bytes(normalized_utf8(text)).decode() == normalize(text)
    folded, _ = folding.folded_lines(*Texts([text]).utf8)
    lines = bytes(folded).decode().split("\n")
    assert [line.split() for line in lines] == [normalize(it).split() for it in text.split("\n")]


@given(TEXT, st.integers(1, 15))
def test_compiled_shingles_are_the_plain_ones(text, n):
    """Every n-gram, in order, repeats included; and the set of them ascending."""
    plain = plain_grams(normalize(text).split(), n)
    grams, n_words = grams_of(text, n)
    assert np.array_equal(grams, plain)
    assert n_words == len(normalize(text).split())
    of_bytes, _ = grams_of(text.encode("utf-8", "surrogatepass"), n)
    assert np.array_equal(of_bytes, plain)
    assert np.array_equal(shingle_hashes(text, n), np.unique(plain))


@given(st.lists(TEXT | st.sampled_from(["", "a b c d", "a " * 40]), max_size=6))
def test_texts_folded_together_are_folded_as_each(texts):
    """Also those between which one goes the plain way."""
    data, ends = normalized_together(texts)
    found = [bytes(text).decode("utf-8", "surrogatepass") for text in parts(data, ends)]
    assert found == list(map(normalize, texts))


@given(st.lists(TEXT | st.sampled_from(["", "a b c d", "a " * 40]), max_size=6), st.integers(3, 13))
def test_texts_keyed_and_shingled_together_are_so_as_each(texts, n):
    """The keys are of the normalized texts; a text that is too short has no shingles."""
    split, together = [normalize(text).split() for text in texts], normalized_together(texts)
    utf8 = [" ".join(words).encode("utf-8", "surrogatepass") for words in split]
    keys = [
        struct.unpack_from("<QQ", hashlib.sha256(text).digest()) if text else None for text in utf8
    ]
    both = zip(text_keys(*together)[0].tolist(), text_keys(*together)[1], strict=True)
    assert (
        [tuple(key) if is_keyed else None for key, is_keyed in both]
        == keys
        == [text_key(text.encode("utf-8", "surrogatepass")) for text in texts]
    )
    plain = [plain_grams(words, n) if len(words) >= n else [] for words in split]
    found = [own.tolist() for own in parts(*shingles_each(*together, Shingles(n)))]
    assert found == list(map(list, plain))
    sketches = sketches_each(*shingles_each(*normalized_together(texts), Shingles(n)))
    least = [sorted(set(own))[:SKETCH_HASHES] for own in found]
    assert [own[own != NONE].tolist() for own in sketches] == least


@given(st.lists(TEXT, max_size=4), st.integers(3, 13))
def test_characters_of_texts_together_are_those_of_each(texts, n):
    hashes, ends = shingles_each(*normalized_together(texts), Shingles(n, "characters"))
    alone = [grams_of(text, n, "characters") for text in texts]
    expected = [grams.tolist() if n_units >= n else [] for grams, n_units in alone]
    assert [own.tolist() for own in parts(hashes, ends)] == expected


@given(
    st.lists(st.sampled_from("abcd"), max_size=30),
    st.lists(st.sampled_from("abcd"), max_size=30),
    st.integers(1, 4),
)
def test_similarity_is_that_of_the_sets(left, right, n):
    """Against Python's own sets of tuples."""

    def grams(words):
        return {
            tuple(words[at : at + n]) for at in range(max(len(words) - n + 1, min(len(words), 1)))
        }

    both, either = grams(left) & grams(right), grams(left) | grams(right)
    found = jaccard(shingle_hashes(" ".join(left), n), shingle_hashes(" ".join(right), n))
    assert found == (len(both) / len(either) if either else 1.0)


def test_known_shingles():
    """The numbers are published with tables, so they may never change."""
    assert shingle_hashes("The quick brown fox", n=3).tolist() == [
        13570867507050568037,
        17537679975799959411,
    ]
    assert shingle_hashes("Too short").tolist() == [9538707760266009681]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        " " * 1_000_000,
        "\u0301\u0327" * 200_000,
        "a \ud800" * 100_000,
        "\u03a3" * 300_000,
        "\x00" * 1_000_000,
    ],
)
def test_long_monotonous_text_takes_linear_time(text):
    """No spaces, nothing but spaces, marks out of order, lone surrogates, capital sigmas, NUL."""
    hashes = shingle_hashes(text)
    assert len(hashes) <= len(text)


@given(st.text(max_size=40), st.integers(1, 13))
def test_characters_are_those_of_the_normalized_words(text, n):
    """Two texts share as many shingles as runs of characters, spaces between words included."""
    normalized = normalize(text)
    runs = {normalized[at : at + n] for at in range(max(len(normalized) - n + 1, 1))} - {""}
    assert len(shingle_hashes(text, n, "characters")) == len(runs)
    hashes, n_characters = grams_of(text, 1, "characters")
    assert len(hashes) == n_characters == len(normalized)
