"""Where an array's bytes are taken from: a folder of this machine, or anything that answers the
same three questions.

Here: the questions, and a local folder. Not here: what the bytes mean (`formats.grid`,
    `formats.flat`), servers
and buckets (`lc_assets.loaders.remote`).
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from lc_assets.errors import CorruptFile, NotPublished

MOST_METADATA_BYTES: Final = 2**24
"""More than any array's metadata has."""

_NUMBERED: Final = re.compile(r"(0|[1-9][0-9]{0,18})(\.(0|[1-9][0-9]{0,18}))?")


class Piece(NamedTuple):
    """Bytes ``start`` to ``stop`` of the file at ``path``, relative to an array's folder."""

    path: str
    start: int
    stop: int


class Files(Protocol):
    """Read-only files below one folder, by relative paths."""

    def where(self, path: str) -> str:
        """Full name of a file, for messages."""
        ...

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: when there is none.
        """
        ...

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that reaches beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: when one of the files is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Files of this machine below ``folder``. Nothing is kept open: 84 arrays of 32 columns would
    be 2,688 files.
    """

    folder: Path

    def where(self, path: str) -> str:
        """Full name of a file, for messages."""
        return str(self.folder / path)

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: when there is none.
        """
        with _as_missing():
            # Pathlib costs three times the call.
            return os.stat(f"{self.folder}/{path}").st_size  # noqa: PTH116

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that reaches beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: when one of the files is not there.
        """
        with _as_missing():
            return [
                part
                for path, ours in groupby(pieces, lambda piece: piece.path)
                for part in _read(f"{self.folder}/{path}", ours)
            ]


def numbered(folder: Path) -> Iterator[str]:
    """Names in a folder that are numbers as arrays' files are named; none where there is no folder.

    Names are taken apart by their callers: ``7``, or ``7.12``.
    """
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if _NUMBERED.fullmatch(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return


def read_metadata(files: Files, path: str, kind: str) -> bytes:
    """Read the file that makes a folder an array; ``kind`` names what was looked for.

    Raises:
        NotPublished: when there is none.
    """
    try:
        return files.read([Piece(path, 0, MOST_METADATA_BYTES)])[0]
    except FileNotFoundError as error:
        raise NotPublished(f"{files.where('').rstrip('/')}: no {kind} here (no {path})") from error


def require_published(files: Files, metadata: str, found: CorruptFile) -> None:
    """Tell a lost file from a lost array, after a file was ``found`` missing or damaged.

    Raises:
        NotPublished: when the array's metadata is gone, too: its version was withdrawn while it was
            read.
    """
    try:
        files.n_bytes(metadata)
    except FileNotFoundError as error:
        withdrawn = (
            "the array was withdrawn while it was read: open the data set again, and "
            "resume from the last state"
        )
        raise NotPublished(f"{files.where('').rstrip('/')}: {withdrawn} ({found})") from error


class _as_missing:  # noqa: N801 - reads as a statement
    """A file where a folder should be is a missing file, too."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotADirectoryError):
            raise FileNotFoundError(*error.args) from error


def _read(path: str, pieces: Iterable[Piece]) -> list[bytes]:
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return [os.pread(opened, stop - start, start) for _, start, stop in pieces]
    finally:
        os.close(opened)
