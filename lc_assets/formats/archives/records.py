"""The records of an archive, each with its location in the file.

WARC files, and their variants WET and WAT, are read record by record; every record must be
complete. One whose length is not the stated one comes without content, and the next gzip member, or
in a file that is not compressed the next line that begins with ``WARC/1.``, is the next record.
Source: WARC 1.1 (ISO 28500:2017).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file
from lc_assets.formats.archives.members import NO_PLACE, Members, Plain, opened
from lc_assets.formats.unpacking import require_small

MOST_WRONG = 100
"""Records of a file whose lengths may be wrong; each may have to be read twice."""
WRONG_LENGTH = "wrong length"
"""Why such a record is not read."""

MAX_HEADER_BYTES = 1 << 20
"""Maximum bytes of a record's header."""

Kinds = tuple[WarcRecordType, ...]


class Block(NamedTuple):
    """A record and its content.

    Attributes:
        record: its headers.
        content: as much of its block as was requested.
        n_bytes: length of the whole block.
        offset: where in the file it begins; `NO_PLACE` when it does not begin a gzip member.
        length: how many bytes of the file it takes, up to the next record; 0 when it has no place.
        has_wrong_length: whether its length is not the stated one; `content` is empty then.
    """

    record: WarcRecord
    content: bytes
    n_bytes: int
    offset: int = NO_PLACE
    length: int = 0
    has_wrong_length: bool = False

    def header(self, name: str) -> str:
        """A header of the record, without angle brackets around it; empty when there is none."""
        return bare(self.record.headers.get(name))

    @property
    def is_whole(self) -> bool:
        """Whether `content` is the whole block."""
        return len(self.content) == self.n_bytes


def records_in(
    source: Path | BinaryIO, *, filename: str, most_bytes: int, kinds: Kinds
) -> Iterator[tuple[str, Block]]:
    """Yield every record of an archive, in its order, with its name for messages and its location.

    Args:
        source: the file's path, or the file, open at its beginning.
        filename: its name in messages; it is gzipped when that ends in ``.gz``.
        most_bytes: maximum bytes of a block that are kept.
        kinds: kinds of records whose content is read.

    Raises:
        CorruptFile: as `blocks`, but for records of wrong lengths before the last one.
    """
    with opened(source, where=filename) as stream:
        held: Block | None = None
        n_records = 0
        for block in _all_blocks(stream, where=filename, most_bytes=most_bytes, kinds=kinds):
            if block is None and held is not None:
                held = held._replace(content=b"", has_wrong_length=True)
            elif block is not None:
                offset = stream.place_of(block.record.stream_pos)
                if held is not None:
                    yield f"{filename}, record {n_records}", _ending(held, offset)
                    n_records += 1
                held = block._replace(offset=offset)
        if held is not None:
            yield f"{filename}, record {n_records}", _ending(held, stream.n_packed)


class _CutShort(CorruptFile):
    """A record is shorter than stated."""

    def __init__(self, message: str, block: Block) -> None:
        super().__init__(message)
        self.block = block


def _all_blocks(
    stream: Members | Plain, *, where: str, most_bytes: int, kinds: Kinds
) -> Iterator[Block | None]:
    """Yield the blocks of `blocks`; None after one whose length is wrong."""
    position = -1
    for n_wrong in range(MOST_WRONG + 1):
        try:
            for block in blocks(stream, where=where, most_bytes=most_bytes, kinds=kinds):
                position = block.record.stream_pos
                yield block
        except CorruptFile as error:
            if isinstance(error, _CutShort):
                position = error.block.record.stream_pos
                yield error.block
            elif not isinstance(error.__cause__, OSError):  # no record begins where one ends
                raise
            if position < 0 or n_wrong == MOST_WRONG:
                raise
            yield None
            if not stream.skip_to_next(position):
                raise
            position = -1
        else:
            return


def blocks(
    source: Members | Plain | BinaryIO,
    *,
    where: str,
    most_bytes: int,
    kinds: Kinds,
    to_the_end: bool = True,
) -> Iterator[Block]:
    """Yield every record of an archive, in its order; those of other kinds than ``kinds`` come
    without content, but must be complete.

    Otherwise a file truncated between two gzip members, or with wrong lengths, would look intact.

    Args:
        source: the archive's bytes, from its beginning.
        where: its name, for messages.
        most_bytes: maximum bytes of a block that are kept.
        kinds: kinds of records whose content is read.
        to_the_end: whether to read records longer than ``most_bytes`` to their end; if not, the
            records after them are not found.

    Raises:
        CorruptFile: when the archive is damaged or truncated, or a record's length is not the
            stated one.
    """
    with library_errors_as_corrupt_file(where, DAMAGED):
        for record in ArchiveIterator(
            cast("BinaryIO", source),
            parse_http=False,
            stream_detect=False,
            max_header_len=MAX_HEADER_BYTES,
        ):
            named = f"{where}: record {str(record.record_id)[:200]} at byte {record.stream_pos:,}"
            if "Content-Length" not in record.headers or "\n" in (
                record.headers.get("WARC-Type") or "\n"
            ):
                raise CorruptFile(
                    f"{named} lacks Content-Length or WARC-Type; do its lines end in CR and LF, as "
                    "they must?"
                )
            is_wanted = record.record_type in kinds
            require_small(min(record.content_length, most_bytes) if is_wanted else 0)
            content = record.reader.read(most_bytes) if is_wanted else b""
            if not to_the_end and record.content_length > most_bytes:
                yield Block(record, content, record.content_length)
                return
            n_found = len(content) + record.reader.consume()
            if n_found < record.content_length:
                raise _CutShort(
                    f"{named} is cut short: {n_found:,} of {record.content_length:,} bytes; fetch "
                    "it again",
                    Block(record, b"", n_found),
                )
            yield Block(record, content, n_found)


def bare(header: str | None) -> str:
    """A header's value without angle brackets around it, which some crawlers write around addresses
    and ids.

    >>> bare("<https://example.org/> "), bare("urn:uuid:12"), bare(None)
    ('https://example.org/', 'urn:uuid:12', '')
    """
    return (header or "").strip().removeprefix("<").removesuffix(">")


def _ending(block: Block, offset: int) -> Block:
    if NO_PLACE in {block.offset, offset}:
        return block._replace(offset=NO_PLACE)
    return block._replace(length=offset - block.offset)
