"""A file that cannot be read: every command over files says that it was skipped, or fails."""

import json

import pytest

VERBS = {
    "filter": ("--rules", "gopher-paper"),
    "signals": (),
    "minhash": ("--fast",),
    "dedup": (),
    "decontaminate": ("--against", "items.jsonl"),
    "tokenize": (),
    "pack": ("--length", "32"),
    "buckets": (),
    "referrals": (),
}
SKIPPED = "1 of 2 files could not be read and were skipped; --broken fail ends at the first one"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A sound file and a broken one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    words = "The quick brown fox jumps over the lazy dog, and nobody looks at it twice. " * 3
    (tmp_path / "docs" / "sound.jsonl").write_text(json.dumps({"text": words}) + "\n")
    (tmp_path / "docs" / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "items.jsonl").write_text(json.dumps({"text": words[:100]}) + "\n")
    return tmp_path / "docs"


@pytest.mark.parametrize("verb", VERBS)
def test_a_broken_file_is_skipped_and_said_last(lc, corpus, verb):
    said = lc(verb, corpus, "out", "--workers", "1", *VERBS[verb])
    assert (said.code, said.err.splitlines()[-1].startswith(SKIPPED)) == (0, True), said.err


@pytest.mark.parametrize("verb", VERBS)
def test_or_ends_the_command_by_name(lc, corpus, verb):
    said = lc(verb, corpus, "out", "--workers", "1", "--broken", "fail", *VERBS[verb])
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith(f"{corpus / 'broken.parquet'}: not a readable")


def test_signals_on_standard_output_say_it_too(lc, corpus):
    said = lc("signals", corpus, "-", "--workers", "1")
    assert (said.code, said.err.splitlines()[-1].startswith(SKIPPED)) == (0, True)


def test_sound_files_need_no_word(lc, corpus):
    said = lc("filter", corpus / "sound.jsonl", "out", "--rules", "gopher-paper")
    assert (said.code, said.err) == (0, "")


def test_a_rebuild_says_it_in_the_partition_s_line(lc, corpus):
    said = lc("build", "--source", corpus, "--lake", "lake", "--row-tokens", "16", "--workers", "1")
    assert "1 shards skipped: files missing or broken" in said.out, said
