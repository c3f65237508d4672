"""Both bounds hold for every text, and are reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.formats.gpt2_tokenizer import gpt2_ranks, gpt2_tokenizer
from lc_assets.tokens.bounds import fewest_tokens, most_tokens
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT


@given(HOSTILE_TEXT)
def test_tokens_lie_between_words_and_bytes(text):
    """Exact bounds: not one text outside."""
    n_tokens = len(gpt2_tokenizer().encode(text))
    assert fewest_tokens(text) <= n_tokens <= most_tokens(text)


def test_no_token_holds_the_end_of_a_word_and_more():
    """Why the lower bound holds: in all of the vocabulary no white space follows anything but white
    space.
    """
    for token in gpt2_ranks():
        text = token.decode("utf-8", "replace")
        assert len(text.split()) <= 1, token
        assert text.rstrip() == "" or text == text.rstrip(), token


@pytest.mark.parametrize("text", ["the", " the", "a b c", "漢", "\ud800", "\udcff\x00"])
def test_the_bounds_are_reached_or_near(text):
    """Three bytes of U+FFFD count for a lone surrogate: counting one would drop documents that are
    long enough.
    """
    assert len(gpt2_tokenizer().encode("\ud800")) == 1
    assert most_tokens("\ud800") == 3
    assert len(gpt2_tokenizer().encode("\x00\x01")) == most_tokens("\x00\x01") == 2
    assert len(gpt2_tokenizer().encode("a b c")) == fewest_tokens("a b c") == 3
    assert most_tokens(text) >= len(gpt2_tokenizer().encode(text))


@given(HOSTILE_TEXT, st.integers(0, 5))
def test_counting_can_stop_early(text, enough):
    """The same answer to the question whether there are enough."""
    assert fewest_tokens(text, enough=enough) == min(enough, fewest_tokens(text))
