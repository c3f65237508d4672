"""The exchange: every line arrives once, in its bucket, in order, whatever may wait; what is
damaged is said.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.execution.exchange import BucketWriter, read_bucket
from lc_assets.execution.local import LocalExecutor

LINES = pa.schema([("key", pa.uint64()), ("text", pa.string())])


def lines(keys, texts):
    return pa.table([pa.array(keys, pa.uint64()), pa.array(texts, pa.string())], schema=LINES)


def of_bucket(paths, bucket):
    return [line for batch in read_bucket(paths, bucket) for line in batch.to_pylist()]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 6), st.text(max_size=9)), max_size=30), max_size=6),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_every_line_arrives_once_in_its_bucket_and_in_order(tmp_path_factory, sent, buffered_bytes):
    """Some batches are sent, with any memory: a bucket is what a plain filter gives."""
    path = tmp_path_factory.mktemp("exchange") / "one.parquet"
    with BucketWriter(path, LINES, buffered_bytes=buffered_bytes) as writer:
        for batch in sent:
            writer.send(
                lines([key for key, _ in batch], [text for _, text in batch]),
                np.array([key for key, _ in batch], np.int32),
            )
    every = [line for batch in sent for line in batch]
    for bucket in range(8):
        assert of_bucket([path, path], bucket) == 2 * [
            {"key": key, "text": text} for key, text in every if key == bucket
        ]


def test_what_waits_keeps_no_other_lines_in_memory(tmp_path):
    """One line a batch is of a bucket that is never the fullest: of a batch, it keeps itself and
    nothing else.
    """
    n_lines, n_batches, before = 50_000, 40, pa.total_allocated_bytes()
    buckets = np.zeros(n_lines, np.int32)
    buckets[0] = 1
    with BucketWriter(tmp_path / "one.parquet", LINES, buffered_bytes=1 << 20) as writer:
        for _ in range(n_batches):
            writer.send(lines(np.zeros(n_lines, np.uint64), ["x" * 20] * n_lines), buckets)
        assert pa.total_allocated_bytes() - before < 10 << 20


def scatter(task):
    path, seed = task
    keys = np.random.default_rng(seed).integers(0, 1_000, 5_000, np.uint64)
    with BucketWriter(path, LINES, buffered_bytes=1 << 14) as writer:
        writer.send(lines(keys, [""] * len(keys)), (keys // 150).astype(np.int32))
    return len(keys)


def count(task):
    paths, bucket = task
    keys, n = np.unique([line["key"] for line in of_bucket(paths, bucket)], return_counts=True)
    return dict(zip(keys.tolist(), n.tolist(), strict=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_count_by_key_is_that_of_one_table(tmp_path, workers):
    """The two halves as tasks of an executor: a key is in one bucket, and counted whole."""
    executor, sources = (
        LocalExecutor(workers=workers),
        [(tmp_path / f"{seed}.parquet", seed) for seed in range(4)],
    )
    assert sum(n for _, n in executor.run(scatter, sources, what="scatter")) == 20_000
    counted = [
        found
        for _, found in executor.run(
            count, [([path for path, _ in sources], bucket) for bucket in range(7)], what="count"
        )
    ]
    together = {key: n for found in counted for key, n in found.items()}
    assert len(together) == sum(map(len, counted))
    keys = np.concatenate(
        [np.random.default_rng(seed).integers(0, 1_000, 5_000, np.uint64) for seed in range(4)]
    )
    assert together == dict(
        zip(*(found.tolist() for found in np.unique(keys, return_counts=True)), strict=True)
    )


def test_a_damaged_file_is_said(tmp_path):
    path = tmp_path / "one.parquet"
    with BucketWriter(path, LINES) as writer:
        writer.send(lines([1], ["a"]), np.array([0], np.int32))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptFile, match="not a readable file of buckets"):
        of_bucket([path], 0)
