"""Batches of a grid of rows × tokens, by step and in order: the step alone says which.

Here: inputs and targets, a position, resuming. Not here: the order of the rectangles and how ranks
    share them
(`loaders.walk`), reading rows (`loaders.rows`), tensors (`loaders.torch`).

Source: LongCrawl64, "How to use the dataset" (Buckman, 2024). What a batch is asked to predict is
    the data
itself; the inputs are the data moved right by one, with end-of-text in front.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray
from lc_assets.loaders.arrays import CachedRows, RowSource
from lc_assets.loaders.provenance import RowDocument, documents_of
from lc_assets.loaders.stepping import Batch, SteppedLoader
from lc_assets.loaders.walk import GridWalk, Rectangle, steps_of
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE

__all__ = ["Batch", "GridLoader", "GridWalk", "Rectangle", "shifted_right", "steps_of"]


class GridLoader(SteppedLoader[Batch]):
    """Batches of a data set, by step and in order; see `loaders.stepping.SteppedLoader`.

    Attributes:
        walk: the order of the rectangles.
        rows: the data set.
        first_token: stands before each row of inputs.
        rank: which part of every batch this loader gives.
        n_ranks: how many loaders share the batches.
    """

    def __init__(
        self,
        rows: RowSource,
        *,
        batch_rows: int,
        context_tokens: int,
        first_token: int | None = None,
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
            first_token: stands before each row of inputs; by default the end of text that the data
                set names, as LongCrawl64 recommends.
            lanes: parts of the rows that are walked at once (see `loaders.walk`); 1 is the
                article's order.
            rank: which part of every batch this loader gives, of ``n_ranks`` equal ones; the state
                of one rank is that of all, and of any other number of ranks.
            n_ranks: how many loaders share the batches.
            prefetch: batches that are read ahead while one is used, when iterating.
            threads: how many read at once.

        Raises:
            BadInput: when the data set has no rows or fewer than a batch, ``context_tokens`` does
                not divide its rows, ranks or lanes do not divide a batch, or ``first_token`` is not
                in its vocabulary or, left out, not known.
        """
        super().__init__(prefetch=prefetch, threads=threads)
        first_token = end_of_text(rows) if first_token is None else first_token
        if not 0 <= first_token < rows.vocab_size:
            raise BadInput(
                f"first_token must be an id of the vocabulary, 0 to {rows.vocab_size - 1:,}, got "
                f"{first_token:,}"
            )
        self.walk = GridWalk(
            n_rows=rows.n_rows,
            row_tokens=rows.row_tokens,
            batch_rows=batch_rows,
            context_tokens=context_tokens,
            lanes=lanes,
        )
        self.walk.require_rank(rank, n_ranks)
        self.rows, self.first_token = rows, first_token
        self.rank, self.n_ranks = rank, n_ranks
        self._part_rows, self._n_parts = self.walk.part_rows(n_ranks), max(lanes // n_ranks, 1)
        self._cached = rows if isinstance(rows, CachedRows) else None
        if self._cached is not None:
            self._cached.make_room(
                self._part_rows, context_tokens, n_ahead=prefetch, n_places=self._n_parts
            )

    def __len__(self) -> int:
        return self.walk.n_steps

    def __getitem__(self, step: int) -> Batch:
        left, tops = self.walk.corners(operator.index(step), rank=self.rank, n_ranks=self.n_ranks)
        height, width = self._part_rows, self.walk.context_tokens
        if self._cached is None:
            read = [
                self.rows.read(slice(top, top + height), slice(left, left + width)) for top in tops
            ]
            targets = read[0] if len(read) == 1 else np.concatenate(read)
            return Batch(shifted_right(targets, self.first_token), targets)
        text, targets = np.empty((2, height * len(tops), width), self._cached.dtype)
        for part, top in enumerate(tops):
            self._cached.read_into(targets[part * height : (part + 1) * height], top, left)
        text[:, 0] = self.first_token
        text[:, 1:] = targets[:, :-1]
        return Batch(text, targets)

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

    def provenance(self, step: int) -> list[RowDocument]:
        """Say whose text a step's rows are: snapshot, version, row, document id, address of each.

        Raises:
            IndexError: when there is no such step.
            BadInput: when the rows are neither a lake's nor a grid's.
            NotPublished: when a grid has no row table.
            Mismatch: when the row table does not match the array.
        """
        return documents_of(self.rows, self.rows_of(step))

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order; the article's order, of one lane, goes without saying."""
        return {
            "data": self.rows.identity,
            "batch_rows": self.walk.batch_rows,
            "context_tokens": self.walk.context_tokens,
            "first_token": self.first_token,
            **({"lanes": self.walk.lanes} if self.walk.lanes > 1 else {}),
        }


def end_of_text(rows: RowSource) -> int:
    """The id that stands for end of text in some rows: what their arrays say, else GPT-2's where
    they are GPT-2's.

    Raises:
        BadInput: when nobody says it: ``first_token`` must be given.
    """
    found: int | None = getattr(rows, "eot", None)
    if found is None and rows.vocab_size != GPT2_VOCAB_SIZE:
        raise BadInput(
            f"the rows, of {rows.vocab_size:,} ids, do not say which is their end of text: give "
            "first_token"
        )
    return GPT2_EOT if found is None else found


def shifted_right(targets: TokenArray, first_token: int) -> TokenArray:
    """Inputs that predict ``targets``: each row moved right by one, ``first_token`` in front, its
    last id gone.

    >>> shifted_right(np.array([[1, 2, 3]], np.uint16), 9)
    array([[9, 1, 2]], dtype=uint16)
    """
    text = np.empty_like(targets)
    text[:, 0] = first_token
    text[:, 1:] = targets[:, :-1]
    return text
