"""``lc referrals``: what it prints balances, stands beside the paper's tables, and can be had as
JSON.
"""

import json

import pytest

from lc_assets_tests.stages.test_referring import story, written


@pytest.fixture
def source(tmp_path):
    return written(
        tmp_path,
        "a.jsonl",
        {"id": "x", "text": story(60)},
        {"id": "y", "text": story(1200)},
        {"id": "z"},
    )


def test_the_tables_stand_beside_the_papers(lc, source, tmp_path):
    said = lc(
        "referrals",
        source,
        "--max-df",
        1,
        "--workers",
        1,
        "--json",
        tmp_path / "s.json",
        "--table",
        tmp_path / "t.jsonl",
    )
    assert said.code == 0
    assert "3 documents = 2 measured + 1 that could not be read" in said.out
    assert "are no concepts" not in said.out
    for title in ("table 4", "table 5", "table 6"):
        assert title in said.out
    groups = json.loads((tmp_path / "s.json").read_text())["groups"]
    lines = [line.split() for line in said.out.splitlines()]
    (here,) = [line for line in lines if line[:2] == ["8K-16K", "here"]][:1]
    assert float(here[-1]) == pytest.approx(groups["8K-16K"]["pairs"]["512-"], rel=0.01)
    assert ["16K-32K", "RefinedWeb"] not in [line[:2] for line in lines]
    assert ["0-4K", "RefinedWeb", "0.57", "0.41", "0.02", "0"] in lines
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 2


def test_other_buckets_stand_alone(lc, source):
    said = lc("referrals", source, "--buckets", "10", "--workers", 1)
    assert said.code == 0
    assert "RefinedWeb" not in said.out
    assert "1-10" in said.out
    assert "common are words of 8 documents at least, and there are 2" in said.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--buckets", "a,b"), "wanted whole numbers"),
        (("--buckets", "64,32"), "wanted ascending numbers"),
        (("--scope", "page"), "'page' is not one of 'text', 'document'"),
        (("--max-df", "0"), "above 0 and at most 1"),
        (("--table", "t.csv"), "ends in .parquet"),
        (("--tokenizer", "none"), "no tokenizer"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_2(lc, source, words, complaint):
    said = lc("referrals", source, *words, "--workers", 1)
    assert said.code == 2
    assert complaint in said.err.replace("\n", " ")
