"""Pages as servers sent them: HTML out of the block of a ``response`` record.

Transfer and content codings are removed, never returning more than the requested size. FastWARC
does that itself, but all at once: a megabyte that decodes to a gigabyte takes a gigabyte of memory.
A truncated body is decoded as far as possible, as in browsers; an invalid one is `Undecodable`. A
body labelled as coded that begins with ``<`` is used unchanged: Common Crawl's archives before
2018-34 hold bodies decoded under the labels that the servers sent.

The text is decoded by its byte order mark, or else the encoding that the server names, or else the
one that the page names, or else as UTF-8 if possible, or by its letters. Where the server names
ISO 8859-1, many servers' default, text that is UTF-8 is read as such. A page is HTML when the
server says so; without a type from the server, when it begins like HTML, or by the crawler's
detection.

Source: RFC 9110, 8.4 (content codings); RFC 9112, 7.1 (chunks, which may have extensions, and of
which the last may be missing).
"""

import codecs
import contextlib
import io
import re
import zlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, cast

import zstandard
from fastwarc.stream_io import BrotliReader
from fastwarc.warc import WarcRecord, WarcRecordType
from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.members import Members
from lc_assets.formats.archives.records import MAX_HEADER_BYTES, Block
from lc_assets.formats.unpacking import require_small

HTML_TYPES = ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml")
MAX_HEAD_BYTES = 1 << 16
"""Bytes of a response that are read to parse its head."""

PRESCAN_BYTES = 1024
"""Bytes in which HTML5 searches for the encoding that a page names."""

