"""Links of pages, shard by shard: records are fetched, links read out of them, and what they lead
to is written down.

The work of `lc_assets.stages.links.page_links`. Records are asked for a batch of documents at a
time, sorted by where they lie, so that neighbours are one request; a batch of pages is in memory,
and nothing that grows with the shard.
"""

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lc_assets.build.settings.longpack import PageLinkSettings
from lc_assets.build.tables import TableWriter, read_lines
from lc_assets.counts import Counts
from lc_assets.execution.containment import contained, processing
from lc_assets.formats.archives.fetching import Spot, pages_at
from lc_assets.formats.archives.pages import HtmlPage
from lc_assets.formats.archives.wat import WatPage, wat_pages_at
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.lake.staging import once
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.packing.turns import are_roots, root_ranks
from lc_assets.publishing import publish
from lc_assets.stages.links.html_index import INDEX_SUFFIX
from lc_assets.stages.links.link_tables import PAGE_LINKS
from lc_assets.text.links.links import Extractor, Link, PageLinks, page_links
from lc_assets.text.links.targets import Targets, targets_of

LINKS_SUFFIX: Final = ".links.parquet"
LISTS_SUFFIX: Final = ".links.jsonl.gz"
FIELDS: Final[dict[Extractor, str]] = {"html5": "html5", "paper": "paper_regex"}
"""The field of a line of JSON that contains a page's links."""

NO_ROOT: Final = "no root"
LINKS: Final = "links"
TARGETS: Final = "targets"
LEFT_OUT: Final = "links left out: "

PAGES_AT_ONCE: Final = 256
"""Documents whose records are fetched together, and whose texts are held: of a crawl's lengths some
2 MB.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksTask:
    """One shard of indexed pages; ``share`` of them are roots, which alone are looked at unless
    ``all_pages``.
    """

    crawl: Upstream
    index: Path
    documents: Path
    folder: Path
    source: Literal["warc", "wat"]
    settings: PageLinkSettings
    seed: int
    share: float
    all_pages: bool

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.index.name.removesuffix(INDEX_SUFFIX)

    def __str__(self) -> str:
        return str(self.index)


@contained
@once
@with_retries
def find_links(task: LinksTask) -> Counts:
    """Publish what the pages of one shard point at."""
    warm_up(task.settings.extractor)
    counted, lists = _Counted(), task.settings.lists
    with contextlib.ExitStack() as stack:
        draft = stack.enter_context(publish(task.folder / f"{task.name}{LINKS_SUFFIX}"))
        table = stack.enter_context(contextlib.closing(TableWriter(draft, PAGE_LINKS)))
        if lists:
            draft = stack.enter_context(publish(task.folder / f"{task.name}{LISTS_SUFFIX}"))
            out = stack.enter_context(gzipped(draft))
        for page, links, found in _looked_at(task, counted):
            for target in found.found:
                table.add(_line(page, target))
            counted.note(found)
            if lists:
                line = (
                    {FIELDS[task.settings.extractor]: [(link.href, link.text) for link in links]}
                    if lists == "links"
                    else {"targets": found.found}
                )
                out.write(msgspec.json.encode({"url": page["captured_url"]} | line) + b"\n")
    return counted.counts()


def warm_up(extractor: Extractor) -> None:
    """Import and compile what the first page needs, so that its time limit does not include it."""
    targets_of(page_links("<a href=/>home</a>", extractor).links, "http://example.org/1")


class _Counted:
    """What became of the pages of a shard, and of their links."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.extra: Counter[str] = Counter()
        self.kept = 0

    def note(self, found: Targets) -> None:
        self.kept += 1
        self.extra[TARGETS] += len(found.found)
        self.extra.update(
            {f"{LEFT_OUT}{reason}": count for reason, count in found.left_out.items()}
        )

    def counts(self) -> Counts:
        seen = self.kept + self.dropped.total()
        return Counts(
            seen=seen,
            kept=self.kept,
            dropped=dict(self.dropped),
            failed_rules=dict(self.dropped),
            extra=dict(self.extra),
        )


