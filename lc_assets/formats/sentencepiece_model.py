r"""SentencePiece's ``.model``: one protocol buffer that holds pieces, their scores and all
settings.

Of its fields these are read; a field begins with a varint, ``number << 3 | wire type``:

==========  =====================================  ===============================================
message     field                                  holds
==========  =====================================  ===============================================
model       1, length-delimited, repeated          a piece; its id is its place
model       2, length-delimited                    settings of the training
model       3, length-delimited                    how a text is normalized first
piece       1, length-delimited                    its text, UTF-8
piece       3, varint, by default 1                its kind; 3: a control piece, such as ``</s>``
settings    48, length-delimited, or ``</s>``      text of the piece that ends a sentence
normalizer  2, length-delimited                    a table of characters; empty in Llama's and Mistral's models
normalizer  4, varint, by default 1                whether runs of spaces become one; 0 in the same
==========  =====================================  ===============================================

A control piece that stands in a text is text, as for SentencePiece itself; the fast program would
take it for what it controls, so it is given the model with these pieces under names that no text
has.

Here: reading the file, the two tokenizers it means. Not here: which of them is used
    (`formats.named_tokenizers`). The
reference program is the package ``sentencepiece``, an extra. The fast one knows only models of the
kind BPE; of those that normalize texts it (gigatoken 0.10) gives other ids for rare characters,
such as U+0085, so they are left to the reference program.
Source: ``sentencepiece_model.proto``.
"""

import functools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, cast

import gigatoken

from lc_assets.errors import BadInput
from lc_assets.formats.vocabulary_files import FileTokenizer, VocabularyFile
from lc_assets.tokens.tokenizers import FastEncoding, Tokenizer

SUFFIX: Final = ".model"

_PIECE, _TRAINER, _NORMALIZER, _TEXT, _KIND, _END, _TABLE, _SQUEEZE = 1, 2, 3, 1, 3, 48, 2, 4
_VARINT, _EIGHT, _DELIMITED, _FOUR = 0, 1, 2, 5
_CONTROL: Final = 3
_NO_TEXT: Final = "\ufdd0"
"""A code point that is no character and never will be one; a drawn name between two of them no page
can hold on purpose.
"""

Field = tuple[int, int, bytes, bytes]
"""Number, wire type, value, and all bytes of the field."""


class _Program(Protocol):
    """The part of `sentencepiece.SentencePieceProcessor` that is used."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


def read(path: Path) -> VocabularyFile:
    """Read a ``.model``.

    Raises:
        BadInput: when there is none, or it is not one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: no readable SentencePiece .model: {error.strerror}") from error
    try:
        pieces, end = _pieces_and_end(content)
    except (IndexError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: not a SentencePiece .model: cut short, or another format"
        ) from error
    if not pieces:
        raise BadInput(f"{path}: not a SentencePiece .model: it holds no pieces")
    eot = next(
        (number for number, (text, kind) in enumerate(pieces) if text == end and kind == _CONTROL),
        None,
    )
    return VocabularyFile.of(path, content, n_ids=len(pieces), eot=eot)


def twin(path: Path) -> Tokenizer:
    """The reference program on a file.

    Raises:
        BadInput: when the file is not one, or the package ``sentencepiece`` is not installed.
    """
    file = read(path)
    return FileTokenizer(file.vocabulary, _program(file.content).encode)


def build_fast(path: Path) -> FastEncoding:
    """Make a fast tokenizer of a file, without its control pieces.

    Raises:
        BadInput: when gigatoken does not know the file's kind.
    """
    content = read(path).content
    if _normalizes(content):
        raise BadInput(
            f"{path}: the fast tokenizer does not know this kind of model: one that changes texts "
            "before it takes them apart"
        )
    try:
        return cast(
            "FastEncoding", gigatoken.Tokenizer.from_sentencepiece(_without_control(content))
        )
    except (ValueError, RuntimeError) as error:
        raise BadInput(
            f"{path}: the fast tokenizer does not know this kind of model: {error}"
        ) from error


def text_of(path: Path, ids: list[int]) -> str:
    """Text of some ids."""
    return _program(read(path).content).decode(ids)


@functools.lru_cache(maxsize=4)
def _program(content: bytes) -> _Program:
    try:
        import sentencepiece  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BadInput(
            "this SentencePiece model needs the package sentencepiece: pip install "
            "'lc-assets[sentencepiece]'"
        ) from error
    return cast("_Program", sentencepiece.SentencePieceProcessor(model_proto=content))


def _pieces_and_end(content: bytes) -> tuple[list[tuple[str, int]], str]:
    """Each piece's text and kind, and the text of the piece that ends a sentence."""
    pieces, end = list[tuple[str, int]](), "</s>"
    for number, wire, value, _ in _fields(content):
        if (number, wire) == (_PIECE, _DELIMITED):
            pieces.append(_piece(value))
        elif (number, wire) == (_TRAINER, _DELIMITED):
            end = next(
                (
                    found.decode()
                    for field, kind, found, _ in _fields(value)
                    if (field, kind) == (_END, _DELIMITED)
                ),
                end,
            )
    return pieces, end


def _piece(message: bytes) -> tuple[str, int]:
    text, kind = "", 1
    for number, wire, value, _ in _fields(message):
        if (number, wire) == (_TEXT, _DELIMITED):
            text = value.decode()
        elif (number, wire) == (_KIND, _VARINT):
            kind = _varint(value, 0)[0]
    return text, kind


def _normalizes(content: bytes) -> bool:
    """Whether a text is changed, but for its spaces' shape, before it is taken apart."""
    has_table, squeezes = False, True
    for number, wire, message, _ in _fields(content):
        if (number, wire) == (_NORMALIZER, _DELIMITED):
            for field, _, value, _ in _fields(message):
                has_table = has_table or (field == _TABLE and bool(value))
                squeezes = bool(_varint(value, 0)[0]) if field == _SQUEEZE else squeezes
    return has_table or squeezes


def _without_control(content: bytes) -> bytes:
    """The model with control pieces under names that no text has; ids stay."""
    out, place, drawn = bytearray(), 0, uuid.uuid4().hex
    for number, wire, value, whole in _fields(content):
        if (number, wire) != (_PIECE, _DELIMITED):
            out += whole
            continue
        if _piece(value)[1] == _CONTROL:
            text = f"{_NO_TEXT}{drawn}-{place}{_NO_TEXT}".encode()
            rest = b"".join(part for field, _, _, part in _fields(value) if field != _TEXT)
            message = _delimited(_TEXT, text) + rest
            whole = _delimited(_PIECE, message)  # noqa: PLW2901 - what is written instead
        out += whole
        place += 1
    return bytes(out)


def _fields(message: bytes) -> Iterator[Field]:
    """Each field of a message.

    Raises:
        IndexError: when it is cut short, or not a message.
    """
    at = 0
    while at < len(message):
        begin = at
        tag, at = _varint(message, at)
        start = at
        wire = tag & 7
        if wire == _VARINT:
            _, at = _varint(message, at)
        elif wire in (_EIGHT, _FOUR):
            at += 8 if wire == _EIGHT else 4
        elif wire == _DELIMITED:
            n_bytes, start = _varint(message, at)
            at = start + n_bytes
        else:
            raise IndexError(at)
        if at > len(message):
            raise IndexError(at)
        yield tag >> 3, wire, message[start:at], message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, least first, and the place behind it."""
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError(at)


def _delimited(number: int, value: bytes) -> bytes:
    return _as_varint(number << 3 | _DELIMITED) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
