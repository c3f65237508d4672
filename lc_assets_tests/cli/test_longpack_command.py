"""``lc longpack``: balances, growth beside the paper's, lengths; what it writes is read by other
commands.
"""

import json
import re

import numpy as np
import pytest

from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets_tests.builders import WORDS

N_PAGES = 12


@pytest.fixture
def crawl(tmp_path):
    """An archive of pages in a ring, each pointing at the next two, and their cleaned texts."""
    rng = np.random.default_rng(3)
    urls = [f"http://a.org/{number}/x" for number in range(N_PAGES)]
    texts = [" ".join(WORDS[k] for k in rng.integers(len(WORDS), size=40)) + "." for _ in urls]
    pages = []
    for number, (url, text) in enumerate(zip(urls, texts, strict=True)):
        links = "".join(
            f"<a href='{urls[(number + step) % N_PAGES]}'>page \x1b[31m {number + step}</a>"
            for step in (1, 2)
        )
        pages.append(FetchedPage(url, "2023-02-02T00:00:00Z", f"<p>{text}</p>{links}"))
    write_pages(tmp_path / "crawl.warc.gz", pages, filename="crawl.warc.gz")
    lines = "".join(
        json.dumps({"url": url, "text": text}) + "\n" for url, text in zip(urls, texts, strict=True)
    )
    (tmp_path / "pages.jsonl").write_text(lines)
    return tmp_path


def test_it_prints_balances_growth_and_lengths(lc, crawl):
    said = lc(
        "longpack",
        "--warc",
        crawl / "crawl.warc.gz",
        "--pages",
        crawl / "pages.jsonl",
        "--out",
        crawl / "out",
        "--workers",
        1,
    )
    assert said.code == 0
    assert f"{N_PAGES} documents = {N_PAGES} pages + 0 not" in said.out
    assert f"{N_PAGES + 1} records = {N_PAGES} pages with links known + 1 not" in said.out
    links = re.search(r"24 links between pages = (\d+) held \+ (\d+) not", said.out)
    assert int(links[1]) + int(links[2]) == 24
    assert re.search(r"hit rate +[\d.]+ +0.117", said.out)
    assert re.search(r"mean of ratios +[\d.]+ +32.7", said.out)
    assert re.search(r"ratio of sums +[\d.]+ +13\n", said.out)
    assert re.search(rf"0-4K +{N_PAGES} +100.0 %", said.out)
    assert "\x1b" not in said.out


def test_files_may_come_without_options_as_a_shell_gives_them(lc, crawl):
    plain = lc(
        "longpack",
        "--warc",
        crawl / "crawl.warc.gz",
        "--pages",
        crawl / "pages.jsonl",
        "--out",
        crawl / "a",
        "--workers",
        1,
    )
    bare = lc(
        "longpack",
        crawl / "crawl.warc.gz",
        crawl / "pages.jsonl",
        "--out",
        crawl / "b",
        "--workers",
        1,
    )
    assert plain.code == bare.code == 0
    assert (crawl / "a/spans.parquet").read_bytes() == (crawl / "b/spans.parquet").read_bytes()


def test_what_it_writes_is_read_by_others(lc, crawl):
    """Its spans are documents to lc referrals; its tables have names."""
    lc(
        "longpack",
        crawl / "crawl.warc.gz",
        "--out",
        crawl / "out",
        "--mode",
        "allow",
        "--repetitions",
        9,
        "--rest",
        "--workers",
        1,
    )
    said = lc("referrals", crawl / "out/documents", "--scope", "document", "--workers", 1)
    assert said.code == 0
    assert "documents without spans" not in said.out or re.search(
        r"documents without spans +0", said.out
    )
    assert "parts of packed documents (longpack)" in lc("show", crawl / "out/spans.parquet").out
    assert "(link_claims)" in lc("show", crawl / "out/claims.parquet").out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--mode", "eat"), "--mode is allow or consume"),
        (("--extractor", "regex"), "--extractor regex: there are html5 and paper"),
        (("--roots", "0"), "not a way to pack"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(lc, crawl, words, complaint):
    said = lc("longpack", crawl / "crawl.warc.gz", "--out", crawl / "out", *words)
    assert said.code == 2
    assert complaint in said.err
    assert len(said.err.splitlines()) == 1
