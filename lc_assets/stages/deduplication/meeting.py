"""Meeting: every pair of documents that share a band once, with all bands that they share.

The second half of an exchange (`lc_assets.execution.exchange`): `candidates.pair_slice` sends the
pairs that it meets, which may meet in other bands too, to ranges of their first document; a task
here takes one range. Ranges are of some documents each, so a task's memory does not grow with the
corpus, and pairs are sorted from range to range.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import npy_bytes
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.deduplication.index import PLACE_BITS
from lc_assets.stages.deduplication.queries import parquet, queries

DISTINCT = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("bands", pa.uint64())])
PAIRS_OF_A_BLOCK: Final = 1 << 18
DOCUMENTS_OF_A_BUCKET: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MeetTask:
    """One bucket of what was ``met``; ``memory`` is the bytes that its query may take."""

    met: tuple[Path, ...]
    bucket: int
    folder: Path
    memory: int

    @property
    def pairs(self) -> Path:
        """Its pairs, a `DISTINCT` line each, ascending; a row group has `PAIRS_OF_A_BLOCK`."""
        return self.folder / f"{self.bucket:05d}.parquet"

    @property
    def numbers(self) -> Path:
        """Ascending numbers of the documents in them."""
        return self.folder / f"{self.bucket:05d}.npy"

    def __str__(self) -> str:
        return f"bucket {self.bucket} of what was met"


def bounds_of(sizes: Sequence[int], documents: int = DOCUMENTS_OF_A_BUCKET) -> tuple[int, ...]:
    """Numbers of the documents at which ranges of so many documents begin, but for the first;
    ``sizes`` are the files' documents.

    >>> [(bound >> PLACE_BITS, bound & 0xFFFFFFFF) for bound in bounds_of([3, 3], 2)]
    [(0, 2), (1, 1)]
    """
    ends = np.cumsum(np.asarray(sizes, np.int64))
    ranks = np.arange(documents, ends[-1] if len(ends) else 0, documents)
    places = np.searchsorted(ends, ranks, side="right").tolist()
    return tuple(
        at << PLACE_BITS | int(rank - ends[at] + sizes[at])
        for at, rank in zip(places, ranks, strict=True)
    )


def meet(task: MeetTask) -> Counts:
    """Publish the pairs of one bucket, and who is in them."""
    met = f"{parquet(list(task.met))} WHERE bucket = {task.bucket}"
    distinct = (
        f"SELECT a, b, bit_or(1::UBIGINT << band) AS bands FROM {met} GROUP BY a, b ORDER BY a, b"
    )
    n_pairs = 0
    with queries(task.folder / f"{task.bucket:05d}.duckdb", task.memory) as asked:
        with (
            publish(task.pairs) as draft,
            pq.ParquetWriter(draft, DISTINCT, compression="zstd") as writer,
        ):
            for batch in asked.batches(distinct):
                writer.write_batch(batch.cast(DISTINCT), row_group_size=PAIRS_OF_A_BLOCK)
                n_pairs += batch.num_rows
        documents = (
            f"SELECT a FROM {parquet([task.pairs])} UNION SELECT b FROM "
            f"{parquet([task.pairs])} ORDER BY 1"
        )
        numbers = [np.asarray(batch.column(0)) for batch in asked.batches(documents)]
    publish_bytes(task.numbers, npy_bytes(np.concatenate([np.empty(0, np.int64), *numbers])))
    return Counts(extra={"pairs that met": n_pairs})
