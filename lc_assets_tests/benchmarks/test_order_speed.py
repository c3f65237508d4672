"""The global order: merging a million rows of 84 snapshots, against `heapq.merge`. Run with ``-s``
to see the figures.
"""

import numpy as np

from lc_assets.tokens.orders import interleave
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.riffle import slow_riffle

N_ROWS, N_SNAPSHOTS = 1_000_000, 84


def test_the_order_is_the_merge_and_faster():
    """Million rows per CPU-second."""
    rng = np.random.default_rng(1)
    priorities = rng.integers(0, 2**64, N_ROWS, np.uint64)
    grids = [
        np.sort(part)
        for part in np.split(priorities, np.sort(rng.integers(0, N_ROWS, N_SNAPSHOTS - 1)))
    ]
    fast, (source, row) = cpu_seconds(lambda _: interleave(grids))
    slow, merged = cpu_seconds(lambda _: slow_riffle(grids), rounds=1)
    np.testing.assert_array_equal(np.stack([source, row], axis=1), merged)
    say(f"riffle of {N_SNAPSHOTS} snapshots", N_ROWS / 1e6, "M rows", fast, heapq_merge=slow)
    assert fast < slow
