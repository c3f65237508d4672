"""The exchange's files against Arrow's own choice of encodings, for pairs of documents. Run with
``-s`` to see the figures.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.execution.exchange import BUCKET, BucketWriter, read_bucket
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

PAIRS = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("band", pa.uint8())])
N_PAIRS, N_FILES, FILE_DOCUMENTS, BUCKETS = 1_000_000, 6, 500_000, 4
FLOOR = 1.3
"""Half of what is usual."""


def test_pairs_cost_less_than_by_arrows_own_choice(tmp_path):
    """The same lines in the same order from both; the time to write them, and what they take."""
    draw = np.random.default_rng(14)
    first = draw.integers(N_FILES, size=N_PAIRS) << 32 | draw.integers(FILE_DOCUMENTS, size=N_PAIRS)
    pairs = pa.table(
        [first, first + draw.integers(1, 1000, N_PAIRS), np.full(N_PAIRS, 3, np.uint8)],
        schema=PAIRS,
    )
    buckets = np.minimum(first >> 32, BUCKETS - 1).astype(np.int32)

    def ours(number):
        with BucketWriter(tmp_path / f"ours{number}", PAIRS) as writer:
            writer.send(pairs, buckets)
        return tmp_path / f"ours{number}"

    def theirs(number):
        order = np.argsort(buckets, kind="stable")
        schema, sizes = PAIRS.insert(0, BUCKET), np.bincount(buckets, minlength=BUCKETS)
        ordered = pairs.take(order).add_column(0, BUCKET, pa.array(buckets[order]))
        with pq.ParquetWriter(
            tmp_path / f"theirs{number}", schema, compression="zstd", compression_level=1
        ) as file:
            for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
                file.write_table(ordered.slice(end - size, size), row_group_size=size)
        return tmp_path / f"theirs{number}"

    (seconds, path), (others, other) = cpu_seconds(ours), cpu_seconds(theirs)
    for bucket in range(BUCKETS):
        mine, wanted = (
            pa.Table.from_batches(read_bucket([found], bucket), PAIRS) for found in (path, other)
        )
        assert mine.equals(wanted)
    say(
        f"{N_PAIRS:,} pairs to {BUCKETS} buckets",
        N_PAIRS / 1e6,
        "million",
        seconds,
        Arrows_own_choice=others,
    )
    print(f"{path.stat().st_size / 1e6:.1f} MB, {other.stat().st_size / 1e6:.1f} MB")
    assert path.stat().st_size < 0.8 * other.stat().st_size
    assert others > FLOOR * seconds
