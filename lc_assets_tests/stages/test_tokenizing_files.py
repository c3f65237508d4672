"""Files become Megatron's data sets by the stage `token_documents`: the same bytes as
preprocess_data.py's, with counts that add up.
"""

import json
import struct
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.api import corpora
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.rows import GriddingSettings, TokenizingSettings
from lc_assets.builds.tables import FILTERED
from lc_assets.errors import BadInput, Mismatch
from lc_assets.execution import containment
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.parquet import opening
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.tokens import tokenized_text, tokenizing, tokenizing_tasks
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, GAVE_UP, TOO_FEW_BYTES, tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import TokenizeTask, params_of
from lc_assets.tokens.tokenizers import without_surrogates
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.builders import tokenizer_json
from lc_assets_tests.file_runs import ONE, replaced, run
from lc_assets_tests.reference.preprocess_data import preprocess
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

TEXTS = ["Call me Ishmael.", "naïve <|endoftext|> 你好\n\n", "", "the end of times " * 50, "x"]


def corpus(path, texts, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text} | more) + "\n" for text in texts), "utf-8")
    return path


def tokenize(source, out, *, executor=ONE, text_field=None, **settings):
    """Tokenize as `lc tokenize` does; the folder of the data sets, and the counts."""
    return run(
        "token_documents",
        [source],
        out,
        executor=executor,
        text_field=text_field,
        token_documents=replaced(TokenizingSettings(), min_tokens=1, **settings),
        token_grid=GriddingSettings(heldout_fraction=0, row_tokens=1),
    )


def encode(text):
    return gpt2_tokenizer(fast=False)._encoding.encode_ordinary(text)


def ids_in(prefix):
    return [ids.tolist() for ids in MegatronReader(prefix)]


@pytest.mark.parametrize("eod", [None, GPT2_EOT], ids=["as they are", "with ends"])
def test_the_bytes_are_preprocess_datas(tmp_path, eod):
    """Both files; special tokens in a text are text."""
    source = corpus(tmp_path / "a.jsonl", [text for text in TEXTS if text])
    preprocess(source, tmp_path / "wanted", encode, eod=eod)
    folder, counts = tokenize(source, tmp_path / "out", append_eod=eod is not None)
    for suffix in ("bin", "idx"):
        assert (folder / f"a.{suffix}").read_bytes() == (tmp_path / f"wanted.{suffix}").read_bytes()
    assert (counts.kept, counts.extra["tokens"]) == (4, MegatronReader(folder / "a").n_tokens)


def test_each_key_is_a_data_set(tmp_path):
    """With the bytes of preprocess_data.py --json-keys, in a partition named after both."""
    source = tmp_path / "a.jsonl"
    lines = [{"text": text, "title": f"{text} 1"} for text in "abc"]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = TokenizingSettings(min_tokens=1, append_eod=True)
    made = corpora.tokenize(
        source, tmp_path / "out", settings, json_keys=("title", "text"), workers=1
    )
    assert list(made.stages["token_documents"]) == ["a_text", "a_title"]
    for key, built in zip(("text", "title"), made["token_documents"], strict=True):
        preprocess(source, tmp_path / key, encode, key=key, eod=GPT2_EOT)
        for end in ("bin", "idx"):
            wanted = (tmp_path / f"{key}.{end}").read_bytes()
            assert (built.published.folder / f"a.{end}").read_bytes() == wanted
    with pytest.raises(BadInput, match="not both"):
        corpora.tokenize(source, tmp_path / "other", json_keys=("text",), text_field="text")


def task_of(folder, texts):
    """Of a shard with these texts."""
    nothing = dict.fromkeys(FILTERED.names, "")
    lines = [nothing | {"id": str(n), "raw_content": text} for n, text in enumerate(texts)]
    path = folder / "a.documents.parquet"
    pq.write_table(pa.Table.from_pylist(lines, FILTERED), path)
    settings = TokenizingSettings(min_tokens=1)
    return TokenizeTask(documents=path, folder=folder / "out", settings=settings)


