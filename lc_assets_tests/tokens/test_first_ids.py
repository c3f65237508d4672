"""The first ids of a text are those of the whole text, wherever it is cut."""

import numpy as np
import pytest
import tiktoken
from hypothesis import given, strategies as st
from tiktoken_ext import openai_public

from lc_assets.formats.tokenizers.gpt2 import gpt2_ranks, gpt2_tokenizer
from lc_assets.tokens.tokenizers import CHARS_PER_TOKEN, SAFE_CUTS, TiktokenTokenizer, first_ids
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT, PIECES

FAST, REFERENCE = gpt2_tokenizer(fast=True), gpt2_tokenizer(fast=False)


class Counting:
    """GPT-2's tokenizer under another name, which counts the characters it is given."""

    def __init__(self, name="gpt2"):
        self.name, self.vocab_size, self.eot, self.n_chars = name, FAST.vocab_size, FAST.eot, 0

    def encode(self, text):
        self.n_chars += len(text)
        return FAST.encode(text)


def pattern_of(encoding: str) -> str:
    """The split pattern that tiktoken publishes for a vocabulary; the cl100k and o200k ones are
    built with their downloads.
    """
    if encoding == "gpt2":
        return openai_public.r50k_pat_str
    source = {"cl100k_base": openai_public.cl100k_base, "o200k_base": openai_public.o200k_base}[
        encoding
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_args, **_kwargs: {})
        return source()["pat_str"]


def with_pattern(encoding: str) -> TiktokenTokenizer:
    """A tokenizer with that vocabulary's split pattern; the merges are GPT-2's, which a cut does
    not depend on.
    """
    made = tiktoken.Encoding(
        name=encoding,
        pat_str=pattern_of(encoding),
        mergeable_ranks=gpt2_ranks(),
        special_tokens={"<|endoftext|>": 50256},
    )
    return TiktokenTokenizer(made)


BY_PATTERN = {name: with_pattern(name) for name in ("gpt2", "cl100k_base", "o200k_base")}


@pytest.mark.parametrize("name", BY_PATTERN)
@given(st.lists(HOSTILE_TEXT, min_size=1, max_size=4), st.integers(1, 60))
def test_the_first_ids_are_a_prefix_of_the_whole(name, texts, wanted):
    """Text long enough to be cut more than once, with spaces between hostile parts."""
    text = " ".join(texts * 8)
    np.testing.assert_array_equal(
        first_ids(BY_PATTERN[name], text, wanted), BY_PATTERN[name].encode(text)[:wanted]
    )


@pytest.mark.parametrize("name", BY_PATTERN)
def test_every_safe_cut_is_safe(name):
    """Not only the cuts that are taken: each that the pattern allows, next to every hostile
    piece.
    """
    tokenizer = BY_PATTERN[name]
    n_cuts = 0
    for text in (f"{one}a {other} b.\n{one}" for one in PIECES for other in PIECES):
        whole = tokenizer.encode(text).tolist()
        for found in SAFE_CUTS[name].finditer(text):
            n_cuts += 1
            assert [
                *tokenizer.encode(text[: found.end()]).tolist(),
                *tokenizer.encode(text[found.end() :]).tolist(),
            ] == whole
    assert n_cuts > len(PIECES)


def test_only_the_beginning_of_a_long_text_is_tokenized():
    tokenizer = Counting()
    text = "It was the best of times, it was the worst of times. " * 20_000
    ids = first_ids(tokenizer, text, 65_536)
    assert len(ids) == 65_536
    assert tokenizer.n_chars < 1.1 * max(CHARS_PER_TOKEN, 4.5) * 65_536 < len(text) / 2


@pytest.mark.parametrize(
    "text",
    ["", "a", "x" * 300_000, "\u4e00" * 100_000, "a " * 3, "7" * 50_000],
    ids=["empty", "one", "x", "cjk", "few", "digits"],
)
def test_texts_without_a_place_to_cut(text):
    """All of it then, once."""
    tokenizer = Counting()
    np.testing.assert_array_equal(first_ids(tokenizer, text, 1000), FAST.encode(text)[:1000])
    assert tokenizer.n_chars <= len(text)


def test_an_unknown_vocabulary_is_tokenized_whole():
    tokenizer = Counting(name="mine")
    text = "word " * 10_000
    assert len(first_ids(tokenizer, text, 10)) == 10
    assert tokenizer.n_chars == len(text)
