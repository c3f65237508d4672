"""``lc megatron``: indices, blends and caches by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.mixing.blending import blend, blend_all, normalise
from lc_assets.mixing.gpt_index import build_gpt_index

LENGTHS = [5, 3, 9, 1, 12, 7] * 10


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data set called ``web``, in the folder where commands are given."""
    monkeypatch.chdir(tmp_path)
    with MegatronWriter.publishing(Path("web"), np.dtype("<u2")) as writer:
        for length in LENGTHS:
            writer.add(np.arange(length))
    return tmp_path


def squeezed(text):
    """What was printed, on one line."""
    return " ".join(text.split())


def test_an_index_is_written_and_whole_epochs_are_suggested(data, lc):
    said = lc("megatron", "index", "web", "--seq-length", 8, "--samples", 100, "--out", "index")
    assert said.code == 0
    wanted = build_gpt_index(np.array(LENGTHS), sequence_length=8, seed=1234, n_samples=100)
    for name in ("document_index", "sample_index", "shuffle_index"):
        np.testing.assert_array_equal(
            np.load(f"index/{name}.npy"), getattr(wanted, name), strict=True
        )
    assert (
        f"tokens of one epoch 370 epochs 3 last epoch apart yes samples {wanted.n_samples}"
        in squeezed(said.out)
    )
    assert "46, 92, 138, 184" in said.out


def test_an_index_of_a_part_of_a_split(data, lc):
    assert (
        lc(
            "megatron",
            "index",
            "web",
            "--seq-length",
            8,
            "--split",
            "50,50,0",
            "--part",
            "valid",
            "--out",
            "index",
            "--seed",
            5,
        ).code
        == 0
    )
    wanted = build_gpt_index(np.array(LENGTHS), sequence_length=8, seed=5, documents=range(30, 60))
    np.testing.assert_array_equal(np.load("index/document_index.npy"), wanted.document_index)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--split", "98,2,0", "--part", "test"), "gives test no share"),
        (
            ("--split", "99.9,0.1,0", "--part", "valid"),
            "0 of 60 documents: the documents have no tokens",
        ),
        (("--part", "all"), "there are train, valid, test"),
        (("--samples", -1), "at least 0"),
        (("--seed", -1), "seed must be 0 to"),
    ],
)
def test_an_index_that_cannot_be_meant_is_refused(data, lc, words, complaint):
    said = lc("megatron", "index", "web", "--seq-length", 8, "--out", "index", *words)
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err
    assert not Path("index").exists()


def test_a_missing_data_set_is_one_sentence_and_1(data, lc):
    said = lc("megatron", "index", "books", "--seq-length", 8, "--out", "index")
    assert said.code == 1
    assert said.err == "books.idx: is missing\n"


def test_a_blend_by_weights(data, lc):
    said = lc(
        "megatron", "blend", "--weights", "0.7", "0.2", "0.1", "--size", 100, "--out", "blend"
    )
    assert said.code == 0
    wanted = blend(normalise(normalise([0.7, 0.2, 0.1]).tolist()), 100)
    for name, array in zip(("dataset_index", "dataset_sample_index"), wanted, strict=True):
        np.testing.assert_array_equal(np.load(f"blend/{name}.npy"), array, strict=True)
    assert "100 samples = 70 + 20 + 10" in said.out


def test_a_blend_of_everything_in_one_byte(data, lc):
    assert lc("megatron", "blend", "--sizes", "7,2", "1", "--uint8", "--out", "blend").code == 0
    wanted, _ = blend_all([7, 2, 1])
    np.testing.assert_array_equal(
        np.load("blend/dataset_index.npy"), wanted.astype(np.uint8), strict=True
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--weights", "1", "x", "--size", 9), "'x' is not a number"),
        (("--weights", "1", "nan", "--size", 9), "weight 1 is nan"),
        (("--weights", "1", "0", "--size", 9), "weight 1 is 0.0"),
        (("--weights", "1,-1", "--size", 9), "weight 1 is -1.0"),
        (("--weights", "1"), "--size says how long"),
        (("--weights", "1", "--sizes", "1", "--size", 3), "either --weights"),
        (("--sizes", "1.5"), "whole number of samples, got 1.5"),
        (("--sizes", "nan"), "whole number of samples, got nan"),
        (("--sizes", "0", "3"), "data set 0 has 0 samples"),
        (("--weights", ",".join(["1"] * 255), "--size", 3, "--uint8"), "at most 254"),
    ],
)
def test_a_blend_that_cannot_be_meant_is_refused(data, lc, words, complaint):
    said = lc("megatron", "blend", "--out", "blend", *words)
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err
    assert not Path("blend").exists()


def test_an_unwritable_folder_is_one_sentence_and_1(data, lc):
    Path("blend").write_text("a file")
    said = lc("megatron", "blend", "--sizes", "3", "--out", "blend")
    assert said.code == 1
    assert "nothing was published" in said.err


def test_a_cache_is_checked_built_and_found(data, lc):
    Path("launch.args").write_text(
        "--data-path web --split 90,10,0 --seq-length 8 --train-samples 60 --global-batch-size 4 "
        "--eval-iters 1\n"
    )
    Path("tokenizer.json").write_text(json.dumps({"class": "Mine", "path": "here"}))
    words = (
        "megatron",
        "cache",
        "--launch",
        "launch.args",
        "--tokenizer-identity",
        "tokenizer.json",
        "--cache",
        "cache",
        "--workers",
        1,
    )
    said = lc(*words, "--check")
    assert said.code == 1
    assert "2 indices = 0 found + 2 not found" in said.out
    assert "-GPTDataset-valid-shuffle_index.npy" in said.out
    assert not Path("cache").exists()
    assert "2 indices = 0 found + 2 built" in lc(*words).out
    said = lc(*words, "--check")
    assert (said.code, "2 indices = 2 found + 0 not found" in said.out) == (0, True)


def test_a_cache_for_every_version_over_prefixes_that_name_their_content(data, lc):
    Path("launch.args").write_text(
        "--data-path web --split 1 --seq-length 8 --train-samples 60 --global-batch-size 4 "
        "--data-cache-path cache"
    )
    said = lc(
        "megatron",
        "cache",
        "--launch",
        "launch.args",
        "--hf-tokenizer",
        "gpt2",
        "--versioned",
        "versions",
        "--workers",
        1,
    )
    assert said.code == 0
    assert said.out.startswith("launch with --data-args-path versions/data_args.txt\n")
    assert "3 indices = 0 found + 3 built" in said.out
    (place,) = Path("versions").glob("web-*.idx")
    assert Path("versions/data_args.txt").read_text() == f"{place.with_suffix('')}\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--cache", "c"), "either --tokenizer-identity or --hf-tokenizer"),
        (("--hf-tokenizer", "gpt2"), "pass --cache, or --data-cache-path"),
    ],
)
def test_a_cache_needs_a_tokenizer_and_a_place(data, lc, words, complaint):
    Path("launch.args").write_text(
        "--data-path web --split 1 --seq-length 8 --train-samples 60 --global-batch-size 4"
    )
    said = lc("megatron", "cache", "--launch", "launch.args", *words)
    assert said.code == 2
    assert complaint in said.err
