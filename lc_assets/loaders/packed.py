"""Batches of packed rows, by step and in order: rows of several documents, separated by spans.

A batch's inputs are its targets shifted right by one within each span, after ``first_token``. So
inputs and targets have the same spans, and no document is predicted from the end of another. What
else a model needs is computed on request, from the spans' lengths and owners.
"""

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.packed_spans import PackedSpans, span_files
from lc_assets.loaders.arrays import RowSource, ZarrRows
from lc_assets.loaders.grid import WalkingLoader, WalkOptions
from lc_assets.loaders.rows import array_kind, below, local_copy, location, open_rows, version_at
from lc_assets.packing import spans as columns

if TYPE_CHECKING:
    from lc_assets.loaders.provenance import PackedPiece

HASHED: Final = 65_536
"""Spans of each end that are part of a data set's identity."""


class PackedBatch(NamedTuple):
    """One step's rows.

    Attributes:
        text: (row, token) inputs.
        targets: (row, token) data, and padding.
        lengths: int32, tokens of each span; spans cover the batch, row by row, with padding in
            spans of its own.
        owners: int32, number of each span's document; -1 for padding.
    """

    text: NDArray[np.integer[Any]]
    targets: NDArray[np.integer[Any]]
    lengths: NDArray[np.int32]
    owners: NDArray[np.int32]

    @property
    def cu_seqlens(self) -> NDArray[np.int32]:
        """First token of each span in the flattened batch, including padding; then the number of
        tokens.
        """
        return columns.cumulative(self.lengths)

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest span."""
        return int(self.lengths.max())

    @property
    def positions(self) -> NDArray[np.int32]:
        """(row, token), position of each token in its span, from 0."""
        return columns.positions(self.lengths, self._shape)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(row, token), the loss mask: no padding, and no first token of a span."""
        return columns.loss_mask(self.lengths, self.owners, self._shape)

    @property
    def documents(self) -> NDArray[np.int32]:
        """(row, token), number of each token's document; -1 for padding."""
        return columns.owners_of_tokens(self.lengths, self.owners, self._shape)

    @property
    def block_diagonal(self) -> NDArray[np.bool_]:
        """(row, token, token), the attention mask; see `lc_assets.packing.spans.block_diagonal`.

        Raises:
            BadInput: if it would be too large.
        """
        return columns.block_diagonal(self.documents)

    def arrays(self) -> dict[str, NDArray[Any] | int]:
        """Everything by name: text, targets, mask, positions, documents, cu_seqlens, max_seqlen."""
        names = ("text", "targets", "mask", "positions", "documents", "cu_seqlens", "max_seqlen")
        return {name: getattr(self, name) for name in names}

    @property
    def _shape(self) -> tuple[int, int]:
        return self.targets.shape[0], self.targets.shape[1]


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Rows and their spans.

    Attributes:
        rows: the rows.
        spans: the documents' spans in them.
    """

    rows: RowSource
    spans: PackedSpans

    def __post_init__(self) -> None:
        if self.spans.n_rows != self.rows.n_rows:
            raise Mismatch(
                f"{self.rows.n_rows:,} rows, but spans of {self.spans.n_rows:,}: they are of "
                "different versions"
            )

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the rows' identity, the number of spans, and the first and last of them."""
        hasher = hashlib.sha256(f"{self.rows.identity} {len(self.spans.stop)}".encode())
        for array in (self.spans.first, self.spans.stop, self.spans.document):
            for part in (array[:HASHED], array[-HASHED:]):
                hasher.update(np.ascontiguousarray(part).data)
        return hasher.hexdigest()

    def joined(self) -> "PackedRows":
        """The same rows with one span each, without padding: documents attend to each other."""
        first, stop = self.spans.first, self.spans.stop
        numbers = np.arange(self.spans.n_rows + 1)
        return PackedRows(
            self.rows, PackedSpans(numbers, stop[first[1:] - 1], numbers[:-1].astype(np.int32))
        )


