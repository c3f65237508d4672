"""``lc referrals``: what it prints balances, is shown beside the paper's tables, and is published."""

import pyarrow.parquet as pq
import pytest

from lc_assets_tests.file_runs import version_in
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


def test_figures_are_shown_beside_the_papers(lc, source, tmp_path):
    said = lc("referrals", source, tmp_path / "out", "--max-df", 1, "--workers", 1)
    assert said.code == 0
    assert "3 documents = 2 measured + 1 that could not be read" in said.out
    assert "are no concepts" not in said.out
    for title in ("table 4", "table 5", "table 6"):
        assert title in said.out
    report = version_in(tmp_path / "out", "referral_report")
    (figure,) = [
        line["figure"]
        for line in pq.read_table(report / "densities.parquet").to_pylist()
        if (line["length_group"], line["counted"], line["distance"]) == ("8K-16K", "pairs", "512-")
    ]
    lines = [line.split() for line in said.out.splitlines()]
    (here,) = [line for line in lines if line[:2] == ["8K-16K", "here"]][:1]
    assert float(here[-1]) == pytest.approx(figure, rel=0.01)
    assert ["16K-32K", "RefinedWeb"] not in [line[:2] for line in lines]
    assert ["0-4K", "RefinedWeb", "0.57", "0.41", "0.02", "0"] in lines
    (table,) = report.glob("*.referrals.parquet")
    assert pq.read_metadata(table).num_rows == 2


def test_other_buckets_have_no_figures_of_the_paper(lc, source, tmp_path):
    said = lc("referrals", source, tmp_path / "out", "--buckets", "10", "--workers", 1)
    assert said.code == 0
    assert "RefinedWeb" not in said.out
    assert "1-10" in said.out
    assert "0 words in more than 5% of the pieces are not concepts" in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--buckets", "a,b"), "expected whole numbers"),
        (("--buckets", "64,32"), "expected ascending numbers"),
        (("--scope", "page"), "scope"),
        (("--max-df", "0"), "max_df"),
        (("--tokenizer", "none"), "no tokenizer"),
    ],
)
def test_unacceptable_options_are_one_sentence_and_2(lc, source, tmp_path, words, message):
    said = lc("referrals", source, tmp_path / "out", *words, "--workers", 1)
    assert said.code == 2
    assert message in said.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
