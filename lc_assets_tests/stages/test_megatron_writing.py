"""A corpus becomes Megatron's files: the same bytes as preprocess_data.py's, whole or not at all,
with counts that add up.
"""

import json
import os
import struct

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotWritable
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.megatron import megatron_writing
from lc_assets.stages.megatron.megatron_receipts import read_receipt
from lc_assets.stages.megatron.megatron_settings import Writing, part_name, settle
from lc_assets.stages.megatron.megatron_writing import (
    EMPTY,
    TOKENS,
    write_data_set,
    write_parts,
)
from lc_assets.stages.tokens import checked_tokenizing
from lc_assets.stages.tokens.checked_tokenizing import BY_REFERENCE, GAVE_UP
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.builders import tokenizer_json
from lc_assets_tests.reference.preprocess_data import preprocess
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

ONE = LocalExecutor()
GPT2 = settle(Writing(tokenizer="gpt2"))
TEXTS = ["Call me Ishmael.", "naïve <|endoftext|> 你好\n\n", "", "the end of times " * 50, "x"]


def corpus(path, texts, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text} | more) + "\n" for text in texts), "utf-8")
    return path


def encode(text):
    return gpt2_tokenizer(fast=False)._encoding.encode_ordinary(text)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("eod", [None, GPT2_EOT], ids=["as they are", "with ends"])
@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_the_bytes_are_preprocess_datas(tmp_path, eod, batch_size):
    """Both files, whatever the batch; special tokens in a text are text."""
    source = corpus(tmp_path / "a.jsonl", [text for text in TEXTS if text])
    preprocess(source, tmp_path / "wanted", encode, eod=eod)
    settled = settle(Writing(tokenizer="gpt2", append_eod=eod is not None, batch_size=batch_size))
    counts, receipt = write_data_set([source], tmp_path / "out" / "ours", settled, executor=ONE)
    for suffix in ("bin", "idx"):
        assert (tmp_path / "out" / f"ours.{suffix}").read_bytes() == (
            tmp_path / f"wanted.{suffix}"
        ).read_bytes()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ours.bin",
        "ours.idx",
        "ours.receipt",
    ]
    assert (counts.kept, counts.extra[TOKENS], receipt.tokens) == (
        4,
        MegatronReader(tmp_path / "out" / "ours").n_tokens,
        receipt.tokens,
    )


@given(texts=st.lists(HOSTILE_TEXT, min_size=1, max_size=6))
def test_hostile_texts_are_tiktokens(tmp_path_factory, texts):
    """Empty ones are dropped and counted."""
    folder = tmp_path_factory.mktemp("hostile")
    source = corpus(folder / "a.jsonl", ["first", *texts])
    counts, _ = write_data_set([source], folder / "a", GPT2, executor=ONE)
    twin = gpt2_tokenizer(fast=False)
    wanted = [ids.tolist() for ids in (twin.encode(text) for text in ["first", *texts]) if len(ids)]
    assert [ids.tolist() for ids in MegatronReader(folder / "a")] == wanted
    assert counts.dropped.get(EMPTY, 0) == 1 + len(texts) - len(wanted)


@pytest.mark.parametrize("workers", [1, 2])
def test_files_are_put_together_in_the_order_of_their_names(tmp_path, workers):
    """JSON lines and Parquet alike, the same bytes for any number of processes."""
    corpus(tmp_path / "in" / "b.jsonl", ["b"])
    pq.write_table(pa.table({"text": ["a", ""], "other": [1, 2]}), tmp_path / "in" / "a.parquet")
    corpus(tmp_path / "in" / "sub" / "c.jsonl", ["c"])
    corpus(tmp_path / "in" / "empty.jsonl", [""])
    counts, receipt = write_data_set(
        [tmp_path / "in"], tmp_path / "out", GPT2, executor=LocalExecutor(workers=workers)
    )
    assert [ids.tolist() for ids in MegatronReader(tmp_path / "out")] == [
        encode(text) for text in "abc"
    ]
    assert (counts.seen, counts.kept, counts.dropped) == (5, 3, {EMPTY: 2})
    assert (receipt.documents, receipt.dropped, receipt.ids.tokenizer) == (3, {EMPTY: 2}, "gpt2")


