"""Pages and links in the shape that tests compare: lists of what the package reads one by one."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.captures import MAX_LINE_BYTES
from lc_assets.formats.archives.fetching import (
    MAX_PAGE_BYTES,
    RESPONSES,
    HtmlPage,
    Ranges,
    Spot,
    page_of,
    pages_at,
    unread,
)
from lc_assets.formats.archives.records import WRONG_LENGTH, records_in
from lc_assets.formats.archives.wat import MAX_LINKS_BYTES, METADATA, WatPage, wat_page
from lc_assets.formats.corpora.containers import Unread
from lc_assets.text.html.page_text import Quality, page_content
from lc_assets.text.links.links import Extractor, Link, page_links
from lc_assets.text.links.targets import Target, targets_of


def page_text(html: str, quality: Quality = "fast") -> str | None:
    """The text of a page; None when the guard refuses it."""
    found = page_content(html, quality)
    return found and found.text


def look_up(path: Path, key: bytes) -> list[bytes]:
    """All lines of a key in a plain index of this machine, by halving.

    Raises:
        CorruptFile: when it has a line longer than any.
    """
    with path.open("rb") as file:
        low, high = 0, path.stat().st_size
        while low < high:
            middle = (low + high) // 2
            line = _line_from(file, middle)
            low, high = (middle + 1, high) if line and _key(line) < key else (low, middle)
        found = []
        line = _line_from(file, low)
        while line and _key(line) == key:
            found.append(line.rstrip(b"\r\n"))
            line = _whole_line(file)
        return found


def _key(line: bytes) -> bytes:
    return line.partition(b" ")[0].rstrip(b"\r\n")


def _line_from(file: BinaryIO, place: int) -> bytes:
    """The first line that begins at ``place`` or behind it; none at the end."""
    file.seek(max(place - 1, 0))
    if place:
        _whole_line(file)
    return _whole_line(file)


def _whole_line(file: BinaryIO) -> bytes:
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise CorruptFile(
            f"{file.name}: has a line of more than {MAX_LINE_BYTES:,} bytes, so it is not an index"
        )
    return line


def page_at(
    upstream: Ranges,
    filename: str,
    offset: int,
    length: int,
    *,
    max_page_bytes: int = MAX_PAGE_BYTES,
) -> HtmlPage | Unread:
    """The page in one record; see `pages_at`."""
    (page,) = pages_at(upstream, [Spot(filename, offset, length)], max_page_bytes=max_page_bytes)
    return page


class RecordPage(HtmlPage, frozen=True):
    """A page with what its record says of it, and the record's location."""

    date: str = ""
    filename: str = ""
    offset: int = -1
    length: int = 0
    digest: str = ""


def wat_pages(
    source: Path | BinaryIO, *, filename: str, max_links_bytes: int = MAX_LINKS_BYTES
) -> Iterator[WatPage | Unread]:
    """Yield the pages of a WAT file with their links, and an `Unread` for each other record."""
    found = records_in(source, filename=filename, most_bytes=max_links_bytes, kinds=METADATA)
    for where, block in found:
        yield wat_page(block, where)


def html_pages(
    source: Path | BinaryIO, *, filename: str | None = None, max_page_bytes: int = MAX_PAGE_BYTES
) -> Iterator[RecordPage | Unread]:
    """Yield the pages of a WARC file in its order, and an `Unread` for each other record.

    Args:
        source: the file's path, or the file, open at its beginning.
        filename: its name in pages and messages; required for an open file, which is gzipped when
            the name ends in ``.gz``.
        max_page_bytes: longest page that is read, in bytes, as sent and as decoded.

    Raises:
        CorruptFile: when the file is damaged or cut short, or a record is not as long as it says.
    """
    where = filename or str(source)
    name = filename or (source.name if isinstance(source, Path) else where)
    found = records_in(source, filename=where, most_bytes=max_page_bytes, kinds=RESPONSES)
    for record, block in found:
        page = page_of(block, record, max_page_bytes)
        if block.has_wrong_length:
            page = unread(block, record, WRONG_LENGTH)
        if isinstance(page, Unread):
            yield page
            continue
        yield RecordPage(
            page.url,
            page.html,
            date=block.header("WARC-Date"),
            filename=name,
            offset=block.offset,
            length=block.length,
            digest=block.header("WARC-Payload-Digest"),
        )


def extract_links(html: str, extractor: Extractor = "html5") -> list[Link]:
    """The links of a page, in their order; none of a page that is not read (`page_links` says why).

    >>> first, second = extract_links('<nav><a href=/b>To <b>B</b></a></nav> <A HREF="c.html" rel=nofollow><img alt="C"></A>')
    >>> first
    Link(href='/b', text='To B', rel='', navigation=True, label='')
    >>> second
    Link(href='c.html', text='', rel='nofollow', navigation=False, label='C')
    >>> extract_links('<a class=x href="c.html">C &amp; D</a> <a href=d>D</a>', "paper")
    [Link(href='c.html', text='C &amp; D', rel='', navigation=False, label='')]
    """
    return list(page_links(html, extractor).links)


def targets(
    links: Iterable[Link], page_url: str, *, base: str = "", resolve: bool = True, text: str = ""
) -> list[Target]:
    """The pages that the links lead to; see `targets_of`.

    >>> links = [Link("b.html", "next"), Link("/a/b.html#c", "B"), Link("mailto:x@example.org", "mail")]
    >>> [(target.key, target.keys, target.n_links) for target in targets(links, "http://example.org/a/")]
    [('example.org/a/b.html', 'B', 2)]
    """
    return list(targets_of(links, page_url, base=base, resolve=resolve, text=text).found)
