"""Bytes out of an archive, with the places where its gzip members begin.

Archives of the web are gzipped record by record, so that one of them can be fetched and read
without the others: each record is a gzip member (RFC 1952), and a file is members one behind the
other. Here: reading such a file from its beginning while knowing where members begin. Not here:
what a record is (`lc_assets.formats.archives.records`).

Memory is bounded by what one asks for, whatever a member unpacks to. Checksums are checked; a file
that ends within a member, or holds anything else behind one, is damaged.
"""

from collections import deque
from typing import BinaryIO, Final, cast

from isal import igzip_lib

from lc_assets.errors import CorruptFile

_DAMAGE: Final = cast("type[Exception]", igzip_lib.IsalError)

PIECE_BYTES: Final = 1 << 17
"""Packed bytes that are read at once."""

NO_PLACE: Final = -1
"""The offset of a record that does not begin a gzip member, so that it cannot be fetched alone."""


class Plain:
    """An archive that is not compressed: every byte of it is a place."""

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
        """Where in the file the byte at ``position`` lies."""
        return position


class Members:
    """The plain bytes of a gzip file.

    Attributes:
        n_packed: bytes of the file that were unpacked so far; all of them, once there is nothing
            more to read.

    >>> import gzip, io
    >>> members = Members(io.BytesIO(gzip.compress(b"one") + gzip.compress(b"two")), where="a.gz")
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
            CorruptFile: when the file is no gzip, damaged or cut short.
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
        """Where in the file the member lies that begins at ``position`` of the plain bytes;
        `NO_PLACE` when none does.

        Positions must be asked for in ascending order: earlier ones are forgotten.
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
