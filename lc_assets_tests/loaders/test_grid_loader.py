"""The grid loader: the step alone determines the rectangle; every kept token comes once; resuming
is exact.
"""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.loaders.contracts import (
    NumberedRows,
    assert_every_token_is_visited_once,
    assert_inputs_are_shifted_targets,
    assert_resume_gives_the_rest,
    assert_step_is_enough,
)
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.stepping import Batch, steps_of
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.grid_builders import ids, write_grid


@st.composite
def shapes(draw):
    """Rows, tokens, batch rows and context tokens that fit each other."""
    context, columns = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    n_rows = draw(st.integers(1, 9))
    return n_rows, context * columns, draw(st.integers(1, n_rows)), context


def loader_over(rows, shape):
    return GridLoader(rows, batch_rows=shape[2], context_tokens=shape[3])


@given(shape=shapes(), data=st.data())
def test_the_loader_keeps_its_contracts(shape, data):
    """Over any shape: step is enough, resume gives the rest, every kept token once, inputs are
    shifted targets.
    """
    rows = NumberedRows(*shape[:2])
    loader = loader_over(rows, shape)
    steps = data.draw(st.lists(st.integers(0, len(loader) - 1), min_size=1, max_size=8))
    assert_step_is_enough(loader, steps=steps)
    assert_inputs_are_shifted_targets(loader, steps=steps, first_token=GPT2_EOT)
    assert_resume_gives_the_rest(
        lambda *_: loader_over(rows, shape), stop_after=data.draw(st.integers(0, len(loader)))
    )
    assert_every_token_is_visited_once(
        lambda rows: loader_over(rows, shape),
        n_rows=shape[0],
        row_tokens=shape[1],
        dropped_rows=loader.dropped_rows,
    )


@given(shape=shapes())
def test_the_order_is_down_the_rows_then_on_to_the_next_column(shape):
    """Against the obvious two loops."""
    n_rows, row_tokens, batch_rows, context = shape
    loops = [
        (top, left)
        for left in range(0, row_tokens, context)
        for top in range(0, n_rows, batch_rows)
        if top + batch_rows <= n_rows
    ]  # fmt: skip
    loader = loader_over(NumberedRows(n_rows, row_tokens), shape)
    parts = [loader.part_of(step) for step in range(len(loader))]
    assert [(rows.start, tokens.start) for (rows,), tokens in parts] == loops
    assert {(len(rows), len(tokens)) for (rows,), tokens in parts} == {(batch_rows, context)}
    dropped = loader.dropped_rows * row_tokens
    assert len(loader) * batch_rows * context + dropped == n_rows * row_tokens


class Forgetful(GridLoader):
    """Breaks each contract in turn."""

    def __init__(self, *args, fault, **kwargs):
        super().__init__(*args, **kwargs)
        self.fault, self.n_asked = fault, 0

    def __getitem__(self, step):
        self.n_asked += 1
        batch = super().__getitem__(
            (step * 2) % len(self) if self.fault == "visits twice" else step
        )
        if self.fault == "remembers":
            return Batch(batch.text + self.n_asked, batch.targets)
        return Batch(batch.targets, batch.targets) if self.fault == "shows the answer" else batch

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.step = max(self.step - (self.fault == "repeats"), 0)


@pytest.mark.parametrize(
    ("fault", "contract"),
    [
        (
            "remembers",
            lambda make: assert_step_is_enough(make(NumberedRows(4, 6)), steps=[0, 1, 2]),
        ),
        (
            "shows the answer",
            lambda make: assert_inputs_are_shifted_targets(
                make(NumberedRows(4, 6)), steps=[0], first_token=GPT2_EOT
            ),
        ),
        (
            "repeats",
            lambda make: assert_resume_gives_the_rest(
                lambda *_: make(NumberedRows(4, 6)), stop_after=2
            ),
        ),
        (
            "visits twice",
            lambda make: assert_every_token_is_visited_once(make, n_rows=4, row_tokens=6),
        ),
    ],
)
def test_a_contract_finds_the_loader_that_breaks_it(fault, contract):
    """An assertion that nothing can fail would promise nothing."""
    with pytest.raises(AssertionError):
        contract(lambda rows: Forgetful(rows, batch_rows=2, context_tokens=3, fault=fault))
    contract(lambda rows: Forgetful(rows, batch_rows=2, context_tokens=3, fault="none"))


def test_the_state_is_plain_and_the_position_is_the_next_step():
    """It goes through JSON, and is taken after a batch has been used."""
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["step"] == 1
    other = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    other.load_state_dict(state)
    np.testing.assert_equal(next(iter(other)), other[1])


def test_random_access_does_not_move_the_position():
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    _ = loader[3]
    assert loader.state_dict()["step"] == 0


def test_an_epoch_that_ran_out_begins_again():
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    np.testing.assert_equal(list(loader), list(loader))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (GridLoader(NumberedRows(6, 6), batch_rows=2, context_tokens=3), "data"),
        (GridLoader(NumberedRows(4, 6), batch_rows=1, context_tokens=3), "batch_rows"),
        (GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=2), "context_tokens"),
        (
            GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3, first_token=0),
            "first_token",
        ),
    ],
)
def test_a_state_of_another_data_set_or_shape_is_refused(other, name):
    """A step of another walk would skip and repeat tokens in silence."""
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    with pytest.raises(BadInput, match=f"another data set or shape: its {name} is"):
        loader.load_state_dict(other.state_dict())


@pytest.mark.parametrize("step", [-1, 5, "3", None, 1.5])
def test_a_state_with_an_impossible_step_is_refused(step):
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    with pytest.raises(BadInput, match=r"the state's step is .*, expected 0 to 4"):
        loader.load_state_dict(loader.state_dict() | {"step": step})


