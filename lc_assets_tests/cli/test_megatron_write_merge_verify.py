"""``lc tokenize``, ``lc megatron merge`` and ``export``, and ``lc verify``: summaries that balance,
exit codes, one sentence each.
"""

import json
import re
import shutil
import struct

import numpy as np
import pytest

from lc_assets.cli.options import bytes_of
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.stages.megatron.megatron_merging import Ids, write_receipt
from lc_assets_tests.builders import tokenizer_json
from lc_assets_tests.file_runs import version_in

COMMANDS = ["merge", "export"]


@pytest.fixture
def written(tmp_path, lc):
    """A data set of two documents, and what was printed."""
    (tmp_path / "a.jsonl").write_text(
        "\n".join(
            [
                json.dumps({"text": "the end"}),
                json.dumps({"text": ""}),
                "nope",
                json.dumps({"text": "x"}),
            ]
        )
    )
    options = ("--append-eod", "--workers", 1)
    said = lc("tokenize", tmp_path / "a.jsonl", tmp_path / "out", *options)
    folder = version_in(tmp_path / "out", "token_documents")
    for suffix in ("bin", "idx"):
        shutil.copy(folder / f"a.{suffix}", tmp_path)
    ids = Ids(
        tokenizer="gpt2",
        tokenizer_sha256=vocabulary_of("gpt2").sha256,
        n_ids=50_257,
        eod=50_256,
        dtype="uint16",
    )
    write_receipt(tmp_path / "a", made_by="merge", ids=ids)
    return tmp_path / "a", said


def test_tokenizing_prints_a_summary_that_balances(written):
    prefix, said = written
    assert (said.code, said.out.splitlines()[0], said.err) == (
        0,
        "4 documents = 2 written + 2 left out",
        "",
    )
    assert "dropped: not JSON 1" in " ".join(said.out.split())
    assert "tokens 5" in " ".join(said.out.split())
    assert [ids.tolist()[-1] for ids in MegatronReader(prefix)] == [50_256, 50_256]


def test_what_is_whole_is_said_so(written, lc):
    for named in (written[0], f"{written[0]}.bin", f"{written[0]}.idx"):
        said = lc("verify", named, "--tokenizer", "gpt2", "--append-eod")
        assert (said.code, said.out.splitlines()[-1]) == (0, "whole")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda idx, ids: (b"PK" + idx[2:], ids), "not a Megatron index"),
        (lambda idx, ids: (idx[:-3], ids), "header promises 82 bytes"),
        (lambda idx, ids: (idx, ids[:-1]), "9 bytes, its .idx promises 10"),
        (lambda idx, ids: (idx[:17] + b"\x09" + idx[18:], ids), "dtype code 9"),
        (
            lambda idx, ids: (idx[:34] + struct.pack("<i", 1) + idx[38:], ids),
            "is said to begin at byte 6, its predecessors end at 2",
        ),
        (
            lambda idx, ids: (idx[:42] + struct.pack("<q", -2) + idx[50:], ids),
            "begin at byte -2, its predecessors end at 0: negative",
        ),
        (
            lambda idx, ids: (idx, b"\xff\xff" + ids[2:]),
            "1 ids are outside the vocabulary, the first 65,535 in sequence 0",
        ),
        (lambda idx, ids: (idx, ids[:-2] + b"\x00\x00"), "1 of 2 documents do not end with it"),
        (lambda idx, ids: (idx, ids[:2] + b"\x01\x00" + ids[4:]), "it changed since"),
    ],
)
def test_every_damage_is_named_and_ends_with_1(written, lc, damage, says):
    prefix = written[0]
    idx, ids = prefix.with_suffix(".idx"), prefix.with_suffix(".bin")
    new_idx, new_ids = damage(idx.read_bytes(), ids.read_bytes())
    idx.write_bytes(new_idx)
    ids.write_bytes(new_ids)
    said = lc("verify", prefix)
    assert said.code == 1
    assert says in said.err


def test_verify_hands_other_things_on_and_says_what_is_not_there(tmp_path, lc):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert "NumPy array" in lc("verify", tmp_path / "a.npy").out
    assert lc("verify", tmp_path / "nowhere").code == 2
    (tmp_path / "half.bin").write_bytes(b"\x00\x00")
    said = lc("verify", tmp_path / "half")
    assert (said.code, "half.idx: is missing" in said.err) == (1, True)


def test_ends_cannot_be_asked_for_without_a_tokenizer(written, lc):
    said = lc("verify", written[0], "--append-eod")
    assert (said.code, said.err.strip()) == (
        2,
        "--append-eod needs a --tokenizer that has an end of text",
    )


def test_a_vocabulary_by_its_size(written, lc):
    said = lc("verify", written[0], "--vocab-size", 100)
    assert (said.code, "ids are outside the vocabulary" in said.err) == (1, True)


