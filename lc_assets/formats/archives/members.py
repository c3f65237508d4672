"""The bytes of an archive, and where its records can begin.

Web archives are gzipped record by record, so that one record can be fetched and read without the
others: each is a gzip member (RFC 1952), and a file is a sequence of members. `Members` reads such
a file from its beginning and records where members begin. Memory is bounded by the size that the
caller requests, whatever a member decompresses to. Checksums are verified; a file that ends within
a member, or has anything else after one, is damaged.
"""

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from isal import igzip_lib

from lc_assets.errors import CorruptFile

_DAMAGE = cast("type[Exception]", igzip_lib.IsalError)

PIECE_BYTES = 1 << 17
"""Compressed bytes per read."""

_BEGINNING = b"\nWARC/1."

NO_PLACE = -1
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

    def skip_to_next(self, position: int) -> bool:
        """Continue at the first line after ``position`` that begins as a record does; False when
        there is none.
        """
        at, text = self._stream.seek(position + 1), b""
        while piece := self._stream.read(PIECE_BYTES):
            text = text[-len(_BEGINNING) :] + piece
            at += len(piece)
            if (found := text.find(_BEGINNING)) >= 0:
                self.n_packed = self._stream.seek(at - len(text) + found + 1)
                return True
        return False


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
        self._begin(0, 0)

    def _begin(self, position: int, place: int) -> None:
        self._unpacker = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self._packed = b""
        self._n_plain, self._n_read = position, place
        self._starts: deque[tuple[int, int]] = deque([(position, place)])
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

    def skip_to_next(self, position: int) -> bool:
        """Continue at the first member that begins after ``position`` of the plain bytes; False
        when there is none.
        """
        while not (later := [start for start in self._starts if start[0] > position]):
            if not self.read():
                return False
        self._begin(*later[0])
        self._stream.seek(later[0][1])
        return True

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


@contextlib.contextmanager
def opened(source: Path | BinaryIO, *, where: str) -> Iterator[Members | Plain]:
    """Bytes of an archive by its path, or of an open one; gzipped when the name ``where`` ends in
    ``.gz``.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        yield Members(stream, where=where) if where.endswith(".gz") else Plain(stream)
