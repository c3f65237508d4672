"""The records of an archive, each with its location in the file.

Web archives are gzipped record by record, so that one record can be fetched and read without the
others: each is a gzip member (RFC 1952), and a file is a sequence of members. `Members` reads such
a file from its beginning and records where members begin. Memory is bounded by the size that the
caller requests, whatever a member decompresses to. Checksums are verified; a file that ends within
a member, or has anything else after one, is damaged.

WARC files, and their variants WET and WAT, are read record by record; every record must be
complete.
Source: WARC 1.1 (ISO 28500:2017).
"""

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from isal import igzip_lib

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import DAMAGED, library_errors_as_corrupt_file

_DAMAGE: Final = cast("type[Exception]", igzip_lib.IsalError)

PIECE_BYTES: Final = 1 << 17
"""Compressed bytes per read."""

NO_PLACE: Final = -1
"""The offset of a record that does not begin a gzip member, so that it cannot be fetched alone."""


class Plain:
    """An archive that is not compressed: every byte can be fetched."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.n_packed = 0

    def tell(self) -> int:
        """Bytes that were read so far."""
        return self.n_packed

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        found = self._stream.read(PIECE_BYTES if size < 0 else size)
        self.n_packed += len(found)
        return found

    def place_of(self, position: int) -> int:
        """Offset in the file of the byte at ``position``."""
        return position


class Members:
    """The plain bytes of a gzip file.

    Attributes:
        n_packed: bytes of the file decompressed so far; at the end, all of them.

    >>> import gzip, io
    >>> members = Members(
    ...     io.BytesIO(gzip.compress(b"one") + gzip.compress(b"two")), where="a.gz"
    ... )
    >>> members.read(9), members.read(9), members.read(9)
    (b'one', b'two', b'')
    >>> members.place_of(0), members.place_of(1), members.place_of(3), members.n_packed
    (0, -1, 23, 46)
    """

    def __init__(self, stream: BinaryIO, *, where: str) -> None:
        self._stream, self._where = stream, where
        self._unpacker = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self._packed = b""
        self._n_read = self._n_plain = 0
        self._starts: deque[tuple[int, int]] = deque([(0, 0)])
        self.n_packed = 0

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes of one member; none at the end of the file.

        Raises:
            CorruptFile: when the file is not gzip, damaged or truncated.
        """
        while True:
            if self._unpacker.eof and not self._next_member():
                return b""
            found = self._unpack(PIECE_BYTES if size < 0 else size)
            self._n_plain += len(found)
            if self._unpacker.eof:
                self.n_packed = self._n_read - len(self._unpacker.unused_data)
            if found:
                return found

    def tell(self) -> int:
        """Plain bytes that were read so far."""
        return self._n_plain

    def place_of(self, position: int) -> int:
        """Location in the file of the member that begins at ``position`` of the plain bytes;
        `NO_PLACE` when none does.

        Positions must be given in ascending order: earlier ones are forgotten.
        """
        while self._starts and self._starts[0][0] < position:
            self._starts.popleft()
        place = NO_PLACE
        while (
            self._starts and self._starts[0][0] == position
        ):  # the last of several: those before it are empty
            place = self._starts.popleft()[1]
        return place

    def _next_member(self) -> bool:
        rest = self._unpacker.unused_data or self._more()
        if not rest:
            return False
        self._starts.append((self._n_plain, self._n_read - len(rest)))
        self._unpacker = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self._packed = rest
        return True

    def _unpack(self, size: int) -> bytes:
        packed, self._packed = self._packed, b""
        if not packed and self._unpacker.needs_input:
            packed = self._more()
            if not packed:
                was = (
                    "the file is empty, not even a header"
                    if not self._n_read
                    else "cut short or damaged: it ends within a gzip member"
                )
                raise CorruptFile(f"{self._where}: {was}; fetch it again")
        try:
            found: bytes = self._unpacker.decompress(packed, size)
        except _DAMAGE as error:
            raise CorruptFile(
                f"{self._where}: cut short or damaged: {error}; fetch it again"
            ) from error
        return found

    def _more(self) -> bytes:
        found = self._stream.read(PIECE_BYTES)
        self._n_read += len(found)
        return found


MAX_HEADER_BYTES: Final = 1 << 20
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
        """Whether `content` is the whole block."""
        return len(self.content) == self.n_bytes


@contextlib.contextmanager
def opened(source: Path | BinaryIO, *, where: str) -> Iterator[Members | Plain]:
    """Bytes of an archive by its path, or of an open one; gzipped when the name ``where`` ends in
    ``.gz``.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        yield Members(stream, where=where) if where.endswith(".gz") else Plain(stream)


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
        CorruptFile: as `blocks`.
    """
    with opened(source, where=filename) as stream:
        held: Block | None = None
        n_records = 0
        for block in blocks(stream, where=filename, most_bytes=most_bytes, kinds=kinds):
            offset = stream.place_of(block.record.stream_pos)
            if held is not None:
                yield f"{filename}, record {n_records}", _ending(held, offset)
                n_records += 1
            held = block._replace(offset=offset)
        if held is not None:
            yield f"{filename}, record {n_records}", _ending(held, stream.n_packed)


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
            content = record.reader.read(most_bytes) if record.record_type in kinds else b""
            if not to_the_end and record.content_length > most_bytes:
                yield Block(record, content, record.content_length)
                return
            n_found = len(content) + record.reader.consume()
            if n_found < record.content_length:
                raise CorruptFile(
                    f"{named} is cut short: {n_found:,} of {record.content_length:,} bytes; fetch "
                    "it again"
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
