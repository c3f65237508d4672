"""Links of pages, shard by shard: fetch records, extract links, and write their targets.

Used by `lc_assets.stages.links.page_links`. Records are fetched for a batch of documents at a time,
sorted by position, so that neighbours share a request. Memory is bounded by a batch of pages and
does not grow with the shard.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.builds.settings.longpack import PageLinkSettings
from lc_assets.builds.tables import Line, read_lines, read_table, writing_table
from lc_assets.counts import Counts
from lc_assets.execution.containment import contained, processing
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.archives.wat import WatPage, wat_pages_at
from lc_assets.formats.corpora.containers import Unread
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.packing.longpack import root_ranks
from lc_assets.publishing import gzipped, publish
from lc_assets.randomness import within
from lc_assets.records import record
from lc_assets.stages.links.html_index import INDEX_SUFFIX
from lc_assets.stages.links.link_tables import ALIASES, PAGE_LINKS
from lc_assets.text.links.links import Extractor, PageLinks, page_links
from lc_assets.text.links.page_keys import key_host, page_key
from lc_assets.text.links.targets import Targets, absolute, base_of, targets_of

LINKS_SUFFIX = ".links.parquet"
CANONICAL_SUFFIX = ".canonical.parquet"
LISTS_SUFFIX = ".links.jsonl.gz"
FIELDS: dict[Extractor, str] = {"html5": "html5", "paper": "paper_regex"}
"""The field of a line of JSON that contains a page's links."""

NO_ROOT = "no root"
LINKS = "links"
TARGETS = "targets"
LEFT_OUT = "links left out: "

PAGES_AT_ONCE = 256
"""Documents whose records are fetched together and held in memory: about 2 MB at a crawl's lengths.
"""


@record
class LinksTask:
    """One shard of indexed pages, of which the ``share`` of roots is read."""

    crawl: Upstream
    index: Path
    documents: Path
    folder: Path
    source: Literal["warc", "wat"]
    settings: PageLinkSettings
    seed: int
    share: float

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.index.name.removesuffix(INDEX_SUFFIX)

    def __str__(self) -> str:
        return str(self.index)


@contained
@with_retries
def find_links(task: LinksTask) -> Counts:
    """Publish the link targets of one shard's pages."""
    warm_up(task.settings.extractor)
    lists, n_kept, dropped, extra = task.settings.lists, 0, Counter[str](), Counter[str]()
    with contextlib.ExitStack() as stack:
        path = task.folder / f"{task.name}{LINKS_SUFFIX}"
        table = stack.enter_context(writing_table(path, PAGE_LINKS))
        path = task.folder / f"{task.name}{CANONICAL_SUFFIX}"
        canonical = stack.enter_context(writing_table(path, ALIASES))
        if lists:
            draft = stack.enter_context(publish(task.folder / f"{task.name}{LISTS_SUFFIX}"))
            out = stack.enter_context(gzipped(draft))
        for page, read, targets in _looked_at(task, dropped):
            links = read.links
            n_kept += 1
            if key := _canonical_key(read, page):
                canonical.add({"page_key": key, "target_key": page["page_key"]})
            extra.update({LINKS: len(links), TARGETS: len(targets.found)})
            extra.update({f"{LEFT_OUT}{why}": count for why, count in targets.left_out.items()})
            for target in targets.found:
                line = {name: getattr(target, name) for name in PAGE_LINKS.names[5:]}
                names = {"target_key": target.key, "target_url": target.url}
                place = {"page_key": page["page_key"], "id": page["id"]}
                table.add(place | {"position": target.position} | names | line)
            if lists:
                listed = (
                    {FIELDS[task.settings.extractor]: [(link.href, link.text) for link in links]}
                    if lists == "links"
                    else {"targets": targets.found}
                )
                out.write(msgspec.json.encode({"url": page["captured_url"]} | listed) + b"\n")
    return Counts.of(n_kept, dropped, extra)


def _canonical_key(read: PageLinks, page: Line) -> str:
    """The key of the address that a page names as its own, if it is another one of its host."""
    base = base_of(page["captured_url"], read.base)
    address = absolute(read.canonical, base) if read.canonical else None
    key = (page_key(address) or "") if address else ""
    is_other = key != page["page_key"] and key_host(key) == key_host(page["page_key"])
    return key if is_other else ""


def warm_up(extractor: Extractor) -> None:
    """Import and compile what the first page needs, so that its time limit does not include it."""
    targets_of(page_links("<a href=/>home</a>", extractor).links, "http://example.org/1")


def _looked_at(task: LinksTask, dropped: Counter[str]) -> Iterator[tuple[Line, PageLinks, Targets]]:
    """The pages of a shard, in the order of the documents, with their links and targets; the others
    are counted.
    """
    columns = ["id", "page_key", "captured_url", "filename", "offset", "length"]
    index = read_table(task.index, columns)
    ranks = root_ranks(index["page_key"].to_pylist(), task.seed)
    chosen = np.flatnonzero(within(ranks, task.share))
    if len(chosen) < index.num_rows:
        dropped[NO_ROOT] = index.num_rows - len(chosen)
    documents = read_lines(task.documents, ["id", "raw_content"], batch_lines=16)
    for start in range(0, len(chosen), PAGES_AT_ONCE):
        numbers = chosen[start : start + PAGES_AT_ONCE]
        pages = index.take(pa.array(numbers)).to_pylist()
        found = _links(task, pages, numbers.tolist())
        for number, page, links in zip(numbers.tolist(), pages, found, strict=True):
            if isinstance(links, str):
                dropped[links] += 1
                continue
            own = (line["raw_content"] for line in documents if line["id"] == page["id"])
            with processing(number):
                targets = targets_of(
                    links.links,
                    page["captured_url"],
                    base=links.base,
                    resolve=task.settings.extractor != "paper",
                    text=next(own, ""),
                )
            yield page, links, targets


def _links(task: LinksTask, pages: list[Line], numbers: list[int]) -> list[PageLinks | str]:
    """Links of each page, or the reason why there are none; records are fetched in the order of
    their positions.
    """
    spots = [Spot(page["filename"], page["offset"], page["length"]) for page in pages]
    order = sorted(range(len(spots)), key=spots.__getitem__)
    asked = [spots[place] for place in order]
    read = wat_pages_at(task.crawl, asked) if task.source == "wat" else pages_at(task.crawl, asked)
    found: dict[int, PageLinks | str] = {}
    for place, page in zip(order, read, strict=True):
        with processing(numbers[place]) as skipped:
            found[place] = skipped or _links_of(page, task.settings.extractor)
    return [found[place] for place in range(len(spots))]


def _links_of(page: HtmlPage | WatPage | Unread, extractor: Extractor) -> PageLinks | str:
    if isinstance(page, Unread):
        return page.why
    if isinstance(page, WatPage):
        return PageLinks(page.links, page.base)
    found = page_links(page.html, extractor)
    return found.unread or found