def _looked_at(
    task: LinksTask, counted: _Counted
) -> Iterator[tuple[dict[str, Any], Sequence[Link], Targets]]:
    """The pages of a shard, in the order of the documents, with their links and targets."""
    texts = _Texts(task.documents)
    for pages in _batches(task, counted):
        found = dict(zip([page["id"] for page in pages], _links(task, pages), strict=True))
        for page in pages:
            links = found[page["id"]]
            if isinstance(links, str):
                counted.dropped[links] += 1
                continue
            counted.extra[LINKS] += len(links.links)
            text = texts.of(page["id"])
            with processing(page["number"]):
                targets = targets_of(
                    links.links,
                    page["captured_url"],
                    base=links.base,
                    resolve=task.settings.extractor != "paper",
                    text=text,
                )
            yield page, links.links, targets


def _batches(task: LinksTask, counted: _Counted) -> Iterator[list[dict[str, Any]]]:
    """Indexed pages to be looked at, some at a time; the others are counted."""
    columns = ["id", "page_key", "captured_url", "filename", "offset", "length"]
    lines = ({"number": n} | line for n, line in enumerate(read_lines(task.index, columns)))
    while batch := list(itertools.islice(lines, PAGES_AT_ONCE)):
        chosen = [True] * len(batch)
        if not task.all_pages:
            chosen = are_roots(
                root_ranks([line["page_key"] for line in batch], task.seed), task.share
            ).tolist()
        counted.dropped.update({NO_ROOT: chosen.count(False)} if not all(chosen) else {})
        if any(chosen):
            yield [line for line, is_chosen in zip(batch, chosen, strict=True) if is_chosen]


def _links(task: LinksTask, pages: list[dict[str, Any]]) -> list[PageLinks | str]:
    """Links of each page, or why there are none; records are asked for in the order in which they
    lie.
    """
    spots = [Spot(page["filename"], page["offset"], page["length"]) for page in pages]
    order = sorted(range(len(spots)), key=spots.__getitem__)
    asked = [spots[place] for place in order]
    read = wat_pages_at(task.crawl, asked) if task.source == "wat" else pages_at(task.crawl, asked)
    found: dict[int, PageLinks | str] = {}
    for place, page in zip(order, read, strict=True):
        with processing(pages[place]["number"]) as skipped:
            found[place] = skipped or _links_of(page, task.settings.extractor)
    return [found[place] for place in range(len(spots))]


def _links_of(page: HtmlPage | WatPage | Unread, extractor: Extractor) -> PageLinks | str:
    if isinstance(page, Unread):
        return page.why
    if isinstance(page, WatPage):
        return PageLinks(
            tuple(
                Link(link.href, " ".join(link.text.split()), link.rel, label=link.title)
                for link in page.links
            ),
            page.base,
        )
    found = page_links(page.html, extractor)
    return found.unread or found


class _Texts:
    """Cleaned texts of a shard's documents, asked for in their order; those passed over are not
    kept.
    """

    def __init__(self, documents: Path) -> None:
        self._lines: Iterable[dict[str, Any]] = read_lines(
            documents, ["id", "raw_content"], batch_lines=16
        )

    def of(self, identity: str) -> str:
        """The text of a document, which stands behind the one that was asked for last; empty when
        there is none.
        """
        return next((line["raw_content"] for line in self._lines if line["id"] == identity), "")


def _line(page: dict[str, Any], target: Any) -> dict[str, Any]:
    return {
        "page_key": page["page_key"],
        "id": page["id"],
        "position": target.position,
        "target_key": target.key,
        "target_url": target.url,
        "keys": target.keys,
        "n_links": target.n_links,
        "nofollow": target.nofollow,
        "navigation": target.navigation,
        "generic": target.generic,
        "in_text": target.in_text,
    }
