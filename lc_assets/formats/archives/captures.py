"""Captures: that a page was fetched, when, and where its record lies; what an index of a crawl says
of it, or its archive.

Here: a capture, and the captures of an archive that is read through by its records' heads alone,
    without decoding pages.
Not here: captures out of indexes (`cdxj`, `columnar`), or of lists of links (`wat`).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.formats.archives.members import NO_PLACE
from lc_assets.formats.archives.pages import RESPONSES, kind_of_record
from lc_assets.formats.archives.records import Block, Kinds, opened, placed_blocks
from lc_assets.formats.archives.responses import MAX_HEAD_BYTES, is_html, read_summary
from lc_assets.formats.corpora.records import Unread

NO_PLACE_OF_ITS_OWN: Final = "no place of its own"

_NO_DIGITS: Final = re.compile(r"\D", re.ASCII)
_EARLIEST: Final = "00000101000000"


class Capture(msgspec.Struct, frozen=True):
    """One capture of a page.

    Attributes:
        url: its address, as the crawler fetched it.
        timestamp: when, in UTC: 14 digits, year to second.
        is_page: whether the server answered with status 200 and HTML.
        digest: SHA-1 of what the server sent, ``sha1:`` and base32; empty when nobody says.
        filename: path of the archive, as whoever says it knows it.
        offset: where in the archive its record begins.
        length: how many bytes of the archive the record takes.
    """

    url: str
    timestamp: str
    is_page: bool
    digest: str
    filename: str
    offset: int
    length: int


def timestamp_of(date: str) -> str:
    """A date of ISO 8601 as 14 digits; what it leaves out is the earliest that it can be. Empty
    when it has no year.

    >>> timestamp_of("2024-05-18T01:58:10Z"), timestamp_of("2024-05-18T01:58:10.123456Z"), timestamp_of("2024-05"), timestamp_of("?")
    ('20240518015810', '20240518015810', '20240501000000', '')
    """
    digits = _NO_DIGITS.sub("", date)[:14]
    return digits + _EARLIEST[len(digits) :] if len(digits) >= 4 else ""


def digest_of_sha1(digest: str) -> str:
    """A digest with its algorithm in front, as archives write it; indexes leave that out.

    >>> digest_of_sha1("RY7PLBUFQNI2FFV5FTUQK72W6SNPXLQU"), digest_of_sha1("sha1:RY7P"), digest_of_sha1("")
    ('sha1:RY7PLBUFQNI2FFV5FTUQK72W6SNPXLQU', 'sha1:RY7P', '')
    """
    return f"sha1:{digest}" if digest and ":" not in digest else digest


def captures_in(source: Path | BinaryIO, *, filename: str) -> Iterator[Capture | Unread]:
    """Yield the captures of a WARC file in its order: every response, whether it is a page or not;
    in place of other records, why not.

    Args:
        source: the file's path, or the file, open at its beginning.
        filename: its name in what is yielded and in messages; its end, ``.gz``, says whether it is
            gzipped.

    Raises:
        CorruptFile: when the file is damaged or cut short, or a record is not as long as it says.
    """
    for where, block in heads_in(source, filename=filename, kinds=RESPONSES):
        if block.record.record_type != WarcRecordType.response:
            yield Unread(id=block.header("WARC-Record-ID"), where=where, why=kind_of_record(block))
        elif block.offset == NO_PLACE:
            yield Unread(id=block.header("WARC-Record-ID"), where=where, why=NO_PLACE_OF_ITS_OWN)
        else:
            yield _capture(block, filename)


def heads_in(
    source: Path | BinaryIO, *, filename: str, kinds: Kinds
) -> Iterator[tuple[str, Block]]:
    """The records of an archive with the beginning of their content, and for people where they
    are.
    """
    with opened(source, where=filename) as stream:
        found = placed_blocks(stream, where=filename, most_bytes=MAX_HEAD_BYTES, kinds=kinds)
        for number, block in enumerate(found):
            yield f"{filename}, record {number}", block


def _capture(block: Block, filename: str) -> Capture:
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
    )
