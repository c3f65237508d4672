"""Texts on their way: one file per source, in which every row group is of one bucket, so that a bucket reads no other's texts.

A writer holds at most `BUFFERED_BYTES` of text and writes the fullest bucket when it has more. Column ``bucket`` has statistics,
by which a reader finds its row groups without reading others.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile

BUFFERED_BYTES: Final = 64 << 20
LINES_AT_ONCE: Final = 256

TEXTS: Final = pa.schema([("bucket", pa.int32()), ("part", pa.int64()), ("url", pa.string()), ("text", pa.string())])


class Sent(NamedTuple):
    """A page's text for one part of one packed document."""

    bucket: int
    part: int
    url: str
    text: str


class TextWriter:
    """Writes texts to one file; its caller publishes the file."""

    def __init__(self, path: Path, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self._file = pq.ParquetWriter(path, TEXTS, compression="zstd", compression_level=1, write_statistics=["bucket"])
        self._buffered_bytes = buffered_bytes
        self._waiting: dict[int, list[Sent]] = {}
        self._n_bytes: dict[int, int] = {}
        self._all_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            for bucket in sorted(self._waiting):
                self._flush(bucket)
        self._file.close()

    def send(self, sent: Sent) -> None:
        """Write a text, now or later."""
        self._waiting.setdefault(sent.bucket, []).append(sent)
        n_bytes = 64 + 4 * len(sent.text)
        self._n_bytes[sent.bucket] = self._n_bytes.get(sent.bucket, 0) + n_bytes
        self._all_bytes += n_bytes
        if self._all_bytes > self._buffered_bytes:
            self._flush(max(self._n_bytes, key=self._n_bytes.__getitem__))

    def _flush(self, bucket: int) -> None:
        columns = zip(*self._waiting.pop(bucket), strict=True)
        self._all_bytes -= self._n_bytes.pop(bucket)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, TEXTS, strict=True)]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=TEXTS))


def read_texts(paths: Sequence[Path], bucket: int) -> Iterator[Sent]:
    """The texts of a bucket, file by file; some at a time.

    Raises:
        CorruptFile: when a file is not what `TextWriter` wrote.
    """
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                metadata = file.metadata
                groups = [n for n in range(metadata.num_row_groups) if metadata.row_group(n).column(0).statistics.min == bucket]
                for batch in file.iter_batches(LINES_AT_ONCE, row_groups=groups) if groups else ():
                    yield from map(Sent._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))
        except (pa.ArrowException, OSError) as error:
            raise CorruptFile(f"{path}: not a readable file of texts: {error}") from error
