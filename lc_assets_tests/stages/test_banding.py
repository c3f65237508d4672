"""The middle of a corpus: exact quantiles over all files, everything accounted for, the same bytes
for any number of workers.
"""

import gzip
import json

import numpy as np
import pytest

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.stages.documents import banding
from lc_assets.stages.documents.banding import band_corpus
from lc_assets.text.measures.measures import MeasuredText, measure
from lc_assets.text.rules.rules import Shares

FIFTHS = Shares(low=0.2, high=0.2)
ONE = LocalExecutor(workers=1)


@pytest.fixture
def corpus(tmp_path):
    """Fifty pages from repetitive to random, in three files, with a line that is none and a page
    without a text.
    """
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    drawn = np.random.default_rng(3)
    pages = [
        {
            "id": f"p{n}",
            "url": f"https://a.org/{n}",
            "text": "".join(drawn.choice([*"abcdefgh "][: 2 + n % 8], 400 + 10 * n)),
            "n": n,
        }
        for n in range(50)
    ]
    lines = [json.dumps(page) for page in pages]
    (folder / "a.jsonl.gz").write_bytes(
        gzip.compress("\n".join([*lines[:20], "no json", '{"text": ""}']).encode())
    )
    (folder / "b.jsonl").write_text("\n".join(lines[20:45]) + "\n")
    (folder / "deep" / "c.jsonl").write_text("\n".join(lines[45:]) + "\n")
    return folder, {page["id"]: page for page in pages}


def lines_of(folder):
    return [
        json.loads(line)
        for path in sorted(folder.rglob("*.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def test_the_middle_is_kept_and_everything_is_accounted_for(corpus, tmp_path):
    folder, pages = corpus
    found = band_corpus([folder], tmp_path / "out", "gzip_ratio", FIFTHS, executor=ONE)
    ratios = {
        name: measure(MeasuredText(page["text"]), ["gzip_ratio"])["gzip_ratio"]
        for name, page in pages.items()
    }
    ranked = sorted(ratios, key=ratios.get)
    assert {line["id"] for line in lines_of(tmp_path / "out/kept")} == set(ranked[10:40])
    assert [line for line in lines_of(tmp_path / "out/kept") if line["id"] == ranked[20]] == [
        pages[ranked[20]]
    ]
    assert found.dropped == {
        "gzip_ratio too low": 10,
        "gzip_ratio too high": 10,
        "not JSON": 1,
        "no value": 1,
    }
    assert found.seen == found.kept + sum(found.dropped.values()) == 52
    reasons = {line["id"]: line["reasons"][0] for line in lines_of(tmp_path / "out/dropped")}
    assert reasons[ranked[0]]["value"] == ratios[ranked[0]]
    assert reasons[ranked[0]]["rule"] == "gzip_ratio too low"


def test_the_band_is_a_file_of_rules_with_the_very_bounds(corpus, tmp_path):
    found = band_corpus(
        [corpus[0]],
        tmp_path / "out",
        "mean_word_length:whitespace",
        Shares(low=0.1, high=0.0),
        executor=ONE,
    )
    (rule,) = read_rules(str(tmp_path / "out/rules.toml")).rules
    assert (rule.column, rule.at_least, rule.at_most) == (found.column, found.at_least, None)


def test_another_band_needs_no_text(corpus, tmp_path):
    """Stored values give the same bounds and the same documents."""
    folder, _ = corpus
    band_corpus([folder], tmp_path / "out", "gzip_ratio", FIFTHS, executor=ONE)
    texts = band_corpus(
        [folder], tmp_path / "narrow", "gzip_ratio", Shares(low=0.3, high=0.4), executor=ONE
    )
    stored = band_corpus(
        [tmp_path / "out/signals"],
        tmp_path / "stored",
        "gzip_ratio",
        Shares(low=0.3, high=0.4),
        executor=ONE,
    )
    assert (stored.at_least, stored.at_most, stored.kept) == (
        texts.at_least,
        texts.at_most,
        texts.kept,
    )
    names = [
        {line["id"] for line in lines_of(tmp_path / out / "kept")} for out in ("narrow", "stored")
    ]
    assert names[0] == names[1]
    assert stored.seen == texts.seen - 1  # the line that was no document has no value stored


def test_two_workers_write_the_same_bytes(corpus, tmp_path):
    for workers in (1, 2):
        band_corpus(
            [corpus[0]],
            tmp_path / str(workers),
            "gzip_ratio",
            FIFTHS,
            executor=LocalExecutor(workers=workers),
        )
    one, two = (
        {path.relative_to(tmp_path / n): path.read_bytes() for path in (tmp_path / n).rglob("*.*")}
        for n in "12"
    )
    assert one == two


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("no_such", "no_such"),
        ("mean_word_length", "words"),
        ("rps_doc_ml_palm_score", "a model"),
        ("gzip_ratio:raw", "gzip_ratio"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_work(corpus, tmp_path, column, said):
    with pytest.raises(BadInput, match=said):
        band_corpus([corpus[0]], tmp_path / "out", column, FIFTHS, executor=ONE)
    assert not (tmp_path / "out").exists()


def test_nothing_to_measure_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n')
    with pytest.raises(BadInput, match="no document has a value"):
        band_corpus([tmp_path / "a.jsonl"], tmp_path / "out", "gzip_ratio", FIFTHS, executor=ONE)


def test_a_damaged_file_publishes_nothing_of_itself(corpus, tmp_path):
    path = corpus[0] / "a.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CorruptFile, match="a.jsonl.gz"):
        band_corpus([corpus[0]], tmp_path / "out", "gzip_ratio", FIFTHS, executor=ONE)
    assert not (tmp_path / "out/signals/a.parquet").exists()


def test_a_file_that_changed_between_the_passes_is_noticed(corpus, tmp_path, monkeypatch):
    real = banding.band

    def meanwhile(*given):
        (corpus[0] / "b.jsonl").write_text('{"id": "other", "text": "abc"}\n')
        return real(*given)

    monkeypatch.setattr(banding, "band", meanwhile)
    with pytest.raises(banding.Mismatch, match="changed meanwhile"):
        band_corpus([corpus[0]], tmp_path / "out", "gzip_ratio", FIFTHS, executor=ONE)
