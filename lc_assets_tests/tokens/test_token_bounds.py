"""The bound on the number of tokens, a text's bytes, holds for every text, and is reached."""

from hypothesis import given

from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT


@given(HOSTILE_TEXT)
def test_no_text_has_more_tokens_than_bytes(text):
    assert len(gpt2_tokenizer().encode(text)) <= len(text.encode("utf-8", "surrogatepass"))


def test_the_bound_is_reached():
    assert len(gpt2_tokenizer().encode("\x00\x01")) == 2
