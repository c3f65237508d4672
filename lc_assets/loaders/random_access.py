"""Rows by number, as Grain's ``RandomAccessDataSource``: ``len(records)`` and ``records[number]``.

An element is one training example of NumPy arrays, int32, with the names that MaxText uses:

=================================================  =================================================
``inputs``, ``targets``                            [token] inputs are targets shifted right by one
``inputs_position``, ``targets_position``          of packed rows: position in the span
``inputs_segmentation``                            of packed rows: number of the span in the row,
                                                   from 1; 0 is padding
``targets_segmentation``                           the same; 0 also where nothing is to be learned:
                                                   the first token of a span
=================================================  =================================================

Numbers are steps of a loader with batches of one row, so ``range(len(records))`` is the order of
training: shuffle nothing. To resume after ``n`` elements of all ranks together, with any number of
ranks, take ``slice(n + rank, None, n_ranks)``. Neighbours are stored together: read them by one
process, or give every process a contiguous part.

Source: Grain 0.2.18, ``grain.sources.RandomAccessDataSource``; MaxText's
    ``input_pipeline/_grain_data_processing.py``.
"""

import operator
from typing import SupportsIndex

import numpy as np

from lc_assets.arrays import Array
from lc_assets.loaders.data_sets import DataSet
from lc_assets.loaders.packed import PADDING, PackedBatch

_READ_AT_ONCE = 128
"""Neighbours that Grain's 16 threads read at once, in batches of 8: their chunks stay decoded."""


class RowRecords:
    """Rows, or packed rows, one at a time; see the module."""

    def __init__(
        self, data: DataSet, *, context_tokens: int | None = None, first_token: int | None = None
    ) -> None:
        """Wrap rows.

        Args:
            data: from `lc_assets.open`.
            context_tokens: tokens of an element, which divide a row; by default whole rows.
            first_token: of each row of inputs, or span; by default the data set's end of text.

        Raises:
            BadInput: as `DataSet.loader`.
        """
        self.loader = data.loader(
            batch_rows=1,
            context_tokens=context_tokens,
            first_token=first_token,
            prefetch=_READ_AT_ONCE,
        )

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Array]:
        batch = self.loader[operator.index(number)]
        both = np.empty(batch.targets.shape[1] + 1, np.int32)
        both[0], both[1:] = batch.text[0, 0], batch.targets[0]
        example: dict[str, Array] = {"inputs": both[:-1], "targets": both[1:]}
        if isinstance(batch, PackedBatch):
            example["inputs"] = batch.text[0].astype(np.int32)
            spans = np.cumsum(batch.owners != PADDING, dtype=np.int32)
            numbers = np.repeat(np.where(batch.owners == PADDING, 0, spans), batch.lengths)
            example["inputs_segmentation"] = numbers.astype(np.int32)
            example["targets_segmentation"] = np.where(batch.mask[0], numbers, 0).astype(np.int32)
            example["inputs_position"] = example["targets_position"] = batch.positions[0]
        return example

    def __repr__(self) -> str:
        """Names the data, so that Grain refuses a state of other data."""
        return f"RowRecords({self.loader.identity()})"
