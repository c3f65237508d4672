"""GPT-2's tokenizer, ready to use, made once per process from the checked vocabulary.

Here: handing the vocabulary to the two programs. Not here: its files
    (`lc_assets.formats.gpt2_vocabulary`), what
a tokenizer does (`lc_assets.tokens.tokenizers`).
Source: the split pattern is tiktoken's for ``gpt2`` and ``r50k_base``; gigatoken has the same one
    built in.
"""

import functools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import gigatoken
import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str  # type: ignore[import-untyped]

from lc_assets.errors import BadInput
from lc_assets.formats.gpt2_vocabulary import gpt2_vocabulary
from lc_assets.tokens.tokenizers import GigatokenTokenizer, TiktokenTokenizer, Tokenizer
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE


def gpt2_tokenizer(fast: bool = True) -> Tokenizer:
    """GPT-2's tokenizer: the fast one, or its twin by tiktoken. The same object every time.

    >>> gpt2_tokenizer().encode("Call me Ishmael.<|endoftext|>")
    array([14134,   502,  1148, 21720,   417, 29847,    91,   437,  1659,
            5239,    91,    29], dtype=uint16)

    Raises:
        BadInput, CorruptFile: when GPT-2's vocabulary cannot be had (`gpt2_vocabulary`).
    """
    return _fast() if fast else _twin()


@functools.cache
def _fast() -> GigatokenTokenizer:
    return GigatokenTokenizer(
        build_gigatoken, name="gpt2", vocab_size=GPT2_VOCAB_SIZE, eot=GPT2_EOT
    )


@functools.cache
def _twin() -> TiktokenTokenizer:
    return TiktokenTokenizer(_encoding())


@functools.cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.Encoding(
        name="gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=gpt2_vocabulary().ranks,
        special_tokens={"<|endoftext|>": GPT2_EOT},
        explicit_n_vocab=GPT2_VOCAB_SIZE,
    )


def build_gigatoken() -> gigatoken.Tokenizer:
    """Build a gigatoken encoder that remembers nothing yet; it is told of no special token, so none
    is special.
    """
    with tempfile.TemporaryDirectory(prefix="lc-gpt2-") as folder:
        path = Path(folder) / "gpt2.tiktoken"
        path.write_bytes(gpt2_vocabulary().rank_file)
        return gigatoken.Tokenizer.from_tiktoken(path, pretokenizer="r50k", special_tokens={})


def gpt2_text(ids: Iterable[int]) -> str:
    """Text of GPT-2 ids; bytes that are no UTF-8, as at a cut, become U+FFFD.

    >>> gpt2_text([14134, 502, 50256])
    'Call me<|endoftext|>'

    Raises:
        BadInput: when an id is outside the vocabulary.
    """
    wanted = [int(token) for token in ids]
    if wanted and not 0 <= min(wanted) <= max(wanted) < GPT2_VOCAB_SIZE:
        raise BadInput(
            f"ids {min(wanted):,} to {max(wanted):,} are not GPT-2's: it has 0 to "
            f"{GPT2_VOCAB_SIZE - 1:,}"
        )
    return _encoding().decode(wanted)
