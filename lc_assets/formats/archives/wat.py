"""Lists of links that a crawl extracted from its pages (WAT), which save parsing HTML.

A WAT file holds ``metadata`` records whose block is JSON about one record of an archive. Those
about responses with HTML are read::

    {"Container": {"Filename", "Offset", "Gzip-Metadata": {"Deflate-Length"}},
     "Envelope": {"WARC-Header-Metadata": {"WARC-Target-URI", "WARC-Date", …},
                  "Payload-Metadata": {"HTTP-Response-Metadata": {
                      "Response-Message": {"Status"}, "Headers": {"Content-Type", …},
                      "HTML-Metadata": {"Head": {"Base"}, "Links": [{"path": "A@/href", "url",
                      "text", "rel", "title"}, …]}}}}}

Only links of ``<a href>`` are read; they are not resolved, and their ``title`` is their label.
Every other record is an `Unread`:

=====================  ===========================================================================
reason                 when
=====================  ===========================================================================
``warcinfo record``…   it is not a ``metadata`` record
``not of a response``  it is about a request, or the crawler's notes
``status not 200``     any other status, unless it redirects, of which the address is read
``not HTML``           by its type
``not JSON``           its block is not JSON, or not of this kind
``record too long``    it has more bytes than the limit
=====================  ===========================================================================

Source: ia-web-commons, whose output Common Crawl publishes.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.errors import UNDECODABLE
from lc_assets.formats.archives.captures import (
    Capture,
    captures_by,
    digest_of_sha1,
    timestamp_of,
)
from lc_assets.formats.archives.fetching import Ranges, Spot, fetched, kind_of_record, unread
from lc_assets.formats.archives.records import Block, bare
from lc_assets.formats.archives.responses import NoPage, is_html
from lc_assets.formats.corpora.containers import Unread
from lc_assets.text.links.links import Link

MAX_LINKS_BYTES = 64 << 20
"""Limit for a list of links."""

A_HREF = "A@/href"
METADATA = (WarcRecordType.metadata,)


class WatPage(msgspec.Struct, frozen=True):
    """The links of a page from the crawl's own list.

    Attributes:
        url: the page's address.
        links: of ``<a href>``, in their order.
        base: the page's ``<base>``, which links are relative to; empty without.
    """

    url: str
    links: tuple[Link, ...]
    base: str


class _Link(msgspec.Struct):
    path: str | None = None
    url: str | None = None
    text: str | None = None
    rel: str | None = None
    title: str | None = None


_NAMES = {
    "head": "Head",
    "links": "Links",
    "message": "Response-Message",
    "headers": "Headers",
    "html": "HTML-Metadata",
    "entity_digest": "Entity-Digest",
    "response": "HTTP-Response-Metadata",
    "url": "WARC-Target-URI",
    "date": "WARC-Date",
    "digest": "WARC-Payload-Digest",
    "identified": "WARC-Identified-Payload-Type",
    "payload": "Payload-Metadata",
    "warc": "WARC-Header-Metadata",
    "envelope": "Envelope",
    "base": "Base",
    "status": "Status",
}
"""Names of the fields, in the file."""


class _Head(msgspec.Struct, rename=_NAMES):
    base: str | None = None


class _Html(msgspec.Struct, rename=_NAMES):
    head: _Head = msgspec.field(default_factory=_Head)
    links: list[_Link] = []


class _Message(msgspec.Struct, rename=_NAMES):
    status: str | int = ""


class _Response(msgspec.Struct, rename=_NAMES):
    message: _Message = msgspec.field(default_factory=_Message)
    headers: dict[str, str | list[str]] = {}
    html: _Html | None = None
    entity_digest: str = ""


class _Payload(msgspec.Struct, rename=_NAMES):
    response: _Response | None = None


class _Warc(msgspec.Struct, rename=_NAMES):
    url: str = ""
    date: str = ""
    digest: str = ""
    identified: str = ""


class _Envelope(msgspec.Struct, rename=_NAMES):
    payload: _Payload
    warc: _Warc


class _Record(msgspec.Struct, rename=_NAMES):
    envelope: _Envelope


_RECORD = msgspec.json.Decoder(_Record)


def wat_pages_at(upstream: Ranges, spots: Iterable[Spot]) -> Iterator[WatPage | Unread]:
    """Yield the links in each record of WAT files, in the order of the spots; see
    `lc_assets.formats.archives.fetching.pages_at`.

    Raises:
        Unreachable: when the server does not answer, whether or not the records exist.
    """
    return fetched(upstream, spots, wat_page, kinds=METADATA, most_bytes=MAX_LINKS_BYTES)


def captures_in_wat(source: Path | BinaryIO, *, filename: str) -> Iterator[Capture | Unread]:
    """Yield the captures in a WAT file, in its order: each with the place of its list of links; see
    `lc_assets.formats.archives.captures.captures_in`.
    """
    return captures_by(
        _capture, source, filename=filename, most_bytes=MAX_LINKS_BYTES, kinds=METADATA
    )


def _capture(block: Block, filename: str) -> Capture:
    warc, response = _response(block)
    digest = digest_of_sha1(warc.digest or response.entity_digest)
    place = (digest, filename, block.offset, block.length)
    url, time = bare(warc.url), timestamp_of(warc.date)
    status = str(response.message.status)
    if len(status) == 3 and status.startswith("3") and (target := _header(response, "location")):
        return Capture(url, time, False, *place, target)
    _require_page(warc, response)
    return Capture(url, time, True, *place)


def wat_page(block: Block, where: str) -> WatPage | Unread:
    """The list of links in a record, whose name is ``where``, or the reason for none."""
    try:
        warc, response = _response(block)
        _require_page(warc, response)
    except NoPage as reason:
        return unread(block, where, str(reason))
    html = response.html or _Html()
    links = tuple(
        Link(
            link.url,
            " ".join((link.text or "").split()),
            link.rel or "",
            label=link.title or "",
        )
        for link in html.links
        if link.path == A_HREF and link.url is not None
    )
    return WatPage(bare(warc.url), links, html.head.base or "")


def _response(block: Block) -> tuple[_Warc, _Response]:
    if block.record.record_type != WarcRecordType.metadata:
        raise NoPage(kind_of_record(block))
    if not block.is_whole:
        raise NoPage("record too long")
    try:
        envelope = _RECORD.decode(block.content).envelope
    except UNDECODABLE as error:
        raise NoPage("not JSON") from error
    response = envelope.payload.response
    if response is None:
        raise NoPage("not of a response")
    return envelope.warc, response


def _require_page(warc: _Warc, response: _Response) -> None:
    if str(response.message.status) != "200":
        raise NoPage("status not 200")
    mime = _header(response, "content-type").partition(";")[0].strip()
    if not is_html(mime, warc.identified):
        raise NoPage("not HTML")


def _header(response: _Response, wanted: str) -> str:
    """The first value of a header, whose name is in any case; empty without it."""
    value = next((value for name, value in response.headers.items() if name.lower() == wanted), "")
    return value if isinstance(value, str) else next(iter(value), "")
