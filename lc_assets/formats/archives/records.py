"""The records of an archive, each with the place where it lies.

Here: going through a WARC file, or any of its kind (WET, WAT), record by record; whatever a
    record's kind, it must be whole.
Not here: what is in a record (`responses`, `wat`), fetching single ones (`fetching`).
Source: WARC 1.1 (ISO 28500:2017).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, cast

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file
from lc_assets.formats.archives.members import NO_PLACE, Members, Plain

MAX_HEADER_BYTES: Final = 1 << 20
"""A longer head is that of no record."""

Kinds = tuple[WarcRecordType, ...]


class Block(NamedTuple):
    """A record and what is in it.

    Attributes:
        record: its headers.
        content: as much of its block as was asked for.
        n_bytes: length of the whole block.
        offset: where in the file it begins; `NO_PLACE` when it does not begin a gzip member.
        length: how many bytes of the file it takes, up to the next record; 0 when it has no place.
    """

    record: WarcRecord
    content: bytes
    n_bytes: int
    offset: int = NO_PLACE
    length: int = 0

    def header(self, name: str) -> str:
        """A header of the record, without angle brackets around it; empty when there is none."""
        return bare(self.record.headers.get(name))

    @property
    def is_whole(self) -> bool:
        """Whether `content` is all of it."""
        return len(self.content) == self.n_bytes


class Bytes(Protocol):
    """What records are read from: bytes in their order that know how many they were."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        ...

    def tell(self) -> int:
        """Bytes that were read so far."""
        ...


@contextlib.contextmanager
def opened(source: Path | BinaryIO, *, where: str) -> Iterator[Members | Plain]:
    """Bytes of an archive by its path, or of one that is open already; gzipped when the name
    ``where`` ends in ``.gz``.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        yield Members(stream, where=where) if where.endswith(".gz") else Plain(stream)


def placed_blocks(
    source: Members | Plain, *, where: str, most_bytes: int, kinds: Kinds
) -> Iterator[Block]:
    """Yield every record of an archive, in its order, with its place; see `blocks`."""
    held: Block | None = None
    for block in blocks(source, where=where, most_bytes=most_bytes, kinds=kinds):
        offset = source.place_of(block.record.stream_pos)
        if held is not None:
            yield _ending(held, offset)
        held = block._replace(offset=offset)
    if held is not None:
        yield _ending(held, source.n_packed)


def blocks(
    source: Bytes, *, where: str, most_bytes: int, kinds: Kinds, to_the_end: bool = True
) -> Iterator[Block]:
    """Yield every record of an archive, in its order; of other kinds than ``kinds`` without
    content, but they must be whole.

    A file that was cut between two gzip members, or whose lengths lie, looks sound otherwise.

    Args:
        source: the archive's bytes, from its beginning.
        where: its name, for messages.
        most_bytes: no more of a block is held.
        kinds: records whose content is wanted.
        to_the_end: whether to read records to their end that are longer than ``most_bytes``; what
            comes behind them is not found else.

    Raises:
        CorruptFile: when the archive is damaged or cut short, or a record is not as long as it
            says.
    """
    with library_errors_as_corrupt_file(where, DAMAGED):
        for record in ArchiveIterator(
            cast("BinaryIO", source),
            parse_http=False,
            stream_detect=False,
            max_header_len=MAX_HEADER_BYTES,
        ):
            if "Content-Length" not in record.headers or "\n" in (
                record.headers.get("WARC-Type") or "\n"
            ):
                said = (
                    "lacks Content-Length or WARC-Type; do its lines end in CR and LF, as they "
                    "must?"
                )
                raise CorruptFile(f"{_named(where, record)} {said}")
            content = record.reader.read(most_bytes) if record.record_type in kinds else b""
            if not to_the_end and record.content_length > most_bytes:
                yield Block(record, content, record.content_length)
                return
            n_found = len(content) + record.reader.consume()
            if n_found < record.content_length:
                said = (
                    f"is cut short: {n_found:,} of {record.content_length:,} bytes; fetch it again"
                )
                raise CorruptFile(f"{_named(where, record)} {said}")
            yield Block(record, content, n_found)


def bare(header: str | None) -> str:
    """A header's value without angle brackets around it, which some crawlers write around addresses
    and ids.

    >>> bare("<https://example.org/> "), bare("urn:uuid:12"), bare(None)
    ('https://example.org/', 'urn:uuid:12', '')
    """
    return (header or "").strip().removeprefix("<").removesuffix(">")


def _named(where: str, record: WarcRecord) -> str:
    return f"{where}: record {record.record_id} at byte {record.stream_pos:,}"


def _ending(block: Block, offset: int) -> Block:
    if NO_PLACE in {block.offset, offset}:
        return block._replace(offset=NO_PLACE)
    return block._replace(length=offset - block.offset)
