"""Paths of a crawl's files: their kinds, lists of them, which paths stay inside the crawl; and its
index as Parquet.

====================  =============================================  ==========================
kind                  name ends in                                   Common Crawl's list of them
====================  =============================================  ==========================
``warc``              ``.warc.gz``, ``.warc``                        ``warc.paths.gz``
``wat``               ``.warc.wat.gz``, ``.wat.gz``, ``.wat``        ``wat.paths.gz``
``cdxj``              ``.cdxj``, ``.cdxj.gz``, ``cdx-00000.gz``      ``cc-index.paths.gz``
``columnar``          ``.parquet``                                   ``cc-index-table.paths.gz``
====================  =============================================  ==========================

Lists hold a path per line, relative to the root of all crawls. Of the columnar index only
``subset=warc`` is read, and ``subset=crawldiagnostics``, which has the redirects. It has a row per
capture, with columns as Common Crawl's table ``cc-index``:

====================================================  =============================================
column                                                becomes
====================================================  =============================================
``url_surtkey``                                       ``surt``
``url``                                               ``url``
``fetch_time``                                        ``timestamp``, 14 digits, UTC
``fetch_status``, ``content_mime_type``,              ``is_page``: status 200 and HTML, by the
``content_mime_detected``                             server or, without a type, the crawler
``content_digest``                                    ``digest``, with ``sha1:``
``warc_filename``, ``warc_record_offset``,            ``filename``, ``offset``, ``length``
``warc_record_length``
``fetch_redirect``                                    ``redirect``
====================================================  =============================================

Digest, types and redirects may be missing: older tables lack them. Other columns are not read.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Literal

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.archives.members import Members
from lc_assets.formats.archives.responses import HTML_TYPES
from lc_assets.formats.parquet.opening import guarded

INDEX = pa.schema(
    {
        "surt": "string",
        "url": "string",
        "timestamp": "string",
        "is_page": "bool",
        "digest": "string",
        "filename": "string",
        "offset": "int64",
        "length": "int64",
        "redirect": "string",
    }
)
"""Columns that are read of a row; see `lc_assets.formats.archives.captures.Capture`."""

ROWS_AT_ONCE = 1 << 14
"""An address of 64 KiB in a dictionary may be named by each."""

_NEEDED = (
    "url_surtkey",
    "url",
    "fetch_time",
    "fetch_status",
    "warc_filename",
    "warc_record_offset",
    "warc_record_length",
)
_WHERE_KNOWN = (
    "content_mime_type",
    "content_mime_detected",
    "content_digest",
    "fetch_redirect",
)
_SUBSETS = ("subset=warc/", "subset=crawldiagnostics/")
_UNKNOWN = ("", "-", "unk")


def index_batches(stream: BinaryIO, *, where: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file of the table, as `INDEX`; memory is bounded by a batch and a row
    group's compressed columns.

    Args:
        stream: the file; it must be able to seek.
        where: its name, for messages.

    Raises:
        CorruptFile: when it is not Parquet, damaged, or lacks a column.
    """
    with (
        library_errors_as_corrupt_file(where, "not a readable index in Parquet; fetch it again"),
        guarded(stream, where=where, rows_at_once=ROWS_AT_ONCE) as file,
    ):
        if twice := [
            name for name, count in Counter(file.file.schema_arrow.names).items() if count > 1
        ]:
            raise CorruptFile(
                f"{where}: has several columns {', '.join(twice)}, so it is not an index of a crawl"
            )
        names = set(file.file.schema_arrow.names)
        if missing := [name for name in _NEEDED if name not in names]:
            raise CorruptFile(
                f"{where}: has no column {', '.join(missing)}, so it is not an index of a crawl"
            )
        columns = [*_NEEDED, *(name for name in _WHERE_KNOWN if name in names)]
        for batch in file.batches(ROWS_AT_ONCE, columns):
            found = _read(batch)
            found.validate(full=True)  # Arrow believes a file's word that bytes are text
            yield found


