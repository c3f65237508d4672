"""Spans of packed rows: boundaries, positions, loss masks, the document of each token.

Spans cover a batch: every token of every row is in one, padding in spans of its own, whose owner is
`PADDING`. So two short columns describe a batch, the spans' lengths and owners; the rest is
computed from them on request.

Source: flash-attention's ``flash_attn_varlen_func`` (``cu_seqlens`` is int32, ``max_seqlen`` bounds
    every span); Megatron's ``get_ltor_masks_and_position_ids`` (resets, and no loss where a
    document would have to predict the beginning of the next).
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput

SpanColumn: TypeAlias = NDArray[np.int32]

PADDING: Final = -1
"""Owner of a span of padding."""
MOST_MASK_BYTES: Final = 2**31
"""A mask of 8 rows of 16,384 tokens; longer rows need ``cu_seqlens``."""


def covering(
    first: NDArray[np.integer],
    stop: NDArray[np.integer],
    owner: NDArray[np.integer],
    *,
    left: int,
    width: int,
) -> tuple[SpanColumn, SpanColumn]:
    """Lengths and owners of the spans that cover some rows, or the same columns of each, including
    padding.

    >>> first, stop, owner = np.array([0, 2, 3]), np.array([3, 5, 8]), np.array([7, 4, 9])
    >>> [column.tolist() for column in covering(first, stop, owner, left=0, width=8)]
    [[3, 2, 3, 8], [7, 4, -1, 9]]
    >>> [column.tolist() for column in covering(first, stop, owner, left=4, width=4)]
    [[1, 3, 4], [4, -1, 9]]

    Args:
        first: index of each row's first span in ``stop`` and ``owner``; then the number of spans.
        stop: end of each span in its row; a row's first span begins at 0, each other where the one
            before ends.
        owner: number of each span's document.
        left: first column.
        width: number of columns.
    """
    counts = np.diff(first)
    n_rows, n_spans = len(counts), len(stop)
    # One more span per row for its padding.
    row = np.repeat(np.arange(n_rows), counts)
    place = np.arange(n_spans) + row
    ends = np.full(n_spans + n_rows, left + width, np.int64)
    owners = np.full(n_spans + n_rows, PADDING, np.int32)
    ends[place], owners[place] = stop, owner
    rows = np.repeat(np.arange(n_rows), counts + 1)
    edges = rows * width + np.clip(ends, left, left + width) - left
    lengths = np.diff(edges, prepend=0)
    kept = lengths > 0
    return lengths[kept].astype(np.int32), owners[kept]


def cumulative(lengths: SpanColumn) -> NDArray[np.int32]:
    """``cu_seqlens``: the first token of each span in the flattened batch; then the number of
    tokens.

    >>> cumulative(np.array([3, 2, 3], np.int32))
    array([0, 3, 5, 8], dtype=int32)
    """
    edges = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=edges[1:])
    return edges


def positions(lengths: SpanColumn, shape: tuple[int, int]) -> NDArray[np.int32]:
    """Position of each token in its span, from 0.

    >>> positions(np.array([3, 2, 3], np.int32), (1, 8)).tolist()
    [[0, 1, 2, 0, 1, 0, 1, 2]]
    """
    numbers = np.arange(shape[0] * shape[1], dtype=np.int32)
    numbers -= np.repeat(cumulative(lengths)[:-1], lengths)
    return numbers.reshape(shape)


def owners_of_tokens(
    lengths: SpanColumn, owners: SpanColumn, shape: tuple[int, int]
) -> NDArray[np.int32]:
    """Document of each token; `PADDING` for padding."""
    return np.repeat(owners, lengths).reshape(shape)


def loss_mask(lengths: SpanColumn, owners: SpanColumn, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Loss mask: no padding, and no first token of a span, which another document precedes.

    >>> loss_mask(np.array([3, 2, 3], np.int32), np.array([7, 4, -1], np.int32), (1, 8)).tolist()
    [[False, True, True, False, True, False, False, False]]
    """
    mask: NDArray[np.bool_] = np.repeat(owners != PADDING, lengths)
    mask[cumulative(lengths)[:-1]] = False
    return mask.reshape(shape)


def block_diagonal(owners: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Attention mask: whether a token (first axis) attends to another one (second axis).

    It attends to itself and to earlier tokens of the same document in its row. Padding attends only
    to itself, so that no softmax is empty. For short rows only: the mask grows with their square.

    >>> block_diagonal(np.array([[7, 7, 4, -1, -1]])).astype(int)[0].tolist()
    [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]

    Raises:
        BadInput: if the mask would take more than `MOST_MASK_BYTES`.
    """
    n_rows, n_tokens = owners.shape
    if n_rows * n_tokens**2 > MOST_MASK_BYTES:
        raise BadInput(
            f"a mask of {n_rows:,} × {n_tokens:,} × {n_tokens:,} tokens takes more than "
            f"{MOST_MASK_BYTES:,} bytes: use cu_seqlens with variable-length attention, or shorter "
            "rows"
        )
    same: NDArray[np.bool_] = owners[:, :, None] == owners[:, None, :]
    same &= (owners != PADDING)[:, :, None]
    same &= np.tri(n_tokens, dtype=np.bool_)
    same |= np.eye(n_tokens, dtype=np.bool_)
    return same
