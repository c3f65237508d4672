"""``lc minhash``: any corpus to signature tables."""

import json

from lc_assets.formats.redpajama.minhash import scheme_label_of
from lc_assets.text.duplicates.minhash import FAST, RPV2


def label_in(lake):
    (path,) = lake.glob("document_signatures/b/*/b.minhash.parquet")
    return scheme_label_of(path, where="b")


def test_the_command_prints_a_summary_that_balances(tmp_path, lc):
    """What is signed, too short or unreadable adds up to what was seen."""
    lines = [json.dumps({"body": "a b c d e f g h i j k l m"}), json.dumps({"body": "short"}), "{}"]
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    said = lc(
        "minhash",
        tmp_path / "b.jsonl",
        tmp_path / "out",
        "--fast",
        "--text-field",
        "body",
        "--workers",
        1,
    )
    assert (said.code, said.out.splitlines()[0]) == (
        0,
        "3 documents = 2 in the tables + 1 that could not be read",
    )
    words = " ".join(said.out.split())
    assert "dropped: no text 1 signatures computed 1 texts shorter than a shingle 1" in words
    assert label_in(tmp_path / "out") == FAST.label
    assert lc("show", tmp_path / "out").code == lc("verify", tmp_path / "out").code == 0


def test_without_the_option_it_is_redpajamas_scheme(tmp_path, lc):
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "a b c d e f g h i j k l m"}))
    assert lc("minhash", tmp_path / "b.jsonl", tmp_path / "out", "--workers", 1).code == 0
    assert label_in(tmp_path / "out") == RPV2.label


def test_what_is_not_there_is_said(tmp_path, lc):
    said = lc("minhash", tmp_path / "none", tmp_path / "out")
    assert said.code == 2
    assert "no such folder or file" in said.err
