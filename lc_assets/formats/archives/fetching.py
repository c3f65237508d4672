"""Pages of a crawl: HTML as it was fetched, with the record that holds it; and single records of
archives, by range requests to a folder, a web server or a bucket.

A page is a ``response`` record with status 200 and HTML. Every other record is an `Unread` with one
of these reasons, so that all records can be counted:

=======================  ===========================================================================
reason                   when
=======================  ===========================================================================
``warcinfo record``, …   records of other kinds: ``request``, ``metadata``, ``revisit``,
                         ``resource``, …
``status not 200``       a redirect, an error, or no HTTP at all
``not HTML``             by its type
``wrong length``         where the archive is read: its Content-Length is not that of its block
``cut short``            the crawler marked it (``WARC-Truncated``)
``record too long``      as sent or as decoded
``undecodable HTTP``     not chunked or compressed as its headers state
``place refused``        a path that leads out of the crawl, a negative offset, an impossible length
``archive missing``      the archive does not exist
``no record there``      the bytes are not a record
``record damaged``       the record is truncated or damaged
=======================  ===========================================================================

HTTP's Content-Length is ignored: crawlers decode bodies and leave that header as it was. A single
record is named by the archive's path, its offset and its length, as the index of a crawl states
them; these are not trusted. Only a server that does not answer is an error
(`lc_assets.errors.Unreachable`). Records are requested in batches, adjacent ones together, so
places sorted by archive and offset cost the fewest requests.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from fastwarc.warc import WarcRecordType

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.members import Members, Plain, opened
from lc_assets.formats.archives.paths import refusal
from lc_assets.formats.archives.records import Block, Kinds, blocks
from lc_assets.formats.archives.responses import NoPage, html_of
from lc_assets.formats.arrays.files import Piece, coalesced, cut_out
from lc_assets.formats.corpora.containers import Unread

MAX_PAGE_BYTES = 16 << 20
"""Default limit for pages. Common Crawl truncates pages at 1 MiB, since 2025 at 5 MiB.
"""

RESPONSES = (WarcRecordType.response,)
_OTHER_KINDS = frozenset(
    ("warcinfo", "request", "metadata", "revisit", "resource", "conversion", "continuation")
)


class HtmlPage(msgspec.Struct, frozen=True):
    """A page as it was fetched: its address, as the crawler fetched it, and its HTML, decoded."""

    url: str
    html: str


def page_of(block: Block, where: str, max_page_bytes: int) -> HtmlPage | Unread:
    """The page in a record, or the reason for none.

    Args:
        block: the record, read to ``max_page_bytes``.
        where: name of the record, for messages.
        max_page_bytes: longest page that is read.
    """
    try:
        return HtmlPage(block.header("WARC-Target-URI"), _html(block, max_page_bytes))
    except NoPage as reason:
        return unread(block, where, str(reason))


def unread(block: Block, where: str, why: str) -> Unread:
    """A record that is not read."""
    return Unread(id=block.header("WARC-Record-ID"), where=where, why=why)


def kind_of_record(block: Block) -> str:
    """The kind of a record that is not a page, as a reason: ``request record``."""
    kind = block.header("WARC-Type").lower()
    return f"{kind if kind in _OTHER_KINDS else 'unknown'} record"


def _html(block: Block, max_page_bytes: int) -> str:
    if block.record.record_type != WarcRecordType.response:
        raise NoPage(kind_of_record(block))
    if block.record.headers.get("WARC-Truncated"):
        raise NoPage("cut short")
    return html_of(block, max_page_bytes)


Found = TypeVar("Found")

RECORDS_AT_ONCE = 64
BYTES_AT_ONCE = 32 << 20
"""Maximum bytes of one request, unless one record has more."""

HEAD_BYTES = 1 << 20
"""How much larger than its page a record may be."""

PIECES_BEHIND = 4
"""Pieces read of a member that continues after its record."""

_GZIP = b"\x1f\x8b"
_PLAIN = b"WARC/"


class Spot(NamedTuple):
    """Location of a record.

    Attributes:
        filename: the archive's path, relative to the upstream's root.
        offset: where its gzip member begins, in bytes.
        length: bytes of that member.
    """

    filename: str
    offset: int
    length: int

    @property
    def piece(self) -> Piece:
        """The bytes of the member."""
        return Piece(self.filename, self.offset, self.offset + self.length)


class Ranges(Protocol):
    """Serves range requests, as `lc_assets.lake.upstream.Upstream` does."""

    def ranges(self, pieces: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Bytes ``start`` to ``stop`` of files; `FileNotFoundError` when one of the files is not
        there.
        """
        ...