_BEGINS_HTML = re.compile(rb"<(?:!doctype\s+html|html|head)\b", re.IGNORECASE)
_BLANKS = codecs.BOM_UTF8 + b" \t\r\n\f"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NoPage(Exception):
    """A record has no readable page; the message is the reason that is counted."""


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        status: as the server sent it; 0 when it sent none.
        mime: type of its content without parameters, in lower case; empty when it names none.
        location: address that it redirects to, as the server wrote it; empty for other statuses.
    """

    status: int
    mime: str
    location: str = ""


def is_html(mime: str, identified: str = "") -> bool:
    """Whether content is HTML: by the server's type, or, without one, by the type that the crawler
    identified.

    >>> (
    ...     is_html("text/html"),
    ...     is_html("", "application/xhtml+xml"),
    ...     is_html("image/png", "text/html"),
    ... )
    (True, True, False)
    """
    return (mime or identified).lower() in HTML_TYPES


def read_summary(content: bytes) -> Head:
    r"""The head of a response, by the first `MAX_HEAD_BYTES` of its block.

    >>> read_summary(
    ...     b"HTTP/1.1 404 Not Found\r\nContent-Type: text/HTML; charset=utf-8\r\n\r\n"
    ... )
    Head(status=404, mime='text/html', location='')
    """
    try:
        return _head(_parsed(content), content)
    except OSError:
        return Head(0, "")


def html_of(block: Block, max_bytes: int) -> str:
    """The page in the block of a response.

    Args:
        block: block of a ``response`` record; when incomplete, it is too long.
        max_bytes: longest page that is read, in bytes, as sent and as decoded.

    Raises:
        NoPage: when the status is not 200, or the content is not HTML, too long, or cannot be
            decoded.
    """
    try:
        record = _parsed(block.content)
    except OSError as error:  # there is no disk behind it: the block is in memory
        raise NoPage("undecodable HTTP") from error
    head = _head(record, block.content)
    if head.status != 200:
        raise NoPage("status not 200")
    if not is_html(head.mime, block.header("WARC-Identified-Payload-Type")):
        raise NoPage("not HTML")
    if not block.is_whole:
        raise NoPage("record too long")
    content = _body(record, max_bytes + 1)
    require_small(len(content))
    if len(content) > max_bytes:
        raise NoPage("record too long")
    return decoded(content, record.http_charset)


def decoded(content: bytes, charset: str | None) -> str:
    r"""A page as text; bytes that are invalid in its encoding are replaced.

    Args:
        content: the page's bytes.
        charset: the encoding that the server names.

    >>> decoded(b"caf\xc3\xa9", "iso-8859-1"), decoded(b"caf\xe9", "iso-8859-1")
    ('café', 'café')
    >>> (
    ...     decoded(b"caf\xe9", "utf-8"),
    ...     decoded(b"\xef\xbb\xbfcaf\xc3\xa9", "latin1"),
    ...     decoded(b"<meta charset=utf-8>\xc3\xa9", "x"),
    ... )
    ('café', 'café', '<meta charset=utf-8>é')
    """
    for mark, name in _MARKS:
        if content.startswith(mark):
            return bytes_to_str(content, name).removeprefix("\ufeff")
    known = map_encoding_to_html5(charset.strip(" \"'"), fallback_utf8=False) if charset else None
    if known == "cp1252" and _is_utf8(content):
        known = "utf-8"
    try:
        return bytes_to_str(content, known or _detected(content))
    except LookupError:  # some names that pages may use are none of Python's
        return bytes_to_str(content, "utf-8")


def _detected(content: bytes) -> str:
    """The encoding that a page names, or that its letters are in; the library alone detects short
    pages in UTF-8 as Hungarian.
    """
    if b"charset" not in content[:PRESCAN_BYTES].lower() and _is_utf8(content):
        return "utf-8"
    return detect_encoding(content, from_html_meta=True) or "utf-8"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _body(record: WarcRecord, most_bytes: int) -> bytes:
    headers, body = record.http_headers, record.reader.read()
    transfer, content = (
        headers.get("Transfer-Encoding") or "",
        headers.get("Content-Encoding") or "",
    )
    try:
        return undone(body, transfer=transfer, content=content, most_bytes=most_bytes)
    except Undecodable as error:
        if body.lstrip(_BLANKS).startswith(b"<"):
            return body[:most_bytes]
        raise NoPage("undecodable HTTP") from error


def _parsed(content: bytes) -> WarcRecord:
    record = (
        WarcRecord()
    )  # one of its own, so that what is wrong with the page is not wrong with the archive
    record.init_headers(WarcRecordType.response)
    record.is_http = True
    record.set_bytes_content(content)
    record.parse_http(auto_decode="none", max_header_len=MAX_HEADER_BYTES)
    return record


def _head(record: WarcRecord, content: bytes) -> Head:
    headers = record.http_headers
    mime = record.http_content_type or ""
    if not mime and _BEGINS_HTML.match(content.partition(b"\r\n\r\n")[2].lstrip(_BLANKS)):
        mime = "text/html"
    status = (headers.status_code or 0) if headers is not None else 0
    location = (headers.get("Location") or "") if 300 <= status < 400 else ""
    return Head(status, mime.lower(), location)


_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_READ_BYTES = 1 << 16


class Undecodable(Exception):
    """A body is not coded as its headers state; the message names the stated coding."""


def undone(body: bytes, *, transfer: str, content: str, most_bytes: int) -> bytes:
    r"""The body without its codings, cut off behind ``most_bytes``: one that is so long may be
    longer, and still coded.

    Args:
        body: as it was sent.
        transfer: the header ``Transfer-Encoding``; empty when there is none.
        content: the header ``Content-Encoding``.
        most_bytes: maximum bytes that are decoded.

    Raises:
        Undecodable: when the body is not coded as stated, or the coding is unknown.

    >>> undone(
    ...     b"3;x=y\r\n<p>\r\n5 \r\nhello\r\n0\r\n\r\n",
    ...     transfer="chunked",
    ...     content="",
    ...     most_bytes=99,
    ... )
    b'<p>hello'
    """
    for coding in [*reversed(_names(transfer)), *reversed(_names(content))]:
        if coding not in UNDOING:
            raise Undecodable(f"the coding {coding} is not known")
        body = UNDOING[coding](body, most_bytes)
        if len(body) >= most_bytes:  # the result of another decoder would be truncated, too
            break
    return body[:most_bytes]


def _names(header: str) -> list[str]:
    return [name for part in header.lower().split(",") if (name := part.strip()) not in NOTHING]


def _put_together(body: bytes, _: int) -> bytes:
    chunks, at = list[bytes](), 0
    while head := _CHUNK.match(body, at):
        at = head.end() + int(head[1], 16)
        if at > len(body):
            raise Undecodable("a chunk is cut short")
        chunks.append(body[head.end() : at])
        if at == head.end():
            return b"".join(chunks)
        at += 2 * body.startswith(b"\r\n", at)
    if at < len(body):
        raise Undecodable("not in chunks")
    return b"".join(chunks)


def _ungzipped(body: bytes, most_bytes: int) -> bytes:
    return _read(Members(io.BytesIO(body), where="a body"), most_bytes) if body else b""


def _inflated(body: bytes, most_bytes: int) -> bytes:
    """With a zlib header, as specified, or without, as some servers send it."""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(bits)
        with contextlib.suppress(zlib.error):
            found = unpacker.decompress(body, most_bytes)
            if found or unpacker.eof:
                return found
    raise Undecodable("not deflated")


def _without_brotli(body: bytes, most_bytes: int) -> bytes:
    return _read(cast("BinaryIO", BrotliReader(io.BytesIO(body))), most_bytes) if body else b""


def _without_zstd(body: bytes, most_bytes: int) -> bytes:
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 23)  # RFC 9659: of HTTP
    return _read(unpacker.stream_reader(body), most_bytes)


def _read(source: BinaryIO | Members, most_bytes: int) -> bytes:
    found = bytearray()
    try:
        while len(found) < most_bytes and (
            piece := source.read(min(_READ_BYTES, most_bytes - len(found)))
        ):
            found += piece
    except (CorruptFile, OSError, zstandard.ZstdError) as error:
        if not found:
            raise Undecodable(str(error)) from error
    return bytes(found)


NOTHING = frozenset(("", "identity", "none"))
UNDOING: dict[str, Callable[[bytes, int], bytes]] = {
    "chunked": _put_together,
    "gzip": _ungzipped,
    "x-gzip": _ungzipped,
    "deflate": _inflated,
    "br": _without_brotli,
    "zstd": _without_zstd,
}
"""Decoders by coding; each gives no more than its limit."""
