"""An index over rows, restated over their pieces, serves the same tokens, each piece a document."""

import numpy as np
from hypothesis import given, strategies as st

from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets.mixing.pieces import index_of_pieces, piece_edges

ROW_TOKENS = 12


@given(
    rows=st.lists(
        st.sets(st.integers(1, ROW_TOKENS), min_size=1, max_size=5).map(sorted),
        min_size=2,
        max_size=8,
    ),
    sequence_length=st.sampled_from([1, 3, 4, 5, 12, 24]),
    n_samples=st.integers(1, 40),
)
def test_samples_keep_their_tokens_and_get_their_pieces(rows, sequence_length, n_samples):
    """Rows of any pieces, padded or full; samples that are rows, parts of them, or cross them."""
    first = np.cumsum([0, *map(len, rows)])
    stop = np.array([end for row in rows for end in row], np.int32)
    edges = piece_edges(first, stop, ROW_TOKENS)
    whole = [sorted({0, *row, ROW_TOKENS}) for row in rows]
    assert edges.tolist() == sorted(
        {at * ROW_TOKENS + end for at, row in enumerate(whole) for end in row}
    )
    lengths = np.full(len(rows), ROW_TOKENS)
    index = build_gpt_index(lengths, sequence_length=sequence_length, seed=3, n_samples=n_samples)
    found = index_of_pieces(index, edges, ROW_TOKENS)
    assert found.shuffle_index is index.shuffle_index
    assert (found.document_index.dtype, found.sample_index.dtype) == (np.int32, np.int32)
    of_rows = tokens_of(index, np.arange(len(rows)) * ROW_TOKENS, lengths)
    of_pieces = tokens_of(found, edges[:-1], np.diff(edges))
    for (tokens, _), (again, parts) in zip(of_rows, of_pieces, strict=True):
        assert tokens == again
        inner = [tokens[at] for at in np.cumsum(parts)[:-1]]
        assert inner == [token for token in tokens[1:] if token in set(edges.tolist())]


def tokens_of(index, starts, lengths):
    """Of each sample, the places of its tokens in the file, and how many each document gives."""
    samples = []
    for (place, offset), (last, end) in zip(
        index.sample_index[:-1], index.sample_index[1:], strict=True
    ):
        parts = []
        for at in range(place, last + 1):
            document = index.document_index[at]
            begin, stop = starts[document], starts[document] + lengths[document]
            if at == last:
                stop = begin + end + 1
            if at == place:
                begin += offset
            parts.append(list(range(begin, stop)))
        samples.append(([token for part in parts for token in part], [len(part) for part in parts]))
    return samples


def test_a_row_without_a_document_is_one_piece():
    assert piece_edges(np.array([0, 0, 1]), np.array([4], np.int32), 8).tolist() == [0, 8, 12, 16]
