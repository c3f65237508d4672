"""Paths of a crawl's files: their kinds, lists of them, and which paths stay inside the crawl.

====================  =============================================  ===============================
kind                  name ends in                                   Common Crawl's list of them
====================  =============================================  ===============================
``warc``              ``.warc.gz``, ``.warc``                        ``warc.paths.gz``
``wat``               ``.warc.wat.gz``, ``.wat.gz``, ``.wat``        ``wat.paths.gz``
``cdxj``              ``.cdxj``, ``.cdxj.gz``, ``cdx-00000.gz``      ``cc-index.paths.gz``
``columnar``          ``.parquet``                                   ``cc-index-table.paths.gz``
====================  =============================================  ===============================

Lists hold a path per line, relative to the root of all crawls. Of the columnar index only
``subset=warc`` counts: the responses in other subsets are no pages.
"""

import io
import re
from typing import Final, Literal

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.records import Members

Kind = Literal["warc", "wat", "cdxj", "columnar"]

ENDS: Final[dict[Kind, tuple[str, ...]]] = {
    "warc": (".warc.gz", ".warc"),
    "wat": (".warc.wat.gz", ".wat.gz", ".wat"),
    "cdxj": (".cdxj", ".cdxj.gz"),
    "columnar": (".parquet",),
}
LISTS: Final[dict[Kind, str]] = {
    "warc": "warc.paths.gz",
    "wat": "wat.paths.gz",
    "cdxj": "cc-index.paths.gz",
    "columnar": "cc-index-table.paths.gz",
}
MAX_PATH_CHARS: Final = 1024
MOST_ARCHIVE_BYTES: Final = 1 << 43
"""No archive is larger: buckets take objects of 5 TiB. Servers report an error for bytes beyond
that.
"""

MAX_LIST_BYTES: Final = 256 << 20
"""Common Crawl's longest list has 100,000 lines of 140 bytes."""

_CLUSTER: Final = re.compile(r"(?:.*/)?cdx-\d+\.gz", re.ASCII)
_OUTSIDE: Final = re.compile(
    r"(?:^|/)(?:\.{1,2}|)(?:/|$)|[\x00-\x1f\x7f\\]|^[A-Za-z][A-Za-z0-9+.-]*:"
)


def kind_of(path: str) -> Kind | None:
    """Kind of a crawl's file; None for any other file.

    >>> [
    ...     kind_of(path)
    ...     for path in (
    ...         "a/b.warc.gz",
    ...         "b.warc.wat.gz",
    ...         "indexes/cdx-00003.gz",
    ...         "b.warc.wet.gz",
    ...         "cluster.idx",
    ...     )
    ... ]
    ['warc', 'wat', 'cdxj', None, None]
    >>> (
    ...     kind_of("crawl=CC-MAIN-2023-06/subset=robotstxt/part-0.parquet"),
    ...     kind_of("subset=warc/part-0.parquet"),
    ... )
    (None, 'columnar')
    """
    if "subset=" in path and "subset=warc/" not in path:
        return None
    if _CLUSTER.fullmatch(path):
        return "cdxj"
    return next((kind for kind, ends in ENDS.items() if path.endswith(ends)), None)


def is_inside(path: str) -> bool:
    r"""Whether a path is one below the root that it is relative to: no ``..``, no root of its own,
    no address, no odd characters.

    >>> [
    ...     is_inside(path)
    ...     for path in (
    ...         "a/b.warc.gz",
    ...         "a..b",
    ...         "../b",
    ...         "a/../b",
    ...         "/b",
    ...         "https://c/b",
    ...         "a//b",
    ...         "a\\b",
    ...         "",
    ...     )
    ... ]
    [True, True, False, False, False, False, False, False, False]
    """
    return 0 < len(path) <= MAX_PATH_CHARS and _OUTSIDE.search(path) is None


def listed_paths(content: bytes, *, where: str) -> list[str]:
    r"""The paths of a list, in its order.

    Args:
        content: of the list, gzipped or plain.
        where: its name, for messages.

    Raises:
        CorruptFile: when it is no gzip or no UTF-8, is larger than any list, or names a path that
            leads out of the crawl.

    >>> listed_paths(b"crawl-data/a.warc.gz\ncrawl-data/b.warc.gz\n", where="warc.paths.gz")
    ['crawl-data/a.warc.gz', 'crawl-data/b.warc.gz']
    """
    try:
        lines = _unpacked(content, where).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFile(f"{where}: not a list of paths: {error}; fetch it again") from error
    paths = [line.strip() for line in lines if line.strip()]
    for path in paths:
        if not is_inside(path):
            raise CorruptFile(
                f"{where}: names {path[:200]!r}, which is no path below the crawl's root"
            )
    return paths


def _unpacked(content: bytes, where: str) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    plain = bytearray()
    members = Members(io.BytesIO(content), where=where)
    while piece := members.read():
        plain += piece
        if len(plain) > MAX_LIST_BYTES:
            raise CorruptFile(
                f"{where}: unpacks to more than {MAX_LIST_BYTES:,} bytes, so it is no list of paths"
            )
    return bytes(plain)
