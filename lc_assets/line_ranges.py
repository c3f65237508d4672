"""Ranges of a file of lines: a large file is several shards, each the lines that begin in a range
of its bytes.

A range is part of a path, ``big.jsonl#bytes=0-1000``: bytes from 0, the end is exclusive. Ranges
that follow each other hold every line once, wherever they begin.
"""

import io
import re
from typing import Any, BinaryIO, cast

from lc_assets.errors import BadInput

MOST_RANGES = 100_000
"""Of one file; names of shards have five digits."""

Range = tuple[int, int]

_PATH = re.compile(r"(.+)#bytes=(\d{1,18})-(\d{1,18})", re.DOTALL)
_BLOCK = 1 << 16


def ranges_of(path: str, n_bytes: int, size: int) -> list[str]:
    """Paths of the ranges of ``size`` bytes of a file, or its path if it has only one.

    >>> ranges_of("a.jsonl", 15, 10), ranges_of("b.jsonl", 10, 10)
    (['a.jsonl#bytes=0-10', 'a.jsonl#bytes=10-20'], ['b.jsonl'])

    Raises:
        BadInput: when there would be more than `MOST_RANGES`.
    """
    if n_bytes <= size:
        return [path]
    if n_bytes > size * MOST_RANGES:
        raise BadInput(
            f"{path}: {n_bytes:,} bytes in shards of {size:,} are more than {MOST_RANGES:,} "
            "shards; make them larger"
        )
    return [f"{path}#bytes={start}-{start + size}" for start in range(0, n_bytes, size)]


def parsed(path: str) -> tuple[str, Range | None]:
    """The path of the file, and the range.

    >>> parsed("a.jsonl#bytes=10-20"), parsed("a.jsonl")
    (('a.jsonl', (10, 20)), ('a.jsonl', None))
    """
    found = _PATH.fullmatch(path)
    return (found[1], (int(found[2]), int(found[3]))) if found else (path, None)


class LinesOfRange(io.RawIOBase):
    """The bytes of the lines that begin in a range of an open file.

    Attributes:
        n_bytes: how many they are.
    """

    def __init__(self, file: BinaryIO, lines: Range) -> None:
        self._file = file
        start, self._stop = (_line_start(file, at) for at in lines)
        self.n_bytes = self._stop - start
        file.seek(start)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with bytes; return their number, 0 at the end."""
        left = max(self._stop - self._file.tell(), 0)
        return cast("io.BufferedIOBase", self._file).readinto(memoryview(buffer)[:left])


def _line_start(file: BinaryIO, at: int) -> int:
    """Where the first line begins that does not begin before byte ``at``; at the end, its size."""
    if not at:
        return 0
    file.seek(at - 1)
    while block := file.read(_BLOCK):
        if (newline := block.find(b"\n")) >= 0:
            return file.tell() - len(block) + newline + 1
    return file.seek(0, io.SEEK_END)
