"""``lc signals``: files or standard output, a summary that adds up, and what was left out."""

import gzip
import json

LINES = '{"text": "The end."}\nnot JSON\n{"text": "Again."}\n'


def test_signals_of_a_file_with_lists(lc, tmp_path):
    (tmp_path / "own.jsonl").write_text(LINES, "utf-8")
    (tmp_path / "stop.json").write_text('{"en": ["The"]}', "utf-8")
    options = ("--lang", "en", "--stop-words", tmp_path / "stop.json", "--workers", 1)
    said = lc("signals", tmp_path / "own.jsonl", tmp_path / "out", *options)
    assert said.code == 0
    assert "3 documents seen, 2 measured (14 bytes of text), unread: 1 not JSON" in said.out
    assert "rps_doc_ldnoobw_words of 2 documents; rps_doc_ut1_blacklist; rps_doc_ml_*" in said.out
    assert "rps_doc_stop_word_fraction" not in said.out
    assert "stop words: stop.json" in said.out
    (written,) = (tmp_path / "out").glob("document_signals/*/*/own.signals.json.gz")
    first, _ = gzip.decompress(written.read_bytes()).splitlines()
    assert json.loads(first)["quality_signals"]["rps_doc_stop_word_fraction"] == [
        [0, 8, 0.33333333]
    ]


def test_a_dash_is_standard_output_and_the_summary_goes_elsewhere(lc, tmp_path):
    """Nothing but JSON on standard output, so that it can be piped."""
    (tmp_path / "own.jsonl").write_text(LINES, "utf-8")
    said = lc("signals", tmp_path / "own.jsonl", "-", "--lang", "en")
    assert [json.loads(line)["id"] for line in said.out.splitlines()] == [
        "own.jsonl/0",
        "own.jsonl/2",
    ]
    assert "3 documents seen, 2 measured" in said.err


def test_another_text_field(lc, tmp_path):
    (tmp_path / "own.jsonl").write_text('{"body": "Two words", "text": "one"}\n', "utf-8")
    said = lc("signals", tmp_path / "own.jsonl", "-", "--text-field", "body")
    assert json.loads(said.out)["quality_signals"]["rps_doc_word_count"] == [[0, 9, 2]]


def test_what_cannot_be_meant_is_2(lc, tmp_path):
    (tmp_path / "own.jsonl").write_text(LINES, "utf-8")
    assert lc("signals", tmp_path / "nowhere", "-").code == 2
    said = lc("signals", tmp_path / "own.jsonl", tmp_path / "out.jsonl")
    assert said.code == 2
    assert "out.jsonl: would be a folder, not a file of documents" in said.err
    assert not (tmp_path / "out.jsonl").exists()
    (tmp_path / "en.txt").write_bytes(b"\xe9t\xe9")
    said = lc("signals", tmp_path / "own.jsonl", "-", "--bad-words", tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "en.txt: byte 0 is not UTF-8" in said.err
