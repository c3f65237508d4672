"""Captures: which page was fetched when, and the location of its record; and the sorted CDXJ index
that lists them.

::

    org,wikipedia,an)/wiki/escopete 20240518015810 {"url": "https://an.wikipedia.org/wiki/Escopete",
    "mime": "text/html",
        "mime-detected": "text/html", "status": "200", "digest": "RY7PLBUF…", "length": "17423",
        "offset": "80610731", "filename":
        "crawl-data/CC-MAIN-2024-22/segments/…/warc/CC-MAIN-….warc.gz"}

Lines are sorted by their bytes. The key is `lc_assets.text.links.page_keys`'s. A file is plain or
gzip; Common Crawl's ``cdx-00000.gz`` are gzip members of 3,000 lines, read one after another. The
values of a line are not trusted: see `refusal`.

`matches` merges an index with sorted keys; blocks of lines without a requested key are not parsed.
`captures_in` reads the captures of an archive from its records' headers alone.
"""

import bisect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.archives.fetching import RESPONSES, kind_of_record, unread
from lc_assets.formats.archives.members import NO_PLACE, opened
from lc_assets.formats.archives.paths import refusal
from lc_assets.formats.archives.records import WRONG_LENGTH, Block, Kinds, records_in
from lc_assets.formats.archives.responses import MAX_HEAD_BYTES, NoPage, is_html, read_summary
from lc_assets.formats.corpora.containers import Unread

_NO_DIGITS = re.compile(r"\D", re.ASCII)
_EARLIEST = "00000101000000"


class Capture(msgspec.Struct, frozen=True):
    """One capture of a page.

    Attributes:
        url: its address, as the crawler fetched it.
        timestamp: when it was fetched, in UTC: 14 digits, year to second.
        is_page: whether the server answered with status 200 and HTML.
        digest: SHA-1 of what the server sent, ``sha1:`` and base32; empty when unknown.
        filename: path of the archive, as its source names it.
        offset: where in the archive its record begins.
        length: bytes of the record in the archive.
        redirect: address that the server redirected to, as it or an index states it; empty when it
            did not.
    """

    url: str
    timestamp: str
    is_page: bool
    digest: str
    filename: str
    offset: int
    length: int
    redirect: str = ""


def timestamp_of(date: str) -> str:
    """An ISO 8601 date as 14 digits; missing parts are the earliest possible. Empty when it has no
    year.

    >>> (
    ...     timestamp_of("2024-05-18T01:58:10Z"),
    ...     timestamp_of("2024-05-18T01:58:10.123456Z"),
    ...     timestamp_of("2024-05"),
    ...     timestamp_of("?"),
    ... )
    ('20240518015810', '20240518015810', '20240501000000', '')
    """
    digits = _NO_DIGITS.sub("", date)[:14]
    return digits + _EARLIEST[len(digits) :] if len(digits) >= 4 else ""


def digest_of_sha1(digest: str) -> str:
    """A digest with its algorithm, as archives write it; indexes leave the algorithm out.

    >>> (
    ...     digest_of_sha1("RY7PLBUFQNI2FFV5FTUQK72W6SNPXLQU"),
    ...     digest_of_sha1("sha1:RY7P"),
    ...     digest_of_sha1(""),
    ... )
    ('sha1:RY7PLBUFQNI2FFV5FTUQK72W6SNPXLQU', 'sha1:RY7P', '')
    """
    return f"sha1:{digest}" if digest and ":" not in digest else digest


def captures_in(source: Path | BinaryIO, *, filename: str) -> Iterator[Capture | Unread]:
    """Yield the captures of a WARC file in its order: every response, whether it is a page or not,
    and an `Unread` for each other record.

    Args:
        source: the file's path, or the file, open at its beginning.
        filename: its name in captures and messages; it is gzipped when that ends in ``.gz``.

    Raises:
        CorruptFile: when the file is damaged or truncated, or the last record's length is not the
            stated one.
    """
    return captures_by(
        _capture, source, filename=filename, most_bytes=MAX_HEAD_BYTES, kinds=RESPONSES
    )


def captures_by(
    capture_of: Callable[[Block, str], Capture],
    source: Path | BinaryIO,
    *,
    filename: str,
    most_bytes: int,
    kinds: Kinds,
) -> Iterator[Capture | Unread]:
    """Yield the capture of each record that can be fetched alone; ``capture_of`` raises `NoPage`
    for a record that is none.
    """
    found = records_in(source, filename=filename, most_bytes=most_bytes, kinds=kinds)
    for where, block in found:
        if block.has_wrong_length:
            yield unread(block, where, WRONG_LENGTH)
            continue
        try:
            capture = capture_of(block, filename)
        except NoPage as reason:
            yield unread(block, where, str(reason))
            continue
        yield capture if block.offset != NO_PLACE else unread(block, where, "no place of its own")


