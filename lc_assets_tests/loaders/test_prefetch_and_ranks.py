"""Reading ahead changes nothing but time; ranks share every batch, so that a state fits any number
of them.
"""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.loaders.arrays import ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets.loaders.contracts import (
    NumberedRows,
    assert_every_token_is_visited_once,
    assert_ranks_share_every_batch,
    assert_reading_ahead_changes_nothing,
    assert_resume_gives_the_rest,
)
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.stepping import THREAD_NAME, ahead
from lc_assets_tests.grid_builders import ids, write_grid, write_lake
from lc_assets_tests.processes import HANG_SECONDS


def threads_left():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]


@given(st.integers(0, 12), st.integers(0, 5), st.integers(1, 3))
def test_answers_come_in_order_whatever_takes_long(n_steps, n_ahead, threads):
    """Later steps are faster than earlier ones; the order is that of the steps."""

    def read(step):
        time.sleep(0.0001 * (n_steps - step))
        return step

    assert list(ahead(read, range(n_steps), n_ahead=n_ahead, threads=threads)) == list(
        range(n_steps)
    )
    assert threads_left() == []


def test_no_more_is_read_than_asked_for():
    """With 3 ahead, the 4th batch behind the one in use has not been begun."""
    begun = []
    answers = ahead(begun.append, range(100), n_ahead=3)
    for _ in range(5):
        next(answers)
    deadline = time.monotonic() + HANG_SECONDS
    while len(begun) < 8 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert begun == list(range(8))
    answers.close()
    assert threads_left() == []


@pytest.mark.parametrize("n_ahead", [0, 1, 4])
def test_an_error_comes_at_its_step(n_ahead):
    """Not when it happens: the batches before it are whole."""

    def read(step):
        if step == 5:
            raise CorruptFile("chunk 5")
        return step

    answers = ahead(read, range(9), n_ahead=n_ahead, threads=2)
    assert [next(answers) for _ in range(5)] == list(range(5))
    with pytest.raises(CorruptFile, match="chunk 5"):
        next(answers)
    assert threads_left() == []


def test_a_loader_that_is_let_go_leaves_no_thread():
    loader = GridLoader(NumberedRows(40, 6), batch_rows=2, context_tokens=3, prefetch=4, threads=3)
    batches = iter(loader)
    next(batches)
    assert threads_left()
    del batches
    assert threads_left() == []
    assert loader.step == 1


