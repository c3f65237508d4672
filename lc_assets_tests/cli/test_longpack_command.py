"""``lc longpack`` and ``lc links``: balances, growth beside the paper's, lengths; what they write is
read by other commands.
"""

import gzip
import json
import re

import msgspec
import numpy as np
import pytest

from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.settings.longpack import PAPER_LONGPACK, LongPackSettings
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.lake.lake import Lake
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
        crawl / "pages.jsonl",
        crawl / "out",
        "--warc",
        crawl / "crawl.warc.gz",
        "--any-language",
        "--workers",
        1,
    )
    assert said.code == 0
    assert f"filtered_documents: {N_PAGES} = {N_PAGES} documents + 0 not" in said.out
    assert f"page_links: {N_PAGES} = {N_PAGES} pages whose links are known + 0 not" in said.out
    links = re.search(r"link_claims: 24 = (\d+) links between pages .* \+ (\d+) not", said.out)
    assert int(links[1]) + int(links[2]) == 24
    assert re.search(r"hit rate +[\d.]+ +0.117", said.out)
    assert re.search(r"mean of ratios +[\d.]+ +32.7", said.out)
    assert re.search(r"ratio of sums +[\d.]+ +13\n", said.out)
    assert re.search(r"0-4K +100.0%", said.out)
    assert "\x1b" not in said.out


def test_the_papers_settings_are_one_word(lc, crawl):
    """All of them, but for those that are given; and `lc build` writes them into its recipe."""
    out = crawl / "out"
    lc("longpack", crawl / "crawl.warc.gz", out, "--preset", "paper", "--roots", 1, "--workers", 1)
    recipe = read_recipe(out / "recipe.toml")
    assert recipe.longpack_documents == msgspec.structs.replace(PAPER_LONGPACK, roots=1.0)
    assert recipe.page_links.extractor == "paper"


def test_an_archive_becomes_packed_rows_in_one_command(lc, crawl):
    """Documents, links, packed documents and rows, by the defaults or by the paper."""
    for preset, settings in (
        ("longpack", LongPackSettings(wanted=True)),
        ("paper", PAPER_LONGPACK),
    ):
        lake = crawl / preset
        said = lc(
            *("build", "--source", crawl / "crawl.warc.gz", "--lake", lake, "--preset", preset),
            *("--rules", "none", "--row-tokens", 64, "--language", "en", "--workers", 1),
            *("--to", "packed_rows"),
        )
        assert said.code == 0
        recipe = read_recipe(lake / "recipe.toml")
        assert recipe.longpack_documents == settings
        assert recipe.packed_rows.documents == "both"
        packed = Lake(lake).partition("longpack_documents", "crawl").require()
        assert packed.receipt.counts.kept > 0 or preset == "paper"
        rows = Lake(lake).partition("packed_rows", "crawl").require()
        assert rows.receipt.counts.kept > 0


def test_options_that_exclude_each_other_record_no_recipe(lc, crawl):
    words = ("build", "--source", crawl / "crawl.warc.gz", "--lake", crawl / "lake")
    words += ("--archives", crawl / "crawl.warc.gz", "--links-from", "wat", "--preset", "paper")
    said = lc(*words)
    assert said.code == 2
    assert said.err.startswith("these options: ")
    assert "--preset longpack" in said.err
    assert not (crawl / "lake" / "recipe.toml").exists()


def test_what_it_writes_is_read_by_others(lc, crawl):
    """A lake, whose tables ``lc show`` names, and whose documents the next command reads."""
    out = crawl / "out"
    lc("longpack", crawl / "crawl.warc.gz", out, "--mode", "allow", "--rest", "--workers", 1)
    (spans,) = (out / "longpack_documents").rglob("*.spans.parquet")
    assert "links between root and child" in lc("show", spans).out
    (claims,) = (out / "link_claims").rglob("claims.parquet")
    assert "document that links to the child" in lc("show", claims).out
    said = lc("referrals", out, crawl / "counted", "--scope", "document", "--workers", 1)
    assert said.code == 0
    (n_documents,) = re.findall(r"^([0-9]+) documents = ", said.out, re.MULTILINE)
    (n_whole,) = re.findall(r"documents without spans +([0-9]+)", said.out)
    assert int(n_whole) < int(n_documents)
    said = lc("dedup", out, crawl / "next", "--workers", 1)
    assert said.code == 0
    assert re.search(r"^\d+ documents = \d+ kept", said.out)


def test_links_are_listed(lc, crawl):
    said = lc("links", crawl / "crawl.warc.gz", crawl / "out", "--jsonl", "links", "--workers", 1)
    assert said.code == 0
    assert f"{N_PAGES} pages = {N_PAGES} read + 0 not" in said.out
    assert re.search(r"links +24", said.out)
    (path,) = (crawl / "out" / "page_links").rglob("*.links.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [len(line["html5"]) for line in lines] == [2] * N_PAGES


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--mode", "eat"), "--mode eat"),
        (("--extractor", "regex"), "--extractor regex"),
        (("--roots", "0"), "roots"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(lc, crawl, words, complaint):
    said = lc("longpack", crawl / "crawl.warc.gz", crawl / "out", *words)
    assert said.code == 2
    assert complaint in said.err
    assert len(said.err.splitlines()) == 1