def test_what_cannot_be_read_is_counted(tmp_path):
    """Every line is written or dropped by a reason."""
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "a"}\nnope\n{"other": 1}\n{"text": ""}\n')
    counts, _ = write_data_set([source], tmp_path / "a", GPT2, executor=ONE)
    assert (counts.seen, counts.dropped) == (4, {"not JSON": 1, "no text": 1, EMPTY: 1})


def test_another_text_field(tmp_path):
    source = corpus(tmp_path / "a.jsonl", ["not this"], body="this")
    write_data_set(
        [source], tmp_path / "a", settle(Writing(tokenizer="gpt2", text_field="body")), executor=ONE
    )
    assert MegatronReader(tmp_path / "a")[0].tolist() == encode("this")


def test_a_data_set_per_file_has_curators_names(tmp_path):
    """From the name of its source and everything that determines its bytes; a file without
    documents has none.
    """
    files = [corpus(tmp_path / f"{name}.jsonl", [name] * (name != "c")) for name in "abc"]
    counts, receipts = write_parts(files, tmp_path / "out", GPT2, executor=ONE)
    assert counts.kept == 2
    assert list(receipts) == [
        (path, tmp_path / "out" / part_name([path.as_posix()], GPT2.label)) for path in files[:2]
    ]
    for (path, prefix), receipt in receipts.items():
        assert MegatronReader(prefix)[0].tolist() == encode(path.stem)
        assert receipt == read_receipt(prefix)
    assert len(list((tmp_path / "out").glob("*.bin"))) == 2
    assert part_name(["x"], "0") == "cb202185fed4"
    other = settle(Writing(tokenizer="gpt2", append_eod=True))
    assert part_name(["x"], other.label) != part_name(["x"], GPT2.label)


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """Finished parts are found again; a file that changed since is done again."""
    files = [corpus(tmp_path / f"{name}.jsonl", [name]) for name in "ab"]
    bad = tmp_path / "c.jsonl.gz"
    bad.write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(CorruptFile):
        write_data_set([*files, bad], tmp_path / "out", GPT2, executor=ONE)
    assert not (tmp_path / "out.bin").exists()
    bad.unlink()
    corpus(files[1], ["b again"])
    done, tokenize = [], megatron_writing._tokenize
    monkeypatch.setattr(
        megatron_writing,
        "_tokenize",
        lambda task, *more: done.append(task.file) or tokenize(task, *more),
    )
    write_data_set(files, tmp_path / "out", GPT2, executor=ONE)
    assert done == [files[1]]
    assert [ids.tolist() for ids in MegatronReader(tmp_path / "out")] == [
        encode("a"),
        encode("b again"),
    ]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path):
    """Drafts of the same data set; those of others may be in the making."""
    left = [
        tmp_path / ".a.parts" / ".staging-0123abcd-0.bin",
        tmp_path / ".staging-0123abcd-a.bin",
        tmp_path / ".staging-0123abcd-a.idx",
    ]
    others = [tmp_path / ".staging-0123abcd-b-a.bin", tmp_path / ".staging-0123abcd-aa.bin"]
    (tmp_path / ".a.parts").mkdir()
    for path in (*left, *others):
        path.write_bytes(b"x")
    write_data_set([corpus(tmp_path / "in.jsonl", ["a"])], tmp_path / "a", GPT2, executor=ONE)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_what_a_killed_run_of_parts_left_is_removed_and_nothing_else(tmp_path):
    """Drafts of the same parts and memos; those of other parts in the same folder may be in the
    making.
    """
    source, out = corpus(tmp_path / "in.jsonl", ["a"]), tmp_path / "out"
    name = part_name([source.as_posix()], GPT2.label)
    left = [out / f".staging-0123abcd-{name}.{suffix}" for suffix in ("bin", "idx", "receipt")] + [
        out / ".parts" / ".staging-0123abcd-x.json"
    ]
    others = [out / ".staging-0123abcd-another.bin", out / f".staging-0123abcd-x{name}.idx"]
    (out / ".parts").mkdir(parents=True)
    for path in (*left, *others):
        path.write_bytes(b"x")
    write_parts([source], out, GPT2, executor=ONE)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_parts_that_stand_are_not_done_again(tmp_path, monkeypatch):
    """A part whose file is gone is."""
    source = corpus(tmp_path / "a.jsonl", ["a"])
    _, receipts = write_parts([source], tmp_path / "out", GPT2, executor=ONE)
    before = contents(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(megatron_writing, "_tokenize", None)
        assert write_parts([source], tmp_path / "out", GPT2, executor=ONE)[1] == receipts
    (((_, prefix), _),) = receipts.items()
    prefix.with_suffix(".bin").unlink()
    write_parts([source], tmp_path / "out", GPT2, executor=ONE)
    assert contents(tmp_path / "out") == before


def test_nothing_to_write_is_said_and_what_stood_there_stands(tmp_path):
    """Megatron could not open an empty data set."""
    write_data_set(
        [corpus(tmp_path / "a.jsonl", ["a"])], tmp_path / "out" / "x", GPT2, executor=ONE
    )
    before = contents(tmp_path / "out")
    with pytest.raises(BadInput, match=r"no document to write of 2 seen \(2 empty\)"):
        write_data_set(
            [corpus(tmp_path / "a.jsonl", ["", ""])], tmp_path / "out" / "x", GPT2, executor=ONE
        )
    assert {
        name: content
        for name, content in contents(tmp_path / "out").items()
        if not name.startswith(".")
    } == before


def test_a_vocabulary_without_an_end_has_none_appended(tmp_path):
    """With a warning, as Curator does it."""
    file = tokenizer_json(tmp_path / "tokenizer.json")
    document = msgspec.json.decode(file.read_bytes())
    document["added_tokens"] = []
    document["model"]["vocab"].pop("</s>", None)
    file.write_bytes(msgspec.json.encode(document))
    settled = settle(Writing(tokenizer=str(file), append_eod=True))
    assert settled.ids.eod is None
    assert "has no end of text, so none is appended" in settled.warnings[0]
    write_data_set([corpus(tmp_path / "a.jsonl", ["the"])], tmp_path / "a", settled, executor=ONE)
    assert MegatronReader(tmp_path / "a").lengths.tolist() == [1]


@pytest.mark.parametrize(
    ("n_ids", "dtype", "stored", "warned"),
    [
        (65_499, "auto", "uint16", False),
        (65_500, "auto", "int32", True),
        (65_536, "auto", "int32", True),
        (65_536, "uint16", "uint16", False),
        (65_537, "auto", "int32", False),
        (1000, "int32", "int32", True),
    ],
)
def test_the_dtype_is_megatrons_and_the_readers_trap_is_warned_of(
    tmp_path, n_ids, dtype, stored, warned
):
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=n_ids - 1)
    settled = settle(Writing(tokenizer=str(file), append_eod=True, dtype=dtype))
    assert settled.ids.dtype == stored
    assert any("--per-dataset-sequences-path" in warning for warning in settled.warnings) == warned
    write_data_set([corpus(tmp_path / "a.jsonl", ["the"])], tmp_path / "a", settled, executor=ONE)
    assert MegatronReader(tmp_path / "a")[0].tolist()[-1] == n_ids - 1