def _read(batch: pa.RecordBatch) -> pa.RecordBatch:
    def text(name: str) -> pa.Array:
        if name not in batch.schema.names:
            return pa.repeat("", batch.num_rows)
        return pc.fill_null(pc.cast(batch.column(name), pa.string()), "")

    served, digest = text("content_mime_type"), text("content_digest")
    mime = pc.if_else(pc.is_in(served, pa.array(_UNKNOWN)), text("content_mime_detected"), served)
    is_html = pc.is_in(pc.utf8_lower(mime), pa.array(HTML_TYPES))
    status = pc.fill_null(pc.cast(batch.column("fetch_status"), pa.int64()), 0)
    columns = [
        text("url_surtkey"),
        text("url"),
        pc.fill_null(
            pc.strftime(
                pc.cast(batch.column("fetch_time"), pa.timestamp("s"), safe=False), "%Y%m%d%H%M%S"
            ),
            "",
        ),
        pc.and_(pc.equal(status, 200), is_html),
        pc.replace_substring_regex(digest, "^([^:]+)$", r"sha1:\1"),
        text("warc_filename"),
        *(
            pc.fill_null(pc.cast(batch.column(name), pa.int64()), -1)
            for name in ("warc_record_offset", "warc_record_length")
        ),
        text("fetch_redirect"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INDEX)


Kind = Literal["warc", "wat", "cdxj", "columnar"]

ENDS: dict[Kind, tuple[str, ...]] = {
    "warc": (".warc.gz", ".warc"),
    "wat": (".warc.wat.gz", ".wat.gz", ".wat"),
    "cdxj": (".cdxj", ".cdxj.gz"),
    "columnar": (".parquet",),
}
LISTS: dict[Kind, str] = {
    "warc": "warc.paths.gz",
    "wat": "wat.paths.gz",
    "cdxj": "cc-index.paths.gz",
    "columnar": "cc-index-table.paths.gz",
}
MAX_PATH_CHARS = 1024
MOST_ARCHIVE_BYTES = 1 << 43
"""Maximum size of an archive: objects in buckets have at most 5 TiB. Servers report an error for
bytes beyond that.
"""

MAX_LIST_BYTES = 256 << 20
"""Common Crawl's longest list has 100,000 lines of 140 bytes."""

_CLUSTER = re.compile(r"(?:.*/)?cdx-\d+\.gz", re.ASCII)
_OUTSIDE = re.compile(r"(?:^|/)(?:\.{1,2}|)(?:/|$)|[\x00-\x1f\x7f\\]|^[A-Za-z][A-Za-z0-9+.-]*:")


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
    if "subset=" in path and not any(subset in path for subset in _SUBSETS):
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


def refusal(filename: str, offset: int, length: int) -> str:
    """Why the location in an index is invalid: a path outside, a negative offset, no length; empty
    when it is not.

    >>> refusal("../x.warc.gz", 0, 5), refusal("x.warc.gz", -1, 5), refusal("x.warc.gz", 0, 5)
    ('path outside', 'impossible place', '')
    """
    if not is_inside(filename):
        return "path outside"
    return (
        ""
        if 0 <= offset < MOST_ARCHIVE_BYTES and 0 < length < MOST_ARCHIVE_BYTES
        else "impossible place"
    )


def listed_paths(content: bytes, *, where: str) -> list[str]:
    r"""The paths of a list, in its order.

    Args:
        content: bytes of the list, gzipped or plain.
        where: its name, for messages.

    Raises:
        CorruptFile: when it is not gzip or not UTF-8, is too large, or names a path that leads out
            of the crawl.

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
                f"{where}: names {path[:200]!r}, which is not a path below the crawl's root"
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
                f"{where}: unpacks to more than {MAX_LIST_BYTES:,} bytes, so it is not a list of "
                "paths"
            )
    return bytes(plain)
