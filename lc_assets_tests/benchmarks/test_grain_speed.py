"""Rows through Grain against our loader, both as int32 in batches of 8, over whole epochs: what
Grain itself takes of an element decides. Run with ``-s`` to see the figures.
"""

import math
import time

import numpy as np
import pytest

import lc_assets
from lc_assets.loaders.random_access import RowRecords
from lc_assets.loaders.stepping import as_arrays
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.grid_builders import write_grid

N_ROWS, ROW_TOKENS, BATCH = 512, 65_536, 8


@pytest.fixture(scope="module")
def rows():
    return token_rows(N_ROWS, ROW_TOKENS)[1]


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    return write_grid(tmp_path_factory.mktemp("grain") / "train.zarr", rows)


@pytest.mark.parametrize(("context_tokens", "floor"), [(1024, 0.04), (ROW_TOKENS, 0.35)])
def test_grain_against_our_loader(rows, path, context_tokens, floor):
    """In turns, the best of three; a sum of all tokens says that both gave the same."""
    grain = pytest.importorskip("grain.python", reason="grain is not installed")

    def by_grain(*options):
        records = RowRecords(lc_assets.open(path), context_tokens=context_tokens)
        return grain.MapDataset.source(records).batch(BATCH).to_iter_dataset(*options)

    def by_us():
        data = lc_assets.open(path)
        return as_arrays(data.loader(batch_rows=BATCH, context_tokens=context_tokens))

    here = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    readers = {"our loader": by_us, "Grain": lambda: by_grain(here), "its threads": by_grain}
    assert {
        sum(int(b["targets"].sum(dtype=np.int64)) for b in read()) for read in readers.values()
    } == {int(rows.sum(dtype=np.int64))}
    seconds = dict.fromkeys(readers, math.inf)
    for name, read in [*readers.items()] * 3:
        begun = time.process_time()
        assert sum(1 for _ in read()) * BATCH * context_tokens == rows.size
        seconds[name] = min(seconds[name], time.process_time() - begun)
    ours = seconds["our loader"]
    said = [f"{name} {ours / of:.2f}, {rows.size / 1e6 / of:.0f} M" for name, of in seconds.items()]
    print(f"\n{BATCH} × {context_tokens:,}, tokens per CPU-second: {'; '.join(said)}")
    assert ours / seconds["Grain"] > floor
