"""Hugging Face's ``tokenizer.json``: one JSON file that holds a vocabulary, its merges and all
steps around them.

A special token that stands in a text is text: ``</s>`` on a web page is four characters
(``encode_special_tokens`` of the reference program; for the fast one the special tokens are taken
out of the file). Nothing is added before or after.

Here: reading the file, the two tokenizers it means. Not here: which of them is used
    (`formats.named_tokenizers`). The
reference program is the package ``tokenizers``, an extra: ``pip install 'lc-assets[hf]'``.
Source: the ``tokenizers`` crate, ``tokenizer/serialization.rs``.
"""

import functools
from pathlib import Path
from typing import Any, Final, Protocol, cast

import gigatoken
import msgspec

from lc_assets.errors import UNDECODABLE, BadInput
from lc_assets.formats.vocabulary_files import FileTokenizer, VocabularyFile
from lc_assets.tokens.tokenizers import FastEncoding, Tokenizer

END_OF_TEXT: Final = (
    *("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "<|eot_id|>", "<EOT>"),
    *("<\uff5cend\u2581of\u2581sentence\uff5c>", "[SEP]"),
)
"""Names under which vocabularies have their end of text, in the order in which they are looked for.
"""


class AddedToken(msgspec.Struct, frozen=True):
    """A token that is not made by merges."""

    id: int
    content: str
    special: bool = False


class Model(msgspec.Struct, frozen=True):
    """The vocabulary; its other parts are the program's."""

    type: str = ""
    vocab: dict[str, int] | list[Any] = {}


class EndToken(msgspec.Struct, frozen=True):
    """How older files of `TokenizerConfig` write a token."""

    content: str = ""


class TokenizerConfig(msgspec.Struct, frozen=True):
    """What is read of a ``tokenizer_config.json``."""

    eos_token: str | EndToken | None = None


class TokenizerFile(msgspec.Struct, frozen=True):
    """What is read of a file."""

    model: Model
    added_tokens: list[AddedToken] = []


class _Program(Protocol):
    """The part of `tokenizers.Tokenizer` that is used."""

    encode_special_tokens: bool

    def encode(self, text: str, *, add_special_tokens: bool) -> Any: ...

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str: ...


def read(path: Path) -> VocabularyFile:
    """Read a ``tokenizer.json``.

    Raises:
        BadInput: when there is none, or it is not one.
    """
    try:
        content = path.read_bytes()
        parsed = msgspec.json.decode(content, type=TokenizerFile)
    except OSError as error:
        raise BadInput(f"{path}: no readable tokenizer.json: {error.strerror}") from error
    except UNDECODABLE as error:
        raise BadInput(f"{path}: not a Hugging Face tokenizer.json: {error}") from error
    return VocabularyFile.of(path, content, n_ids=_n_ids(parsed), eot=_end_of_text(parsed, path))


def twin(path: Path) -> Tokenizer:
    """The reference program on a file.

    Raises:
        BadInput: when the file is not one, or the package ``tokenizers`` is not installed.
    """
    file = read(path)
    program = _program(file.content)
    return FileTokenizer(
        file.vocabulary, lambda text: program.encode(text, add_special_tokens=False).ids
    )


def build_fast(path: Path) -> FastEncoding:
    """Make a fast tokenizer of a file, without its special tokens.

    Raises:
        BadInput: when gigatoken does not know the file's kind.
    """
    document: dict[str, Any] = msgspec.json.decode(read(path).content)
    document["added_tokens"] = [
        token for token in document.get("added_tokens", []) if not token.get("special")
    ]
    try:
        return cast("FastEncoding", gigatoken.Tokenizer.from_json(msgspec.json.encode(document)))
    except (ValueError, RuntimeError) as error:
        raise BadInput(
            f"{path}: the fast tokenizer does not know this kind of file: {error}"
        ) from error


def text_of(path: Path, ids: list[int]) -> str:
    """Text of some ids, special ones as they are spelt."""
    return _program(read(path).content).decode(ids, skip_special_tokens=False)


@functools.lru_cache(maxsize=4)
def _program(content: bytes) -> _Program:
    try:
        import tokenizers  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BadInput(
            "Hugging Face's tokenizer.json needs the package tokenizers: pip install "
            "'lc-assets[hf]'"
        ) from error
    program = tokenizers.Tokenizer.from_buffer(content)
    program.encode_special_tokens = True
    program.no_padding()
    program.no_truncation()
    return cast("_Program", program)


def _n_ids(file: TokenizerFile) -> int:
    vocab = file.model.vocab
    of_model = list(vocab.values()) if isinstance(vocab, dict) else range(len(vocab))
    return max((*of_model, *(token.id for token in file.added_tokens)), default=0) + 1


def _end_of_text(file: TokenizerFile, path: Path) -> int | None:
    """The id that ``tokenizer_config.json`` beside the file names, else the first of `END_OF_TEXT`
    that there is.
    """
    ids = {token.content: token.id for token in file.added_tokens}
    if isinstance(file.model.vocab, dict):
        ids = file.model.vocab | ids
    return next((ids[name] for name in (_configured(path), *END_OF_TEXT) if name in ids), None)


def _configured(path: Path) -> str | None:
    """What ``tokenizer_config.json`` calls the end of text; a file that cannot be read says
    nothing.
    """
    try:
        named = msgspec.json.decode(
            path.with_name("tokenizer_config.json").read_bytes(), type=TokenizerConfig
        ).eos_token
    except (OSError, *UNDECODABLE):
        return None
    return named.content if isinstance(named, EndToken) else named
