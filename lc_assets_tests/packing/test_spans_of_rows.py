"""Spans: positions, masks and cu_seqlens against a slow, obvious reference that walks through every
token.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.loaders.packed import PackedBatch, covering
from lc_assets.packing.cutting import (
    BEGINS_BLANK,
    ENDS_LINE,
    ENDS_SENTENCE,
    KEPT_OF,
    Ends,
    ends_in,
    flags_of,
)


@st.composite
def rows(draw):
    """A few rows, each a list of spans (owner, tokens), and their length; and a stretch of it."""
    row_tokens = draw(st.integers(1, 12))
    made = []
    for _ in range(draw(st.integers(0, 4))):
        row, left = [], row_tokens
        while left and draw(st.booleans()):
            length = draw(st.integers(1, left))
            row.append((draw(st.integers(0, 3)), length))
            left -= length
        made.append(row)
    left = draw(st.integers(0, row_tokens - 1))
    return made, row_tokens, left, draw(st.integers(1, row_tokens - left))


def batch_of(made, left, width):
    """Some columns of the rows as a batch, without ids."""
    first = np.concatenate([[0], np.cumsum([len(row) for row in made])]).astype(np.int64)
    stop = np.array(
        [stop for row in made for stop in np.cumsum([length for _, length in row])], np.int32
    )
    owner = np.array([owner for row in made for owner, _ in row], np.int32)
    spans = PackedSpans(first, stop, owner)
    ids = np.zeros((len(made), width), np.uint16)
    return PackedBatch(ids, ids, *covering(spans, range(len(made)), range(left, left + width)))


def test_padding_between_aligned_spans_is_a_span_of_its_own():
    first, owners = np.array([0, 2, 3]), np.array([7, 4, 9], np.int32)
    spans = PackedSpans(first, np.array([3, 6, 4], np.int32), owners, align_tokens=4)
    found = [column.tolist() for column in covering(spans, range(2), range(8))]
    assert found == [[3, 1, 2, 2, 4, 4], [7, -1, 4, -1, 9, -1]]
    right = [column.tolist() for column in covering(spans, range(2), range(4, 8))]
    assert right == [[2, 2, 4], [4, -1, -1]]
    assert spans.lengths.tolist() == [3, 2, 4]
    assert (spans.problem(8), spans.problem(6)) == (
        "",
        "spans begin at multiples of 4, which do not divide a row",
    )


def walked(made, row_tokens, left, width):
    """Owner, number of span, and place in the span as far as the stretch shows it, of each
    token.
    """
    out = []
    for row in made:
        line = [
            (owner, number) for number, (owner, length) in enumerate(row) for _ in range(length)
        ]
        line += [(-1, len(row))] * (row_tokens - len(line))
        seen: dict[int, int] = {}
        told = []
        for owner, number in line[left : left + width]:
            told.append((owner, number, seen.get(number, 0)))
            seen[number] = seen.get(number, 0) + 1
        out.append(told)
    return out


@given(case=rows())
def test_every_column_is_what_a_loop_over_tokens_finds(case):
    made, row_tokens, left, width = case
    batch, told = batch_of(made, left, width), walked(made, row_tokens, left, width)
    assert (batch.lengths.dtype, batch.owners.dtype) == (np.int32, np.int32)
    assert batch.lengths.sum() == len(made) * width
    assert batch.documents.tolist() == [[token[0] for token in row] for row in told]
    assert batch.positions.tolist() == [[token[2] for token in row] for row in told]
    assert batch.mask.tolist() == [
        [token[0] >= 0 and token[2] > 0 for token in row] for row in told
    ]
    edges = [
        (row, at) for row, line in enumerate(told) for at, token in enumerate(line) if token[2] == 0
    ]
    begins = [row * width + at for row, at in edges]
    assert batch.cu_seqlens.tolist() == [*begins, len(made) * width]


@given(case=rows())
def test_a_mask_lets_a_token_see_its_own_document_behind_it(case):
    made, row_tokens, left, width = case
    mask = batch_of(made, left, width).block_diagonal
    for row, line in enumerate(walked(made, row_tokens, left, width)):
        for at, (mine, *_) in enumerate(line):
            sees = [
                other
                for other, (theirs, *_) in enumerate(line)
                if other == at or (other < at and theirs == mine >= 0)
            ]
            assert np.flatnonzero(mask[row, at]).tolist() == sees


def test_a_mask_of_long_rows_is_refused():
    with pytest.raises(BadInput, match="use cu_seqlens with variable-length attention"):
        _ = batch_of([[]], 0, 65_536).block_diagonal


@given(ids=st.lists(st.integers(0, 7), max_size=300), every=st.integers(1, KEPT_OF))
def test_ends_are_the_best_of_each_stretch(ids, every):
    """Against a loop: flags are the ids themselves."""
    flags = np.arange(8, dtype=np.uint8)
    best: dict[int, tuple[int, int]] = {}
    for at in range(len(ids) - 1):
        sentence = ids[at] & ENDS_SENTENCE and ids[at + 1] & BEGINS_BLANK
        strength = 2 if ids[at] & ENDS_LINE else int(bool(sentence))
        if strength:
            best[at // every] = max(best.get(at // every, (0, 0)), (strength, at + 1))
    assert ends_in(np.array(ids, np.int64), flags, every).tolist() == [
        end for _, end in best.values()
    ]


def test_ends_of_documents_can_be_taken_in_any_order():
    ends = Ends(first=np.array([0, 2, 2, 3]), token=np.array([3, 9, 5]))
    again = ends.of_documents(np.array([2, 0, 0, 1]))
    assert (again.first.tolist(), again.token.tolist()) == ([0, 1, 3, 5, 5], [5, 3, 9, 3, 9])


def test_flags_know_quotes_and_lines():
    found = {text: flags_of(text) for text in (".”", "?)", "\n\n", " \n", "Mr", "\r\n", "。", "")}
    assert found == {".”": 1, "?)": 1, "\n\n": 6, " \n": 6, "Mr": 0, "\r\n": 6, "。": 1, "": 0}
