"""Pages and their links outside of a lake: cleaned pages out of JSON lines or archives, links out
of archives.

A page is named by its page key, so links find it without a look-up. Of several documents of one
key, and of several captures of one page, the newest by its date is taken; of equal dates the first
by file and line. The tables are those that a lake has: `FILTERED` (digest and most else empty) and
`PAGE_LINKS`.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.build.tables import FILTERED, TableWriter, read_lines
from lc_assets.counts import Counts
from lc_assets.formats.archives.pages import MAX_PAGE_BYTES, HtmlPage, html_pages
from lc_assets.formats.corpora.containers import WARC
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.queries import Queries, quoted
from lc_assets.stages.links.link_tables import PAGE_LINKS
from lc_assets.stages.longpack.pages import TITLE_CHARS
from lc_assets.text.html.page_text import Quality, page_text
from lc_assets.text.links.links import Extractor, PageLinks, page_links
from lc_assets.text.links.page_keys import key_host, page_key
from lc_assets.text.links.targets import Target, targets_of

NO_TEXT: Final = "no text"
NO_KEY: Final = "no address of the web"
REPEATED: Final = "address met elsewhere"

CAPTURED: Final = PAGE_LINKS.append(pa.field("date", pa.string())).append(
    pa.field("record", pa.int64())
)
"""Links with the capture that they stand in; a capture without links has a line without a target.
"""

_REST: Final = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """One file of pages, or one archive, to become the table of documents at ``path``."""

    source: Path
    path: Path
    quality: Quality = "fast"
    text_field: str | None = None

    def __str__(self) -> str:
        return str(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksTask:
    """One archive whose pages' links are written to ``path``."""

    source: Path
    path: Path
    extractor: Extractor

    def __str__(self) -> str:
        return str(self.source)


def clean_pages(task: CleanTask) -> Counts:
    """Write the documents of one file; what is none is dropped, by why."""
    dropped: Counter[str] = Counter()
    n_kept = 0
    with publish(task.path) as draft, contextlib.closing(TableWriter(draft, FILTERED)) as table:
        for found in _pages_of(task):
            if isinstance(found, str):
                dropped[found] += 1
            else:
                n_kept += 1
                table.add(found, n_bytes=4 * len(found["raw_content"]))
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
    )


def _pages_of(task: CleanTask) -> Iterator[dict[str, Any] | str]:
    """Documents, or why there is none."""
    if task.source.name.endswith(WARC):
        for page in html_pages(task.source):
            if isinstance(page, Unread):
                yield page.why
                continue
            text = page_text(page.html, task.quality)
            yield "nested too deeply" if text is None else _line(page.url, text, date=page.date)
        return
    for document in read_corpus(task.source, text_field=task.text_field):
        if isinstance(document, Unread):
            yield document.why
            continue
        title = _REST.decode(document.rest).get("title")
        yield _line(
            document.url, document.text, date=document.date, language=document.language, title=title
        )


def _line(
    url: str, text: str, *, date: str = "", language: str = "", title: Any = None
) -> dict[str, Any] | str:
    """A document, or why there is none; one without a title has its first line for one."""
    key = page_key(url)
    if key is None or not text.strip():
        return NO_KEY if key is None else NO_TEXT
    head = (
        title
        if isinstance(title, str) and title.strip()
        else text.lstrip()[: 4 * TITLE_CHARS].partition("\n")[0]
    )
    named = {
        "id": key,
        "url": url,
        "source_domain": key_host(key),
        "language": language,
        "date_download": date,
    }
    return dict.fromkeys(FILTERED.names, "") | named | {"title": head, "raw_content": text}


def find_links(task: LinksTask) -> Counts:
    """Write the links of the pages of one archive, by the pages that they lead to; links that lead
    nowhere are counted.
    """
    dropped, extra = Counter[str](), Counter[str]()
    n_pages = 0
    with publish(task.path) as draft, contextlib.closing(TableWriter(draft, CAPTURED)) as table:
        for record, page in enumerate(html_pages(task.source, max_page_bytes=MAX_PAGE_BYTES)):
            key = None if isinstance(page, Unread) else page_key(page.url)
            if isinstance(page, Unread) or key is None:
                dropped[page.why if isinstance(page, Unread) else NO_KEY] += 1
                continue
            read = page_links(page.html, task.extractor)
            if read.unread:
                dropped[read.unread] += 1
                continue
            n_pages += 1
            for line in _links_of(
                page, read, key=key, record=record, extractor=task.extractor, extra=extra
            ):
                table.add(line)
    return Counts(
        seen=n_pages + dropped.total(),
        kept=n_pages,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=dict(extra),
    )


