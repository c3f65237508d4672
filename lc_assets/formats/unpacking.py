"""A limit on what a packed file may unpack to, so that a small one cannot take hours or all memory.

Deflate packs at most 1,032 bytes into one; zstd and Parquet's dictionaries and levels have no such
limit.
"""

from lc_assets.errors import CorruptFile

MOST_TIMES = 1000
"""Maximum ratio of an unpacked file to its size."""

FREELY = 256 << 20
"""Bytes that any file may unpack to: a document of the greatest length that is read."""


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