def _capture(block: Block, filename: str) -> Capture:
    if block.record.record_type != WarcRecordType.response:
        raise NoPage(kind_of_record(block))
    head = read_summary(block.content)
    return Capture(
        url=block.header("WARC-Target-URI"),
        timestamp=timestamp_of(block.header("WARC-Date")),
        is_page=head.status == 200
        and is_html(head.mime, block.header("WARC-Identified-Payload-Type")),
        digest=block.header("WARC-Payload-Digest"),
        filename=filename,
        offset=block.offset,
        length=block.length,
        redirect=head.location,
    )


MAX_LINE_BYTES = 1 << 20
"""Maximum bytes of a line of an index."""

BLOCK_BYTES = 1 << 20
"""Bytes of lines that are compared at a time."""

_UNKNOWN = ("-", "unk")


class _Fields(msgspec.Struct):
    url: str
    filename: str
    offset: int | str
    length: int | str
    status: str | int = ""
    mime: str = ""
    detected: str = msgspec.field(default="", name="mime-detected")
    digest: str = ""
    redirect: str = ""


_FIELDS = msgspec.json.Decoder(_Fields)


def capture_of(line: bytes) -> Capture | str:
    """The capture that a line of an index describes, or why it is refused.

    >>> found = capture_of(
    ...     b'a)/ 20240518015810 {"url": "http://a/", "status": "200", "mime": "text/html", '
    ...     b'"length": "5", "offset": "7", "filename": "x.warc.gz", "digest": "ABC"}'
    ... )
    >>> found.url, found.timestamp, found.is_page, found.digest, found.offset, found.length
    ('http://a/', '20240518015810', True, 'sha1:ABC', 7, 5)
    >>> capture_of(b"junk")
    'line not read'
    """
    _, _, rest = line.partition(b" ")
    timestamp, _, value = rest.partition(b" ")
    try:
        found = _FIELDS.decode(value)
    except UNDECODABLE:
        return "line not read"
    if len(timestamp) != 14 or not timestamp.isdigit():
        return "line not read"
    offset, length = _number(found.offset), _number(found.length)
    if refused := refusal(found.filename, offset, length):
        return refused
    mime = "" if found.mime in _UNKNOWN else found.mime
    is_page = str(found.status) == "200" and is_html(mime, found.detected)
    return Capture(
        found.url,
        timestamp.decode(),
        is_page,
        digest_of_sha1(found.digest),
        found.filename,
        offset,
        length,
        found.redirect,
    )


REDIRECT = b'"redirect":'
"""What the lines of an index contain whose server redirected."""


def matches(
    source: Path | BinaryIO, keys: Iterable[bytes], *, where: str, marked: bytes | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield each line with one of the keys, and the key, in the order of the index.

    Args:
        source: the index's path, or the index, open at its beginning.
        keys: sorted, unique.
        where: its name, for messages; it is gzipped if this ends in ``.gz``.
        marked: if given, lines with other keys that contain it are yielded too, with an empty key.

    Raises:
        CorruptFile: when the index is damaged or truncated, has a line longer than any, or is not
            sorted.
    """
    wanted = iter(keys)
    key = next(wanted, None)
    last = b""
    for lines in blocks_of_lines(source, where=where):
        found = [line.partition(b" ")[0] for line in lines]
        if last > found[0] or found != sorted(
            found
        ):  # sorting what is sorted costs a walk along it
            raise CorruptFile(
                f"{where}: is not sorted by its keys, so nothing can be looked up in it; sort it "
                "by its bytes (LC_ALL=C)"
            )
        last, at, met = found[-1], 0, set[bytes]()
        while key is not None and key <= last:
            at = bisect.bisect_left(found, key, at)
            while at < len(found) and found[at] == key:
                met.add(key)
                yield key, lines[at]
                at += 1
            if at == len(found) and key == last:
                break  # it may continue in the next block
            key = next(wanted, None)
        if marked is not None:
            marks = zip(found, lines, strict=True)
            yield from (
                (b"", line) for key_of, line in marks if marked in line and key_of not in met
            )


def blocks_of_lines(source: Path | BinaryIO, *, where: str) -> Iterator[list[bytes]]:
    """Yield the lines of an index without their ends, in batches; empty ones are left out.

    Raises:
        CorruptFile: when the index is damaged or truncated, or has a line longer than any.
    """
    with opened(source, where=where) as stream:
        pieces, n_bytes = list[bytes](), 0
        while True:
            piece = stream.read()
            pieces.append(piece)
            n_bytes += len(piece)
            if piece and n_bytes < BLOCK_BYTES:
                continue
            text, rest = b"".join(pieces), b""
            if piece:
                text, _, rest = text.rpartition(b"\n")
            if len(rest) > MAX_LINE_BYTES:
                raise CorruptFile(
                    f"{where}: has a line of more than {MAX_LINE_BYTES:,} bytes, so it is not an "
                    "index"
                )
            if lines := [line for line in text.splitlines() if line]:
                yield lines
            if not piece:
                return
            pieces, n_bytes = [rest], 0


def _number(value: int | str) -> int:
    """A number that may be written as text; -1 for other values."""
    if isinstance(value, int):
        return value
    return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else -1
