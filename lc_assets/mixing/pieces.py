"""A GPT index over packed rows, as one over their pieces.

With ``--dataloader-inter-document-masking`` Megatron takes the boundaries of documents within a
sample from its index, not from tokens. Over rows as documents it sees none; over pieces it shuffles
them and cuts them again. So the index of the rows is restated over pieces: the same tokens in the
same order, and every piece a document; so is the padding at a row's end.

Source: Megatron-LM ``gpt_dataset.py`` (``_query_document_sample_shuffle_indices``), core 0.19.2.
"""

import numpy as np

from lc_assets.arrays import Int64s, Integers
from lc_assets.mixing.gpt_index import MOST_INT32, GptIndex


def piece_edges(first: Int64s, stop: Integers, row_tokens: int) -> Int64s:
    """Where each piece begins among the tokens of all rows, then the number of tokens; int64.

    Args:
        first: first span of each row, then the number of spans.
        stop: where in its row each span ends.
        row_tokens: length of a row; what its last span leaves is a piece.

    >>> piece_edges(np.array([0, 2, 3]), np.array([3, 8, 6], np.int32), 8)
    array([ 0,  3,  8, 14, 16])
    """
    n_rows = len(first) - 1
    rows = np.repeat(np.arange(n_rows), np.diff(first))
    return np.union1d(rows * row_tokens + stop, np.arange(n_rows + 1) * row_tokens)


def index_of_pieces(index: GptIndex, edges: Int64s, row_tokens: int) -> GptIndex:
    """The index over pieces that serves what an index over rows serves.

    Args:
        index: its documents are rows.
        edges: of the rows' pieces, from `piece_edges`.
        row_tokens: length of a row.
    """
    rows = np.asarray(index.document_index, np.int64)
    first = np.searchsorted(edges, np.arange(0, int(edges[-1]) + 1, row_tokens))
    counts = np.diff(first)[rows]
    places = np.cumsum(counts) - counts
    n_places = int(counts.sum())
    pieces = np.repeat(first[rows] - places, counts) + np.arange(n_places)
    place, offset = np.asarray(index.sample_index, np.int64).T
    token = rows[place] * row_tokens + offset
    piece = np.searchsorted(edges, token, "right") - 1
    cuts = np.stack([places[place] + piece - first[rows[place]], token - edges[piece]], axis=1)
    samples = cuts.astype(np.int32) if n_places <= MOST_INT32 else cuts
    return GptIndex(pieces.astype(np.int32), samples, index.shuffle_index)
