"""The crawl of a sample: every document's page, where the index says, as web sites have them, and
linked to each other.
"""

import html
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.archives.captures import capture_of
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.lake.upstream import Upstream
from lc_assets.sample.pages import Page, texts_of_folder
from lc_assets.sample.web import MOST_LINKS, page_html
from lc_assets.sample.writing import CRAWL, write_sample
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.reference.pages import html_pages, page_text

SNAPSHOTS = ("2022-49", "2023-06")


@pytest.fixture
def sample(tmp_path: Path, books: Path) -> Path:
    write_sample(tmp_path / "s", texts=texts_of_folder(books), executor=LocalExecutor())
    return tmp_path / "s"


def pages_of(sample: Path, snapshot: str) -> dict[str, HtmlPage]:
    found = html_pages(sample / CRAWL / snapshot / "pages.warc.gz")
    return {one.url: one for one in found if isinstance(one, HtmlPage)}


def test_every_document_has_its_page_where_the_index_says(
    sample: Path, read_back: Callable[[Path], dict[str, DocumentRecord]]
) -> None:
    """With the document's title, its text, and the time when it was crawled."""
    documents = read_back(sample)
    for snapshot in SNAPSHOTS:
        pages = pages_of(sample, snapshot)
        lines = (sample / CRAWL / snapshot / "pages.cdxj").read_bytes().splitlines()
        spots = [
            Spot(one.filename, one.offset, one.length)
            for one in map(capture_of, lines)
            if not isinstance(one, str)
        ]
        fetched = pages_at(Upstream(str(sample / CRAWL / snapshot)), spots)
        assert {one.url for one in fetched if isinstance(one, HtmlPage)} == pages.keys()
        ours = [record for name, record in documents.items() if name.startswith(f"{snapshot}/")]
        assert len({page_key(record.url) for record in ours}) == len(ours)
        for record in ours:
            page = pages[record.url]
            text = page_text(page.html)
            assert text is not None
            assert page.date == record.date_download
            assert f"<title>{html.escape(record.title)}</title>" in page.html
            words = text.split()
            assert [word for word in record.raw_content.split() if word not in words] == []
        assert len(pages) == len(ours)


def test_pages_are_linked_to_each_other(sample: Path) -> None:
    """Every page to at most nine, and some are linked far more often than others."""
    targets: Counter[str] = Counter()
    for snapshot in SNAPSHOTS:
        pages = pages_of(sample, snapshot)
        for page in pages.values():
            links = LexborHTMLParser(page.html).css("a")
            assert 2 <= len(links) <= MOST_LINKS + 1
            found = [link.attributes["href"] or "" for link in links]
            assert set(found) <= pages.keys()
            targets.update(found[1:])
    assert max(targets.values()) > 2 * sorted(targets.values())[len(targets) // 2]


def test_odd_texts_stay_texts() -> None:
    """What a page says never becomes markup, and no line is lost, however few words it has."""
    lines = [
        "",
        "one",
        "<b>two</b> & three",
        "four \u00ab five six seven eight \u00bb",
        "</p><script>nine ten eleven</script>",
        " a  b  c  d  e ",
    ]
    urls = ["https://a.org/x?y=1&z=2", "https://a.org/d/e"]
    for url in urls:
        page = Page(url=url, title='<title> & "more"', lines=tuple(lines))
        tree = LexborHTMLParser(page_html(page, urls, seed=7))
        assert not tree.css("script")
        assert tree.css_first("h1").text() == '<title> & "more"'
        shown = [" ".join(one.text().split()) for one in tree.css("main p")]
        assert shown == [" ".join(line.split()) for line in lines]
        assert {link.attributes["href"] for link in tree.css("a")} <= {*urls}
