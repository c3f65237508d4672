"""The bound on the number of tokens holds for every text, and is reached."""

import pytest
from hypothesis import given

from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.tokens.tokenizers import most_tokens
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT


@given(HOSTILE_TEXT)
def test_no_text_has_more_tokens_than_bytes(text):
    assert len(gpt2_tokenizer().encode(text)) <= most_tokens(text)


@pytest.mark.parametrize("text", ["the", " the", "a b c", "漢", "\ud800", "\udcff\x00"])
def test_the_bound_is_reached_or_near(text):
    """Three bytes of U+FFFD count for a lone surrogate: counting one would drop documents that are
    long enough.
    """
    assert len(gpt2_tokenizer().encode("\ud800")) == 1
    assert most_tokens("\ud800") == 3
    assert len(gpt2_tokenizer().encode("\x00\x01")) == most_tokens("\x00\x01") == 2
    assert most_tokens(text) >= len(gpt2_tokenizer().encode(text))
