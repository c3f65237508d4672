"""Writing gzip: the same content gives the same bytes, whatever the clock, the file's name, the
process and the machine.

zlib-ng writes. isal, which this package reads with, is twice as fast but not deterministic: of one
record of 121 bytes it made 128 bytes in most processes and 130 in others. The standard library's
zlib differs between systems.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from zlib_ng import gzip_ng, zlib_ng

LEVEL: Final = 2
"""Of zlib-ng's 0 to 9. English novels, per CPU-second: 108 MB, 2.35 times smaller; level 1: 195 and
1.67; level 6: 57 and 2.59.
"""

_GZIP_MEMBER: Final = 16 + zlib_ng.MAX_WBITS


@contextlib.contextmanager
def gzipped(path: Path) -> Iterator[BinaryIO]:
    """Open a gzip file for writing."""
    with (
        path.open("wb") as file,
        gzip_ng.GzipNGFile(
            filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0
        ) as out,
    ):
        yield out


def gzip_member(content: bytes) -> bytes:
    """One gzip member without name and time.

    >>> import gzip
    >>> gzip.decompress(gzip_member(b"one") + gzip_member(b"two"))
    b'onetwo'
    """
    packed: bytes = zlib_ng.compress(content, LEVEL, _GZIP_MEMBER)
    return packed
