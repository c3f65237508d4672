"""Rows by number, as Grain's ``RandomAccessDataSource``: ``len(records)`` and ``records[number]``.

An element is a batch or one training example of NumPy arrays, int32, with the names that MaxText
uses; [row, token], of one example [token]:

=================================================  =================================================
``inputs``, ``targets``                            inputs are targets shifted right by one
``inputs_position``, ``targets_position``          of packed rows: position in the span
``inputs_segmentation``                            of packed rows: number of the span in the row,
                                                   from 1; 0 is padding
``targets_segmentation``                           the same; 0 also where nothing is to be learned:
                                                   the first token of a span
=================================================  =================================================

Numbers are a loader's steps, so ``range(len(records))`` is the order of training: shuffle nothing.
Of batches each rank opens its share, and a state of Grain's, which is the step, is that of any
number of ranks. Iterators that batch by themselves take single examples: to resume after ``n`` of
all ranks together, take ``slice(n + rank, None, n_ranks)``. Grain takes 15 to 100 µs for each
element. Neighbours are stored together: read them by one process, or give every process a
contiguous part.

Source: Grain 0.2.18, ``grain.sources.RandomAccessDataSource``; MaxText's
    ``input_pipeline/_grain_data_processing.py``.
"""

import operator
from typing import SupportsIndex, Unpack

import numpy as np

from lc_assets.arrays import Array, Int32s
from lc_assets.loaders.data_sets import DataSet
from lc_assets.loaders.grid import WalkOptions
from lc_assets.loaders.packed import PADDING, PackedBatch

_READ_AT_ONCE = 16
"""Elements that Grain's 16 threads read at once, or batches of 8 examples: their chunks stay
decoded.
"""


class RowRecords:
    """Rows, or packed rows, in batches or one at a time; see the module."""

    def __init__(
        self,
        data: DataSet,
        *,
        batch_rows: int | None = None,
        context_tokens: int | None = None,
        **options: Unpack[WalkOptions],
    ) -> None:
        """Wrap rows.

        Args:
            data: from `lc_assets.open`.
            batch_rows: rows of a batch, of all ranks together; None for single examples.
            context_tokens: tokens of an example, which divide a row; by default whole rows.
            options: see `DataSet.loader`.

        Raises:
            BadInput: as `DataSet.loader`.
        """
        self.is_batched = batch_rows is not None
        at_once = _READ_AT_ONCE if self.is_batched else 8 * _READ_AT_ONCE
        how: WalkOptions = {"prefetch": at_once, "threads": at_once, **options}  # Grain's threads
        self.loader = data.loader(batch_rows=batch_rows or 1, context_tokens=context_tokens, **how)

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Array]:
        batch = self.loader[operator.index(number)]
        found: dict[str, Array] = {
            "inputs": np.array(batch.text, np.int32, order="C"),
            "targets": np.array(batch.targets, np.int32, order="C"),
        }
        if isinstance(batch, PackedBatch):
            numbers = _segmentation(batch)
            found["inputs_segmentation"] = numbers
            found["targets_segmentation"] = np.where(batch.mask, numbers, np.int32(0))
            found["inputs_position"] = found["targets_position"] = batch.positions
        return found if self.is_batched else {name: values[0] for name, values in found.items()}

    def __repr__(self) -> str:
        """Names the data, so that Grain refuses a state of other data."""
        return f"RowRecords({self.loader.identity()})"


def _segmentation(batch: PackedBatch) -> Int32s:
    """(row, token), number of each token's span in its row, from 1; 0 for padding."""
    n_rows, n_tokens = batch.targets.shape
    is_span, row = batch.owners != PADDING, batch.cu_seqlens[:-1] // n_tokens
    spans = np.cumsum(is_span, dtype=np.int32)
    before = (spans - is_span)[np.searchsorted(row, np.arange(n_rows))]
    numbers = np.where(is_span, spans - before[row], 0).astype(np.int32)
    return np.repeat(numbers, batch.lengths).reshape(n_rows, n_tokens)
