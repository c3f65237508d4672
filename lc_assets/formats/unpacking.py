"""A limit on what a packed file may unpack to, so that a small one cannot take hours or all memory.

Deflate packs at most 1,032 bytes into one; zstd and Parquet's dictionaries and levels have no such
limit. A document that is large when it is unpacked is read by a worker only, because a process may
be killed for its memory, and the main process would end without a word.
"""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from lc_assets.errors import CorruptFile

MOST_TIMES = 1000
"""Maximum ratio of an unpacked file to its size."""

FREELY = 256 << 20
"""Bytes that any file may unpack to: a document of the greatest length that is read."""

_MOST_HERE = ContextVar("_MOST_HERE", default=sys.maxsize)


class NeedsWorker(BaseException):
    """A document is too large for this process; no `Exception`, for nothing must take it for
    damage.
    """


@contextlib.contextmanager
def at_most_here(n_bytes: int) -> Iterator[None]:
    """Read no document of more bytes in this process within the block."""
    token = _MOST_HERE.set(n_bytes)
    try:
        yield
    finally:
        _MOST_HERE.reset(token)


def most_here() -> int:
    """Bytes of the largest document that may be read in this process."""
    return _MOST_HERE.get()


def require_small(n_bytes: int) -> None:
    """Look at the size of what is about to be read as one piece.

    Raises:
        NeedsWorker: when it is larger than `at_most_here` allows.
    """
    if n_bytes > most_here():
        raise NeedsWorker


class Allowance:
    """How many bytes may still be unpacked from a file.

    Args:
        n_bytes: the file's size.
        where: its name, for messages.
    """

    def __init__(self, n_bytes: int, where: object) -> None:
        self._where = where
        self._left = max(n_bytes * MOST_TIMES, FREELY)

    def spend(self, n_bytes: int) -> None:
        """Count what was unpacked, or is about to be.

        Raises:
            CorruptFile: when it exceeds `MOST_TIMES` the file's size, and `FREELY`.
        """
        self._left -= n_bytes
        if self._left < 0:
            raise CorruptFile(
                f"{self._where}: unpacks to more than {MOST_TIMES:,} times its size; it may be "
                "made to exhaust memory or time"
            )