@given(texts=st.lists(HOSTILE_TEXT, min_size=1, max_size=6))
def test_hostile_texts_are_tiktokens(tmp_path_factory, texts):
    """Empty ones are dropped and counted."""
    folder = tmp_path_factory.mktemp("hostile")
    counts = tokenize_shard(task_of(folder, ["first", *map(without_surrogates, texts)]))
    reference = gpt2_tokenizer(fast=False)
    wanted = [reference.encode(text).tolist() for text in ["first", *texts]]
    assert ids_in(folder / "out" / "a") == [ids for ids in wanted if ids]
    assert counts.dropped.get(TOO_FEW_BYTES, 0) == wanted.count([])


@given(
    texts=st.lists(st.text(max_size=40), min_size=1, max_size=12),
    removed=st.sets(st.integers(0, 11)),
    together=st.integers(1, 60),
)
def test_documents_that_are_read_together_are_written_as_one_by_one(
    tmp_path_factory, texts, removed, together
):
    """The same bytes, whatever goes together; removed and short documents are left out."""
    folder = tmp_path_factory.mktemp("together")
    task = task_of(folder, ["first", *texts])
    task = replace(task, removed={str(n): "listed" for n in removed})
    other = replace(task, folder=folder / "other")
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((tokenized_text, "BYTES_TOGETHER"), (opening, "FEWEST_TOGETHER")):
            patch.setattr(module, name, together)
        assert tokenize_shard(other) == (counts := tokenize_shard(task))
    kept = [text for n, text in enumerate(["first", *texts]) if text and n not in removed]
    assert (counts.seen, counts.kept) == (len(texts) + 1, len(kept))
    if kept:
        assert ids_in(task.folder / "a") == list(map(encode, kept))
    for path in task.folder.iterdir():
        assert path.read_bytes() == (other.folder / path.name).read_bytes()


