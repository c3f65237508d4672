"""The fast tokenizer against tiktoken, on text it has not seen and on text it has. Run with ``-s``
to see the figures.
"""

import time
from pathlib import Path

import numpy as np
import pytest

from lc_assets.formats.tokenizers.gpt2 import build_gigatoken, gpt2_tokenizer
from lc_assets.tokens.tokenizers import GigatokenTokenizer
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE

N_WORDS = 400_000


def made_up(seed=1):
    """About 2 MB of Zipf-distributed made-up words with punctuation and lines."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words = np.array(
        [
            "".join(letters[rng.geometric(0.12, rng.integers(1, 9)).clip(max=26) - 1])
            for _ in range(20_000)
        ]
    )
    ends = rng.choice([" ", " ", " ", " ", " ", ", ", ". ", ".\n"], N_WORDS)
    return "".join(np.char.add(words[(rng.zipf(1.2, N_WORDS) - 1) % len(words)], ends).tolist())


def english_books():
    """Up to eight real books, or nothing."""
    folder = next(
        (
            path / "shared" / "data" / "books_en"
            for path in Path(__file__).parents
            if (path / "shared" / "data").is_dir()
        ),
        None,
    )
    return (
        []
        if folder is None
        else [path.read_text("utf-8") for path in sorted(folder.glob("*.txt"))[:8]]
    )


@pytest.mark.parametrize("kind", ["made-up words", "books"])
def test_the_fast_tokenizer_is_far_faster_and_agrees(kind):
    """MB of UTF-8 per CPU second, one process, one thread."""
    texts = [made_up()] if kind == "made-up words" else english_books()
    if not texts:
        pytest.skip("no ../shared/data beside the checkout")
    fast = GigatokenTokenizer(
        build_gigatoken, name="gpt2", vocab_size=GPT2_VOCAB_SIZE, eot=GPT2_EOT
    )
    first, seen, reference = (
        timed(tokenizer, texts) for tokenizer in (fast, fast, gpt2_tokenizer(fast=False))
    )
    for mine, theirs in zip(first.ids, reference.ids, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    print(
        f"\n{kind}, {reference.megabytes:.1f} MB: {first} at first sight, {seen} seen before, "
        "tiktoken "
        f"{reference}"
    )
    print(f"  ratio {first.speed / reference.speed:.1f} and {seen.speed / reference.speed:.1f}")
    assert first.speed > reference.speed


class timed:  # noqa: N801 - reads as a verb
    """Tokenize texts and take the time."""

    def __init__(self, tokenizer, texts):
        self.megabytes = sum(len(text.encode()) for text in texts) / 1e6
        begun = time.process_time()
        self.ids = [tokenizer.encode(text) for text in texts]
        self.speed = self.megabytes / (time.process_time() - begun)

    def __str__(self):
        return f"{self.speed:,.1f} MB/CPU-s"
