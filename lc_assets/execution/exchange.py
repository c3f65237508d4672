"""Exchange lines of many files by bucket, through storage, to group and join tables larger than
memory.

::

    run(scatter, files)                         run(reduce, buckets)
      a file's lines, each with its bucket  ─▶    a bucket's lines of all files, in the files' order
      published as one file                       the result, published as one file

Both halves are tasks of an executor (`lc_assets.execution.executor`), idempotent and resumable.
Between them are files, so there is no shuffle service and nothing is lost with a worker. A bucket
is a range of keys, so equal keys meet, and consecutive buckets are sorted.

A file is Parquet. Every row group belongs to one bucket, and the column ``bucket`` has statistics,
so a reader reads only its own row groups. A writer has a limited buffer and writes the largest
bucket when it is full.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Int32s
from lc_assets.foreign_errors import library_errors_as_corrupt_file

BUCKET = pa.field("bucket", pa.int32())
BUFFERED_BYTES = 64 << 20
LINES_AT_ONCE = 1 << 16


class BucketWriter(contextlib.AbstractContextManager["BucketWriter"]):
    """Writes lines to one file by bucket; its caller publishes the file.

    Args:
        path: of the file.
        schema: of the lines.
        buffered_bytes: limit for buffered lines.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, *, buffered_bytes: int = BUFFERED_BYTES
    ) -> None:
        self.schema = schema.insert(0, BUCKET)
        # Keys and numbers seldom repeat: no dictionaries, and byte stream split, which zstd
        # compresses better. For pairs of documents: a third of the CPU time of Arrow's default,
        # half the bytes.
        self._file = pq.ParquetWriter(
            path,
            self.schema,
            compression="zstd",
            compression_level=1,
            write_statistics=[BUCKET.name],
            use_dictionary=[BUCKET.name],
            use_byte_stream_split=[
                field.name
                for field in schema
                if pa.types.is_primitive(field.type) and field.type.bit_width > 8
            ],
        )
        self._buffered_bytes = buffered_bytes
        self._waiting: dict[int, list[pa.Table]] = {}
        self._n_bytes: dict[int, int] = {}

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            for bucket in sorted(self._waiting):
                self._flush(bucket)
        self._file.close()

    def send(self, table: pa.Table, buckets: Int32s) -> None:
        """Write lines, now or later; lines of one bucket stay in order.

        Args:
            table: lines of the schema.
            buckets: of every line, from 0.
        """
        order = np.argsort(buckets, kind="stable")
        found, starts = np.unique(buckets[order], return_index=True)
        for bucket, lines in zip(found.tolist(), np.split(order, starts)[1:], strict=True):
            part = table.take(lines)  # a copy: a slice would keep all lines that came with it
            self._waiting.setdefault(bucket, []).append(part)
            self._n_bytes[bucket] = self._n_bytes.get(bucket, 0) + part.nbytes
        while sum(self._n_bytes.values()) > self._buffered_bytes:
            self._flush(max(self._n_bytes, key=self._n_bytes.__getitem__))

    def _flush(self, bucket: int) -> None:
        lines = pa.concat_tables(self._waiting.pop(bucket))
        del self._n_bytes[bucket]
        numbers = pa.array(np.full(lines.num_rows, bucket, np.int32))
        self._file.write_table(
            lines.add_column(0, BUCKET, numbers).cast(self.schema), row_group_size=lines.num_rows
        )


def read_bucket(
    paths: Sequence[Path], bucket: int, *, lines_at_once: int = LINES_AT_ONCE
) -> Iterator[pa.RecordBatch]:
    """The lines of one bucket, file by file, in batches, without the bucket's number.

    Raises:
        CorruptFile: when a file is not what `BucketWriter` wrote.
    """
    for path in paths:
        with (
            library_errors_as_corrupt_file(
                path, "not a readable file of buckets", system_errors_too=True
            ),
            pq.ParquetFile(path) as file,
        ):
            if groups := _groups_of(file.metadata, bucket):
                yield from file.iter_batches(
                    lines_at_once, row_groups=groups, columns=file.schema_arrow.names[1:]
                )


def _groups_of(metadata: pq.FileMetaData, bucket: int) -> list[int]:
    return [
        n
        for n in range(metadata.num_row_groups)
        if metadata.row_group(n).column(0).statistics.min == bucket
    ]