def test_a_vocabulary_that_two_bytes_do_not_hold_is_refused_before_anything_is_read(tmp_path):
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=65_536)
    with pytest.raises(BadInput, match="uint16 holds 65,536 ids, the vocabulary has 65,537"):
        settle(Writing(tokenizer=str(file), dtype="uint16"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dtype": "uint8"}, "dtype 'uint8': expected one of auto, uint16, int32"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong, says):
    with pytest.raises(BadInput, match=says):
        settle(Writing(tokenizer="gpt2", **wrong))


class Wrong:
    """A fast tokenizer that is wrong where a text says so, or gives ids that no dtype holds."""

    vocab_size, eot, name = 50_257, GPT2_EOT, "gpt2"

    def __init__(self, mark, ids):
        self._mark, self._ids = mark, ids

    def encode(self, text):
        return (
            np.array(self._ids, np.uint32) if self._mark in text else gpt2_tokenizer().encode(text)
        )


def fast_is(monkeypatch, fast):
    monkeypatch.setattr(
        checked_tokenizing,
        "tokenizer_of",
        lambda _, *, fast=True, found=fast: found if fast else gpt2_tokenizer(fast=False),
    )


def test_a_fast_tokenizer_that_is_wrong_is_replaced_by_the_reference(tmp_path, monkeypatch):
    """Of four documents all are checked; here all are wrong but the first."""
    fast_is(monkeypatch, Wrong("wrong", [1]))
    texts = ["right", "wrong 1", "wrong 2", "wrong 3"]
    counts, _ = write_data_set(
        [corpus(tmp_path / "a.jsonl", texts)], tmp_path / "a", GPT2, executor=ONE
    )
    assert counts.extra[BY_REFERENCE] == 1
    assert [ids.tolist() for ids in MegatronReader(tmp_path / "a")] == [
        encode(text) for text in texts
    ]


def test_an_id_above_the_dtype_is_an_error_and_nothing_is_left(tmp_path, monkeypatch):
    """Megatron would store another id."""
    fast_is(monkeypatch, Wrong("wrong", [65_536]))
    monkeypatch.setattr(checked_tokenizing, "disagreement", lambda *_, **__: None)
    with pytest.raises(Mismatch, match="token id 65,536 does not fit uint16"):
        write_data_set(
            [corpus(tmp_path / "in.jsonl", ["right", "wrong"])],
            tmp_path / "out" / "a",
            GPT2,
            executor=ONE,
        )
    assert not list((tmp_path / "out").iterdir())


def test_a_text_on_which_the_tokenizer_gives_up_is_dropped(tmp_path, monkeypatch):
    """As tiktoken does at a million spaces; the fast one does not."""

    class GivesUp(Wrong):
        def encode(self, text):
            if self._mark in text:
                raise BadInput("gave up")
            return super().encode(text)

    fast_is(monkeypatch, GivesUp("wrong", []))
    counts, _ = write_data_set(
        [corpus(tmp_path / "a.jsonl", ["wrong", "right"])], tmp_path / "a", GPT2, executor=ONE
    )
    assert (counts.kept, counts.dropped) == (1, {GAVE_UP: 1})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(NotWritable):
        write_data_set([corpus(tmp_path / "a.jsonl", ["a"])], closed / "a", GPT2, executor=ONE)


def test_a_folder_that_is_a_file(tmp_path):
    """Said before anything is tokenized."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotWritable, match="nothing was published"):
        write_data_set(
            [corpus(tmp_path / "a.jsonl", ["a"])], tmp_path / "file" / "a", GPT2, executor=ONE
        )
    assert (tmp_path / "file").read_bytes() == b""


def test_the_header_is_small_enough_to_read(tmp_path):
    write_data_set(
        [corpus(tmp_path / "a.jsonl", ["the", "end of"])], tmp_path / "a", GPT2, executor=ONE
    )
    assert (tmp_path / "a.idx").read_bytes()[:34] == b"MMIDIDX\x00\x00" + struct.pack(
        "<QBQQ", 1, 8, 2, 3
    )
