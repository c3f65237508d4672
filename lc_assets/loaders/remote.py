"""Arrays on a server or in a bucket: the bytes of the wanted chunks by range requests, and nothing
else.

Here: `formats.files.Files` over fsspec, asking again after a failure, and fetching the small files
    of a lake. Not
here: transport and its errors (`lc_assets.lake.upstream`), what is kept in memory
    (`loaders.cache`).

A band of 65,536 tokens lies in one shard, its chunks beside each other: one request. Where it lies
in several (grids of the first version: 32), all ranges are asked for at once. What stops coming is
asked for again after pauses of 1, 10 and 60 seconds, and then is `Unreachable`: a batch is whole or
an error, never shorter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from lc_assets.errors import NotPublished
from lc_assets.formats.files import Piece
from lc_assets.lake.upstream import Upstream, with_retries

NEAR_BYTES: Final = 64 * 2**10
"""Pieces of one file that lie no further apart are one request: a request costs about what these
bytes do.
"""


@dataclass(frozen=True)
class RemoteFiles:
    """Files below a URL that fsspec knows: ``https://…``, ``gs://…``, ``memory://…``.

    Attributes:
        root: the URL.
    """

    root: str

    @cached_property
    def _upstream(self) -> Upstream:
        return Upstream(self.root.rstrip("/"))

    def where(self, path: str) -> str:
        """Full URL of a file."""
        return f"{self.root.rstrip('/')}/{path}"

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: when there is none.
            Unreachable: when the server does not answer, also when asked again.
        """
        return with_retries(self._upstream.n_bytes)(path)

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that reaches beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: when one of the files is not there.
            Unreachable: when bytes do not come, also when asked again.
            BadInput: when the server sends whole files only.
        """
        requests = coalesced(pieces)
        answers = dict(zip(requests, with_retries(self._upstream.ranges)(requests), strict=True))
        return [_cut(piece, answers) for piece in pieces]

    def holds(self, path: str) -> bool:
        """Whether there is such a file."""
        try:
            self.n_bytes(path)
        except FileNotFoundError:
            return False
        return True


def fetch(files: RemoteFiles, folder: Path, *paths: str) -> None:
    """Copy small files, such as a lake's receipts and orders, to the same relative paths below
    ``folder``.

    Raises:
        NotPublished: when one is not there.
    """
    for path in paths:
        try:
            (content,) = files.read([Piece(path, 0, files.n_bytes(path))])
        except FileNotFoundError as error:
            raise NotPublished(f"{files.where(path)}: is missing") from error
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def coalesced(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of one file that touch, overlap or lie near each other.

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


def _cut(piece: Piece, answers: dict[Piece, bytes]) -> bytes:
    for request, answer in answers.items():
        if (
            request.path == piece.path
            and request.start <= piece.start
            and piece.stop <= request.stop
        ):
            return answer[piece.start - request.start : piece.stop - request.start]
    raise KeyError(piece)
