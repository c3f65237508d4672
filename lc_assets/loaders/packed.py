"""Batches of packed rows, by step and in order: rows of several documents, separated by spans.

A batch's inputs are its targets shifted right by one within each span, after ``first_token``. So
inputs and targets have the same spans, and no document is predicted from the end of another.

Spans cover a batch: every token of every row is in one, padding in spans of its own, whose owner is
`PADDING`. So two short columns describe a batch, the spans' lengths and owners; the rest is
computed from them on request.

Source: flash-attention's ``flash_attn_varlen_func`` (``cu_seqlens`` is int32, ``max_seqlen`` bounds
    every span); Megatron's ``get_ltor_masks_and_position_ids`` (resets, and no loss where a
    document would have to predict the beginning of the next).
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from lc_assets.arrays import Array, Booleans, Int32s, Integers
from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.packed_spans import PackedSpans, span_files
from lc_assets.loaders.arrays import RowSource
from lc_assets.loaders.grid import WalkingLoader, WalkOptions
from lc_assets.loaders.rows import (
    array_kind,
    below,
    compared_copy,
    location,
    open_rows,
    version_at,
)
from lc_assets.packing.pieces import aligned

if TYPE_CHECKING:
    from lc_assets.loaders.provenance import PackedPiece

PADDING = -1
"""Owner of a span of padding."""
MOST_MASK_BYTES = 2**31
"""A mask of 8 rows of 16,384 tokens; longer rows need ``cu_seqlens``."""
HASHED = 65_536
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

    text: Integers
    targets: Integers
    lengths: Int32s
    owners: Int32s

    @property
    def cu_seqlens(self) -> Int32s:
        """First token of each span in the flattened batch, including padding; then the number of
        tokens.
        """
        edges = np.zeros(len(self.lengths) + 1, np.int32)
        np.cumsum(self.lengths, out=edges[1:])
        return edges

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest span."""
        return int(self.lengths.max())

    @property
    def positions(self) -> Int32s:
        """(row, token), position of each token in its span, from 0."""
        numbers = np.arange(self.targets.size, dtype=np.int32)
        numbers -= np.repeat(self.cu_seqlens[:-1], self.lengths)
        return numbers.reshape(self.targets.shape)

    @property
    def mask(self) -> Booleans:
        """(row, token), the loss mask: no padding, and no first token of a span, which another
        document precedes.
        """
        mask = np.repeat(self.owners != PADDING, self.lengths)
        mask[self.cu_seqlens[:-1]] = False
        return mask.reshape(self.targets.shape)

    @property
    def documents(self) -> Int32s:
        """(row, token), number of each token's document; -1 for padding."""
        return np.repeat(self.owners, self.lengths).reshape(self.targets.shape)

    @property
    def block_diagonal(self) -> Booleans:
        """(row, token, token), the attention mask: whether a token attends to another one.

        It attends to itself and to earlier tokens of the same document in its row. Padding attends
        only to itself, so that no softmax is empty. For short rows only: the mask grows with their
        square.

        Raises:
            BadInput: if the mask would take more than `MOST_MASK_BYTES`.
        """
        n_rows, n_tokens = self.targets.shape
        if n_rows * n_tokens**2 > MOST_MASK_BYTES:
            raise BadInput(
                f"a mask of {n_rows:,} × {n_tokens:,} × {n_tokens:,} tokens takes more than "
                f"{MOST_MASK_BYTES:,} bytes: use cu_seqlens with variable-length attention, or "
                "shorter rows"
            )
        owners = self.documents
        same: Booleans = owners[:, :, None] == owners[:, None, :]
        same &= (owners != PADDING)[:, :, None]
        same &= np.tri(n_tokens, dtype=np.bool_)
        same |= np.eye(n_tokens, dtype=np.bool_)
        return same

    def arrays(self) -> dict[str, Array | int]:
        """Everything by name: text, targets, mask, positions, documents, cu_seqlens, max_seqlen."""
        names = ("text", "targets", "mask", "positions", "documents", "cu_seqlens", "max_seqlen")
        return {name: getattr(self, name) for name in names}


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
        CorruptFile: if a file does not have its format, or spans differ from their receipt.
        Mismatch: if rows and spans are of different versions.
        BadInput: if there is no such split, or nothing to open.
        Unreachable: if a server does not answer, also when retried.
    """
    at = location(path)
    if array_kind(below(at, f"{split}.zarr")) is None:
        at = version_at(at)
    rows = open_rows(at, split, cache_bytes=cache_bytes)
    with compared_copy(at, *(path.name for path in span_files(Path(), split))) as folder:
        align = getattr(rows, "align_tokens", 1)
        spans = PackedSpans.open(folder, split, row_tokens=rows.row_tokens, align_tokens=align)
        if not isinstance(at, Path):
            first, stop, document = map(np.array, (spans.first, spans.stop, spans.document))
            spans = PackedSpans(first, stop, document, align)
    return PackedRows(rows, spans)


class PackedLoader(WalkingLoader[PackedBatch]):
    """Batches of packed rows, by step and in order; see `loaders.stepping.SteppedLoader`.

    Attributes:
        packed: rows and spans.
        rank, n_ranks, and others: see `WalkingLoader`.
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
        blocks, tokens = self.part_of(step)
        parts = [covering(self.packed.spans, rows, tokens) for rows in blocks]
        lengths, owners = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        text, targets = self._read(step)
        batch = PackedBatch(text.copy(), targets, lengths, owners)
        batch.text.reshape(-1)[batch.cu_seqlens[:-1]] = self.first_token
        return batch

    def provenance(self, step: int) -> "list[PackedPiece]":
        """The pieces of a step's rows with their documents, in the order of the rows.

        Raises:
            IndexError: if there is no such step.
            BadInput: if the rows are not those of a folder.
            NotPublished, Mismatch: as `lc_assets.loaders.provenance.pieces_of`.
        """
        # Few training runs need this.
        from lc_assets.loaders.provenance import pieces_of

        return pieces_of(self.packed.rows, self.rows_of(step))

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order, as for `GridLoader`."""
        return super().identity() | {"data": self.packed.identity}


def covering(spans: PackedSpans, rows: range, tokens: range) -> tuple[Int32s, Int32s]:
    """Lengths and owners of the spans that cover some tokens of some rows, including padding.

    >>> spans = PackedSpans(np.array([0, 2, 3]), np.array([3, 5, 8]), np.array([7, 4, 9]))
    >>> [column.tolist() for column in covering(spans, range(2), range(8))]
    [[3, 2, 3, 8], [7, 4, -1, 9]]
    >>> [column.tolist() for column in covering(spans, range(2), range(4, 8))]
    [[1, 3, 4], [4, -1, 9]]
    """
    first = spans.first[rows.start : rows.stop + 1]
    own, counts, width = slice(int(first[0]), int(first[-1])), np.diff(first), len(tokens)
    stop, document = spans.stop[own], spans.document[own]
    if spans.align_tokens > 1:  # one more for the padding behind each, if any
        stop = np.stack([stop, aligned(stop, spans.align_tokens)], axis=1).ravel()
        document = np.stack([document, np.full_like(document, PADDING)], axis=1).ravel()
        counts = 2 * counts
    # One more span per row for its padding.
    row = np.repeat(np.arange(len(rows)), counts + 1)
    ends, owners = np.full(len(row), tokens.stop, np.int64), np.full(len(row), PADDING, np.int32)
    place = np.arange(len(stop)) + np.repeat(np.arange(len(rows)), counts)
    ends[place], owners[place] = stop, document
    edges = row * width + np.clip(ends, tokens.start, tokens.stop) - tokens.start
    lengths = np.diff(edges, prepend=0)
    kept = lengths > 0
    return lengths[kept].astype(np.int32), owners[kept]
