"""SentencePiece's models: the facts they state, and the same ids from both programs."""

import contextlib
import struct

import gigatoken
import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings, strategies as st

from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.files import _model_message, open_tokenizer_file
from lc_assets.formats.tokenizers.named import tokenizer_of, vocabulary_of
from lc_assets.tokens.tokenizers import disagreement
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number, value):
    """A number, a float, or bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return (
        varint(number << 3 | 5) + struct.pack("<f", value)
        if isinstance(value, float)
        else varint(number << 3) + varint(value)
    )


def model(*pieces, end=None):
    """A model of pieces with their kinds, of the kind BPE."""
    made = b"".join(
        field(1, field(1, text.encode()) + field(2, -float(number)) + field(3, kind))
        for number, (text, kind) in enumerate(pieces)
    )
    trainer = field(3, 2) + field(35, 1) + (field(48, end.encode()) if end else b"")
    normalizer = field(1, b"identity") + field(3, 0) + field(4, 0)
    return made + field(2, trainer) + field(3, normalizer)


CONTROLS = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
WORDS = [(text, NORMAL) for text in ("he", "ll", "hell", "hello", *"helo</s>\u2581 nk")]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.model"
    path.write_bytes(model(*CONTROLS, *BYTES, *dict.fromkeys(WORDS)))
    return path


def test_a_model_states_its_ids_and_its_end(file):
    found = vocabulary_of(str(file))
    assert (found.n_ids, found.eot) == (len(CONTROLS) + 256 + len(dict.fromkeys(WORDS)), 2)
    assert found.name.startswith("small.model-")


@pytest.mark.parametrize(
    ("pieces", "end", "eot"),
    [
        ([("a", NORMAL), ("</s>", NORMAL)], None, None),
        ([("a", NORMAL), ("<end>", CONTROL)], "<end>", 1),
        ([("a", NORMAL)], None, None),
    ],
)
def test_the_end_is_the_control_piece_that_the_settings_name(tmp_path, pieces, end, eot):
    (tmp_path / "a.model").write_bytes(model(*pieces, end=end))
    assert vocabulary_of(str(tmp_path / "a.model")).eot == eot


def test_a_control_piece_in_a_text_is_text(file):
    """The fast program would take it for an end of text, so that a page could end a document."""
    fast = tokenizer_of(str(file))
    for text in ("hello</s>", "<s>", "</s></s>"):
        ids = fast.encode(text)
        assert not np.isin(ids, [1, 2]).any()
        assert len(ids) > 1
    assert (fast.vocab_size, fast.eot) == (vocabulary_of(str(file)).n_ids, 2)


def test_control_pieces_are_renamed_and_nothing_else_changes(file, monkeypatch):
    given = []
    monkeypatch.setattr(gigatoken.Tokenizer, "from_sentencepiece", given.append)
    open_tokenizer_file(file).build_fast()
    before, after = parsed(file.read_bytes()), parsed(given[0])
    controls = [piece for piece in after.pieces if piece.type == CONTROL]
    assert [piece.type for piece in before.pieces] == [piece.type for piece in after.pieces]
    assert not {piece.piece for piece in controls} & {"<s>", "</s>"}
    for renamed, piece in zip(after.pieces, before.pieces, strict=True):
        if piece.type == CONTROL:
            renamed.piece = piece.piece
    assert after == before


def parsed(content):
    found = _model_message()()
    found.ParseFromString(content)
    return found


@pytest.mark.parametrize(
    "content",
    [b"", b"\x08\x01", b"{}", b"\x0a\xff", b"\xff" * 30, b"\x0a\x02\x0a\x05", b"PK\x03\x04"],
)
def test_a_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "a.model").write_bytes(content)
    with pytest.raises(BadInput, match=r"a.model: not a SentencePiece .model"):
        vocabulary_of(str(tmp_path / "a.model"))


@given(st.binary(max_size=40))
def test_bytes_are_a_model_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "a.model"
    path.write_bytes(content)
    with contextlib.suppress(BadInput):
        assert vocabulary_of(str(path)).n_ids > 0


@pytest.mark.parametrize(
    "normalizer", [b"", field(3, 0), field(2, b"table") + field(4, 0), field(4, 1)]
)
def test_a_model_that_normalizes_texts_is_not_for_the_fast_program(tmp_path, normalizer):
    """It gave other ids for U+0085; without field 4 spaces are squeezed."""
    content = model(*CONTROLS, *BYTES, *dict.fromkeys(WORDS))
    spec = field(3, field(1, b"identity") + field(3, 0) + field(4, 0))
    assert content.endswith(spec)
    (tmp_path / "a.model").write_bytes(content.removesuffix(spec) + field(3, normalizer))
    with pytest.raises(BadInput, match="it changes texts before"):
        tokenizer_of(str(tmp_path / "a.model"))


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(BadInput, match="no readable SentencePiece"):
        vocabulary_of(str(tmp_path / "a.model"))


@settings(max_examples=200)
@given(text=HOSTILE_TEXT)
def test_both_programs_give_the_same_ids(trained, text):
    assert (
        disagreement(
            tokenizer_of(trained),
            tokenizer_of(trained, fast=False),
            [text, f"the {text}</s> end <unk>"],
        )
        is None
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small BPE with bytes to fall back on, trained here by the reference program."""
    path = tmp_path_factory.mktemp("sp") / "bpe"
    words = [
        "the end of times",
        "it was the best of times",
        "naïve café",
        "call me Ishmael, some years ago",
    ]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words * 20),
        model_prefix=str(path),
        vocab_size=330,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    return f"{path}.model"