def test_a_state_that_is_loaded_while_iterating_counts():
    """What was read ahead for the old position is not given."""
    loader = GridLoader(NumberedRows(20, 6), batch_rows=2, context_tokens=6, prefetch=3)
    other = GridLoader(NumberedRows(20, 6), batch_rows=2, context_tokens=6)
    other.step = 7
    found = []
    for batch in loader:
        found.append(int(batch.targets[0, 0]) // 12)
        if found == [0, 1]:
            loader.load_state_dict(other.state_dict())
    assert found == [0, 1, 7, 8, 9]


@pytest.mark.parametrize(("n_ahead", "threads"), [(-1, 1), (2, 0)])
def test_impossible_prefetching_is_refused(n_ahead, threads):
    with pytest.raises(BadInput, match="cannot read"):
        GridLoader(
            NumberedRows(4, 6), batch_rows=2, context_tokens=3, prefetch=n_ahead, threads=threads
        )


@pytest.mark.parametrize("options", [{"prefetch": 8, "threads": 4}, {"lanes": 8}])
def test_nothing_is_decoded_twice(tmp_path, options):
    """By four threads, or in eight parts of the rows at once: each chunk is decoded once, of the
    first column and of later ones.
    """
    path = write_grid(tmp_path / "a.zarr", ids(512, 32), inner_tokens=8)
    rows = open_rows(path)
    batches = GridLoader(rows, batch_rows=8, context_tokens=8, **options)
    assert sum(int(batch.targets.sum()) for batch in batches) == int(ids(512, 32).sum())
    assert rows.cache.misses == 8 * 4


def test_a_riffled_walk_decodes_each_chunk_once(tmp_path):
    """Twelve sources through one cache, which holds a band of each: what one source needs next
    never costs another its place.
    """
    train = {f"s{number}": ids(130, 16, seed=number) for number in range(12)}
    lake = write_lake(tmp_path, train, {name: ids(1, 16) for name in train})
    rows = open_rows(lake)
    loader = GridLoader(rows, batch_rows=8, context_tokens=8)
    assert sum(1 for _ in loader) == len(loader)
    cache = rows.sources[0].cache
    assert 12 * 3 <= cache.misses <= 12 * 3 * 2
    assert cache.max_bytes <= (12 + 2) * 64 * 16 * 2


@st.composite
def shared(draw):
    """Rows, tokens, batch rows, context tokens, lanes, and numbers of ranks that share them."""
    lanes, per_lane = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    batch_rows = lanes * per_lane
    columns, context = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    n_rows = draw(st.integers(batch_rows, 4 * batch_rows))
    divided = batch_rows if lanes == 1 else lanes
    return (
        n_rows,
        columns * context,
        batch_rows,
        context,
        lanes,
        [n for n in range(1, divided + 1) if divided % n == 0],
    )


@given(shared(), st.data())
def test_ranks_keep_the_contracts(shape, data):
    """Any number of ranks, one lane or several: the same batches, every token once, and a resume on
    other ranks.
    """
    n_rows, row_tokens, batch_rows, context, lanes, sizes = shape

    def make(rank=0, n_ranks=1, rows=None):
        rows = rows or NumberedRows(n_rows, row_tokens)
        return GridLoader(
            rows,
            batch_rows=batch_rows,
            context_tokens=context,
            lanes=lanes,
            rank=rank,
            n_ranks=n_ranks,
        )

    steps = range(len(make()))
    assert_ranks_share_every_batch(make, world_sizes=sizes, steps=steps)
    assert_resume_gives_the_rest(
        make, world_sizes=[sizes[-1], 1, sizes[len(sizes) // 2]], stop_after=len(steps) // 3
    )
    kept = make().dropped_rows
    if lanes == 1:
        assert_every_token_is_visited_once(
            lambda rows: make(rows=rows), n_rows=n_rows, row_tokens=row_tokens, dropped_rows=kept
        )
    for step in steps:
        np.testing.assert_array_equal(
            make()[step].targets[:, 0] // row_tokens, list(make().rows_of(step))
        )


@given(shared())
def test_lanes_visit_every_row_once(shape):
    """Over a column: as many rows as the article's order, none twice."""
    n_rows, row_tokens, batch_rows, context, lanes, _ = shape
    loader = GridLoader(
        NumberedRows(n_rows, row_tokens), batch_rows=batch_rows, context_tokens=context, lanes=lanes
    )
    visited = [
        row for step in range(loader.row_blocks) for rows in loader.part_of(step)[0] for row in rows
    ]
    assert len(visited) == len(set(visited)) == n_rows - loader.dropped_rows
    assert max(visited) < n_rows


def test_ranks_with_lanes_share_no_chunk(tmp_path):
    """Two ranks over 256 rows, 16 rows a batch: with one lane both decode every chunk, with two
    lanes each decodes its half.
    """
    path = write_grid(tmp_path / "a.zarr", ids(256, 32))
    decoded = {}
    for lanes in (1, 2):
        caches = [ChunkCache(), ChunkCache()]
        for rank, cache in enumerate(caches):
            loader = GridLoader(
                ZarrRows(GridReader(path), cache),
                batch_rows=16,
                context_tokens=32,
                lanes=lanes,
                rank=rank,
                n_ranks=2,
            )
            assert sum(1 for _ in loader) == 16
        decoded[lanes] = [cache.misses for cache in caches]
    assert decoded == {1: [4, 4], 2: [2, 2]}


def test_reading_ahead_keeps_the_contract(tmp_path):
    path = write_grid(tmp_path / "a.zarr", ids(100, 32))
    assert_reading_ahead_changes_nothing(
        lambda n_ahead, threads: GridLoader(
            open_rows(path), batch_rows=7, context_tokens=16, prefetch=n_ahead, threads=threads
        ),
        prefetches=[(1, 1), (5, 2), (50, 4)],
    )


class Unfair(GridLoader):
    """Gives every rank the same rows, or forgets its position, or reads ahead out of order."""

    def __init__(self, *args, fault, rank, **kwargs):
        super().__init__(*args, rank=0 if fault == "all the same" else rank, **kwargs)
        self.fault = fault

    def __getitem__(self, step):
        return super().__getitem__(
            step ^ 1 if self.fault == "out of order" and self.prefetch else step
        )

    def load_state_dict(self, state):
        super().load_state_dict(state | ({"step": 0} if self.fault == "forgets" else {}))


@pytest.mark.parametrize(
    ("fault", "contract"),
    [
        (
            "all the same",
            lambda make: assert_ranks_share_every_batch(make, world_sizes=[2], steps=[0]),
        ),
        (
            "forgets",
            lambda make: assert_resume_gives_the_rest(make, world_sizes=[2, 1], stop_after=1),
        ),
        (
            "out of order",
            lambda make: assert_reading_ahead_changes_nothing(
                lambda n, t: make(prefetch=n), prefetches=[(2, 1)]
            ),
        ),
    ],
)
def test_a_contract_finds_the_loader_that_breaks_it(fault, contract):
    def make(fault):
        return lambda rank=0, n_ranks=1, prefetch=0: Unfair(
            NumberedRows(8, 6),
            batch_rows=4,
            context_tokens=3,
            rank=rank,
            n_ranks=n_ranks,
            prefetch=prefetch,
            fault=fault,
        )

    with pytest.raises(AssertionError):
        contract(make(fault))
    contract(make("none"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"n_ranks": 8},
            ("8 ranks cannot share the rows of a batch, 4, equally: use one of 1, 2, 4"),
        ),
        ({"n_ranks": 3}, "3 ranks cannot share the rows of a batch, 4"),
        ({"rank": 2, "n_ranks": 2}, "there is no rank 2 of 2"),
        ({"rank": -1}, "there is no rank -1 of 1"),
        ({"lanes": 3}, "lanes must divide batch_rows = 4; these do: 1, 2, 4; got 3"),
        ({"lanes": 2, "n_ranks": 4}, "4 ranks cannot share the lanes, 2, equally"),
    ],
)
def test_invalid_ranks_and_lanes_are_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        GridLoader(NumberedRows(8, 6), batch_rows=4, context_tokens=3, **settings)


def test_a_state_of_other_lanes_is_refused():
    """Another order: its steps are other rows."""
    one, two = (
        GridLoader(NumberedRows(8, 6), batch_rows=4, context_tokens=3, lanes=lanes)
        for lanes in (1, 2)
    )
    for ours, theirs in ((one, two), (two, one)):
        with pytest.raises(BadInput, match="its lanes is"):
            ours.load_state_dict(theirs.state_dict())