def _links_of(
    page: HtmlPage,
    read: PageLinks,
    *,
    key: str,
    record: int,
    extractor: Extractor,
    extra: Counter[str],
) -> Iterator[dict[str, Any]]:
    # The paper looks addresses up as they are written.
    found = targets_of(read.links, page.url, base=read.base, resolve=extractor != "paper")
    if read.unread:
        extra[f"pages whose links were not read: {read.unread}"] += 1
    extra.update(
        {"links": len(read.links), "links to pages": sum(target.n_links for target in found.found)}
    )
    extra.update({f"links left out: {why}": count for why, count in found.left_out.items()})
    capture = {"page_key": key, "id": key, "date": page.date, "record": record}
    yield dict.fromkeys(CAPTURED.names) | capture
    for target in found.found:
        yield capture | line_of(target)


def line_of(target: Target) -> dict[str, Any]:
    """A target, in the columns of `PAGE_LINKS`."""
    names = ("position", "n_links", "nofollow", "navigation", "generic", "in_text", "keys")
    return {
        "target_key": target.key,
        "target_url": target.url,
        **{name: getattr(target, name) for name in names},
    }


def drop_repeated(asked: Queries, paths: Sequence[Path]) -> int:
    """Leave one document of each id in tables of documents; returns how many were dropped."""
    files = ", ".join(f"({quoted(str(path))}, {number})" for number, path in enumerate(paths))
    listed = ", ".join(quoted(str(path)) for path in paths)
    asked.do(f"""CREATE OR REPLACE TABLE repeated AS SELECT file::INTEGER AS file, file_row_number::INTEGER AS line FROM (
        SELECT file, file_row_number, row_number() OVER (PARTITION BY id ORDER BY date_download DESC, file, file_row_number) AS nth
        FROM read_parquet([{listed}], filename = true, file_row_number = true)
        JOIN (SELECT * FROM (VALUES {files}) AS v(filename, file)) USING (filename)) WHERE nth > 1""")
    gone: dict[int, set[int]] = {}
    for line in asked.lines("SELECT file, line FROM repeated"):
        gone.setdefault(line["file"], set()).add(line["line"])
    for file, lines in gone.items():
        with (
            publish(paths[file]) as draft,
            contextlib.closing(TableWriter(draft, FILTERED)) as table,
        ):
            for number, document in enumerate(
                read_lines(paths[file], FILTERED.names, batch_lines=16)
            ):
                if number not in lines:
                    table.add(document, n_bytes=4 * len(document["raw_content"]))
    return sum(map(len, gone.values()))


def publish_links(asked: Queries, paths: Sequence[Path], out: Path) -> int:
    """Publish the links of one capture of each page, out of what `find_links` wrote of every
    archive; returns how many.
    """
    listed = ", ".join(quoted(str(path)) for path in paths)
    lines = f"read_parquet([{listed}], filename = true)"
    asked.do(f"""CREATE OR REPLACE TABLE captures AS SELECT filename, record FROM (
        SELECT filename, record, row_number() OVER (PARTITION BY id ORDER BY date DESC, filename, record) AS nth
        FROM {lines} WHERE target_key IS NULL) WHERE nth = 1""")
    columns = ", ".join(PAGE_LINKS.names)
    query = (
        f"SELECT {columns} FROM {lines} JOIN captures USING (filename, record) WHERE "
        "target_key IS NOT NULL"
    )
    return asked.publish(query, out, PAGE_LINKS)


def documents_path(folder: Path, number: int, source: Path) -> Path:
    """Where the documents of a source go."""
    return folder / f"{number:05d}-{source.name.partition('.')[0]}{DOCUMENTS_SUFFIX}"
