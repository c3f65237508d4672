"""Pages of a crawl: HTML as it was fetched, with the record that holds it.

A page is a ``response`` record with status 200 and HTML. Every other record is an `Unread` with one
of these reasons, so that all records can be counted:

=======================  ===========================================================================
reason                   when
=======================  ===========================================================================
``warcinfo record``, …   records of other kinds: ``request``, ``metadata``, ``revisit``,
                         ``resource``, …
``status not 200``       a redirect, an error, or no HTTP at all
``not HTML``             by its type
``cut short``            the crawler marked it (``WARC-Truncated``)
``record too long``      as sent or as decoded
``undecodable HTTP``     chunked or compressed otherwise than it states
=======================  ===========================================================================

HTTP's Content-Length is ignored: crawlers decode bodies and leave that header as it was.
"""

from typing import Final

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.formats.archives.records import Block
from lc_assets.formats.archives.responses import NoPage, html_of
from lc_assets.formats.corpora.records import Unread

MAX_PAGE_BYTES: Final = 16 << 20
"""A longer page is not read by default. Common Crawl cuts pages at 1 MiB, since 2025 at 5 MiB.
"""

RESPONSES: Final = (WarcRecordType.response,)
_OTHER_KINDS: Final = frozenset(
    ("warcinfo", "request", "metadata", "revisit", "resource", "conversion", "continuation")
)


class HtmlPage(msgspec.Struct, frozen=True):
    """A page as it was fetched.

    Attributes:
        url: its address, as the crawler fetched it.
        html: the page, decoded.
        date: when it was fetched, ISO 8601 text, as the crawler wrote it.
        filename: of the archive, as it was given.
        offset: where in the archive its record begins; -1 when the record cannot be fetched alone.
        length: how many bytes of the archive the record takes; 0 when it cannot be fetched alone.
        digest: SHA-1 of what the server sent, ``sha1:`` and base32; empty when the crawler wrote
            none.
    """

    url: str
    html: str
    date: str
    filename: str
    offset: int
    length: int
    digest: str = ""


def page_of(block: Block, filename: str, where: str, max_page_bytes: int) -> HtmlPage | Unread:
    """The page in a record, or why there is none.

    Args:
        block: the record, read to ``max_page_bytes``.
        filename: of its archive.
        where: which record it is, in words.
        max_page_bytes: longest page that is read.
    """
    try:
        html = _html(block, max_page_bytes)
    except NoPage as reason:
        return Unread(id=block.header("WARC-Record-ID"), where=where, why=str(reason))
    headers = block.record.headers
    date, digest = headers.get("WARC-Date") or "", headers.get("WARC-Payload-Digest") or ""
    return HtmlPage(
        block.header("WARC-Target-URI"), html, date, filename, block.offset, block.length, digest
    )


def kind_of_record(block: Block) -> str:
    """The kind of a record that is no page, as a reason: ``request record``."""
    kind = block.header("WARC-Type").lower()
    return f"{kind if kind in _OTHER_KINDS else 'unknown'} record"


def _html(block: Block, max_page_bytes: int) -> str:
    if block.record.record_type != WarcRecordType.response:
        raise NoPage(kind_of_record(block))
    if block.record.headers.get("WARC-Truncated"):
        raise NoPage("cut short")
    return html_of(block, max_page_bytes, status=200)
