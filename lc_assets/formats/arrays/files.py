"""The files of an array: the interface for reading them, and its implementation for local folders.

Servers and buckets: `lc_assets.loaders.rows`.
"""

import bisect
import errno
import operator
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

Content = TypeVar("Content", bytes, bytes | None)


class Piece(NamedTuple):
    """Bytes ``start`` to ``stop`` of the file at ``path``, relative to an array's folder."""

    path: str
    start: int
    stop: int


_PATH = operator.itemgetter(0)

NEAR_BYTES = 64 * 2**10
"""Pieces of one file that are no further apart become one request: a request costs about as much as
these bytes.
"""


def coalesced(pieces: Iterable[Piece]) -> list[Piece]:
    """Join pieces of one file that touch, overlap or are near each other.

    >>> coalesced([Piece("a", 200, 300), Piece("b", 0, 9), Piece("a", 0, 100)])
    [Piece(path='a', start=0, stop=300), Piece(path='b', start=0, stop=9)]
    """
    joined: list[Piece] = []
    for piece in sorted(pieces):
        last = joined[-1] if joined else None
        if last is not None and last.path == piece.path and piece.start <= last.stop + NEAR_BYTES:
            joined[-1] = last._replace(stop=max(last.stop, piece.stop))
        else:
            joined.append(piece)
    return joined


def cut_out(piece: Piece, joined: Sequence[Piece], contents: Sequence[Content]) -> Content:
    """A piece's bytes out of those of the joined pieces; None where these are None.

    >>> cut_out(Piece("a", 2, 4), [Piece("a", 0, 8)], [b"abcdefgh"])
    b'cd'
    """
    at = bisect.bisect_right(joined, (piece.path, piece.start, sys.maxsize)) - 1
    content, start = contents[at], piece.start - joined[at].start
    return content if content is None else content[start : start + piece.stop - piece.start]


class Files(Protocol):
    """Read-only files below one folder, by relative paths."""

    def where(self, path: str) -> str:
        """Full name of a file, for messages."""
        ...

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: if there is none.
        """
        ...

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that extends beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: if one of the files does not exist.
        """
        ...


class LocalFiles:
    """Files of this machine below ``folder``; threads may share them.

    The file that was read last stays open: opening one for every chunk takes 4 % of the time of
    decoding it. A file that was removed or replaced meanwhile has a name less, and is looked up
    again. All others are closed: 84 arrays of 32 columns would be 2,688 open files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)  # formatting a path costs as much as a call of the system
        self._last: _Opened | None = None

    def __reduce__(self) -> tuple[type["LocalFiles"], tuple[Path]]:
        return LocalFiles, (Path(self._folder),)

    def where(self, path: str) -> str:
        """Full name of a file, for messages."""
        return str(Path(self._folder, path))

    def n_bytes(self, path: str) -> int:
        """See `Files.n_bytes`."""
        try:
            return os.stat(f"{self._folder}/{path}").st_size  # noqa: PTH116
        except OSError as error:
            raise _missing(error) from error

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """See `Files.read`."""
        contents: list[bytes] = []
        try:
            for path, ours in groupby(pieces, _PATH):
                opened = self._opened(path)
                at = opened.descriptor
                contents += [os.pread(at, stop - start, start) for _, start, stop in ours]
        except OSError as error:
            raise _missing(error) from error
        return contents

    def _opened(self, path: str) -> "_Opened":
        last = self._last
        if last is None or last.path != path or not last.has_its_names():
            last = self._last = _Opened(path, os.open(f"{self._folder}/{path}", os.O_RDONLY))
        return last


class _Opened:
    """An open file, closed when nothing refers to it: another thread may still read it."""

    _close = staticmethod(os.close)  # at the program's end, modules may be empty already

    def __init__(self, path: str, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor
        self._n_names = os.fstat(descriptor).st_nlink

    def has_its_names(self) -> bool:
        """Whether the file has as many names as when it was opened, and any."""
        return 0 < os.fstat(self.descriptor).st_nlink == self._n_names

    def __del__(self) -> None:
        self._close(self.descriptor)


def _missing(error: OSError) -> OSError:
    """The error that says that a file is missing, if this one means that: a file may be in the
    place of its folder, or another machine may have removed it.
    """
    is_gone = error.errno in (errno.ENOTDIR, errno.ESTALE)
    return FileNotFoundError(*error.args) if is_gone else error
