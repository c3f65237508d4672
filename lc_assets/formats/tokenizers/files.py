r"""Tokenizers that are files: Hugging Face's ``tokenizer.json`` and SentencePiece's ``.model``.

==================  ================================================================================
file                what
==================  ================================================================================
``tokenizer.json``  one JSON file with a vocabulary, its merges and all steps around them. The
                    package ``tokenizers`` is the reference. End of text: what
                    ``tokenizer_config.json`` beside it names, else the first of `END_OF_TEXT`
``*.model``         one protocol buffer with pieces, their scores and all settings. The package
                    ``sentencepiece`` is the reference. End of text: the control piece that the
                    settings name
==================  ================================================================================

A special token that occurs in a text is text: ``</s>`` on a web page is four characters. The
reference programs treat it so; the fast one (gigatoken) is given the file without special tokens,
or with control pieces under names that no text has. Nothing is added before or after a text.

gigatoken knows only SentencePiece models of the kind BPE. Of those that normalize texts, version
0.10 gives other ids for rare characters such as U+0085, so only the reference program does them.

Source: the ``tokenizers`` crate, ``tokenizer/serialization.rs``; ``sentencepiece_model.proto``.
"""

import functools
import hashlib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, BadInput
from lc_assets.records import record
from lc_assets.tokens.tokenizers import Ids, without_surrogates

