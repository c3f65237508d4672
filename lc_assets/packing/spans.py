"""What a model is told of packed rows: where spans begin, positions, what is learnt, whose token
each is.

Spans tile a batch: every token of every row is in one, padding in spans of its own, whose owner is
`PADDING`. So a batch is told by two short columns, the spans' lengths and owners; the rest is
computed from them when it is asked for.

Here: arithmetic on such columns. Not here: rows (`lc_assets.loaders.packed`).
Source: flash-attention's ``flash_attn_varlen_func`` (``cu_seqlens`` is int32, ``max_seqlen`` bounds
    every span);
Megatron's ``get_ltor_masks_and_position_ids`` (resets, and no loss where a document is asked for
the next one's beginning).
"""

from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from lc_assets.errors import BadInput

PADDING: Final = -1
"""Owner of a span of padding."""
MOST_MASK_BYTES: Final = 2**31
"""A mask of 8 rows of 16,384 tokens; longer rows want ``cu_seqlens``."""


def tiled(
    first: Integer[np.ndarray, " boundary"],
    stop: Integer[np.ndarray, " span"],
    owner: Integer[np.ndarray, " span"],
    *,
    left: int,
    width: int,
) -> tuple[Int32[np.ndarray, " span"], Int32[np.ndarray, " span"]]:
    """Lengths and owners of the spans that tile some rows, or the same stretch of each; padding
    among them.

    >>> first, stop, owner = np.array([0, 2, 3]), np.array([3, 5, 8]), np.array([7, 4, 9])
    >>> [column.tolist() for column in tiled(first, stop, owner, left=0, width=8)]
    [[3, 2, 3, 8], [7, 4, -1, 9]]
    >>> [column.tolist() for column in tiled(first, stop, owner, left=4, width=4)]
    [[1, 3, 4], [4, -1, 9]]

    Args:
        first: of each row, its first span; then the number of spans. Counted in the two columns
            that follow.
        stop: where in its row each span ends; a row's first begins at 0, each other where the one
            before ends.
        owner: whose tokens these are.
        left: first token of the stretch.
        width: its tokens.
    """
    counts = np.diff(first)
    n_rows, n_spans = len(counts), len(stop)
    # One more span a row, of what is left of it; a row of nothing else would be all padding.
    row = np.repeat(np.arange(n_rows), counts)
    place = np.arange(n_spans) + row
    ends = np.full(n_spans + n_rows, left + width, np.int64)
    owners = np.full(n_spans + n_rows, PADDING, np.int32)
    ends[place], owners[place] = stop, owner
    rows = np.repeat(np.arange(n_rows), counts + 1)
    edges = rows * width + np.clip(ends, left, left + width) - left
    lengths = np.diff(edges, prepend=0)
    there = lengths > 0
    return lengths[there].astype(np.int32), owners[there]


def cumulative(lengths: Int32[np.ndarray, " span"]) -> Int32[np.ndarray, " boundary"]:
    """``cu_seqlens``: the first token of each span, counted through the batch; then how many tokens
    there are.

    >>> cumulative(np.array([3, 2, 3], np.int32))
    array([0, 3, 5, 8], dtype=int32)
    """
    edges = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=edges[1:])
    return edges


def positions(
    lengths: Int32[np.ndarray, " span"], shape: tuple[int, int]
) -> Int32[np.ndarray, "row token"]:
    """Place of each token in its span, from 0.

    >>> positions(np.array([3, 2, 3], np.int32), (1, 8)).tolist()
    [[0, 1, 2, 0, 1, 0, 1, 2]]
    """
    numbers = np.arange(shape[0] * shape[1], dtype=np.int32)
    numbers -= np.repeat(cumulative(lengths)[:-1], lengths)
    return numbers.reshape(shape)


def owners_of_tokens(
    lengths: Int32[np.ndarray, " span"], owners: Int32[np.ndarray, " span"], shape: tuple[int, int]
) -> Int32[np.ndarray, "row token"]:
    """Whose token each is; `PADDING` where it is nobody's."""
    return np.repeat(owners, lengths).reshape(shape)


def learnt(
    lengths: Int32[np.ndarray, " span"], owners: Int32[np.ndarray, " span"], shape: tuple[int, int]
) -> Bool[np.ndarray, "row token"]:
    """Which tokens are to be predicted: none of padding, and no span's first, before which stands
    another document.

    >>> learnt(np.array([3, 2, 3], np.int32), np.array([7, 4, -1], np.int32), (1, 8)).tolist()
    [[False, True, True, False, True, False, False, False]]
    """
    mask: Bool[np.ndarray, " token"] = np.repeat(owners != PADDING, lengths)
    mask[cumulative(lengths)[:-1]] = False
    return mask.reshape(shape)


def block_diagonal(owners: Integer[np.ndarray, "row token"]) -> Bool[np.ndarray, "row token token"]:
    """Which token (the first of the two) may look at which: its own, and those before it of the
    same owner in its row.

    Padding looks at itself alone, so that no softmax is over nothing. For small rows only: it grows
    with their square.

    >>> block_diagonal(np.array([[7, 7, 4, -1, -1]])).astype(int)[0].tolist()
    [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]

    Raises:
        BadInput: when the mask would take more than `MOST_MASK_BYTES`.
    """
    n_rows, n_tokens = owners.shape
    if n_rows * n_tokens**2 > MOST_MASK_BYTES:
        raise BadInput(
            f"a mask of {n_rows:,} × {n_tokens:,} × {n_tokens:,} tokens takes more than "
            f"{MOST_MASK_BYTES:,} bytes: "
            "give cu_seqlens to an attention that takes spans instead, or shorter rows"
        )
    same: Bool[np.ndarray, "row token token"] = owners[:, :, None] == owners[:, None, :]
    same &= (owners != PADDING)[:, :, None]
    same &= np.tri(n_tokens, dtype=np.bool_)
    same |= np.eye(n_tokens, dtype=np.bool_)
    return same


def attention_cost(lengths: Integer[np.ndarray, " span"]) -> int:
    """Sum of the squares of the spans' lengths: pairs of tokens, both ways, that attention within
    spans looks at.

    >>> attention_cost(np.array([3, 2, 3]))
    22
    """
    wide: Int64[np.ndarray, " span"] = lengths.astype(np.int64)
    top = int(wide.max(initial=0))
    return (
        int((wide**2).sum())
        if top**2 * len(wide) < 2**63
        else sum(length**2 for length in wide.tolist())
    )
