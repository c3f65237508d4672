"""`lc links`: the links of plain WARC files as JSON lines, one file after the other.

A line is a page: its ``url``, and under the extractor's name (``html5`` or ``paper_regex``) its
links in order, each ``[URL, text]`` as written; or, with ``targets``, the pages that they lead to,
each once. Pages without links have a line too. While it runs, the command records which page links
to which page of its own host, to find navigation hubs.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import contextlib
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from lc_assets.build.tables import TableWriter
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.containment import contained, processing
from lc_assets.execution.executor import Executor
from lc_assets.formats.archives.pages import MAX_PAGE_BYTES, HtmlPage, html_pages
from lc_assets.formats.corpora.containers import WARC
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.lake.receipts import SCRATCH
from lc_assets.publishing import finished, publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.deduplication.queries import parquet, queries
from lc_assets.stages.links.page_linking import LEFT_OUT, LINKS, TARGETS, warm_up
from lc_assets.text.links.links import Extractor, page_links
from lc_assets.text.links.page_keys import key_host, page_key
from lc_assets.text.links.targets import Targets, targets_of

FIELDS: Final[dict[Extractor, str]] = {"html5": "html5", "paper": "paper_regex"}
"""The field of a line that contains its links."""


WITHIN: Final = pa.schema(
    [("host", pa.string()), ("target_key", pa.string()), ("keys", pa.string())]
)
"""Pages of a host (no target), and the pages of the same host that they point at."""

MOST: Final = 10
"""Number of navigation hubs that are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What became of records and links, and the pages that most pages of their own host point at:
    ``page, pages, share, keys``.
    """

    counts: Counts
    most: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingTask:
    """One archive, the path of its list, and the path of its links within hosts."""

    source: Path
    out: Path
    within: Path
    extractor: Extractor
    targets: bool
    max_page_bytes: int

    def __str__(self) -> str:
        return str(self.source)


def list_links(
    sources: Sequence[Path],
    out: Path,
    *,
    executor: Executor,
    extractor: Extractor = "html5",
    targets: bool = False,
    max_page_bytes: int = MAX_PAGE_BYTES,
) -> Listed:
    """Publish ``NAME.links.jsonl.gz`` for each WARC file.

    Raises:
        BadInput: if a source is no WARC file.
        CorruptFile: if an archive is damaged or truncated.
    """
    work = out / SCRATCH

    def task_of(source: Path, stem: Path) -> ListingTask:
        if not source.name.endswith(WARC):
            raise BadInput(
                f"{source}: links are read out of WARC files, whose names end in "
                f"{' or '.join(WARC)}"
            )
        return ListingTask(
            source=source,
            out=stem.with_name(f"{stem.name}.links.jsonl.gz"),
            within=work / stem.relative_to(out).with_name(f"{stem.name}.parquet"),
            extractor=extractor,
            targets=targets,
            max_page_bytes=max_page_bytes,
        )

    try:
        counts = over_corpus(sources, out, task_of, list_archive, executor=executor, what="links")
        return Listed(counts=counts, most=_most_within_hosts(work))
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contained
def list_archive(task: ListingTask) -> Counts:
    """Publish the list of one archive."""
    warm_up(task.extractor)
    dropped, extra, n_pages = Counter[str](), Counter[str](), 0
    with (
        publish(task.out) as draft,
        gzipped(draft) as out,
        publish(task.within) as within,
        contextlib.closing(_table(within)) as edges,
    ):
        pages = html_pages(task.source, max_page_bytes=task.max_page_bytes)
        for number, page in enumerate(pages):
            with processing(number) as skipped:
                read = skipped or _links_of(page, task.extractor)
            if isinstance(read, str):
                dropped[read] += 1
                continue
            url, links, found = read
            line = {"url": url} | (
                {"targets": found.found} if task.targets else {FIELDS[task.extractor]: links}
            )
            out.write(msgspec.json.encode(line) + b"\n")
            n_pages += 1
            extra.update({LINKS: len(links), TARGETS: len(found.found)})
            extra.update({f"{LEFT_OUT}{reason}": count for reason, count in found.left_out.items()})
            _note_within_host(edges, url, found)
    return Counts(
        seen=n_pages + dropped.total(),
        kept=n_pages,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=dict(extra),
    )


def _links_of(
    page: HtmlPage | Unread, extractor: Extractor
) -> tuple[str, list[tuple[str, str]], Targets] | str:
    """A page's address, its links and the pages they lead to; or why it has none."""
    if isinstance(page, Unread):
        return page.why
    read = page_links(page.html, extractor)
    if read.unread:
        return read.unread
    found = targets_of(read.links, page.url, base=read.base, resolve=extractor == "html5")
    return page.url, [(link.href, link.text) for link in read.links], found


def _table(path: Path) -> TableWriter:
    return TableWriter(path, WITHIN)


def _note_within_host(edges: TableWriter, url: str, found: Targets) -> None:
    key = page_key(url)
    if key is None:
        return
    host = key_host(key)
    edges.add({"host": host})
    for target in found.found:
        if key_host(target.key) == host:
            edges.add({"host": host, "target_key": target.key, "keys": target.keys})


def _most_within_hosts(work: Path) -> list[dict[str, Any]]:
    """The pages that most pages of their own host point at, with their share of the host's pages;
    out of core.
    """
    files = finished(work.rglob("*.parquet"))
    if not files:
        return []
    with queries(work / "most") as asked:
        return asked.lines(
            f"""SELECT target_key AS page, pages, pages / of_host AS share, keys FROM (
                SELECT host, target_key, count(*) AS pages, any_value(keys ORDER BY keys) AS keys
                FROM {parquet(files)} WHERE target_key IS NOT NULL GROUP BY ALL)
            JOIN (SELECT host, count(*) AS of_host FROM {parquet(files)} WHERE target_key IS NULL GROUP BY host) USING (host)
            ORDER BY pages DESC, page LIMIT {MOST}"""
        )