def pages_at(
    upstream: Ranges, spots: Iterable[Spot], *, max_page_bytes: int = MAX_PAGE_BYTES
) -> Iterator[HtmlPage | Unread]:
    """Yield the page of each record, in the order of the spots, or an `Unread` for one that cannot
    be read.

    Args:
        upstream: source of the archives.
        spots: locations of the records.
        max_page_bytes: longest page that is read.

    Raises:
        Unreachable: when the server does not answer, whether or not the records exist.
    """
    return fetched(
        upstream,
        spots,
        lambda block, where: page_of(block, where, max_page_bytes),
        kinds=RESPONSES,
        most_bytes=max_page_bytes,
    )


def fetched(
    upstream: Ranges,
    spots: Iterable[Spot],
    read: Callable[[Block, str], Found],
    *,
    kinds: Kinds,
    most_bytes: int,
) -> Iterator[Found | Unread]:
    """Yield what ``read`` returns for each record, in the order of the spots, or an `Unread` for
    one that is missing.

    Args:
        upstream: source of the archives.
        spots: locations of the records.
        read: called with a record, and its name for messages.
        kinds: kinds of records whose content is read.
        most_bytes: maximum bytes of a block that are kept or decompressed.
    """
    most_packed = most_bytes + HEAD_BYTES
    for batch in _batches(spots, most_packed):
        sound = [spot for spot in batch if not refusal(*spot) and spot.length <= most_packed]
        packed = _read_all(upstream, sound)
        for spot in batch:
            where = f"{spot.filename} at byte {spot.offset:,}"
            try:
                block = _block(spot, packed, kinds, most_bytes)
            except NoPage as reason:
                yield Unread(id="", where=where, why=str(reason))
                continue
            yield read(block, where)


def _batches(spots: Iterable[Spot], most_packed: int) -> Iterator[list[Spot]]:
    batch: list[Spot] = []
    n_bytes = 0
    for spot in spots:
        packed = min(max(spot.length, 0), most_packed)
        if batch and (len(batch) == RECORDS_AT_ONCE or n_bytes + packed > BYTES_AT_ONCE):
            yield batch
            batch, n_bytes = [], 0
        batch.append(spot)
        n_bytes += packed
    if batch:
        yield batch


def _read_all(upstream: Ranges, spots: Sequence[Spot]) -> dict[Spot, bytes | None]:
    """Bytes of each record; None where the archive is missing."""
    requests = coalesced(spot.piece for spot in spots)
    contents: Sequence[bytes | None]
    try:
        contents = upstream.ranges(requests)
    except FileNotFoundError:  # one of them, or several
        contents = [_read_one(upstream, request) for request in requests]
    return {spot: cut_out(spot.piece, requests, contents) for spot in spots}


def _read_one(upstream: Ranges, piece: Piece) -> bytes | None:
    try:
        return upstream.ranges([piece])[0]
    except FileNotFoundError:
        return None


def _block(spot: Spot, packed: Mapping[Spot, bytes | None], kinds: Kinds, most_bytes: int) -> Block:
    if spot not in packed:
        raise NoPage("place refused")
    found = packed[spot]
    if found is None:
        raise NoPage("archive missing")
    if not found.startswith((_GZIP, _PLAIN)):
        raise NoPage("no record there")
    try:
        return _first_block(found, kinds, most_bytes)
    except CorruptFile as error:
        raise NoPage("record damaged") from error


def _first_block(packed: bytes, kinds: Kinds, most_bytes: int) -> Block:
    with opened(
        io.BytesIO(packed), where="record.gz" if packed.startswith(_GZIP) else "record"
    ) as stream:
        for block in blocks(
            stream, where="record", most_bytes=most_bytes, kinds=kinds, to_the_end=False
        ):
            if block.is_whole:
                _check_the_end(stream)
            return block
    raise CorruptFile("no record in a range of bytes")


def _check_the_end(stream: Members | Plain) -> None:
    """Read to the checksum of the record's member, which is close; later bytes are not checked."""
    for _ in range(PIECES_BEHIND):
        if stream.n_packed or not stream.read():
            return