@pytest.mark.parametrize("step", [-1, 4, 10**9])
def test_a_step_outside_is_an_index_error(step):
    """Negative steps do not count from the end: a step is a moment, not a place."""
    loader = GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3)
    with pytest.raises(IndexError, match="there are 4, numbered from 0"):
        loader[step]
    with pytest.raises(IndexError):
        loader.rows_of(step)


@pytest.mark.parametrize(
    ("shape", "batch_rows", "context", "message"),
    [
        ((0, 6), 1, 3, "has no rows"),
        ((4, 6), 5, 3, "batch_rows must be 1 to 4, the rows of the data set, got 5"),
        ((4, 6), 0, 3, "batch_rows must be 1 to 4"),
        ((4, 6), 2, 4, "context_tokens must divide row_tokens = 6; these do: 1, 2, 3, 6; got 4"),
        ((4, 6), 2, 0, "context_tokens must divide"),
        ((4, 6), 2, 12, "context_tokens must divide"),
    ],
)
def test_invalid_arguments_are_refused(shape, batch_rows, context, message):
    """Each message states what is allowed."""
    with pytest.raises(BadInput, match=message):
        GridLoader(NumberedRows(*shape), batch_rows=batch_rows, context_tokens=context)


def test_the_first_token_is_of_the_vocabulary():
    """Another vocabulary than GPT-2's must name its own: 50,256 would be some other token, or
    none.
    """
    with pytest.raises(
        BadInput, match="first_token must be an id of the vocabulary, 0 to 50,256, got 50,257"
    ):
        GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3, first_token=50_257)
    assert GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3, first_token=7)[0].text[
        :, 0
    ].tolist() == [7, 7]


def test_rows_of_a_step_are_the_rows_it_holds():
    loader = GridLoader(NumberedRows(5, 6), batch_rows=2, context_tokens=3)
    for step in range(len(loader)):
        np.testing.assert_array_equal(loader[step].targets[:, 0] // 6, loader.rows_of(step))
    assert loader.dropped_rows == 1


@given(n_steps=st.integers(0, 40), n_ranks=st.integers(1, 4), n_workers=st.integers(1, 4))
def test_ranks_and_workers_share_all_steps_without_overlap(n_steps, n_ranks, n_workers):
    """Complete and disjoint; and asking a rank's workers in turn gives its steps in order, whatever
    their number.
    """
    together = []
    for rank in range(n_ranks):
        shares = [
            list(steps_of(n_steps, rank=rank, n_ranks=n_ranks, worker=each, n_workers=n_workers))
            for each in range(n_workers)
        ]
        in_turn = [share[turn] for turn in range(n_steps) for share in shares if turn < len(share)]
        assert in_turn == list(range(rank, n_steps, n_ranks))
        together.extend(in_turn)
    assert sorted(together) == list(range(n_steps))


@pytest.mark.parametrize(
    "where", [{"rank": 2, "n_ranks": 2}, {"rank": -1}, {"worker": 1}, {"n_workers": 0}]
)
def test_a_rank_or_worker_that_is_not_there_is_refused(where):
    with pytest.raises(BadInput, match="there is no rank"):
        steps_of(10, **where)


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """200 rows of 48 tokens in chunks of 64 × 8, the last ones ragged."""
    return write_grid(tmp_path_factory.mktemp("grid") / "a.zarr", ids(200, 48), inner_tokens=8)


@given(
    batch_rows=st.sampled_from([1, 7, 8, 24, 32, 64, 128]),
    context_tokens=st.sampled_from([3, 4, 6, 8, 12, 16, 24, 48]),
    n_ranks=st.sampled_from([1, 2, 4]),
    in_lanes=st.booleans(),
    cache_bytes=st.sampled_from([None, 64 * 8 * 2, 10**6]),
    data=st.data(),
)
def test_batches_are_the_rows_of_a_grid(
    grid, batch_rows, context_tokens, n_ranks, in_lanes, cache_bytes, data
):
    """Where steps share chunks and where they take whole ones, in any order of steps."""
    n_ranks = n_ranks if batch_rows % n_ranks == 0 else 1
    loader = GridLoader(
        open_rows(grid, cache_bytes=cache_bytes),
        batch_rows=batch_rows,
        context_tokens=context_tokens,
        rank=n_ranks - 1,
        n_ranks=n_ranks,
        lanes=n_ranks if in_lanes else 1,
    )
    for step in data.draw(st.lists(st.integers(0, len(loader) - 1), min_size=1, max_size=8)):
        blocks, tokens = loader.part_of(step)
        expected = ids(200, 48)[np.concatenate(blocks), tokens.start : tokens.stop]
        batch = loader[step]
        np.testing.assert_array_equal(batch.targets, expected)
        np.testing.assert_array_equal(batch.text[:, 1:], expected[:, :-1])
        assert (batch.text[:, 0] == GPT2_EOT).all()
        batch.targets[...] = 0  # the user's own: the step is read again unchanged


@pytest.mark.parametrize(
    ("batch_rows", "options", "kept"),
    [
        (8, {"threads": 2}, 64 * 8 * 2),
        (8, {"n_ranks": 2}, 64 * 8 * 2),
        (8, {"prefetch": 2}, 0),
        (64, {"threads": 2}, 0),
    ],
)
def test_what_is_cached_of_a_walk(grid, batch_rows, options, kept):
    """A row of chunks while steps are parts of it, if others may need it; of whole chunks nothing;
    and nothing is sent with a loader.
    """
    loader = GridLoader(open_rows(grid), batch_rows=batch_rows, context_tokens=8, **options)
    rows = loader[0].targets
    assert loader.rows.cache.n_bytes == kept
    assert rows[0].tobytes() not in pickle.dumps(loader)
