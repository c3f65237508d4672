"""Tokenizers by name and by file: the fast one and its reference give the same ids, and every file
that is none is refused in words.
"""

import json
import os

import msgspec
import numpy as np
import pytest
import tokenizers as hugging_face
from hypothesis import given

from lc_assets.api import corpora
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.errors import BadInput, Unreachable
from lc_assets.formats.tokenizers import named as named_tokenizers
from lc_assets.formats.tokenizers.files import _HuggingFace
from lc_assets.formats.tokenizers.named import (
    GPT2,
    TIKTOKEN,
    sentence_flags,
    text_of,
    tokenizer_of,
    vocabulary_of,
)
from lc_assets.packing.cutting import flags_of
from lc_assets.tokens.tokenizers import disagreement
from lc_assets_tests.builders import tokenizer_json
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A small byte-level BPE, trained here, with an end of text."""
    return tokenizer_json(tmp_path_factory.mktemp("hf") / "tokenizer.json")


def test_gpt2_has_two_names_and_one_meaning():
    assert tokenizer_of("r50k_base") is tokenizer_of("gpt2")
    assert vocabulary_of("r50k_base") == vocabulary_of("gpt2") == GPT2
    assert (tokenizer_of("gpt2").vocab_size, tokenizer_of("gpt2").eot) == (GPT2.n_ids, GPT2.eot)


@given(text=HOSTILE_TEXT)
def test_both_programs_give_the_same_ids_of_a_file(file, text):
    assert (
        disagreement(
            tokenizer_of(str(file)), tokenizer_of(str(file), fast=False), [text, f"a {text} b"]
        )
        is None
    )


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "reference"])
def test_a_special_token_in_a_text_is_text(file, fast):
    """A page cannot end a document; nothing is added before or after."""
    tokenizer = tokenizer_of(str(file), fast=fast)
    text = "the end</s>the"
    ids = tokenizer.encode(text)
    assert tokenizer.eot not in ids.tolist()
    assert text_of(str(file), ids) == text
    assert text_of(str(file), [tokenizer.eot]) == "</s>"


def test_a_file_is_its_content_and_not_its_path(file, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "tokenizer.json").write_bytes(file.read_bytes())
    assert vocabulary_of(str(copy / "tokenizer.json")) == vocabulary_of(str(file))
    tokenizer_json(copy / "tokenizer.json", words=["another", "vocabulary"])
    assert vocabulary_of(str(copy / "tokenizer.json")) != vocabulary_of(str(file))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a Hugging Face tokenizer.json"),
        (b"[]", "not a Hugging Face tokenizer.json"),
        (b'{"version": "1.0"}', "not a Hugging Face tokenizer.json"),
        (b"\xff\xfe", "not a Hugging Face tokenizer.json"),
        (b"[" * 100_000, "not a Hugging Face tokenizer.json"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, content, says):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(BadInput, match=rf"tokenizer.json: .*{says.replace('|', '.')}"):
        vocabulary_of(str(tmp_path / "tokenizer.json"))


def test_a_vocabulary_without_an_end_of_text_has_none(tmp_path):
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"model": {"type": "BPE", "vocab": {"a": 0}}})
    )
    assert vocabulary_of(str(tmp_path / "tokenizer.json")).eot is None


@pytest.mark.parametrize(
    ("eos", "wanted"), [("</s>", 1), ({"content": "<eos>"}, 2), ("absent", 1), (None, 1), (7, 1)]
)
def test_the_configuration_beside_a_file_says_what_ends_a_text(tmp_path, eos, wanted):
    """As Hugging Face's own program has it; what it does not say, or wrongly, is looked for by
    name.
    """
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1, "<eos>": 2}}})
    )
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": eos, "model_max_length": 1e30})
    )
    assert vocabulary_of(str(tmp_path / "tokenizer.json")).eot == wanted


def test_what_is_neither_name_nor_file_is_refused(tmp_path):
    with pytest.raises(
        BadInput,
        match="no tokenizer 'gpt5'; there are gpt2, r50k_base, p50k_base, cl100k_base, "
        "o200k_base, any path",
    ):
        vocabulary_of("gpt5")
    with pytest.raises(BadInput, match="no readable tokenizer.json"):
        vocabulary_of(str(tmp_path / "none.json"))


def test_a_file_is_parsed_once_however_often_it_decodes(file, tmp_path, monkeypatch):
    """And again only when the file, or the configuration beside it, has changed."""
    path, parses = tmp_path / "tokenizer.json", []
    path.write_bytes(file.read_bytes())
    before = vocabulary_of(str(file))
    facts = _HuggingFace._facts
    monkeypatch.setattr(_HuggingFace, "_facts", lambda self: parses.append(1) or facts(self))
    ids = tokenizer_of(str(path)).encode("the end of times").tolist()
    texts = {text_of(str(path), ids) for _ in range(50)}
    assert (texts, len(parses)) == ({"the end of times"}, 1)
    assert vocabulary_of(str(path)).n_ids
    assert len(sentence_flags(str(path))) == vocabulary_of(str(path)).n_ids
    assert len(parses) == 1
    (tmp_path / "tokenizer_config.json").write_text("{}")
    text_of(str(path), ids)
    tokenizer_json(path, words=["another", "vocabulary"])
    assert vocabulary_of(str(path)) != before
    assert len(parses) == 3


def test_a_command_parses_a_file_once_for_each_program(file, tmp_path, monkeypatch):
    """Of `lc pack`, several files and all stages; also when it is called again."""
    path, done = tmp_path / "tokenizer.json", []
    path.write_bytes(file.read_bytes())
    for owner, name in (
        (_HuggingFace, "_facts"),
        (_HuggingFace, "_build_fast"),
        (hugging_face.Tokenizer, "from_buffer"),
    ):
        called = getattr(owner, name)
        monkeypatch.setattr(
            owner,
            name,
            lambda *given, name=name, called=called: done.append(name) or called(*given),
        )
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": f"the end of {name}"}) + "\n")
    sources = [tmp_path / f"{name}.jsonl" for name in "abc"]
    settings = PackingSettings(row_tokens=64, min_tokens=1)
    for row_tokens in (64, 128):
        settings = msgspec.structs.replace(settings, row_tokens=row_tokens)
        made = corpora.pack(sources, tmp_path / "out", settings, tokenizer=str(path), workers=1)
        assert made.counts.kept
    assert sorted(done) == ["_build_fast", "_facts", "from_buffer"]


def test_the_flags_of_a_vocabulary_are_those_of_each_id_alone(file):
    for setting in ("gpt2", str(file)):
        flags = sentence_flags(setting)
        chosen = range(0, len(flags), 97)
        assert flags[list(chosen)].tolist() == [
            flags_of(text_of(setting, [token])) for token in chosen
        ]


def test_ids_outside_the_vocabulary_are_refused(file):
    with pytest.raises(BadInput, match="it has 0 to"):
        text_of(str(file), [10**6])


def test_a_vocabulary_that_cannot_be_fetched_says_what_to_do(monkeypatch):
    def refuse(_name):
        raise ConnectionError("no network")

    monkeypatch.setattr("tiktoken.get_encoding", refuse)
    named_tokenizers._encoding.cache_clear()
    with pytest.raises(
        Unreachable, match="p50k_base: tiktoken could not fetch .*TIKTOKEN_CACHE_DIR"
    ):
        tokenizer_of("p50k_base", fast=False)


@pytest.mark.network
@pytest.mark.parametrize("name", sorted(TIKTOKEN))
def test_tiktokens_vocabularies_are_as_stated(name):
    """Sizes, end of text, and the same ids from both programs; needs the files, from the network or
    TIKTOKEN_CACHE_DIR.
    """
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        pytest.skip("TIKTOKEN_CACHE_DIR is not set")
    try:
        reference = tokenizer_of(name, fast=False)
    except Unreachable as error:
        pytest.skip(str(error))
    if name == "p50k_base":  # a gap among its ranks: done by the reference alone
        with pytest.raises(BadInput, match="does not know this kind"):
            tokenizer_of(name)
    fast = reference if name == "p50k_base" else tokenizer_of(name)
    assert (
        (fast.vocab_size, fast.eot)
        == (reference.vocab_size, reference.eot)
        == (TIKTOKEN[name].n_ids, TIKTOKEN[name].eot)
    )
    texts = [
        "Call me Ishmael.\n\n  Some years ago—never mind",
        "naïve 12345 don't DON'T \u4f60\u597d <|endoftext|>",
    ]
    assert disagreement(fast, reference, texts) is None
    assert text_of(name, fast.encode(texts[1])) == texts[1]
    assert int(np.max(fast.encode(texts[1]))) < fast.vocab_size
