"""Several vocabularies from one reading of the texts: a lake of each, with the files that its
tokenizer alone would have made.
"""

import json

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st
from msgspec import structs
from typer.testing import CliRunner

from lc_assets.api import corpora
from lc_assets.api.files import Output
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.cli.app import app
from lc_assets.errors import BadInput, LcError
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import tokenizer_of, vocabulary_of
from lc_assets.lake.staging import Publication
from lc_assets.stages.file_lakes import build_in_each
from lc_assets.stages.tokens import tokenizing, tokenizing_tasks
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE
from lc_assets_tests.builders import tokenizer_json
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

SETTINGS = TokenizingSettings(min_tokens=3, append_eod=True)
TEXTS = ["Call me Ishmael.", "naïve <|endoftext|> 你好\n\n", "the end of times " * 50, "x"]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """GPT-2's, a file's with ids of two bytes, and one with ids of four."""
    folder = tmp_path_factory.mktemp("tokenizers")
    files = [
        tokenizer_json(folder / "two.json"),
        tokenizer_json(folder / "four.json", words=["times", "ish"], far_id=70_000),
    ]
    return ["gpt2", *map(str, files)]


def corpus(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def files_of(output):
    """Content of every file of token ids, by partition and name, and what was counted."""
    made = output.stages["token_documents"]
    paths = {key: sorted(built.published.folder.glob("[!rs]*.*")) for key, built in made.items()}
    return {
        (key, path.name): path.read_bytes() for key, found in paths.items() for path in found
    } | {key: built.counts for key, built in made.items()}


def alone(source, out, tokenizer, settings=SETTINGS):
    return corpora.tokenize(source, out, structs.replace(settings, tokenizer=tokenizer), workers=1)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        TokenizingSettings(min_tokens=2, first_tokens=20),
        TokenizingSettings(min_tokens=1, privacy=PrivacySettings(replace=("email",))),
    ],
    ids=["whole", "first tokens", "privacy"],
)
def test_each_has_the_files_of_its_tokenizer_alone(tmp_path, tokenizers, settings, workers):
    sources = [
        corpus(tmp_path / f"{name}.jsonl", [*TEXTS, f"{name} x@example.org"]) for name in "ab"
    ]
    outputs = corpora.tokenize_each(
        sources, tmp_path / "each", tokenizers, settings, workers=workers
    )
    assert list(outputs) == [vocabulary_of(name).name for name in tokenizers]
    for number, (name, output) in enumerate(zip(tokenizers, outputs.values(), strict=True)):
        assert output.folder == tmp_path / "each" / vocabulary_of(name).name
        wanted = alone(sources, tmp_path / f"alone{number}", name, settings)
        assert files_of(output) == files_of(wanted)
        assert output.counts == wanted.counts


