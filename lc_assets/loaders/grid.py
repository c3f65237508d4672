"""Walking a grid of rows × tokens in batches: every step is a rectangle, and the step alone says which.

Here: the order of the rectangles, batches of inputs and targets, and resuming. Not here: reading rows
(`loaders.rows`), tensors (`loaders.torch`).

Source: LongCrawl64, "How to use the dataset" (Buckman, 2024). Batches go down the rows of the first context
column, then down the second, and so on, so that consecutive batches share no document. What a batch is asked
to predict is the data itself; the inputs are the data moved right by one, with end-of-text in front.
"""

import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray
from lc_assets.loaders.arrays import RoomMaker, RowSource
from lc_assets.vocabulary import GPT2_EOT


class Rectangle(NamedTuple):
    """Which rows and which of their tokens."""

    rows: range
    tokens: range


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWalk:
    """The rectangles of a grid, column by column.

    Attributes:
        n_rows: rows of the grid.
        row_tokens: tokens of a row.
        batch_rows: rows of a rectangle.
        context_tokens: tokens of a rectangle's rows; divides ``row_tokens``.

    >>> walk = GridWalk(n_rows=5, row_tokens=4, batch_rows=2, context_tokens=2)
    >>> [(at.rows.start, at.tokens.start) for at in map(walk.rectangle, range(walk.n_steps))]
    [(0, 0), (2, 0), (0, 2), (2, 2)]
    >>> walk.dropped_rows, walk.dropped_tokens
    (1, 4)
    """

    n_rows: int
    row_tokens: int
    batch_rows: int
    context_tokens: int

    def __post_init__(self) -> None:
        if self.n_rows < 1:
            raise BadInput("the data set has no rows, so there is nothing to load")
        if not 1 <= self.batch_rows <= self.n_rows:
            raise BadInput(f"batch_rows must be 1 to {self.n_rows:,}, the rows of the data set, got {self.batch_rows:,}")
        if self.context_tokens < 1 or self.row_tokens % self.context_tokens:
            raise BadInput(
                f"context_tokens must divide row_tokens = {self.row_tokens:,}, as do {_divisors(self.row_tokens)};"
                f" got {self.context_tokens:,}"
            )

    @property
    def row_blocks(self) -> int:
        """Rectangles from top to bottom."""
        return self.n_rows // self.batch_rows

    @property
    def columns(self) -> int:
        """Rectangles from left to right."""
        return self.row_tokens // self.context_tokens

    @property
    def n_steps(self) -> int:
        """Rectangles of the whole walk."""
        return self.row_blocks * self.columns

    @property
    def dropped_rows(self) -> int:
        """Rows at the end that fill no batch and are never visited."""
        return self.n_rows % self.batch_rows

    @property
    def dropped_tokens(self) -> int:
        """Tokens of those rows."""
        return self.dropped_rows * self.row_tokens

    def rectangle(self, step: int) -> Rectangle:
        """Return the rectangle of a step.

        Raises:
            IndexError: when the step is negative or beyond the last.
        """
        if not 0 <= step < self.n_steps:
            raise IndexError(f"no step {step:,}: there are {self.n_steps:,}, numbered from 0")
        column, block = divmod(step, self.row_blocks)
        top, left = block * self.batch_rows, column * self.context_tokens
        return Rectangle(range(top, top + self.batch_rows), range(left, left + self.context_tokens))


class Batch(NamedTuple):
    """One step's data: (row, token) arrays of equal shape, uint16 (uint32 for vocabularies of 65,500 ids and more).

    Attributes:
        text: the model's inputs: ``targets`` moved right by one.
        targets: what is to be predicted: the data.
    """

    text: TokenArray
    targets: TokenArray


