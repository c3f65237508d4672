"""Batches of a grid of rows × tokens, by step and in order: a step's batch depends on the step
alone.

A batch predicts the data itself; the inputs are the data shifted right by one, after an end of
text.

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

import operator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.chunks import ChunkedArray, TokenArray
from lc_assets.loaders.arrays import InterleavedRows, RowSource, ZarrRows
from lc_assets.loaders.stepping import Batch, ShareOptions, Step, SteppedLoader, divisors
from lc_assets.vocabulary import GPT2_EOT, GPT2_VOCAB_SIZE

if TYPE_CHECKING:
    from lc_assets.loaders.provenance import RowDocument

_NO_BLOCK: tuple[tuple[int, int], list[TokenArray]] = (-1, -1), []


class WalkOptions(ShareOptions, total=False):
    """Further arguments of loaders that walk over rows.

    Attributes:
        first_token: first token of each row of inputs; by default the end of text that the data set
            states, as LongCrawl64 recommends.
        lanes: parts of the rows that are walked in parallel (see the module); 1, the default,
            is the article's order.
    """

    first_token: int | None
    lanes: int


class WalkingLoader(SteppedLoader[Step]):
    """Base class of loaders that walk over rows, column by column.

    Attributes:
        rows: the data set.
        batch_rows: rows of a step's batch, of all ranks together.
        context_tokens: tokens of its rows; divides those of the data set's.
        lanes: parts of the rows that are walked in parallel; divides ``batch_rows``.
        row_blocks: steps from top to bottom.
        dropped_rows: rows at the end that fill no batch and are never visited.
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
        if rows.n_rows < 1:
            raise BadInput("the data set has no rows")
        if not 1 <= batch_rows <= rows.n_rows:
            raise BadInput(
                f"batch_rows must be 1 to {rows.n_rows:,}, the rows of the data set, got "
                f"{batch_rows:,}"
            )
        if context_tokens < 1 or rows.row_tokens % context_tokens:
            raise BadInput(
                f"context_tokens must divide row_tokens = {rows.row_tokens:,}; these do: "
                f"{divisors(rows.row_tokens)}; got {context_tokens:,}"
            )
        if lanes < 1 or batch_rows % lanes:
            raise BadInput(
                f"lanes must divide batch_rows = {batch_rows:,}; these do: "
                f"{divisors(batch_rows)}; got {lanes:,}"
            )
        self.rows, self.first_token = rows, first_token
        self.batch_rows, self.context_tokens, self.lanes = batch_rows, context_tokens, lanes
        self.row_blocks, self.dropped_rows = divmod(rows.n_rows, batch_rows)
        self._n_steps = self.row_blocks * (rows.row_tokens // context_tokens)
        # Of this rank's parts of a step: first rows in step 0, rows, and rows to the next step.
        self._tops, self._height, self._down = self._parts()
        self._filling: ZarrRows | InterleavedRows | ChunkedArray | None = None
        if isinstance(rows, ZarrRows | InterleavedRows):
            how = {"n_ahead": self.prefetch, "n_places": len(self._tops)}
            rows.make_room(self._height, context_tokens, **how)
            self._filling = rows
        self._chunked, self._last = self._in_chunks(), _NO_BLOCK

    def __getstate__(self) -> dict[str, Any]:
        """Without the block that was read last, which is read again where the loader is sent."""
        return {**self.__dict__, "_last": _NO_BLOCK}

    def _in_chunks(self) -> ZarrRows | ChunkedArray | None:
        """The array, if each step's rows are some of a row of chunks, and the walk may decide what
        is kept of it: the row of chunks, in the cache only if threads or ranks may share it. Whole
        chunks are needed once, and filled into batches.
        """
        rows, height, tops = self.rows, self._height, self._tops
        if not isinstance(rows, ZarrRows) or not rows.cache.is_fitted:
            return None
        down, across = rows.chunk_shape
        if across % self.context_tokens and self.context_tokens % across:
            return None
        if not any(n % down for n in (height, *tops)) and self.context_tokens >= across:
            self._filling = rows.reader
            return None
        if len(tops) > 1 or down % height or tops[0] % height:
            return None
        return rows if self.threads > 1 or self.n_ranks > 1 else rows.reader

    def _parts(self) -> tuple[list[int], int, int]:
        if self.lanes == 1:
            n_mine = self.share_of(self.batch_rows, f"the rows of a batch, {self.batch_rows:,},")
            return [self.rank * n_mine], n_mine, self.batch_rows
        n_mine = self.share_of(self.lanes, f"the lanes, {self.lanes:,},")
        mine = range(self.rank * n_mine, (self.rank + 1) * n_mine)
        height = self.batch_rows // self.lanes
        return [lane * self.row_blocks * height for lane in mine], height, height

    def __len__(self) -> int:
        return self._n_steps

    def part_of(self, step: int) -> tuple[list[range], range]:
        """This rank's part of a step: the rows of each of its lanes, or its rows of the only lane;
        and their tokens.

        Raises:
            IndexError: if the step is negative or beyond the last.
        """
        column, down = self._place_of(step)
        left = column * self.context_tokens
        blocks = [range(down + top, down + top + self._height) for top in self._tops]
        return blocks, range(left, left + self.context_tokens)

    def _place_of(self, step: int) -> tuple[int, int]:
        """The column of a step, and its rows' distance from those of the column's first step."""
        if not 0 <= operator.index(step) < self._n_steps:
            raise IndexError(f"no step {step:,}: there are {len(self):,}, numbered from 0")
        column, block = divmod(step, self.row_blocks)
        return column, block * self._down

    def rows_of(self, step: int) -> list[int]:
        """Positions of a step's rows in the data set, for `loaders.provenance`.

        Raises:
            IndexError: if there is no such step.
        """
        return [row for block in self.part_of(step)[0] for row in block]

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order; without the lanes if there is one, the article's order."""
        return {
            "data": self.rows.identity,
            "batch_rows": self.batch_rows,
            "context_tokens": self.context_tokens,
            "first_token": self.first_token,
            **({"lanes": self.lanes} if self.lanes > 1 else {}),
        }

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        if self._filling is not None:
            return self._filling.dtype
        return self.rows.read(slice(0, 1), slice(0, 1)).dtype

    def _read(self, step: int) -> Batch:
        """A step's inputs and targets, both views of one array."""
        column, down = self._place_of(step)
        height, left = self._height, column * self.context_tokens
        both = np.empty((len(self._tops) * height, 1 + self.context_tokens), self._dtype)
        both[:, 0] = self.first_token
        if self._chunked is not None:
            row, top = divmod(down + self._tops[0], self._chunked.chunk_shape[0])
            end, rows = 1, slice(top, top + height)
            for chunk in self._block(self._chunked, row, left):
                begin, end = end, end + chunk.shape[1]
                both[:, begin:end] = chunk[rows]
            return Batch(both[:, :-1], both[:, 1:])
        targets = both[:, 1:]
        for number, top in enumerate(self._tops):
            out = targets[number * height : (number + 1) * height]
            if self._filling is not None:
                self._filling.read_into(out, down + top, left)
            else:
                rows = slice(down + top, down + top + height)
                out[...] = self.rows.read(rows, slice(left, left + self.context_tokens))
        return Batch(both[:, :-1], targets)

    def _block(self, array: ZarrRows | ChunkedArray, row: int, left: int) -> list[TokenArray]:
        """The tokens of a row of chunks from ``left`` on, of whose rows several steps are parts."""
        last, place = self._last, (row, left)
        if last[0] == place:
            return last[1]
        last = self._last = _NO_BLOCK  # the next one gets its memory
        across = array.chunk_shape[1]
        first, inside = divmod(left, across)
        stop = inside + self.context_tokens
        chunks = array.chunks(row, range(first, first - (-stop // across)))
        block = [chunk[:, inside:stop] for chunk in chunks]
        self._last = place, block
        return block


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
        # Few training runs need this.
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
