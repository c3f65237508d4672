"""Documents out of a crawl's own archives: WET (text) and WARC (pages as fetched).

A WET file holds ``conversion`` records, whose block is the text in UTF-8. A WARC file holds ``response`` records, whose
block is what a server sent; when that is HTML, its text is taken out, as one takes it to read it: without menus and
footers, or with them.

============================  =============
header                        becomes
============================  =============
``WARC-Record-ID``            ``id``
``WARC-Target-URI``           ``url``
``WARC-Date``                 ``date``
``WARC-Identified-Content-``  ``language``
``Language``
============================  =============

Angle brackets around the first two are left out. Other kinds of records (``warcinfo``, ``request``, ``metadata``) are
no documents; a ``revisit`` is one that is not there, and is `Unread`.
Source: WARC 1.1 (ISO 28500:2017).
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5
from resiliparse.parse.html import DOMContext, HTMLTree, traverse_dom

from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.containers import name_of_places, plain_bytes
from lc_assets.formats.corpora.records import CorpusDocument, Unread

HTML_TYPES: Final = ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml")
MAX_HEADER_BYTES: Final = 1 << 20


MAX_DEPTH: Final = 500
"""Looking for the main content takes time by the depth of each ``<div>``: 4,000 of them in one another, half a second."""

_DIVISION: Final = re.compile("<div", re.IGNORECASE)


class _NoDocument(Exception):
    """A record holds no document; the message is the reason that is counted."""


def read_wet(path: Path, *, max_document_bytes: int) -> Iterator[CorpusDocument | Unread]:
    """Yield the texts of a WET file; see `lc_assets.formats.corpora.reading.read_corpus`."""
    return _documents(path, (WarcRecordType.conversion,), max_document_bytes, _text_of_conversion)


def read_warc(path: Path, *, max_document_bytes: int, main_content: bool = True) -> Iterator[CorpusDocument | Unread]:
    """Yield the texts of the pages in a WARC file; see `lc_assets.formats.corpora.reading.read_corpus`.

    Args:
        path: the file.
        max_document_bytes: longest page that is read, in bytes, as sent and as decoded.
        main_content: whether to leave menus, footers and the like out of the text.
    """

    def text_of(record: WarcRecord, block: bytes) -> str:
        return _text_of_response(record, block, max_document_bytes, main_content)

    return _documents(path, (WarcRecordType.response, WarcRecordType.revisit), max_document_bytes, text_of)


def _documents(
    path: Path, wanted: tuple[WarcRecordType, ...], max_document_bytes: int, text_of: Callable[[WarcRecord, bytes], str]
) -> Iterator[CorpusDocument | Unread]:
    places = name_of_places(path)
    for number, (record, block) in enumerate(_blocks(path, wanted, max_document_bytes)):
        identity = _bare(record.headers.get("WARC-Record-ID")) or f"{places}/{number}"
        try:
            yield _document(record, identity, text_of(record, _held(block)))
        except _NoDocument as reason:
            yield Unread(id=identity, where=f"{path}, record {number}", why=str(reason))


def _blocks(path: Path, wanted: tuple[WarcRecordType, ...], max_bytes: int) -> Iterator[tuple[WarcRecord, bytes | None]]:
    """The wanted records with what is in them, None in place of too much; all others are passed over, but must be whole.

    A file that was cut between two gzip members, or whose lengths lie, looks sound otherwise.
    """
    with plain_bytes(path) as stream:
        for record in ArchiveIterator(stream, parse_http=False, stream_detect=False, max_header_len=MAX_HEADER_BYTES):
            where = f"{path}: record {record.record_id} at byte {record.stream_pos:,}"
            if "Content-Length" not in record.headers or "\n" in (record.headers.get("WARC-Type") or "\n"):
                raise CorruptFile(f"{where} lacks Content-Length or WARC-Type; do its lines end in CR and LF, as they must?")
            block = record.reader.read(max_bytes + 1) if record.record_type in wanted else b""
            n_found = len(block) + record.reader.consume()
            if n_found < record.content_length:
                raise CorruptFile(f"{where} is cut short: {n_found:,} of {record.content_length:,} bytes; fetch it again")
            if record.record_type in wanted:
                yield record, block if len(block) <= max_bytes else None


def _held(block: bytes | None) -> bytes:
    if block is None:
        raise _NoDocument("record too long")
    return block


def _text_of_conversion(_: WarcRecord, block: bytes) -> str:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _NoDocument("not UTF-8") from error
    if not text:
        raise _NoDocument("empty")
    return text


def _text_of_response(record: WarcRecord, block: bytes, max_bytes: int, main_content: bool) -> str:
    if record.record_type == WarcRecordType.revisit:
        raise _NoDocument("revisit")
    html = _html(block, max_bytes)
    if _is_too_deep(html):
        raise _NoDocument("nested too deeply")
    text: str = extract_plain_text(html, preserve_formatting=True, main_content=main_content, alt_texts=False)
    if not text.strip():
        raise _NoDocument("empty")
    return text


def _html(block: bytes, max_bytes: int) -> str:
    record = WarcRecord()  # one of its own, so that what is wrong with the page is not wrong with the archive
    record.init_headers(WarcRecordType.response)
    record.is_http = True
    record.set_bytes_content(block)
    try:
        record.parse_http(auto_decode="all", max_header_len=MAX_HEADER_BYTES)
        if (record.http_content_type or "").lower() not in HTML_TYPES:
            raise _NoDocument("not HTML")
        content = record.reader.read(max_bytes + 1)
    except OSError as error:  # there is no disk behind it: the block is in memory
        raise _NoDocument("undecodable HTTP") from error
    if len(content) > max_bytes:
        raise _NoDocument("record too long")
    return _decoded(content, record.http_charset)


def _decoded(content: bytes, charset: str | None) -> str:
    """The page as text: in the encoding that the server names, or else the page itself, or else its letters."""
    known = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    try:
        return bytes_to_str(content, known or detect_encoding(content, from_html_meta=True) or "utf-8")
    except LookupError:  # some names that pages may use are none of Python's
        return bytes_to_str(content, "utf-8")


def _is_too_deep(html: str) -> bool:
    """Whether elements lie more than `MAX_DEPTH` deep, asked only where there are as many; a tag may start at any ``<``."""
    if html.count("<") <= MAX_DEPTH:
        return False
    if len(_DIVISION.findall(html)) <= MAX_DEPTH:
        return False
    deepest = 0

    def look(node: DOMContext) -> None:
        nonlocal deepest
        deepest = max(deepest, node.depth)

    body = HTMLTree.parse(html).body
    if body is not None:
        traverse_dom(body, look)
    return deepest > MAX_DEPTH


def _document(record: WarcRecord, identity: str, text: str) -> CorpusDocument:
    headers = record.headers
    url, date = _bare(headers.get("WARC-Target-URI")), headers.get("WARC-Date") or ""
    language = headers.get("WARC-Identified-Content-Language") or ""
    said = {"id": identity, "url": url, "date": date, "language": language}
    rest = msgspec.Raw(msgspec.json.encode({name: value for name, value in said.items() if value}))
    return CorpusDocument(id=identity, text=text, url=url, date=date, language=language, rest=rest)


def _bare(header: str | None) -> str:
    return (header or "").strip().removeprefix("<").removesuffix(">")
