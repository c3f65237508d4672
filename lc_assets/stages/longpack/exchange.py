"""Texts on their way: one file per source, by bucket, so that a bucket reads no other's texts
(`lc_assets.execution.exchange`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from lc_assets.execution.exchange import BUFFERED_BYTES, BucketWriter, read_bucket

PASSED_ON_BYTES: Final = 4 << 20
LINES_AT_ONCE: Final = 256

TEXTS: Final = pa.schema([("part", pa.int64()), ("url", pa.string()), ("text", pa.string())])


class Sent(NamedTuple):
    """A page's text for one part of one packed document."""

    bucket: int
    part: int
    url: str
    text: str


class TextWriter:
    """Writes texts to one file; its caller publishes the file."""

    def __init__(self, path: Path, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self._buckets = BucketWriter(path, TEXTS, buffered_bytes=buffered_bytes)
        self._passed_on_bytes = min(PASSED_ON_BYTES, buffered_bytes)
        self._waiting: list[Sent] = []
        self._n_bytes = 0

    def __enter__(self) -> Self:
        self._buckets.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._pass_on()
        self._buckets.__exit__(kind, error, trace)

    def send(self, sent: Sent) -> None:
        """Write a text, now or later."""
        self._waiting.append(sent)
        self._n_bytes += 64 + 4 * len(sent.text)
        if self._n_bytes > self._passed_on_bytes:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            buckets, *columns = zip(*self._waiting, strict=True)
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, TEXTS, strict=True)
            ]
            self._buckets.send(
                pa.Table.from_arrays(arrays, schema=TEXTS), np.array(buckets, np.int32)
            )
        self._waiting, self._n_bytes = [], 0


def read_texts(paths: Sequence[Path], bucket: int) -> Iterator[Sent]:
    """The texts of a bucket, file by file; some at a time.

    Raises:
        CorruptFile: when a file is not what `TextWriter` wrote.
    """
    for batch in read_bucket(paths, bucket, lines_at_once=LINES_AT_ONCE):
        for part, url, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Sent(bucket, part, url, text)
