"""The crawl of a sample: the archive that its documents' pages would have come from, and the
archive's index.

::

    crawl/{snapshot}/pages.warc.gz      a record per page: the documents', home pages and a portal
    crawl/{snapshot}/pages.cdxj         where each of them is

So ``LC_CRAWL`` is the sample's folder ``crawl``. What pages look like is in
`lc_assets.sample.page_html`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lc_assets.formats.archives.writing import FetchedPage, index_lines, write_pages
from lc_assets.publishing import publish, publish_bytes
from lc_assets.sample.page_html import Web, WebPage
from lc_assets.sample.plan import drawn_order
from lc_assets.sample.records import date_of
from lc_assets.sample.spool import ShardTask, pages_of
from lc_assets.vocabulary import SnapshotId

ARCHIVE: Final = "pages.warc.gz"
INDEX: Final = "pages.cdxj"


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """A document's page, and when it was crawled (ISO 8601)."""

    page: WebPage
    date: str


@dataclass(frozen=True, slots=True)
class CrawlTask:
    """The crawl of one snapshot, to be written into ``folder``, of the documents of its shards."""

    folder: Path
    snapshot: SnapshotId
    shards: tuple[ShardTask, ...]

    def __str__(self) -> str:
        return f"crawl of {self.snapshot}"


def crawl_of_shards(task: CrawlTask) -> int:
    """Write the crawl of one snapshot; return how many pages there are."""
    seed = task.shards[0].seed if task.shards else 0
    urls = [document.url for shard in task.shards for document in shard.documents]
    popular = [urls[number] for number in drawn_order("popular", seed, urls)]
    return write_crawl(task.folder, _crawled(task), urls=popular, seed=seed)


def _crawled(task: CrawlTask) -> Iterator[CrawledPage]:
    for shard in task.shards:
        for page in pages_of(shard):
            web_page = WebPage(page.url, page.title, page.lines, page.language)
            yield CrawledPage(web_page, date_of(page.url, task.snapshot, seed=shard.seed))


def write_crawl(
    folder: Path, pages: Iterable[CrawledPage], *, urls: Sequence[str], seed: int
) -> int:
    """Write the archive and the index of one snapshot.

    Args:
        folder: of the snapshot.
        pages: of its documents, in the order of their records.
        urls: addresses of all of them; pages with earlier ones are linked to more often.
        seed: of everything that is drawn.

    Returns:
        How many pages there are, with those that only lead to others.
    """
    web = Web(urls, seed)
    with publish(folder / ARCHIVE) as draft:
        captures = write_pages(draft, _fetched(web, pages), filename=ARCHIVE)
    publish_bytes(folder / INDEX, b"".join(index_lines(captures)))
    return len(captures)


def _fetched(web: Web, pages: Iterable[CrawledPage]) -> Iterator[FetchedPage]:
    date = ""
    for crawled in pages:
        date = max(date, crawled.date)
        yield FetchedPage(crawled.page.url, crawled.date, web.html(crawled.page))
    for url, html in web.portals():
        yield FetchedPage(url, date, html)
