"""What it costs to hold Parquet against bounds before Arrow sees it. Run with ``-s`` to see the
figures.
"""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.formats.parquet.opening import guarded, require_sound_footer, weighed
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

N_DOCUMENTS, N_WORDS, AT_ONCE = 8_000, 400, 256
MOST_MORE = 0.35
"""Part of the reading that the looking may take; a fiftieth on a quiet machine, but the two are
taken apart by subtraction.
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Made-up documents, 22 MB of text in four row groups: texts, addresses and lists of words."""
    drawn = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5000)])
    rows = {
        "text": [
            " ".join(words[drawn.integers(0, len(words), N_WORDS)]) for _ in range(N_DOCUMENTS)
        ],
        "url": [f"https://example.org/{number}" for number in range(N_DOCUMENTS)],
        "tags": [["a", "b"]] * N_DOCUMENTS,
    }
    path = tmp_path_factory.mktemp("corpus") / "x.parquet"
    pq.write_table(pa.table(rows), path, row_group_size=N_DOCUMENTS // 4)
    return path, sum(map(len, rows["text"])) / 1e6


def test_reading_within_bounds_against_reading(corpus):
    """The same rows; headers of all pages are looked at in the bytes that pass by, or ahead of
    them.
    """
    path, megabytes = corpus

    def plainly(_):
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(batch.num_rows for batch in file.iter_batches(AT_ONCE))

    def within_bounds(_):
        with guarded(path, where="x", rows_at_once=AT_ONCE) as file:
            return sum(batch.num_rows for batch in file.batches(AT_ONCE))

    def ahead(_):
        with contextlib.ExitStack() as stack:
            return sum(stack.enter_context(weighed(path, most_rows=AT_ONCE))[1])

    theirs, n_rows = cpu_seconds(plainly, rounds=7)
    ours, ours_rows = cpu_seconds(within_bounds, rounds=7)
    looking, rows_at_once = cpu_seconds(ahead, rounds=7)
    footer, _ = cpu_seconds(lambda _: require_sound_footer(path), rounds=7)
    assert n_rows == ours_rows == N_DOCUMENTS
    assert rows_at_once > 0
    say("Parquet within bounds", megabytes, "MB of text", ours, without_bounds=theirs)
    print(
        f"headers of pages ahead of the reading {100 * looking / theirs:.1f} % of it, the footer "
        f"alone {100 * footer / theirs:.1f} %"
    )
    assert looking < theirs * MOST_MORE
    assert ours < theirs * (1 + MOST_MORE)