class GridLoader:
    """Batches of a data set, by step and in order.

    ``loader[step]`` has no memory: the step is enough. ``for batch in loader`` goes on from the loader's
    position, which `state_dict` saves, and puts it back to 0 when it has run out.
    """

    def __init__(self, rows: RowSource, *, batch_rows: int, context_tokens: int, first_token: int = GPT2_EOT) -> None:
        """Lay a walk over a data set.

        Args:
            rows: the data set.
            batch_rows: rows of a batch.
            context_tokens: tokens of a batch's rows.
            first_token: stands before each row of inputs; GPT-2's end-of-text, as LongCrawl64 recommends.

        Raises:
            BadInput: when the data set has no rows or fewer than a batch, ``context_tokens`` does not divide its
                rows, or ``first_token`` is not in its vocabulary.
        """
        if not 0 <= first_token < rows.vocab_size:
            raise BadInput(f"first_token must be an id of the vocabulary, 0 to {rows.vocab_size - 1:,}, got {first_token:,}")
        self.walk = GridWalk(n_rows=rows.n_rows, row_tokens=rows.row_tokens, batch_rows=batch_rows, context_tokens=context_tokens)
        if isinstance(rows, RoomMaker):
            rows.make_room(batch_rows, context_tokens)
        self.rows = rows
        self.first_token = first_token
        self.step = 0

    def __len__(self) -> int:
        return self.walk.n_steps

    def __getitem__(self, step: int) -> Batch:
        rectangle = self.walk.rectangle(operator.index(step))
        rows, tokens = (slice(side.start, side.stop) for side in rectangle)
        targets = self.rows.read(rows, tokens)
        return Batch(shifted_right(targets, self.first_token), targets)

    def __iter__(self) -> Iterator[Batch]:
        while self.step < len(self):
            batch = self[self.step]
            self.step += 1
            yield batch
        self.step = 0

    @property
    def dropped_rows(self) -> int:
        """Rows that no batch holds, because they fill none."""
        return self.walk.dropped_rows

    @property
    def dropped_tokens(self) -> int:
        """Tokens of those rows."""
        return self.walk.dropped_tokens

    def rows_of(self, step: int) -> range:
        """Positions of a step's rows in the data set, for tracing them (see `formats.riffled.RiffledReader.origin`).

        Raises:
            IndexError: when there is no such step.
        """
        return self.walk.rectangle(step).rows

    def state_dict(self) -> dict[str, Any]:
        """Return the position and what it is a position in; plain values, fit for any checkpoint."""
        return {"step": self.step, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader over the same data set and of the same shape stood.

        Raises:
            BadInput: when the state is of another data set or shape, or its step does not exist; says which.
        """
        for name, value in self._identity().items():
            if state.get(name) != value:
                raise BadInput(f"the state is of another data set or shape: its {name} is {state.get(name)!r}, this loader's is {value!r}")
        step = state.get("step")
        if not isinstance(step, int) or not 0 <= step <= len(self):
            raise BadInput(f"the state's step is {step!r}; wanted 0 to {len(self):,}")
        self.step = step

    def _identity(self) -> dict[str, Any]:
        return {
            "data": self.rows.identity,
            "batch_rows": self.walk.batch_rows,
            "context_tokens": self.walk.context_tokens,
            "first_token": self.first_token,
        }


def shifted_right(targets: TokenArray, first_token: int) -> TokenArray:
    """Inputs that predict ``targets``: each row moved right by one, ``first_token`` in front, its last id gone.

    >>> shifted_right(np.array([[1, 2, 3]], np.uint16), 9)
    array([[9, 1, 2]], dtype=uint16)
    """
    text = np.empty_like(targets)
    text[:, 0] = first_token
    text[:, 1:] = targets[:, :-1]
    return text


def steps_of(n_steps: int, *, rank: int = 0, n_ranks: int = 1, worker: int = 0, n_workers: int = 1) -> range:
    """Steps that one worker of one rank reads: all of them are read once, by one worker each.

    A rank reads every ``n_ranks``-th step. Its workers deal those out in turn, so that a reader which asks its
    workers in turn gets the rank's steps in order, however many workers there are. Ranks differ by one step at most.

    >>> [list(steps_of(5, rank=0, n_ranks=2, worker=worker, n_workers=2)) for worker in (0, 1)]
    [[0, 4], [2]]

    Raises:
        BadInput: when there is no such rank or worker.
    """
    if not (0 <= rank < n_ranks and 0 <= worker < n_workers):
        raise BadInput(f"there is no rank {rank} of {n_ranks} or no worker {worker} of {n_workers}")
    return range(rank + n_ranks * worker, n_steps, n_ranks * n_workers)


def _divisors(number: int) -> str:
    small = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return ", ".join(f"{divisor:,}" for divisor in sorted({*small, *(number // divisor for divisor in small)}))