def open_packed(
    path: Path | str, split: str = "train", *, cache_bytes: int | None = None
) -> PackedRows:
    """Open packed rows by a path or URL of a version or partition (``lake/packed_rows/2023-06``).

    Args:
        path: a folder, or a URL that fsspec supports; see `lc_assets.loaders.rows.open_rows`.
        split: ``train`` or ``heldout``.
        cache_bytes: bound of the cache of decoded chunks; None: what the walk needs.

    Raises:
        NotPublished: if there are no packed rows.
        CorruptFile: if a file does not have its format.
        Mismatch: if rows and spans are of different versions.
        BadInput: if there is no such split, or nothing to open.
        Unreachable: if a server does not answer, also when retried.
    """
    at = location(path)
    if array_kind(below(at, f"{split}.zarr")) is None:
        at = version_at(at)
    rows = open_rows(at, split, cache_bytes=cache_bytes)
    with local_copy(at, *(path.name for path in span_files(Path(), split))) as folder:
        spans = PackedSpans.open(folder, split, row_tokens=rows.row_tokens)
        if not isinstance(at, Path):
            spans = PackedSpans(*map(np.array, (spans.first, spans.stop, spans.document)))
    return PackedRows(rows, spans)


class PackedLoader(WalkingLoader[PackedBatch]):
    """Batches of packed rows, by step and in order; see `loaders.stepping.SteppedLoader`.

    Attributes:
        packed: rows and spans.
        walk, first_token, rank, n_ranks: see `WalkingLoader`.
    """

    def __init__(
        self,
        packed: PackedRows,
        *,
        batch_rows: int,
        context_tokens: int | None = None,
        **options: Unpack[WalkOptions],
    ) -> None:
        """Walk over packed rows.

        Args:
            packed: rows and spans.
            batch_rows: rows of a batch, of all ranks together.
            context_tokens: tokens of a batch's rows; by default whole rows. A shorter context cuts
                spans at its end: the rest is a span of its own in the next column.
            options: see `WalkOptions`; ``first_token`` is that of each span.

        Raises:
            BadInput: as `GridLoader`, or if a batch has more tokens than an int32 can count.
        """
        context = packed.rows.row_tokens if context_tokens is None else context_tokens
        super().__init__(packed.rows, batch_rows=batch_rows, context_tokens=context, **options)
        if batch_rows * context >= 2**31:
            raise BadInput(
                f"a batch of {batch_rows:,} × {context:,} tokens has more than an int32 can count: "
                "use fewer rows"
            )
        self.packed = packed

    def __getitem__(self, step: int) -> PackedBatch:
        parts = self.walk.rectangles(operator.index(step), rank=self.rank, n_ranks=self.n_ranks)
        text, targets = self._read(step)
        lengths, owners = self._tiled([part.rows for part in parts], parts[0].tokens)
        text.reshape(-1)[columns.cumulative(lengths)[:-1]] = self.first_token
        return PackedBatch(text, targets, lengths, owners)

    def _tiled(
        self, blocks: Sequence[range], tokens: range
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        spans = self.packed.spans
        edges = [spans.first[rows.start : rows.stop + 1] for rows in blocks]
        at = [slice(int(own[0]), int(own[-1])) for own in edges]
        counts = np.concatenate([np.diff(own) for own in edges])
        first = np.concatenate([[0], np.cumsum(counts)])
        stop, owner = (
            np.concatenate([column[own] for own in at]) for column in (spans.stop, spans.document)
        )
        return columns.covering(first, stop, owner, left=tokens.start, width=len(tokens))

    def provenance(self, step: int) -> "list[PackedPiece]":
        """The pieces of a step's rows with their documents, in the order of the rows.

        Raises:
            IndexError: if there is no such step.
            BadInput: if the rows are not those of a folder.
            NotPublished, Mismatch: as `lc_assets.loaders.provenance.pieces_of`.
        """
        # Few training runs need this.
        from lc_assets.loaders.provenance import pieces_of

        rows = self.packed.rows
        if not isinstance(rows, ZarrRows):
            raise BadInput(
                f"{type(rows).__name__} has no table of spans: open a version of packed rows"
            )
        return pieces_of(rows, self.rows_of(step))

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order, as for `GridLoader`."""
        return super().identity() | {"data": self.packed.identity}