@hypothesis_settings(max_examples=20)
@given(texts=st.lists(HOSTILE_TEXT, min_size=1, max_size=6), least=st.integers(1, 6))
def test_the_ids_are_those_of_each_reference(tmp_path_factory, tokenizers, texts, least):
    """Whatever the texts are; each vocabulary drops what is too short for itself."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = [json.loads(json.dumps(text).encode("utf-8", "replace")) for text in ["first", *texts]]
    source = corpus(folder / "a.jsonl", texts)
    settings = TokenizingSettings(min_tokens=least)
    outputs = corpora.tokenize_each(source, folder / "out", tokenizers, settings, workers=1)
    for name, output in zip(tokenizers, outputs.values(), strict=True):
        reference = tokenizer_of(name, fast=False)
        wanted = [ids for text in texts if len(ids := reference.encode(text).tolist()) >= least]
        (folder_of,) = output.versions
        assert output.counts.kept == len(wanted)
        if wanted:
            assert [ids.tolist() for ids in MegatronReader(folder_of / "a")] == wanted


def test_texts_are_read_once(tmp_path, tokenizers, monkeypatch):
    """From the shard of documents, which all lakes share as one file."""
    read, columns = [], tokenizing_tasks.read_columns

    def counted(path, *given, **how):
        read.append(path)
        return columns(path, *given, **how)

    monkeypatch.setattr(tokenizing_tasks, "read_columns", counted)
    source = corpus(tmp_path / "a.jsonl", TEXTS)
    outputs = corpora.tokenize_each(source, tmp_path / "out", tokenizers, SETTINGS, workers=1)
    assert len(read) == 1
    documents = [
        built.published.folder / "a.documents.parquet"
        for output in outputs.values()
        for built in output["filtered_documents"]
    ]
    assert len({path.stat().st_ino for path in documents}) == 1


def test_sentences_are_found_once(tmp_path, tokenizers, monkeypatch):
    """That takes longer than to encode them."""
    split = []

    def sentences(text, *_language, **_how):
        split.append(text)
        return text.splitlines(keepends=True)

    monkeypatch.setattr(tokenizing, "sentences_of", sentences)
    monkeypatch.setattr(tokenizing_tasks, "model_digest", lambda language: language)
    source = corpus(tmp_path / "a.jsonl", ["one\ntwo", "three\nfour"])
    settings = structs.replace(SETTINGS, split_sentences="english", min_tokens=1)
    outputs = corpora.tokenize_each(source, tmp_path / "out", tokenizers, settings, workers=1)
    assert split == ["one\ntwo", "three\nfour"]
    assert [len(MegatronReader(one.versions[0] / "a")) for one in outputs.values()] == [4, 4, 4]


def test_a_vocabulary_is_added_without_making_the_others_again(tmp_path, tokenizers):
    source = corpus(tmp_path / "a.jsonl", TEXTS)
    first, *others = tokenizers
    corpora.tokenize_each(source, tmp_path / "out", others, SETTINGS, workers=1)
    outputs = corpora.tokenize_each(source, tmp_path / "out", tokenizers, SETTINGS, workers=1)
    reused = [built.reused for output in outputs.values() for built in output["token_documents"]]
    assert reused == [False, True, True]
    assert files_of(outputs["gpt2"]) == files_of(alone(source, tmp_path / "alone", first))


def test_a_run_that_ends_early_is_continued(tmp_path, tokenizers, monkeypatch):
    """What was written ahead for the others is found again; a damaged file of it is not used."""
    source, out = corpus(tmp_path / "a.jsonl", TEXTS), tmp_path / "out"
    publish = Publication.publish

    def refuse(self, receipt):
        if self.partition.stage == "token_documents":
            raise LcError("ends here")
        return publish(self, receipt)

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "publish", refuse)
        with pytest.raises(LcError, match="ends here"):
            corpora.tokenize_each(source, out, tokenizers[1:], SETTINGS, workers=1)
    (damaged,) = out.glob("four.json-*/token_documents/a/*/a.bin")
    damaged.write_bytes(b"0" * damaged.stat().st_size)
    outputs = corpora.tokenize_each(source, out, tokenizers[1:], SETTINGS, workers=1)
    for number, (name, output) in enumerate(zip(tokenizers[1:], outputs.values(), strict=True)):
        wanted = alone(source, tmp_path / f"alone{number}", name)
        assert files_of(output) == files_of(wanted)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_fast_tokenizer_that_is_wrong_concerns_its_own_vocabulary(
    tmp_path, tokenizers, monkeypatch, wrong
):
    """The first, which reads for all, and another one."""

    class Wrong:
        def __init__(self, right):
            self.name, self.vocab_size, self.eot = right.name, right.vocab_size, right.eot
            self._right = right

        def encode(self, text):
            text = text if isinstance(text, bytes) else text.encode()
            ids = self._right.encode(text)
            return ids[::-1] if text.startswith(b"na") else ids

    def found(name, *, fast=True):
        right = tokenizer_of(name, fast=fast)
        return Wrong(right) if fast and name == tokenizers[wrong] else right

    source = corpus(tmp_path / "a.jsonl", TEXTS)
    with monkeypatch.context() as patched:
        patched.setattr(tokenizing, "tokenizer_of", found)
        outputs = corpora.tokenize_each(source, tmp_path / "out", tokenizers, SETTINGS, workers=1)
    for number, (name, output) in enumerate(zip(tokenizers, outputs.values(), strict=True)):
        assert output.counts.extra[BY_REFERENCE] == (number == wrong)
        wanted = files_of(alone(source, tmp_path / f"alone{number}", name))
        assert {**files_of(output), "a": 0} == {**wanted, "a": 0}


def test_texts_that_are_escaped_otherwise_are_read_for_themselves(tmp_path, tokenizers):
    source = corpus(tmp_path / "a.jsonl", TEXTS)
    escaped = structs.replace(SETTINGS, tokenizer=tokenizers[1], text_encoding="json_ascii")
    contexts = [
        corpora._tokenizing(source, tmp_path / str(number), settings, workers=1)
        for number, settings in enumerate((SETTINGS, escaped))
    ]
    _, built = build_in_each(contexts, "token_documents")
    wanted = corpora.tokenize(source, tmp_path / "alone", escaped, workers=1)
    found = Output(folder=tmp_path, recipe=contexts[1].recipe, stages=built)
    assert files_of(found) == files_of(wanted)


def test_what_cannot_be_meant_is_refused(tmp_path, tokenizers):
    source = corpus(tmp_path / "a.jsonl", TEXTS)
    with pytest.raises(BadInput, match="no vocabulary twice"):
        corpora.tokenize_each(source, tmp_path / "out", ["gpt2", "r50k_base"])
    with pytest.raises(BadInput, match="one or more tokenizers"):
        corpora.tokenize_each(source, tmp_path / "out", [])
    alone(source, tmp_path / "lake", "gpt2")
    with pytest.raises(BadInput, match="is a lake; name a folder for a lake of each vocabulary"):
        corpora.tokenize_each(source, tmp_path / "lake", tokenizers[:2])


def test_the_command_prints_the_data_sets_of_each(tmp_path, tokenizers):
    source = corpus(tmp_path / "a.jsonl", TEXTS)
    chosen = [f"--tokenizer={name}" for name in tokenizers]
    said = CliRunner().invoke(app, ["tokenize", str(source), str(tmp_path / "out"), *chosen])
    assert said.exit_code == 0, said.output
    words = said.stdout.replace("\n", "")
    for name in tokenizers:
        assert f"out/{vocabulary_of(name).name}/token_documents" in words
