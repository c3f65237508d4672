"""Writing archives of pages: WARC, gzipped record by record, and the sorted index of its lines.

The same pages give the same bytes: a record's id is derived from its address and date, not from the
clock.
"""

import base64
import hashlib
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from lc_assets.formats.archives.captures import Capture, timestamp_of
from lc_assets.publishing import gzip_member
from lc_assets.text.links.page_keys import surt

_LINE_END = re.compile(r"[\r\n]")


class FetchedPage(NamedTuple):
    """A page to be written: its address, when it was fetched (ISO 8601), and its HTML."""

    url: str
    date: str
    html: str


def write_pages(path: Path, pages: Iterable[FetchedPage], *, filename: str) -> list[Capture]:
    """Write an archive of pages.

    Args:
        path: of the file.
        pages: in the order of their records.
        filename: name of the archive, which is written into the archive and its index.

    Returns:
        A capture per page, in their order.
    """
    captures = []
    with path.open("wb") as out:
        out.write(
            gzip_member(
                _record(
                    "warcinfo",
                    f"software: lc_assets\r\nformat: WARC/1.0\r\nisPartOf: {filename}\r\n".encode(),
                )
            )
        )
        for page in pages:
            offset = out.tell()
            body = page.html.encode("utf-8", "replace")
            hashed = hashlib.sha1(body, usedforsecurity=False).digest()
            digest = f"sha1:{base64.b32encode(hashed).decode()}"
            out.write(gzip_member(_response(page, body, digest)))
            captures.append(
                Capture(
                    page.url,
                    timestamp_of(page.date),
                    True,
                    digest,
                    filename,
                    offset,
                    out.tell() - offset,
                )
            )
    return captures


def index_lines(captures: Iterable[Capture]) -> list[bytes]:
    r"""Lines of an index of pages, with their ends, sorted; an address that has no key has none.

    >>> index_lines(
    ...     [Capture("http://a.org/x", "20240518015810", True, "sha1:ABC", "x.warc.gz", 7, 5)]
    ... )
    [b'org,a)/x 20240518015810 {"url":"http://a.org/x","mime":"text/html","status":"200","digest":"ABC","length":"5","offset":"7","filename":"x.warc.gz"}\n']
    """
    return sorted(line for capture in captures if (line := _line(capture)))


def _line(capture: Capture) -> bytes:
    key = surt(capture.url)
    if key is None:
        return b""
    fields = {
        "url": capture.url,
        "mime": "text/html",
        "status": "200",
        "digest": capture.digest.removeprefix("sha1:"),
        "length": str(capture.length),
        "offset": str(capture.offset),
        "filename": capture.filename,
    }
    return f"{key} {capture.timestamp} ".encode() + msgspec.json.encode(fields) + b"\n"


def _response(page: FetchedPage, body: bytes, digest: str) -> bytes:
    block = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    url = _LINE_END.sub("", page.url)
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{page.date} {url}")
    more = {
        "WARC-Target-URI": url,
        "WARC-Date": _LINE_END.sub("", page.date),
        "WARC-Record-ID": f"<urn:uuid:{name}>",
        "WARC-Payload-Digest": digest,
        "Content-Type": "application/http; msgtype=response",
    }
    return _record("response", block, more)


def _record(kind: str, block: bytes, more: dict[str, str] | None = None) -> bytes:
    headers = {"WARC-Type": kind, **(more or {}), "Content-Length": str(len(block))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"WARC/1.0\r\n{head}\r\n".encode("utf-8", "replace") + block + b"\r\n\r\n"