END_OF_TEXT = (
    *("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "<|eot_id|>", "<EOT>"),
    *("<\uff5cend\u2581of\u2581sentence\uff5c>", "[SEP]"),
)
"""Names of the end of text in common vocabularies, in order of preference."""

CONFIG = "tokenizer_config.json"
SENTENCEPIECE_SUFFIX = ".model"

_NO_TEXT = "\ufdd0"
"""A code point that is never a character; a random name between two of them occurs in no page."""

_CONTROL = 3
"""Kind of a SentencePiece that is not text, such as ``</s>``."""

_MODEL_SCHEMA = """
name: "model.proto" syntax: "proto2"
message_type { name: "Piece"
  field { name: "piece" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "type" number: 3 label: LABEL_OPTIONAL type: TYPE_INT32 default_value: "1" } }
message_type { name: "Trainer"
  field { name: "eos_piece" number: 48 label: LABEL_OPTIONAL type: TYPE_STRING
          default_value: "</s>" } }
message_type { name: "Normalizer"
  field { name: "precompiled_charsmap" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "remove_extra_whitespaces" number: 4 label: LABEL_OPTIONAL type: TYPE_BOOL
          default_value: "true" } }
message_type { name: "Model"
  field { name: "pieces" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".Piece" }
  field { name: "trainer_spec" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
          type_name: ".Trainer" }
  field { name: "normalizer_spec" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE
          type_name: ".Normalizer" } }
"""
"""The fields of ``sentencepiece_model.proto`` that are used; the others are kept as they are."""


@record
class Vocabulary:
    """Facts of a vocabulary.

    Attributes:
        name: as in the setting; of a file, its name and the beginning of its digest.
        n_ids: every id is smaller.
        eot: id of end of text, or None where it has none.
        sha256: of the file that defines it.
    """

    name: str
    n_ids: int
    eot: int | None
    sha256: str


class TokenizerFile(ABC):
    """A tokenizer's file, and its reference program as a `lc_assets.tokens.tokenizers.Tokenizer`.

    Attributes:
        path: where it was read.
        vocabulary: named after the file and its digest, independent of its folder.
        special_ids: of tokens that no text has.
    """

    special_ids: frozenset[int]

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self._content = path, content
        n_ids, eot = self._facts()
        digest = hashlib.sha256(content).hexdigest()
        self.name, self.vocab_size, self.eot = f"{path.name}-{digest[:12]}", n_ids, eot
        self.vocabulary = Vocabulary(name=self.name, n_ids=n_ids, eot=eot, sha256=digest)

    def encode(self, text: str | bytes) -> Ids:
        """Ids of a text."""
        return np.array(self._encode(without_surrogates(text)), np.uint32)

    def build_fast(self) -> Any:
        """Make a fast encoder that never gives a special token.

        Raises:
            BadInput: when gigatoken does not know this kind of file.
        """
        try:
            return self._build_fast()
        except (ValueError, RuntimeError) as error:
            raise BadInput(
                f"{self.path}: the fast tokenizer does not know this kind of file: {error}"
            ) from error

    @abstractmethod
    def decode(self, ids: list[int]) -> str:
        """Text of some ids."""

    @abstractmethod
    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Begin and end of the characters of each token of a text, as the program states them."""

    @abstractmethod
    def _facts(self) -> tuple[int, int | None]:
        """Number of ids, and the id of end of text; sets `special_ids`."""

    @abstractmethod
    def _encode(self, text: str) -> Sequence[int]: ...

    @abstractmethod
    def _build_fast(self) -> Any: ...


def open_tokenizer_file(path: Path) -> TokenizerFile:
    """Open a file by its suffix. A file that has not changed is read and parsed once.

    Raises:
        BadInput: when it cannot be read, or does not have the format of its suffix.
    """
    return _opened(path, _stamp(path), _stamp(path.with_name(CONFIG)))


@functools.lru_cache(maxsize=32)
def _opened(path: Path, *_stamps: tuple[int, ...]) -> TokenizerFile:
    is_pieces = path.name.endswith(SENTENCEPIECE_SUFFIX)
    try:
        content = path.read_bytes()
    except OSError as error:
        kind = "SentencePiece .model" if is_pieces else "tokenizer.json"
        raise BadInput(f"{path}: no readable {kind}: {error.strerror}") from error
    return (_SentencePiece if is_pieces else _HuggingFace)(path, content)


def _stamp(path: Path) -> tuple[int, ...]:
    """A mark that changes when a file does; empty without a file."""
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class _AddedToken(msgspec.Struct, frozen=True):
    id: int
    content: str
    special: bool = False


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int] | list[Any] = {}


class _TokenizerJson(msgspec.Struct, frozen=True):
    model: _Model
    added_tokens: list[_AddedToken] = []


class _EndToken(msgspec.Struct, frozen=True):
    content: str = ""


class _Config(msgspec.Struct, frozen=True):
    eos_token: str | _EndToken | None = None


class _HuggingFace(TokenizerFile):
    """A ``tokenizer.json``."""

    def _facts(self) -> tuple[int, int | None]:
        try:
            parsed = msgspec.json.decode(self._content, type=_TokenizerJson)
        except UNDECODABLE as error:
            raise BadInput(f"{self.path}: not a Hugging Face tokenizer.json: {error}") from error
        vocab, added = parsed.model.vocab, parsed.added_tokens
        of_model = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
        n_ids = max((*of_model, *(token.id for token in added)), default=0) + 1
        ids = vocab if isinstance(vocab, dict) else {}
        ids = ids | {token.content: token.id for token in added}
        self.special_ids = frozenset(token.id for token in added if token.special)
        names = (_configured_end(self.path), *END_OF_TEXT)
        return n_ids, next((ids[name] for name in names if name in ids), None)

    def decode(self, ids: list[int]) -> str:
        """Text of some ids, special ones as they are spelt."""
        return str(self._program.decode(ids, skip_special_tokens=False))

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Begin and end of the characters of each token."""
        found: Sequence[tuple[int, int]]
        found = self._program.encode(text, add_special_tokens=False).offsets
        return found

    def _encode(self, text: str) -> Sequence[int]:
        found: Sequence[int] = self._program.encode(text, add_special_tokens=False).ids
        return found

    @cached_property
    def _program(self) -> Any:
        import tokenizers

        program = tokenizers.Tokenizer.from_buffer(self._content)
        program.encode_special_tokens = True
        program.no_padding()
        program.no_truncation()
        return program

    def _build_fast(self) -> Any:
        document: dict[str, Any] = msgspec.json.decode(self._content)
        document["added_tokens"] = [
            token for token in document.get("added_tokens", []) if not token.get("special")
        ]
        import gigatoken

        return gigatoken.Tokenizer.from_json(msgspec.json.encode(document))


class _SentencePiece(TokenizerFile):
    """A SentencePiece ``.model``."""

    def _facts(self) -> tuple[int, int | None]:
        model = self._parsed()
        end = model.trainer_spec.eos_piece
        pieces = model.pieces
        controls = [number for number, piece in enumerate(pieces) if piece.type == _CONTROL]
        self.special_ids = frozenset(controls)
        return len(pieces), next((n for n in controls if pieces[n].piece == end), None)

    def decode(self, ids: list[int]) -> str:
        """Text of some ids; control pieces have none."""
        return str(self._program.decode(ids))

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Begin and end of the characters of each token; bytes of one character but the last have
        none.
        """
        found: Sequence[tuple[int, int]] = self._program.encode_as_offset_mapping(text)["offsets"]
        return found

    def _encode(self, text: str) -> Sequence[int]:
        found: Sequence[int] = self._program.encode(text)
        return found

    @cached_property
    def _program(self) -> Any:
        import sentencepiece

        return sentencepiece.SentencePieceProcessor(model_proto=self._content)

    def _build_fast(self) -> Any:
        model = self._parsed()
        normalizer = model.normalizer_spec
        if normalizer.precompiled_charsmap or normalizer.remove_extra_whitespaces:
            raise ValueError("it changes texts before it splits them")
        drawn = uuid.uuid4().hex
        for number, piece in enumerate(model.pieces):
            if piece.type == _CONTROL:
                piece.piece = f"{_NO_TEXT}{drawn}-{number}{_NO_TEXT}"
        import gigatoken

        return gigatoken.Tokenizer.from_sentencepiece(model.SerializeToString())

    def _parsed(self) -> Any:
        from google.protobuf.message import DecodeError

        model = _model_message()()
        try:
            model.ParseFromString(self._content)
            texts = [piece.piece for piece in model.pieces]
        except (DecodeError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{self.path}: not a SentencePiece .model: cut short, or another format"
            ) from error
        if not texts:
            raise BadInput(f"{self.path}: not a SentencePiece .model: it holds no pieces")
        return model


@functools.cache
def _model_message() -> Any:
    """The protocol buffer's class. The one that the package ``sentencepiece`` brings works with the
    newest protobuf only.
    """
    from google.protobuf import (
        descriptor_pb2,
        descriptor_pool,
        message_factory,
        text_format,
    )

    schema = text_format.Parse(_MODEL_SCHEMA, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(schema)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Model"))


def _configured_end(path: Path) -> str | None:
    """What ``tokenizer_config.json`` calls the end of text; None when it cannot be read."""
    try:
        content = path.with_name(CONFIG).read_bytes()
        named = msgspec.json.decode(content, type=_Config).eos_token
    except (OSError, *UNDECODABLE):
        return None
    return named.content if isinstance(named, _EndToken) else named
