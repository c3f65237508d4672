"""Rows through Grain against our loader, both as int32 in batches of 8, over whole epochs, and
against what Grain takes of a source that holds one element, as the bound. Run with ``-s`` to see
the figures; where MaxText is installed, through the iterator that it reads Grain by, too.
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
from lc_assets_tests.stages import test_mixes_in_maxtext

N_ROWS, ROW_TOKENS, BATCH = 512, 65_536, 8

ask = test_mixes_in_maxtext.ask


class Same:
    """A source whose elements are one: what is left is Grain's own time."""

    def __init__(self, records):
        self.n, self.element = len(records), records[0]

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        return self.element


@pytest.fixture(scope="module")
def rows():
    return token_rows(N_ROWS, ROW_TOKENS)[1]


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    return write_grid(tmp_path_factory.mktemp("grain") / "train.zarr", rows)


@pytest.mark.parametrize(
    ("context_tokens", "floor", "of_examples"), [(1024, 0.3, 0.04), (ROW_TOKENS, 0.8, 0.35)]
)
def test_grain_against_our_loader(rows, path, context_tokens, floor, of_examples):
    """In turns, the best of three; a sum of all tokens says that both gave the same."""
    grain = pytest.importorskip("grain.python", reason="grain is not installed")
    options = {
        "": grain.ReadOptions(num_threads=0, prefetch_buffer_size=0),
        ", a thread": grain.ReadOptions(num_threads=1, prefetch_buffer_size=2),
        ", 16 threads": grain.ReadOptions(num_threads=16, prefetch_buffer_size=16),
    }

    def records(batch_rows):
        return RowRecords(
            lc_assets.open(path), batch_rows=batch_rows, context_tokens=context_tokens
        )

    def batches(source, how):
        return grain.MapDataset.source(source).to_iter_dataset(options[how])

    def examples(source, how):
        return grain.MapDataset.source(source).batch(BATCH).to_iter_dataset(options[how])

    def by_us():
        data = lc_assets.open(path)
        return as_arrays(data.loader(batch_rows=BATCH, context_tokens=context_tokens))

    same, same_examples = Same(records(BATCH)), Same(records(None))
    readers = {"our loader": by_us}
    for how in options:
        readers[f"batches{how}"] = lambda how=how: batches(records(BATCH), how)
        readers[f"examples{how}"] = lambda how=how: examples(records(None), how)
    sums = {
        sum(int(found["targets"].sum(dtype=np.int64)) for found in read())
        for read in readers.values()
    }
    assert sums == {int(rows.sum(dtype=np.int64))}
    readers["Grain alone, batches"] = lambda: batches(same, "")
    readers["Grain alone, examples"] = lambda: examples(same_examples, "")
    seconds = dict.fromkeys(readers, math.inf)
    for name, read in [*readers.items()] * 3:
        begun = time.process_time()
        assert sum(1 for _ in read()) * BATCH * context_tokens == rows.size
        seconds[name] = min(seconds[name], time.process_time() - begun)
    ours = seconds["our loader"]
    said = [f"{name} {ours / of:.2f}, {rows.size / 1e6 / of:.0f} M" for name, of in seconds.items()]
    print(f"\n{BATCH} × {context_tokens:,}, tokens per CPU-second: {'; '.join(said)}")
    assert ours / seconds["batches"] > floor
    assert ours / seconds["examples"] > of_examples


@pytest.mark.network
@pytest.mark.timeout(600)
def test_maxtext_against_our_loader(path, ask, tmp_path):
    """The same by the iterator from which MaxText trains, whatever it is given."""
    shape = {"sequence_length": ROW_TOKENS, "batch": BATCH}
    seconds = ask(ask="speed", folder=str(tmp_path), path=str(path), **shape)
    ours = seconds["our loader"]
    print("\nMaxText:", "; ".join(f"{name} {ours / of:.2f}" for name, of in seconds.items()))
    assert ours / seconds["batches"] > 0.7
