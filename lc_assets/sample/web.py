"""The crawl of a sample: HTML pages that link to each other, their archive, and its index.

::

    crawl/{snapshot}/pages.warc.gz      a record per document's page
    crawl/{snapshot}/pages.cdxj         where each of them is

A page has a menu with one link, its title, and its lines; some lines, evenly spaced, begin with a
link to another page, drawn by the page's address. A few pages are linked far more often than
others.
"""

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lc_assets.formats.archives.writing import FetchedPage, index_lines, write_pages
from lc_assets.publishing import publish, publish_bytes
from lc_assets.sample.pages import Page, fraction

ARCHIVE = "pages.warc.gz"
INDEX = "pages.cdxj"
MOST_LINKS = 8
ANCHOR_WORDS = 3


def write_crawl(folder: Path, pages: Iterable[FetchedPage]) -> None:
    """Write the archive and the index of one snapshot's pages."""
    with publish(folder / ARCHIVE) as staging:
        captures = write_pages(staging, pages, filename=ARCHIVE)
    publish_bytes(folder / INDEX, b"".join(index_lines(captures)))


def fetched_pages(
    pages: Iterable[tuple[Page, str]], *, urls: Sequence[str], seed: int
) -> Iterator[FetchedPage]:
    """Pages of documents as HTML.

    Args:
        pages: of the documents, with the time (ISO 8601) when each was crawled.
        urls: addresses of all of them; pages with earlier ones are linked more often.
        seed: of all draws.
    """
    return (FetchedPage(page.url, date, page_html(page, urls, seed)) for page, date in pages)


def page_html(page: Page, urls: Sequence[str], seed: int) -> str:
    """A page of the crawl as HTML, with links to pages of ``urls``, the earlier ones more often."""
    lines = [html.escape(line) for line in page.lines]
    long = [number for number, line in enumerate(lines) if line.count(" ") >= ANCHOR_WORDS]
    for number in long[:: len(long) // MOST_LINKS + 1]:
        drawn = fraction("link", seed=seed, key=f"{page.url} {number}")
        *anchor, rest = lines[number].split(" ", ANCHOR_WORDS)
        lines[number] = f"{_link(urls[int(len(urls) * drawn**2)], ' '.join(anchor))} {rest}"
    title, body = html.escape(page.title), "".join(f"<p>{line}</p>\n" for line in lines)
    return (
        f'<!DOCTYPE html>\n<meta charset="utf-8"><title>{title}</title>\n'
        f"<nav>{_link(urls[0], 'Overview')}</nav>\n<main><h1>{title}</h1>\n{body}</main>\n"
    )


def _link(url: str, anchor: str) -> str:
    return f'<a href="{html.escape(url)}">{anchor}</a>'
