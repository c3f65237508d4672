"""Common words are those of many documents' pieces; a document's own hero is none."""

import dataclasses

from hypothesis import given, strategies as st

from lc_assets.text.referrals.concepts import (
    LEAST_DOCUMENTS,
    PIECE_CHARACTERS,
    PIECES,
    Background,
    LexicalConcepts,
    pieces_of,
)
from lc_assets_tests.reference.phrases import by_phrase, find
from lc_assets_tests.text.test_concept_words import SPECIAL

TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6).map(" ".join), max_size=12)


@given(TEXTS, st.sampled_from([0.01, 0.3, 0.9, 1]))
def test_common_words_are_in_more_pieces_than_the_share(texts, max_df):
    """By looking at each word; short texts are one piece each."""
    held = {word: sum(word in text.split() for text in texts) for word in "abcdef"}
    wanted = {
        word
        for word, n_texts in held.items()
        if n_texts > max_df * len(texts) and n_texts >= LEAST_DOCUMENTS
    }
    found = Background()
    for text in texts:
        found.add([text.split()])
    assert found.common(max_df) == wanted


def test_the_hero_of_one_document_is_not_common():
    """In all of a long document's pieces, and so in half of all there are; the others agree on
    another word.
    """
    novel = "hero walks " * (PIECES * PIECE_CHARACTERS)
    found = Background()
    for text in (novel, *["somebody walks"] * LEAST_DOCUMENTS):
        found.add(map(str.split, pieces_of(text)))
    assert found.pieces["hero"] == PIECES
    assert found.common(0.05) == {"walks", "somebody"}


def test_pieces_are_spread_and_as_long_as_they_are_said_to_be():
    for n_characters in (0, 1, 3999, 4000, 7999, 8000, 50_000, 10**6):
        text = "".join(chr(33 + place % 90) for place in range(n_characters))
        pieces = pieces_of(text)
        assert len(pieces) == min(PIECES, max(1, n_characters // PIECE_CHARACTERS))
        assert all(len(piece) == min(n_characters, PIECE_CHARACTERS) for piece in pieces)
        assert text.startswith(pieces[0])
        assert text.endswith(pieces[-1]) or n_characters < 2 * PIECE_CHARACTERS


def test_common_words_make_no_concept():
    """Words of a text hold a letter and are no stop words; those that the background names are gone
    from the concepts.
    """
    text = "the cat and dog 42 cats. Dr he thing"
    finder = LexicalConcepts(SPECIAL)
    assert finder.words_in(text) == ["cat", "dog", "cats", "dr"]
    pruned = LexicalConcepts(dataclasses.replace(SPECIAL, common=frozenset({"dog"})))
    assert "dog 42 cats" in by_phrase(text, find(finder, text))
    for one, wanted in ((finder, {"dog"}), (pruned, set())):
        assert set(by_phrase("dog. The dog", find(one, "dog. The dog"))) == wanted
