"""The index of a crawl as Parquet: a row per capture, columns as Common Crawl's table ``cc-index``
has them.

====================================================  ==============================================
column                                                becomes
====================================================  ==============================================
``url_surtkey``                                       ``surt``
``url``                                               ``url``
``fetch_time``                                        ``timestamp``, 14 digits, UTC
``fetch_status``, ``content_mime_type``,              ``is_page``: status 200 and HTML, by the
``content_mime_detected``                             server or, without a type, the crawler
``content_digest``                                    ``digest``, with ``sha1:``
``warc_filename``, ``warc_record_offset``,            ``filename``, ``offset``, ``length``
``warc_record_length``
====================================================  ==============================================

Digest and types may be missing: older tables lack them. Other columns are not read.
`lc_assets.formats.archives.captures.refusal` says which places are refused.
"""

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.archives.responses import HTML_TYPES
from lc_assets.formats.parquet.opening import guarded

INDEX: Final = pa.schema(
    {
        "surt": "string",
        "url": "string",
        "timestamp": "string",
        "is_page": "bool",
        "digest": "string",
        "filename": "string",
        "offset": "int64",
        "length": "int64",
    }
)
"""What is read of a row; see `lc_assets.formats.archives.captures.Capture`."""

ROWS_AT_ONCE: Final = 1 << 14
"""An address of 64 KiB in a dictionary may be named by each."""

_NEEDED: Final = (
    "url_surtkey",
    "url",
    "fetch_time",
    "fetch_status",
    "warc_filename",
    "warc_record_offset",
    "warc_record_length",
)
_WHERE_KNOWN: Final = ("content_mime_type", "content_mime_detected", "content_digest")
_UNKNOWN: Final = ("", "-", "unk")


def index_batches(stream: BinaryIO, *, where: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file of the table, as `INDEX`; memory is bounded by a batch and a row
    group's compressed columns.

    Args:
        stream: the file; it must be able to seek.
        where: its name, for messages.

    Raises:
        CorruptFile: when it is no Parquet, damaged, or lacks a column.
    """
    with (
        library_errors_as_corrupt_file(where, "not a readable index in Parquet; fetch it again"),
        guarded(stream, where=where, rows_at_once=ROWS_AT_ONCE) as file,
    ):
        if twice := [
            name for name, count in Counter(file.file.schema_arrow.names).items() if count > 1
        ]:
            raise CorruptFile(
                f"{where}: has several columns {', '.join(twice)}, so it is no index of a crawl"
            )
        names = set(file.file.schema_arrow.names)
        if missing := [name for name in _NEEDED if name not in names]:
            raise CorruptFile(
                f"{where}: has no column {', '.join(missing)}, so it is no index of a crawl"
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

    said, digest = text("content_mime_type"), text("content_digest")
    mime = pc.if_else(pc.is_in(said, pa.array(_UNKNOWN)), text("content_mime_detected"), said)
    is_html = pc.is_in(pc.utf8_lower(mime), pa.array(HTML_TYPES))
    has_status = pc.fill_null(
        pc.equal(pc.cast(batch.column("fetch_status"), pa.int64()), 200), False
    )
    bare = pc.and_(pc.not_equal(digest, ""), pc.invert(pc.match_substring(digest, ":")))
    columns = [
        text("url_surtkey"),
        text("url"),
        pc.fill_null(
            pc.strftime(
                pc.cast(batch.column("fetch_time"), pa.timestamp("s"), safe=False), "%Y%m%d%H%M%S"
            ),
            "",
        ),
        pc.and_(has_status, is_html),
        pc.if_else(bare, pc.binary_join_element_wise("sha1:", digest, ""), digest),
        text("warc_filename"),
        *(
            pc.fill_null(pc.cast(batch.column(name), pa.int64()), -1)
            for name in ("warc_record_offset", "warc_record_length")
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INDEX)
