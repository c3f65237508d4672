"""The fast tokenizer and its reference give the same ids, for any text, and fail in words."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.gpt2 import build_gigatoken, gpt2_tokenizer
from lc_assets.tokens.tokenizers import (
    KEPT_BYTES,
    GigatokenTokenizer,
    disagreement,
    escape,
    without_surrogates,
)
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT, PIECES

FAST, REFERENCE = gpt2_tokenizer(fast=True), gpt2_tokenizer(fast=False)
BOTH = pytest.mark.parametrize("tokenizer", [FAST, REFERENCE], ids=["fast", "reference"])


class PanicException(BaseException):
    """What a Rust panic looks like from Python; pyo3's own class cannot be imported."""


class Encoder:
    """An encoder that remembers how much it saw, as gigatoken does, or fails."""

    def __init__(self, error: BaseException | None = None):
        self.error, self.n_bytes = error, 0

    def encode(self, content):
        if self.error:
            raise self.error
        self.n_bytes += len(content)
        return np.frombuffer(content, np.uint8).astype(np.uint32)


@given(HOSTILE_TEXT)
def test_the_fast_tokenizer_gives_the_reference_ids(text):
    """Also for text that means harm; and of its UTF-8."""
    ids, content = REFERENCE.encode(text), without_surrogates(text).encode()
    for found in (FAST.encode(text), FAST.encode(content), REFERENCE.encode(content)):
        np.testing.assert_array_equal(found, ids)


def test_the_fast_tokenizer_gives_the_reference_ids_next_to_every_piece():
    """Each hostile piece before, after and beside each other one."""
    assert (
        disagreement(
            FAST, REFERENCE, [f"{one}{other}{one} {other}" for one in PIECES for other in PIECES]
        )
        is None
    )


@given(HOSTILE_TEXT)
def test_the_reference_is_tiktokens_encode_ordinary(text):
    """The wrapper takes another way into tiktoken, for speed; the ids are those of the documented
    one.
    """
    assert REFERENCE.encode(text).tolist() == REFERENCE._encoding.encode_ordinary(text)


@given(HOSTILE_TEXT)
def test_ids_decode_to_the_text(text):
    """Nothing is lost but lone surrogates."""
    assert REFERENCE._encoding.decode(FAST.encode(text).tolist()) == without_surrogates(text)


@BOTH
def test_end_of_text_in_a_page_is_text(tokenizer):
    """A page cannot end a document."""
    ids = tokenizer.encode("a<|endoftext|>b")
    assert ids.tolist() == [64, 27, 91, 437, 1659, 5239, 91, 29, 65]
    assert ids.dtype == np.uint32


@BOTH
def test_the_tokenizer_says_what_it_is(tokenizer):
    """Name, size and end of text, which gigatoken built without special tokens does not know."""
    assert (tokenizer.name, tokenizer.vocab_size, tokenizer.eot) == (
        "gpt2",
        GPT2_VOCAB_SIZE,
        GPT2_EOT,
    )


@BOTH
def test_no_text_is_no_ids(tokenizer):
    """And still uint32."""
    ids = tokenizer.encode("")
    assert (len(ids), ids.dtype) == (0, np.uint32)


def test_a_tokenizer_is_made_once():
    """Each shard asks for it; 50,000 merges are not read each time."""
    assert gpt2_tokenizer() is FAST
    assert gpt2_tokenizer(fast=False) is REFERENCE


def test_a_million_spaces_stop_tiktoken_in_words():
    """Its regular expression runs out of stack; the fast tokenizer copes."""
    text = " " * 1_000_000 + "a"
    with pytest.raises(
        BadInput, match=r"tiktoken failed on a text of 1,000,001 characters that begins '   "
    ):
        REFERENCE.encode(text)
    assert len(FAST.encode(text)) == 1_000_000


def test_a_panic_of_gigatoken_is_an_error_message():
    """The same guard."""
    tokenizer = GigatokenTokenizer(
        lambda: Encoder(PanicException("index out of bounds")), name="x", vocab_size=256, eot=0
    )
    with pytest.raises(
        BadInput,
        match=r"gigatoken failed on a text of 2 characters that begins 'hi': index out of bounds",
    ):
        tokenizer.encode("hi")