def test_data_sets_per_file_are_merged_by_their_folder(tmp_path, lc):
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps({"body": name}))
    options = ("--text-field", "body", "--workers", 1)
    said = lc("tokenize", tmp_path / "in", tmp_path / "out", *options)
    assert (said.code, said.out.splitlines()[0]) == (0, "2 documents = 2 written + 0 left out")
    version = version_in(tmp_path / "out", "token_documents")
    for parts in (tmp_path / "out", version):
        said = lc("megatron", "merge", parts, "--output", tmp_path / "all", "--max-size", "2B")
        assert (said.code, said.out.splitlines()[0]) == (0, "2 data sets into 2")
        assert len(MegatronReader(tmp_path / "all-00001")) == 1
    assert "of a vocabulary of 50,257" in lc("verify", tmp_path / "all-00001").out


def test_exports(written, tmp_path, lc):
    prefix = written[0]
    said = lc(
        "megatron",
        "export",
        prefix,
        "--to",
        "nanogpt",
        "--output",
        tmp_path / "train.out",
        "--over-last",
        7,
    )
    assert (said.code, said.out) == (0, f"5 tokens in {tmp_path}/train.out\n")
    assert np.fromfile(tmp_path / "train.out", np.uint16)[[2, 4]].tolist() == [7, 7]
    assert (
        lc("megatron", "export", prefix, "--to", "datasets", "--output", tmp_path / "ds").code == 0
    )
    assert [path.name for path in (tmp_path / "ds").iterdir()] == ["train-00000-of-00001.parquet"]
    assert (
        lc("megatron", "export", prefix, "--to", "datasets", "--output", tmp_path / "ds").code == 2
    )
    said = lc("megatron", "export", prefix, "--to", "tar", "--output", tmp_path / "x")
    assert (said.code, said.err.strip()) == (2, "no format 'tar'; there are nanogpt, datasets, mds")
    assert (
        lc(
            "megatron",
            "export",
            prefix,
            "--to",
            "datasets",
            "--output",
            tmp_path / "y",
            "--over-last",
            7,
        ).code
        == 2
    )


def test_what_should_be_known_is_said_on_standard_error(tmp_path, lc):
    """The reader's trap; the reference tokenizer that did the work; an end that is missing."""
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=65_510)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "the"}))
    options = ("--tokenizer", file, "--workers", 1)
    said = lc("tokenize", tmp_path / "a.jsonl", tmp_path / "out", *options)
    assert (said.code, "--per-dataset-sequences-path" in said.err) == (0, True)
    file.write_bytes(
        file.read_bytes()
        .replace(b'"normalizer":null', b'"normalizer":{"type":"NFKC"}')
        .replace(b'"normalizer": null', b'"normalizer": {"type": "NFKC"}')
    )
    said = lc("tokenize", tmp_path / "a.jsonl", tmp_path / "out", *options)
    assert (said.code, "1 files were tokenized by the reference tokenizer" in said.err) == (0, True)
    document = json.loads(file.read_bytes()) | {"added_tokens": []}
    document["model"]["vocab"].pop("</s>", None)
    file.write_text(json.dumps(document))
    said = lc("tokenize", tmp_path / "a.jsonl", tmp_path / "other", *options, "--append-eod")
    assert (said.code, "has no end of text, so none is appended" in said.err) == (0, True)


def test_progress_is_printed_on_request(tmp_path, lc):
    """Shards and documents, also where standard error is no terminal."""
    source, lines = tmp_path / "a.jsonl", [json.dumps({"text": str(n)}) + "\n" for n in range(10)]
    source.write_text("".join(lines))
    options = ("--shard-size", f"{5 * len(lines[0])}B", "--workers", 1)
    assert not lc("tokenize", source, tmp_path / "out", *options).err
    said = lc("tokenize", source, tmp_path / "other", *options, "--log-interval", 60)
    (line,) = (line for line in said.err.splitlines() if line.startswith("tokenize a: 100%"))
    assert re.search(r"2/2 \[.*, 10 documents, [\d,]+/s\]", line)


def test_nothing_to_write_is_2(tmp_path, lc):
    (tmp_path / "a.jsonl").write_text("{}\n")
    said = lc("tokenize", tmp_path / "a.jsonl", tmp_path / "out", "--workers", 1)
    assert (said.code, "none of 1 documents" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("size", "n_bytes"), [("30GB", 30 * 10**9), ("1.5 kb", 1500), ("7", 7), ("2 TB", 2 * 10**12)]
)
def test_sizes(size, n_bytes):
    assert bytes_of(size) == n_bytes


@pytest.mark.parametrize("size", ["", "GB", "-1GB", "1 GiB", "1e9", "nan"])
def test_sizes_that_are_none(size):
    with pytest.raises(BadInput, match="is not a size"):
        bytes_of(size)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(lc, name):
    said = lc("megatron", name, "--help")
    assert said.code == 0
    assert f"Example: lc megatron {name}" in " ".join(said.out.replace("│", " ").split())
