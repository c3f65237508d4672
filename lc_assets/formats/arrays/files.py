"""The files of an array: the interface for reading them, and its implementation for local folders.

Servers and buckets: `lc_assets.loaders.rows`.
"""

import bisect
import operator
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from lc_assets.records import frozen

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


@frozen
class LocalFiles:
    """Files of this machine below ``folder``. None is kept open: 84 arrays of 32 columns would be
    2,688 open files.
    """

    folder: Path

    def where(self, path: str) -> str:
        """Full name of a file, for messages."""
        return str(self.folder / path)

    def n_bytes(self, path: str) -> int:
        """See `Files.n_bytes`."""
        try:
            # Pathlib costs three times the call.
            return os.stat(f"{self.folder}/{path}").st_size  # noqa: PTH116
        except NotADirectoryError as error:  # a file in the place of a folder
            raise FileNotFoundError(*error.args) from error

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """See `Files.read`."""
        contents: list[bytes] = []
        try:
            for path, ours in groupby(pieces, _PATH):
                opened = os.open(f"{self.folder}/{path}", os.O_RDONLY)
                try:
                    contents += [os.pread(opened, stop - start, start) for _, start, stop in ours]
                finally:
                    os.close(opened)
        except NotADirectoryError as error:  # a file in the place of a folder
            raise FileNotFoundError(*error.args) from error
        return contents