def test_nothing_else_is_caught():
    """Ctrl-C stops the program, and a bug looks like a bug."""
    for error in (KeyboardInterrupt(), TypeError("a bug"), ValueError("a bug")):
        tokenizer = GigatokenTokenizer(
            lambda error=error: Encoder(error), name="x", vocab_size=256, eot=0
        )
        with pytest.raises(type(error)):
            tokenizer.encode("hi")


@given(st.lists(st.text(max_size=9), max_size=20), st.integers(1, 30))
def test_memory_of_words_is_forgotten_in_time(texts, rebuild_after_bytes):
    """No encoder ever sees more than the limit and one text; the ids do not change."""
    built = []
    tokenizer = GigatokenTokenizer(
        lambda: built.append(Encoder()) or built[-1],
        name="x",
        vocab_size=256,
        eot=0,
        rebuild_after_bytes=rebuild_after_bytes,
    )
    for text in texts:
        assert bytes(tokenizer.encode(text).astype(np.uint8)) == text.encode()
    longest = max((len(text.encode()) for text in texts), default=0)
    assert all(encoder.n_bytes < rebuild_after_bytes + longest for encoder in built)
    assert len(built) <= 1 + sum(len(text.encode()) for text in texts) // rebuild_after_bytes


def test_words_are_kept_while_the_process_does_not_grow():
    """Beyond the least that it held since: it may have held a long text before."""
    held, built = iter([900, 300, 350, 427, 428, 428, 555]), list[Encoder]()
    tokenizer = GigatokenTokenizer(
        lambda: built.append(Encoder()) or built[-1],
        name="x",
        vocab_size=256,
        eot=0,
        rebuild_after_bytes=2,
        held=lambda: next(held) * (KEPT_BYTES // 128),
    )
    n_built = []
    for _ in range(6):
        tokenizer.encode("ab")
        n_built.append(len(built))
    assert n_built == [1, 1, 1, 2, 2, 2]


def test_a_rebuilt_tokenizer_goes_on_alike():
    """The real one, built anew after every text."""
    tokenizer = GigatokenTokenizer(
        build_gigatoken,
        name="gpt2",
        vocab_size=GPT2_VOCAB_SIZE,
        eot=GPT2_EOT,
        rebuild_after_bytes=1,
    )
    assert (
        disagreement(
            tokenizer, REFERENCE, ["Call me Ishmael.", "Some years ago", "Call me Ishmael."]
        )
        is None
    )


def test_a_disagreement_is_the_first_text_that_differs():
    letters = GigatokenTokenizer(Encoder, name="x", vocab_size=256, eot=0)
    assert disagreement(letters, REFERENCE, ["", "b!", "c"]) == "b!"
    assert disagreement(FAST, letters, [""]) is None
    assert disagreement(_Short(), FAST, ["the cat"]) == "the cat"
    assert disagreement(_Short(), FAST, ["the"]) is None


class _Short:
    name, vocab_size, eot = "short", GPT2_VOCAB_SIZE, GPT2_EOT

    def encode(self, text):
        return FAST.encode(text)[:1]


@pytest.mark.parametrize(
    ("mode", "escaped"),
    [
        ("plain", 'naïve "x"\n'),
        ("json_ascii", 'na\\u00efve \\"x\\"\\n'),
        ("json_utf8", 'naïve \\"x\\"\\n'),
    ],
)
def test_escaping(mode, escaped):
    """As the three ways of writing a JSON string."""
    assert escape('naïve "x"\n', mode) == escaped


@BOTH
def test_books_have_the_reference_counts(tokenizer, books):
    """Plain, escaped to ASCII, and escaped as UTF-8, as the golden files of the books say."""
    names = {
        "plain": "gpt2_tokens",
        "json_ascii": "gpt2_tokens_json_escaped",
        "json_utf8": "gpt2_tokens_json_escaped_utf8",
    }
    for book in books:
        found = {mode: len(tokenizer.encode(escape(book.text, mode))) for mode in names}
        assert found == {mode: book.counts[name] for mode, name in names.items()}
