"""Single records of archives, by range requests: from a folder, a web server or a bucket.

A record is named by the archive's path, its offset and its length, as an index of a crawl has them.
What such a line says is not believed: a path that leads out of the crawl, a negative offset, a
length beyond all pages, bytes that are no record, or a record that is cut, are `Unread` like any
other page that is not there. Only when nobody answers there is an error
(`lc_assets.errors.Unreachable`).

Records are asked for some at a time, those that lie side by side as one, so places that are sorted
by archive and offset cost fewest requests.
"""

import bisect
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.pages import MAX_PAGE_BYTES, RESPONSES, HtmlPage, page_of
from lc_assets.formats.archives.paths import MOST_ARCHIVE_BYTES, is_inside
from lc_assets.formats.archives.records import Block, Kinds, Members, Plain, blocks, opened
from lc_assets.formats.corpora.records import Unread

Found = TypeVar("Found")

RECORDS_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 32 << 20
"""Records that are asked for together hold no more than these bytes, or are one."""

NEAR_BYTES: Final = 64 << 10
"""Records of one archive that lie no further apart are one request: a request costs about what
these bytes do.
"""

HEAD_BYTES: Final = 1 << 20
"""A record may take so much more than the page in it."""

PIECES_BEHIND: Final = 4
"""Of a member that goes on behind its record, no more is read."""

_GZIP: Final = b"\x1f\x8b"
_PLAIN: Final = b"WARC/"


class Spot(NamedTuple):
    """Where a record lies.

    Attributes:
        filename: the archive's path, relative to the root of what is read from.
        offset: where its gzip member begins, in bytes.
        length: of that member.
    """

    filename: str
    offset: int
    length: int


class Ranges(Protocol):
    """What answers range requests; `lc_assets.lake.upstream.Upstream` does."""

    def ranges(self, pieces: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Bytes ``start`` to ``stop`` of files; `FileNotFoundError` when one of the files is not
        there.
        """
        ...


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


def pages_at(
    upstream: Ranges, spots: Iterable[Spot], *, max_page_bytes: int = MAX_PAGE_BYTES
) -> Iterator[HtmlPage | Unread]:
    """Yield the page of each record, in the order of the spots; in place of one that cannot be
    read, say why.

    Beside the reasons of `lc_assets.formats.archives.pages` there are ``place refused`` (a path
    outside, a negative offset, an impossible length), ``archive missing``, ``no record there`` and
    ``record damaged``.

    Args:
        upstream: where the archives lie.
        spots: which records.
        max_page_bytes: longest page that is read.

    Raises:
        Unreachable: when bytes do not come; says nothing about the records.
    """

    def read(block: Block, spot: Spot, where: str) -> HtmlPage | Unread:
        return page_of(
            block._replace(offset=spot.offset, length=spot.length),
            spot.filename,
            where,
            max_page_bytes,
        )

    return fetched(upstream, spots, read, kinds=RESPONSES, most_bytes=max_page_bytes)


def fetched(
    upstream: Ranges,
    spots: Iterable[Spot],
    read: Callable[[Block, Spot, str], Found],
    *,
    kinds: Kinds,
    most_bytes: int,
) -> Iterator[Found | Unread]:
    """Yield what ``read`` makes of each record, in the order of the spots; in place of one that is
    not there, say why.

    Args:
        upstream: where the archives lie.
        spots: which records.
        read: is given a record, its spot, and words for people where that is.
        kinds: of records whose content is wanted.
        most_bytes: no more of a block is held, nor unpacked.
    """
    most_packed = most_bytes + HEAD_BYTES
    for batch in _batches(spots, most_packed):
        packed = _asked(upstream, [spot for spot in batch if _is_sound(spot, most_packed)])
        for spot in batch:
            where = f"{spot.filename} at byte {spot.offset:,}"
            try:
                yield read(_block(spot, packed, kinds, most_bytes), spot, where)
            except _NoRecord as reason:
                yield Unread(id="", where=where, why=str(reason))


class _NoRecord(Exception):
    """There is no record to be read; the message is the reason."""


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


def _is_sound(spot: Spot, most_packed: int) -> bool:
    return (
        is_inside(spot.filename)
        and 0 <= spot.offset < MOST_ARCHIVE_BYTES
        and 0 < spot.length <= most_packed
    )


def _asked(upstream: Ranges, spots: Sequence[Spot]) -> dict[Spot, bytes | None]:
    """Bytes of each record; None where the archive is missing."""
    requests = _joined(spots)
    answers = _answers(upstream, requests)
    starts = [(request.filename, request.offset) for request in requests]
    found: dict[Spot, bytes | None] = {}
    for spot in spots:
        place = bisect.bisect_right(starts, (spot.filename, spot.offset)) - 1
        start, answer = spot.offset - requests[place].offset, answers[place]
        found[spot] = None if answer is None else answer[start : start + spot.length]
    return found


def _answers(upstream: Ranges, requests: Sequence[Spot]) -> Sequence[bytes | None]:
    pieces = [(spot.filename, spot.offset, spot.offset + spot.length) for spot in requests]
    try:
        return upstream.ranges(pieces)
    except FileNotFoundError:  # one of them, or several
        return [_answer(upstream, piece) for piece in pieces]


def _answer(upstream: Ranges, piece: tuple[str, int, int]) -> bytes | None:
    try:
        return upstream.ranges([piece])[0]
    except FileNotFoundError:
        return None


def _joined(spots: Sequence[Spot]) -> list[Spot]:
    """Join records of one archive that touch, overlap or lie near each other.

    >>> _joined([Spot("a", 200, 100), Spot("b", 0, 9), Spot("a", 0, 100)])
    [Spot(filename='a', offset=0, length=300), Spot(filename='b', offset=0, length=9)]
    """
    joined: list[Spot] = []
    for spot in sorted(spots):
        last = joined[-1] if joined else None
        stop = spot.offset + spot.length
        if (
            last is not None
            and last.filename == spot.filename
            and spot.offset <= last.offset + last.length + NEAR_BYTES
        ):
            joined[-1] = last._replace(length=max(last.length, stop - last.offset))
        else:
            joined.append(spot)
    return joined


def _block(spot: Spot, packed: Mapping[Spot, bytes | None], kinds: Kinds, most_bytes: int) -> Block:
    if spot not in packed:
        raise _NoRecord("place refused")
    found = packed[spot]
    if found is None:
        raise _NoRecord("archive missing")
    if not found.startswith((_GZIP, _PLAIN)):
        raise _NoRecord("no record there")
    try:
        return _first_block(found, kinds, most_bytes)
    except CorruptFile as error:
        raise _NoRecord("record damaged") from error


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
    """Read on to the checksum of the record's member, which is not far; of what lies behind it
    nothing matters.
    """
    for _ in range(PIECES_BEHIND):
        if stream.n_packed or not stream.read():
            return
