"""The contract of a loader, as assertions that you can run on a loader of your own.

A loader has ``len(loader)`` steps, ``loader[step]`` is a batch of (row, token) arrays ``text`` and
``targets``, and it can be iterated, saved and resumed. Everything runs on small data.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.testing import assert_array_equal, assert_equal

from lc_assets.arrays import Array, UInt32s
from lc_assets.formats.arrays.chunks import span
from lc_assets.loaders.arrays import RowSource
from lc_assets.loaders.stepping import SteppedLoader
from lc_assets.records import frozen
from lc_assets.vocabulary import GPT2_VOCAB_SIZE

Loader: TypeAlias = SteppedLoader[Any]
"""What is checked; a loader that is not derived from it needs the methods that an assertion calls.
"""


@frozen
class NumberedRows:
    """A data set whose tokens are all different: id = row × ``row_tokens`` + token, as uint32,
    so at most 2³² of them.

    >>> NumberedRows(2, 3).read(slice(1, 2), slice(None))
    array([[3, 4, 5]], dtype=uint32)
    """

    n_rows: int
    row_tokens: int

    @property
    def vocab_size(self) -> int:
        """Above every id, and at least GPT-2's, so that its end of text is in the vocabulary."""
        return max(self.n_rows * self.row_tokens, GPT2_VOCAB_SIZE)

    @property
    def identity(self) -> str:
        """The shape determines it."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def read(self, rows: slice, tokens: slice) -> UInt32s:
        """Read a rectangle as a new (row, token) array."""
        down = np.array(span(rows, self.n_rows, "rows"), np.uint32)
        return down[:, None] * np.uint32(self.row_tokens) + np.array(
            span(tokens, self.row_tokens, "tokens"), np.uint32
        )


def assert_step_is_enough(loader: Loader, *, steps: Sequence[int]) -> None:
    """The step alone determines the batch: visiting steps backwards and again changes nothing."""
    forwards = [loader[step] for step in steps]
    assert_equal([loader[step] for step in reversed(steps)][::-1], forwards)
    assert_equal([loader[step] for step in steps], forwards)


def assert_every_token_is_visited_once(
    make_loader: Callable[[RowSource], Loader],
    *,
    n_rows: int,
    row_tokens: int,
    dropped_rows: int = 0,
) -> None:
    """In an epoch, every token is a target exactly once, except those of dropped rows.

    Args:
        make_loader: makes a loader over a data set.
        n_rows: rows of the data set.
        row_tokens: tokens of its rows.
        dropped_rows: rows at the end that the loader leaves out.
    """
    loader = make_loader(NumberedRows(n_rows, row_tokens))
    visited = [loader[step].targets.ravel() for step in range(len(loader))]
    kept = (n_rows - dropped_rows) * row_tokens
    assert_array_equal(np.sort(np.concatenate([*visited, np.empty(0, np.uint32)])), np.arange(kept))


def assert_ranks_share_every_batch(
    make_rank: Callable[[int, int], Loader], *, world_sizes: Sequence[int], steps: Sequence[int]
) -> None:
    """The batches of all ranks at a step, concatenated, are the same for any number of ranks.

    Args:
        make_rank: makes the loader of one rank, given its number and the number of ranks.
        world_sizes: numbers of ranks to try.
        steps: steps to compare.
    """
    whole = make_rank(0, 1)
    for n_ranks in world_sizes:
        ranks = [make_rank(rank, n_ranks) for rank in range(n_ranks)]
        assert_equal([len(loader) for loader in ranks], [len(whole)] * n_ranks)
        for step in steps:
            parts = [loader[step] for loader in ranks]
            assert_equal([part.targets.shape for part in parts], [parts[0].targets.shape] * n_ranks)
            for together, alone in zip(zip(*parts, strict=True), whole[step], strict=True):
                assert_array_equal(np.concatenate(together), alone)


def assert_resume_gives_the_rest(
    make_rank: Callable[[int, int], Loader],
    *,
    stop_after: int,
    world_sizes: Sequence[int] = (1, 1),
) -> None:
    """New loaders with a saved position, of any number of ranks and from any rank's state, give the
    rest of the stream, without repeating or skipping anything.

    Args:
        make_rank: makes the loader of one rank, given its number and the number of ranks.
        stop_after: steps before each stop.
        world_sizes: numbers of ranks, one after another.
    """
    state: Mapping[str, Any] = make_rank(0, 1).state_dict()
    seen: list[list[Array]] = []
    for turn, n_ranks in enumerate(world_sizes, 1):
        ranks = [make_rank(rank, n_ranks) for rank in range(n_ranks)]
        for loader in ranks:
            loader.load_state_dict(state)
        n_steps = stop_after if turn < len(world_sizes) else None
        streams = [itertools.islice(loader, n_steps) for loader in ranks]
        seen += [
            [np.concatenate(columns) for columns in zip(*parts, strict=True)]
            for parts in zip(*streams, strict=True)
        ]
        state = ranks[-1].state_dict()
    assert_equal(seen, [list(batch) for batch in make_rank(0, 1)])


def assert_reading_ahead_changes_nothing(
    make_loader: Callable[[int, int], Loader], *, prefetches: Sequence[tuple[int, int]]
) -> None:
    """Reading ahead changes neither the stream nor the position after each batch.

    Args:
        make_loader: makes the loader, given the number of batches to read ahead and of threads.
        prefetches: such pairs.
    """
    loader = make_loader(0, 1)
    plain = [(batch, loader.state_dict()) for batch in loader]
    for n_ahead, threads in prefetches:
        loader = make_loader(n_ahead, threads)
        assert_equal([(batch, loader.state_dict()) for batch in loader], plain)


def assert_inputs_are_shifted_targets(
    loader: Loader, *, steps: Sequence[int], first_token: int
) -> None:
    """Inputs are the targets shifted right by one, so no target is among its own inputs."""
    for step in steps:
        batch = loader[step]
        assert_array_equal(batch.text[:, 1:], batch.targets[:, :-1])
        assert_array_equal(batch.text[:, 0], np.full(len(batch.text), first_token))
