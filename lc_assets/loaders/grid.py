"""Batches of a grid of rows × tokens, by step and in order: a step's batch depends on the step
alone.

A batch predicts the data itself; the inputs are the data shifted right by one, after an end of
text.
Source: LongCrawl64, "How to use the dataset" (Buckman, 2024).
"""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.loaders.arrays import CachedRows, RowSource, TokenArray
from lc_assets.loaders.stepping import Batch, ShareOptions, Step, SteppedLoader
from lc_assets.loaders.walk import GridWalk, Rectangle, steps_of
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE

if TYPE_CHECKING:
    from lc_assets.loaders.provenance import RowDocument

__all__ = ["Batch", "GridLoader", "GridWalk", "Rectangle", "shifted_right", "steps_of"]


class WalkOptions(ShareOptions, total=False):
    """Further arguments of loaders that walk over rows.

    Attributes:
        first_token: first token of each row of inputs; by default the end of text that the data set
            states, as LongCrawl64 recommends.
        lanes: parts of the rows that are walked in parallel (see `loaders.walk`); 1, the default,
            is the article's order.
    """

    first_token: int | None
    lanes: int


class WalkingLoader(SteppedLoader[Step]):
    """What loaders that walk over rows share.

    Attributes:
        walk: the order of the rectangles.
        rows: the data set.
        first_token: first token of each row of inputs.
    """

    def __init__(
        self,
        rows: RowSource,
        *,
        batch_rows: int,
        context_tokens: int,
        first_token: int | None = None,
        lanes: int = 1,
        **options: Unpack[ShareOptions],
    ) -> None:
        """Walk over a data set.

        Args:
            rows: the data set.
            batch_rows: rows of a batch, of all ranks together.
            context_tokens: tokens of a batch's rows.
            first_token, lanes: see `WalkOptions`.
            options: see `ShareOptions`.

        Raises:
            BadInput: if the data set has no rows or fewer than a batch, ``context_tokens`` does not
                divide its rows, ranks or lanes do not divide a batch, or ``first_token`` is unknown
                or not in the vocabulary.
        """
        super().__init__(**options)
        first_token = _end_of_text(rows) if first_token is None else first_token
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
        self.walk.require_rank(self.rank, self.n_ranks)
        self.rows, self.first_token = rows, first_token
        self._part_rows = self.walk.part_rows(self.n_ranks)
        self._cached = rows if isinstance(rows, CachedRows) else None
        if self._cached is not None:
            n_places = max(lanes // self.n_ranks, 1)
            self._cached.make_room(
                self._part_rows, context_tokens, n_ahead=self.prefetch, n_places=n_places
            )

    def __len__(self) -> int:
        return self.walk.n_steps

    @property
    def dropped_rows(self) -> int:
        """Rows at the end that fill no batch."""
        return self.walk.dropped_rows

    @property
    def dropped_tokens(self) -> int:
        """Tokens of those rows."""
        return self.walk.dropped_tokens

    def rows_of(self, step: int) -> Sequence[int]:
        """Positions of a step's rows in the data set, for `loaders.provenance`.

        Raises:
            IndexError: if there is no such step.
        """
        parts = self.walk.rectangles(operator.index(step), rank=self.rank, n_ranks=self.n_ranks)
        return parts[0].rows if len(parts) == 1 else [row for part in parts for row in part.rows]

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order; without the lanes if there is one, the article's order."""
        return {
            "data": self.rows.identity,
            "batch_rows": self.walk.batch_rows,
            "context_tokens": self.walk.context_tokens,
            "first_token": self.first_token,
            **({"lanes": self.walk.lanes} if self.walk.lanes > 1 else {}),
        }

    def _read(self, step: int) -> Batch:
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


class GridLoader(WalkingLoader[Batch]):
    """Batches of a data set, by step and in order; see `loaders.stepping.SteppedLoader`."""

    def __getitem__(self, step: int) -> Batch:
        return self._read(step)

    def provenance(self, step: int) -> "list[RowDocument]":
        """The document of each row of a step: snapshot, version, row, id, address.

        Raises:
            IndexError: if there is no such step.
            BadInput, NotPublished, Mismatch: as `lc_assets.loaders.provenance.documents_of`.
        """
        # Few training runs ask for this.
        from lc_assets.loaders.provenance import documents_of

        return documents_of(self.rows, self.rows_of(step))


def _end_of_text(rows: RowSource) -> int:
    """End of text as the arrays state it, else GPT-2's if the vocabulary is GPT-2's."""
    found: int | None = getattr(rows, "eot", None)
    if found is None and rows.vocab_size != GPT2_VOCAB_SIZE:
        raise BadInput(
            f"the rows, with {rows.vocab_size:,} ids, do not state their end of text: pass "
            "first_token"
        )
    return GPT2_EOT if found is None else found


def shifted_right(targets: TokenArray, first_token: int) -> TokenArray:
    """Inputs for ``targets``: each row shifted right by one, after ``first_token``.

    >>> shifted_right(np.array([[1, 2, 3]], np.uint16), 9)
    array([[9, 1, 2]], dtype=uint16)
    """
    text = np.empty_like(targets)
    text[:, 0] = first_token
    text[:, 1:] = targets[:, :-1]
    return text
