"""`lc dedup`: what it prints and publishes, and which arguments it refuses."""

import json

import pyarrow.parquet as pq
import pytest

from lc_assets_tests.stages.deduplication.corpora import planted, write


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dedup")
    documents = [d | {"title": f"\x1b[31m{d['id']}"} for d in planted(3, n=80)]
    write(folder / "in.jsonl", documents)
    return folder


def test_the_summary_adds_up_and_the_output_is_a_lake(lc, searched):
    said = lc(
        "dedup", searched / "in.jsonl", searched / "out", "--threshold", "0.7", "--workers", "1"
    )
    assert said.code == 0
    for reason in ("same digest", "same text", "same url", "near duplicate"):
        assert f"dropped: {reason}" in said.out
    assert "candidates" in said.out
    assert "newer: " in said.out
    assert "\x1b" not in said.out
    assert lc("show", searched / "out").code == 0
    assert lc("verify", searched / "out").code == 0


def test_documents_go_straight_into_the_next_command(lc, searched):
    long = next(d["text"].split() for d in planted(3, n=80) if len(d["text"].split()) > 50)
    write(searched / "evals.jsonl", [{"question": " ".join(long[:30])}])
    said = lc("dedup", searched / "in.jsonl", searched / "first", "--by", "text", "--workers", "1")
    assert "dropped: same text" in said.out
    built = {path.name for path in (searched / "first").iterdir()}
    assert "signature_index" in built
    assert not built & {"document_signatures", "near_duplicate_pairs"}  # they cost most
    said = lc(
        "decontaminate",
        searched / "first",
        searched / "second",
        "--against",
        searched / "evals.jsonl",
        "--workers",
        "1",
    )
    assert said.code == 0
    assert "dropped: contaminated" in said.out


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
    assert "characters edited" in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["out"], "name what to read and where to write"),
        (["in", "out", "--prefer", "nicest"], "no preference 'nicest'"),
        (["in", "out", "--by", "smell"], "not a setting of RemovalSettings"),
        (["in", "out", "--by", ","], "name at least one of digest, text, url and near"),
        (["in", "out", "--threshold", "7"], "not a setting of RemovalSettings"),
        (["nowhere", "out"], "nowhere: no such folder or file"),
        (["in", "out.jsonl"], "out.jsonl: would be a folder, not a file of documents"),
        (["in", "out", "--shingle-size", "2"], "not a setting of SignatureSettings"),
    ],
)
def test_unusable_arguments_are_one_sentence_and_2(lc, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = lc("dedup", *arguments)
    assert said.code == 2
    assert words in said.err


def test_no_language_is_identified(lc, searched, tmp_path):
    """It would take longer than all the rest, and nothing depends on it."""
    assert lc("dedup", searched / "in.jsonl", tmp_path, "--by", "text", "--workers", "1").code == 0
    (receipt,) = tmp_path.glob("filtered_documents/*/*/receipt.json")
    assert json.loads(receipt.read_bytes())["fingerprint"]["params"]["models"] == {}
    (table,) = tmp_path.glob("filtered_documents/*/*/*.documents.parquet")
    assert set(pq.read_table(table)["language"].to_pylist()) == {""}
