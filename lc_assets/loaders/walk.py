"""The order of a walk over a grid of rows × tokens, and how ranks and workers share it.

Batches go down the rows of the first context column, then down the second, and so on, so that
consecutive batches share no document.

A step is a *global* batch, the same for any number of ranks, and a rank takes its rows of it; so a
run may resume on another number of ranks with the same stream. With one lane, which is the
article's order, the ranks' rows are adjacent, and if a rank's share is below the 64 rows of a token
grid's chunk, several ranks decode the same chunk. Lanes avoid that: the walk goes down ``lanes``
equal parts of the rows at once, and a rank takes whole lanes, so two ranks share a chunk only where
lanes meet. Rows of a grid are shuffled, so both orders are equally random; but they differ, so
lanes are off by default.

Source: LongCrawl64, "How to use the dataset" (Buckman, 2024).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from lc_assets.errors import BadInput


class Rectangle(NamedTuple):
    """A range of rows, and of their tokens."""

    rows: range
    tokens: range


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWalk:
    """The rectangles of a grid, column by column.

    Attributes:
        n_rows: rows of the grid.
        row_tokens: tokens of a row.
        batch_rows: rows of a step's batch.
        context_tokens: tokens of its rows; divides ``row_tokens``.
        lanes: parts of the rows that are walked in parallel; divides ``batch_rows``.

    >>> walk = GridWalk(n_rows=5, row_tokens=4, batch_rows=2, context_tokens=2)
    >>> [(at.rows.start, at.tokens.start) for at in map(walk.rectangle, range(walk.n_steps))]
    [(0, 0), (2, 0), (0, 2), (2, 2)]
    >>> walk.dropped_rows, walk.dropped_tokens
    (1, 4)
    >>> lanes = GridWalk(n_rows=8, row_tokens=4, batch_rows=4, context_tokens=4, lanes=2)
    >>> [[list(at.rows) for at in lanes.rectangles(step)] for step in range(lanes.n_steps)]
    [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    """

    n_rows: int
    row_tokens: int
    batch_rows: int
    context_tokens: int
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.n_rows < 1:
            raise BadInput("the data set has no rows")
        if not 1 <= self.batch_rows <= self.n_rows:
            raise BadInput(
                f"batch_rows must be 1 to {self.n_rows:,}, the rows of the data set, got "
                f"{self.batch_rows:,}"
            )
        if self.context_tokens < 1 or self.row_tokens % self.context_tokens:
            raise BadInput(
                f"context_tokens must divide row_tokens = {self.row_tokens:,}; these do: "
                f"{divisors(self.row_tokens)};"
                f" got {self.context_tokens:,}"
            )
        if self.lanes < 1 or self.batch_rows % self.lanes:
            raise BadInput(
                f"lanes must divide batch_rows = {self.batch_rows:,}; these do: "
                f"{divisors(self.batch_rows)}; got {self.lanes:,}"
            )

    @property
    def row_blocks(self) -> int:
        """Steps from top to bottom."""
        return self.n_rows // self.batch_rows

    @property
    def columns(self) -> int:
        """Rectangles from left to right."""
        return self.row_tokens // self.context_tokens

    @property
    def n_steps(self) -> int:
        """Steps of the whole walk."""
        return self.n_rows // self.batch_rows * (self.row_tokens // self.context_tokens)

    @property
    def dropped_rows(self) -> int:
        """Rows at the end that fill no batch and are never visited."""
        return self.n_rows % self.batch_rows

    @property
    def dropped_tokens(self) -> int:
        """Tokens of those rows."""
        return self.dropped_rows * self.row_tokens

    def rectangle(self, step: int) -> Rectangle:
        """The rectangle of a step of a walk with one lane.

        Raises:
            IndexError: if the step is negative or beyond the last.
            BadInput: if there are several lanes, so several rectangles.
        """
        if self.lanes > 1:
            raise BadInput(
                f"a step of {self.lanes:,} lanes has as many rectangles: use rectangles({step})"
            )
        return self.rectangles(step)[0]

    def rectangles(self, step: int, *, rank: int = 0, n_ranks: int = 1) -> tuple[Rectangle, ...]:
        """A rank's part of a step: a rectangle per lane, or the rank's rows of the only lane.

        Raises:
            IndexError: if the step is negative or beyond the last.
        """
        left, tops = self.corners(step, rank=rank, n_ranks=n_ranks)
        tokens, height = range(left, left + self.context_tokens), self.part_rows(n_ranks)
        return tuple(Rectangle(range(top, top + height), tokens) for top in tops)

    def corners(self, step: int, *, rank: int = 0, n_ranks: int = 1) -> tuple[int, list[int]]:
        """First token of a rank's part of a step, and first row of each of its rectangles.

        Raises:
            IndexError: if the step is negative or beyond the last.
        """
        if not 0 <= step < self.n_steps:
            raise IndexError(f"no step {step:,}: there are {self.n_steps:,}, numbered from 0")
        blocks, height = self.n_rows // self.batch_rows, self.batch_rows // self.lanes
        column, block = divmod(step, blocks)
        left = column * self.context_tokens
        if self.lanes == 1:
            return left, [block * height + rank * (height // n_ranks)]
        mine = range(rank * self.lanes // n_ranks, (rank + 1) * self.lanes // n_ranks)
        return left, [(lane * blocks + block) * height for lane in mine]

    def part_rows(self, n_ranks: int) -> int:
        """Rows of each rectangle of a rank's part."""
        return self.batch_rows // self.lanes if self.lanes > 1 else self.batch_rows // n_ranks

    def require_rank(self, rank: int, n_ranks: int) -> None:
        """Check that ranks can share a step equally.

        Raises:
            BadInput: if there is no such rank, or the ranks do not divide the rows or lanes.
        """
        if not 0 <= rank < n_ranks:
            raise BadInput(f"there is no rank {rank} of {n_ranks}")
        shared, what = (
            (self.batch_rows, "the rows of a batch")
            if self.lanes == 1
            else (self.lanes, "the lanes")
        )
        if shared % n_ranks:
            raise BadInput(
                f"{n_ranks:,} ranks cannot share {what}, {shared:,}, equally: use one of "
                f"{divisors(shared)} ranks"
            )


def steps_of(
    n_steps: int, *, rank: int = 0, n_ranks: int = 1, worker: int = 0, n_workers: int = 1
) -> range:
    """Steps that one worker of one rank reads, if whole steps are distributed.

    A rank reads every ``n_ranks``-th step. Its workers take turns, so a reader that takes from its
    workers in turn gets the rank's steps in order, for any number of workers. Ranks differ by at
    most one step. Here a step is one rank's batch, so the global batch grows with the ranks;
    `GridWalk.rectangles` is the alternative.

    >>> [list(steps_of(5, rank=0, n_ranks=2, worker=worker, n_workers=2)) for worker in (0, 1)]
    [[0, 4], [2]]

    Raises:
        BadInput: if there is no such rank or worker.
    """
    if not (0 <= rank < n_ranks and 0 <= worker < n_workers):
        raise BadInput(f"there is no rank {rank} of {n_ranks} or no worker {worker} of {n_workers}")
    return range(rank + n_ranks * worker, n_steps, n_ranks * n_workers)


def divisors(number: int) -> str:
    """The divisors of a number, for messages.

    >>> divisors(12)
    '1, 2, 3, 4, 6, 12'
    """
    small = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return ", ".join(
        f"{divisor:,}" for divisor in sorted({*small, *(number // divisor for divisor in small)})
    )