def test_a_loss_while_documents_are_written_is_of_all_of_them(tmp_path, monkeypatch):
    """Where a worker was lost at them before, each is written alone."""
    seen, write = [], tokenizing._Output._write

    def noted(output, documents, encoded):
        seen.append(containment._HERE.cell[::2].tolist())
        write(output, documents, encoded)

    monkeypatch.setattr(tokenizing._Output, "_write", noted)
    task = task_of(tmp_path, ["one", "two", "three"])
    for skips in ({}, {0: ""}):
        assert containment.run_skipping(skips, tokenize_shard, task, TaskPolicy()).kept == 3
    assert seen == [[0, 2], [0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("workers", [1, 2])
def test_each_file_is_a_data_set(tmp_path, workers):
    """JSON lines and Parquet alike, the same bytes for any number of processes."""
    corpus(tmp_path / "in" / "b.jsonl", ["b"])
    pq.write_table(pa.table({"text": ["a", ""], "other": [1, 2]}), tmp_path / "in" / "a.parquet")
    corpus(tmp_path / "in" / "sub" / "c.jsonl", ["c"])
    corpus(tmp_path / "in" / "empty.jsonl", [""])
    folder, counts = tokenize(
        tmp_path / "in", tmp_path / "out", executor=LocalExecutor(workers=workers)
    )
    prefixes = sorted(path.with_suffix("") for path in folder.rglob("*.idx"))
    assert [ids_in(prefix) for prefix in prefixes] == [[encode(text)] for text in "abc"]
    assert (counts.seen, counts.kept) == (5, 3)


def test_what_cannot_be_read_is_counted(tmp_path):
    """Every line is written or dropped by a reason."""
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "a"}\nnope\n{"other": 1}\n{"text": ""}\n')
    _, counts = tokenize(source, tmp_path / "out")
    assert (counts.seen, counts.kept, sum(counts.dropped.values())) == (4, 1, 3)
    assert counts.dropped.items() >= {"not JSON": 1, "no text": 1}.items()


def test_no_language_is_identified(tmp_path, monkeypatch):
    """No id depends on it, and it takes longer than to tokenize a page; except where personal data
    are replaced by others of the same language.
    """

    def identified(*_):
        raise AssertionError("a language was identified")

    monkeypatch.setattr("lc_assets.stages.documents.measuring.language_of", identified)
    source = corpus(tmp_path / "a.jsonl", ["Call me Ishmael."])
    made = corpora.tokenize(source, tmp_path / "out", workers=1)
    assert made.counts.kept == 1
    settings = TokenizingSettings(min_tokens=1, privacy=PrivacySettings(replace=("email",)))
    with pytest.raises(AssertionError, match="a language was identified"):
        corpora.tokenize(source, tmp_path / "other", settings, workers=1)


def test_another_text_field(tmp_path):
    source = corpus(tmp_path / "a.jsonl", ["not this"], body="this")
    folder, _ = tokenize(source, tmp_path / "out", text_field="body")
    assert ids_in(folder / "a") == [encode("this")]


def test_a_vocabulary_without_an_end_has_none_appended(tmp_path):
    file = tokenizer_json(tmp_path / "tokenizer.json")
    document = msgspec.json.decode(file.read_bytes())
    document["added_tokens"] = []
    document["model"]["vocab"].pop("</s>", None)
    file.write_bytes(msgspec.json.encode(document))
    source = corpus(tmp_path / "a.jsonl", ["the"])
    folder, _ = tokenize(source, tmp_path / "out", tokenizer=str(file), append_eod=True)
    assert MegatronReader(folder / "a").lengths.tolist() == [1]


@pytest.mark.parametrize(
    ("n_ids", "dtype", "stored"),
    [
        (65_499, "auto", "uint16"),
        (65_500, "auto", "int32"),
        (65_536, "uint16", "uint16"),
        (65_537, "auto", "int32"),
        (1000, "int32", "int32"),
    ],
)
def test_the_dtype_is_megatrons(tmp_path, n_ids, dtype, stored):
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=n_ids - 1)
    settings = {"tokenizer": str(file), "append_eod": True, "dtype": dtype}
    folder, _ = tokenize(corpus(tmp_path / "a.jsonl", ["the"]), tmp_path / "out", **settings)
    reader = MegatronReader(folder / "a")
    assert (reader.dtype.name, reader[0].tolist()[-1]) == (stored, n_ids - 1)


def test_a_vocabulary_that_two_bytes_do_not_hold_is_refused(tmp_path):
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=65_536)
    with pytest.raises(BadInput, match="uint16 holds 65,536 ids, the vocabulary has 65,537"):
        params_of(TokenizingSettings(tokenizer=str(file), dtype="uint16"))


def test_an_unknown_dtype_is_refused():
    with pytest.raises(BadInput, match="uint8"):
        replaced(TokenizingSettings(), dtype="uint8")


class Wrong:
    """A fast tokenizer that is wrong where a text says so, or gives ids that no dtype holds."""

    vocab_size, eot, name = 50_257, GPT2_EOT, "gpt2"

    def __init__(self, mark, ids):
        self._mark, self._ids = mark, ids

    def encode(self, text):
        text = text if isinstance(text, str) else text.decode()
        return (
            np.array(self._ids, np.uint32) if self._mark in text else gpt2_tokenizer().encode(text)
        )


def fast_is(monkeypatch, fast):
    monkeypatch.setattr(
        tokenizing,
        "tokenizer_of",
        lambda _, *, fast=True, found=fast: found if fast else gpt2_tokenizer(fast=False),
    )


def test_a_fast_tokenizer_that_is_wrong_is_replaced_by_the_reference(tmp_path, monkeypatch):
    """Of four documents all are checked; here all are wrong but the first."""
    fast_is(monkeypatch, Wrong("wrong", [1]))
    texts = ["right", "wrong 1", "wrong 2", "wrong 3"]
    folder, counts = tokenize(corpus(tmp_path / "a.jsonl", texts), tmp_path / "out")
    assert counts.extra[BY_REFERENCE] == 1
    assert ids_in(folder / "a") == [encode(text) for text in texts]


