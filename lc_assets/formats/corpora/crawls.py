"""Documents from a crawl's archives: WET (text) and WARC (pages as fetched).

A WET file holds ``conversion`` records, whose block is the text in UTF-8. A WARC file holds
``response`` records, whose block is what a server sent; when that is HTML with status 200, its main
text is extracted.

============================  =============
header                        becomes
============================  =============
``WARC-Record-ID``            ``id``
``WARC-Target-URI``           ``url``
``WARC-Date``                 ``date``
``WARC-Identified-Content-``  ``language``
``Language``
============================  =============

A page's title is its ``title``. Angle brackets around the first two are left out. Other kinds of
records (``warcinfo``, ``request``, ``metadata``) are not documents; a ``revisit`` is yielded as
`Unread`.
Source: WARC 1.1 (ISO 28500:2017).
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.formats.archives.records import WRONG_LENGTH, Block, records_in
from lc_assets.formats.archives.responses import NoPage, html_of
from lc_assets.formats.corpora.containers import (
    WET,
    CorpusDocument,
    ReadingOptions,
    Unread,
    name_of_places,
)
from lc_assets.text.html.page_text import PageContent, page_content

TEXTS = (WarcRecordType.conversion,)
PAGES = (WarcRecordType.response, WarcRecordType.revisit)


def read_crawl(path: Path, options: ReadingOptions) -> Iterator[CorpusDocument | Unread]:
    """Yield the texts of a WET file, or of the pages in a WARC file; see
    `lc_assets.formats.corpora.reading.read_corpus`. Pages are limited in bytes, as sent and as
    decoded.
    """
    is_wet, places = path.name.endswith(WET), name_of_places(path)
    kinds, content_of = (TEXTS, _content_of_conversion) if is_wet else (PAGES, _content_of_response)
    most_bytes = options.max_document_bytes
    found = records_in(path, filename=str(path), most_bytes=most_bytes, kinds=kinds)
    own = (block for _, block in found if block.record.record_type in kinds)
    for number, block in enumerate(own):
        identity = block.header("WARC-Record-ID") or f"{places}/{number}"
        where = f"{path}, record {number}"
        if block.has_wrong_length:
            yield Unread(id=identity, where=where, why=WRONG_LENGTH)
            continue
        try:
            yield _document(block, identity, content_of(block, options))
        except NoPage as reason:
            yield Unread(id=identity, where=where, why=str(reason))


def _content_of_conversion(block: Block, _: ReadingOptions) -> PageContent:
    if not block.is_whole:
        raise NoPage("record too long")
    try:
        text = block.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoPage("not UTF-8") from error
    if not text:
        raise NoPage("empty")
    return PageContent(text, "")


def _content_of_response(block: Block, options: ReadingOptions) -> PageContent:
    if block.record.record_type == WarcRecordType.revisit:
        raise NoPage("revisit")
    html = html_of(block, options.max_document_bytes)
    content = page_content(html, options.quality)
    if content is None:
        raise NoPage("nested too deeply")
    if not content.text.strip():
        raise NoPage("empty")
    return content


def _document(block: Block, identity: str, content: PageContent) -> CorpusDocument:
    url, date = block.header("WARC-Target-URI"), block.record.headers.get("WARC-Date") or ""
    language = block.record.headers.get("WARC-Identified-Content-Language") or ""
    stated = {"id": identity, "url": url, "date": date, "language": language}
    stated["title"] = content.title
    rest = msgspec.Raw(
        msgspec.json.encode({name: value for name, value in stated.items() if value})
    )
    return CorpusDocument(
        id=identity,
        text=content.text,
        url=url,
        date=date,
        language=language,
        rest=rest,
        own_id=block.header("WARC-Record-ID") or "",
    )
