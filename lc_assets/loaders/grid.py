"""Batches of a grid of rows × tokens, by step and in order: the step alone says which.

Here: inputs and targets, a position, resuming. Not here: the order of the rectangles and how ranks share them
(`loaders.walk`), reading rows (`loaders.rows`), tensors (`loaders.torch`).

Source: LongCrawl64, "How to use the dataset" (Buckman, 2024). What a batch is asked to predict is the data
itself; the inputs are the data moved right by one, with end-of-text in front.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray
from lc_assets.loaders.arrays import RoomMaker, RowSource
from lc_assets.loaders.prefetch import ahead
from lc_assets.loaders.walk import GridWalk, Rectangle, steps_of
from lc_assets.vocabulary import GPT2_EOT

__all__ = ["Batch", "GridLoader", "GridWalk", "Rectangle", "shifted_right", "steps_of"]


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

    def __init__(
        self,
        rows: RowSource,
        *,
        batch_rows: int,
        context_tokens: int,
        first_token: int = GPT2_EOT,
        lanes: int = 1,
        rank: int = 0,
        n_ranks: int = 1,
        prefetch: int = 0,
        threads: int = 1,
    ) -> None:
        """Lay a walk over a data set.

        Args:
            rows: the data set.
            batch_rows: rows of a batch, of all ranks together.
            context_tokens: tokens of a batch's rows.
            first_token: stands before each row of inputs; GPT-2's end-of-text, as LongCrawl64 recommends.
            lanes: parts of the rows that are walked at once (see `loaders.walk`); 1 is the article's order.
            rank: which part of every batch this loader gives, of ``n_ranks`` equal ones; the state of one rank is that
                of all, and of any other number of ranks.
            n_ranks: how many loaders share the batches.
            prefetch: batches that are read ahead while one is used, when iterating.
            threads: how many read at once.

        Raises:
            BadInput: when the data set has no rows or fewer than a batch, ``context_tokens`` does not divide its
                rows, ranks or lanes do not divide a batch, or ``first_token`` is not in its vocabulary.
        """
        if not 0 <= first_token < rows.vocab_size:
            raise BadInput(f"first_token must be an id of the vocabulary, 0 to {rows.vocab_size - 1:,}, got {first_token:,}")
        self.walk = GridWalk(
            n_rows=rows.n_rows, row_tokens=rows.row_tokens, batch_rows=batch_rows, context_tokens=context_tokens, lanes=lanes
        )
        self.walk.require_rank(rank, n_ranks)
        ahead(self.rows_of, (), n_ahead=prefetch, threads=threads)
        self.rows, self.first_token = rows, first_token
        self.rank, self.n_ranks = rank, n_ranks
        self.prefetch, self.threads = prefetch, threads
        self.step = 0
        if isinstance(rows, RoomMaker):
            own_lanes = max(lanes // n_ranks, 1)
            own_rows = batch_rows // n_ranks // own_lanes
            rows.make_room(own_rows, context_tokens, n_ahead=prefetch, n_places=own_lanes)

    def __len__(self) -> int:
        return self.walk.n_steps

    def __getitem__(self, step: int) -> Batch:
        parts = self.walk.rectangles(operator.index(step), rank=self.rank, n_ranks=self.n_ranks)
        read = [self.rows.read(slice(rows.start, rows.stop), slice(tokens.start, tokens.stop)) for rows, tokens in parts]
        targets = read[0] if len(read) == 1 else np.concatenate(read)
        return Batch(shifted_right(targets, self.first_token), targets)

    def __iter__(self) -> Iterator[Batch]:
        while self.step < len(self):
            for at, batch in enumerate(self._from_here(), self.step + 1):
                self.step = at
                yield batch
                if self.step != at:  # a state was loaded meanwhile: go on from there
                    break
        self.step = 0

    def _from_here(self) -> Iterator[Batch]:
        return ahead(self.__getitem__, range(self.step, len(self)), n_ahead=self.prefetch, threads=self.threads)

    @property
    def dropped_rows(self) -> int:
        """Rows that no batch holds, because they fill none."""
        return self.walk.dropped_rows

    @property
    def dropped_tokens(self) -> int:
        """Tokens of those rows."""
        return self.walk.dropped_tokens

    def rows_of(self, step: int) -> Sequence[int]:
        """Positions of a step's rows in the data set, for tracing them (see `loaders.provenance`).

        Raises:
            IndexError: when there is no such step.
        """
        parts = self.walk.rectangles(operator.index(step), rank=self.rank, n_ranks=self.n_ranks)
        return parts[0].rows if len(parts) == 1 else [row for part in parts for row in part.rows]

    def state_dict(self) -> dict[str, Any]:
        """Return the position and what it is a position in; plain values, fit for any checkpoint."""
        return {"step": self.step, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader over the same data set and of the same shape stood.

        Raises:
            BadInput: when the state is of another data set or shape, or its step does not exist; says which.
        """
        for name, value in self._identity().items():
            if state.get(name, 1 if name == "lanes" else None) != value:
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
            "lanes": self.walk.lanes,
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