@pytest.mark.parametrize(("number", "is_seen"), [(3, 1), (16, 1), (17, 0), (64, 1)])
def test_ever_fewer_documents_are_compared(tmp_path, monkeypatch, number, is_seen):
    """The first four, then those whose numbers are powers of four."""
    fast_is(monkeypatch, Wrong("wrong", [1]))
    texts = ["wrong" if n == number else "right" for n in range(66)]
    _, counts = tokenize(corpus(tmp_path / "a.jsonl", texts), tmp_path / "out")
    assert counts.extra[BY_REFERENCE] == is_seen


def test_an_id_above_the_dtype_is_an_error_and_nothing_is_published(tmp_path, monkeypatch):
    """Megatron would store another id."""
    fast_is(monkeypatch, Wrong("wrong", [65_536]))
    monkeypatch.setattr(tokenizing, "disagreement", lambda *_, **__: None)
    with pytest.raises(Mismatch, match="token id 65,536 does not fit uint16"):
        tokenize(corpus(tmp_path / "in.jsonl", ["right", "wrong"]), tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.bin"))


def test_a_text_on_which_the_tokenizer_gives_up_is_dropped(tmp_path, monkeypatch):
    """As tiktoken does at a million spaces; the fast one does not."""

    class GivesUp(Wrong):
        def encode(self, text):
            if "wrong" in str(text):
                raise BadInput("gave up")
            return super().encode(text)

    fast_is(monkeypatch, GivesUp("wrong", []))
    source = corpus(tmp_path / "a.jsonl", ["wrong", "right"])
    _, counts = tokenize(source, tmp_path / "out")
    assert (counts.kept, counts.dropped) == (1, {GAVE_UP: 1})


def test_the_header_is_small_enough_to_read(tmp_path):
    folder, _ = tokenize(corpus(tmp_path / "a.jsonl", ["the", "end of"]), tmp_path / "out")
    assert (folder / "a.idx").read_bytes()[:34] == b"MMIDIDX\x00\x00" + struct.pack(
        "<QBQQ", 1, 8, 2, 3
    )


def test_each_sentence_is_a_sequence(tmp_path, monkeypatch):
    """With the boundaries of documents, and one end of text for each of these."""
    found = {"a. b.": ["a.", "b."], "c": ["c"], "d? e! f.": ["d?", "", "e!", "f."]}
    monkeypatch.setattr(
        tokenizing, "sentences_of", lambda text, language, keep_newlines: found[text]
    )
    monkeypatch.setattr(tokenizing_tasks, "model_digest", lambda language: language)
    source = corpus(tmp_path / "a.jsonl", list(found))
    folder, counts = tokenize(source, tmp_path / "out", append_eod=True, split_sentences="english")
    reader = MegatronReader(folder / "a")
    wanted = ["a.", ("b.",), ("c",), "d?", "e!", ("f.",)]
    assert [ids.tolist() for ids in reader] == [
        encode(one) if isinstance(one, str) else [*encode(*one), GPT2_EOT] for one in wanted
    ]
    assert reader.document_indices.tolist() == [0, 2, 3, 6]
    assert (counts.kept, counts.extra["tokens"]) == (3, reader.n_tokens)
    preprocess(source, tmp_path / "theirs", encode, eod=GPT2_EOT, split=found.get)
    for suffix in ("bin", "idx"):
        assert (folder / f"a.{suffix}").read_bytes() == (tmp_path / f"theirs.{suffix}").read_bytes()


def test_sentences_without_their_program_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    with pytest.raises(BadInput, match="pip install nltk"):
        tokenize(corpus(tmp_path / "a.jsonl", ["a"]), tmp_path / "out", split_sentences="english")
    with pytest.raises(BadInput, match="not both"):
        replaced(TokenizingSettings(), split_sentences="english", first_tokens=65_536)
