"""`lc dedup`: what it prints, and what it says of what cannot be meant."""

import json

import pytest

from lc_assets.cli.dedup import bytes_of
from lc_assets.errors import BadInput
from lc_assets_tests.stages.deduplication.corpora import planted, write


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dedup")
    documents = [d | {"id": f"\x1b[31m{d['id']}"} for d in planted(3, n=80)]
    write(folder / "in.jsonl", documents)
    return folder


def test_the_summary_adds_up_and_nothing_reaches_the_terminal(lc, searched):
    said = lc(
        "dedup", searched / "in.jsonl", searched / "out", "--threshold", "0.7", "--workers", "1"
    )
    assert said.code == 0
    counts = json.loads((searched / "out/summary.json").read_bytes())["counts"]
    assert counts["seen"] == 80 == counts["kept"] + sum(counts["dropped"].values())
    assert set(counts["dropped"]) == {"same digest", "same text", "same url", "near duplicate"}
    assert all(f"removed: {reason}" in said.out for reason in counts["dropped"])
    assert "refuted" in said.out
    assert "newer: " in said.out
    assert "\x1b" not in said.out
    again = lc(
        "dedup", "--from-evidence", searched / "out", searched / "again", "--threshold", "0.7"
    )
    assert again.code == 0
    for name in ("clusters", "removed", "kept"):
        assert (searched / f"out/{name}.parquet").read_bytes() == (
            searched / f"again/{name}.parquet"
        ).read_bytes()


def test_stored_signatures_are_taken_instead_of_computed(lc, searched):
    lc("minhash", searched / "in.jsonl", searched / "signatures", "--fast", "--workers", "1")
    said = lc(
        "dedup",
        searched / "in.jsonl",
        searched / "stored",
        "--signatures",
        searched / "signatures",
        "--workers",
        "1",
    )
    lc("dedup", searched / "in.jsonl", searched / "computed", "--workers", "1")
    assert said.code == 0
    for name in ("pairs", "clusters", "removed", "kept"):
        assert (searched / f"stored/{name}.parquet").read_bytes() == (
            searched / f"computed/{name}.parquet"
        ).read_bytes()


def test_paragraphs_are_removed_after_documents(lc, searched):
    said = lc(
        "dedup",
        searched / "in.jsonl",
        searched / "edited",
        "--by",
        "text",
        "--paragraphs",
        "20",
        "--workers",
        "1",
    )
    assert said.code == 0
    assert "characters removed" in said.out
    assert (searched / "edited/documents/00000.jsonl.gz").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["out"], "say what to read as well as where to write"),
        ([], "say what to read and where to write"),
        (["in", "out", "--prefer", "nicest"], "no preference 'nicest'"),
        (["in", "out", "--by", "smell"], "duplicates by smell"),
        (["in", "out", "--threshold", "7"], "a threshold of 7.0"),
        (["in", "out", "--memory", "lots"], "'lots' is no size"),
        (["in", "out", "--memory", "1MB"], "wanted at least"),
        (["in", "out", "--from-evidence", "x"], "--from-evidence reads no documents"),
        (["out", "--from-evidence", "nowhere"], "no search for duplicates was finished there"),
        (["nowhere", "out"], "nowhere: does not exist"),
        (["in", "out", "--signatures", "nowhere"], "nowhere: holds no *.minhash.parquet"),
        (
            ["in", "out", "--signatures", "nowhere", "--by", "text"],
            "--signatures are for near duplicates",
        ),
        (["out", "--from-evidence", "x", "--signatures", "y"], "--paragraphs and --signatures"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_2(lc, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = lc("dedup", *arguments)
    assert said.code == 2
    assert words in said.err
    assert not (tmp_path / "out/summary.json").exists()


def test_a_size_that_is_none():
    with pytest.raises(BadInput, match="such as 500MB or 2GB"):
        bytes_of("1e999GB")
