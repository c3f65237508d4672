"""Packing: rows never overflow, every token is in exactly one piece, and compiled code equals the
reference implementation.
"""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.packing import methods, segments
from lc_assets.packing.cutting import Ends, cut_into_segments
from lc_assets.packing.methods import (
    METHODS,
    Shape,
    best_fit,
    concatenate,
    pack,
    pack_groups,
)
from lc_assets.packing.pieces import (
    MOST_ROW_TOKENS,
    Packing,
    Pieces,
    aligned,
    balance,
    covered_as_often,
    cut_documents,
    cut_evenly,
    whole,
)
from lc_assets.packing.segments import dispatch, interleave
from lc_assets_tests.reference import packing as reference


@st.composite
def documents(draw, *, most=60):
    """Lengths of documents, and of a row: many alike, some empty, some far longer than a row."""
    row_tokens = draw(st.integers(1, 40))
    some = st.one_of(
        st.integers(0, 12), st.integers(0, row_tokens + 2), st.integers(0, 5 * row_tokens)
    )
    return np.array(draw(st.lists(some, max_size=most)), np.int64), row_tokens


@st.composite
def ends_of(draw, lengths):
    """Ends anywhere in some documents."""
    tokens = [sorted(draw(st.sets(st.integers(0, int(length)), max_size=8))) for length in lengths]
    first = np.concatenate([[0], np.cumsum([len(own) for own in tokens])]).astype(np.int64)
    return Ends(first=first, token=np.array([token for own in tokens for token in own], np.int64))


def as_lists(packing):
    """Rows as lists of (document, start, stop)."""
    rows = [[] for _ in range(packing.n_rows)]
    pieces = packing.pieces
    for row, *piece in zip(
        packing.row.tolist(),
        pieces.document.tolist(),
        pieces.start.tolist(),
        pieces.stop.tolist(),
        strict=True,
    ):
        rows[row].append(tuple(piece))
    return rows


def assert_sound(packing, lengths, times=None):
    """Rows in order, none empty, none too full; every token as often as asked, token by token."""
    rows = as_lists(packing)
    assert (np.diff(packing.row) >= 0).all()
    assert all(
        0 < sum(stop - start for _, start, stop in row) <= packing.row_tokens for row in rows
    )
    counts = [np.zeros(length, np.int64) for length in lengths]
    for document, start, stop in (piece for row in rows for piece in row):
        assert 0 <= start < stop <= lengths[document]
        counts[document][start:stop] += 1
    times = np.ones(len(lengths), np.int64) if times is None else times
    assert all((count == often).all() for count, often in zip(counts, times, strict=True))
    assert covered_as_often(packing.pieces, lengths, times)


@given(case=documents(), method=st.sampled_from(sorted(METHODS)), data=st.data())
def test_every_way_keeps_every_token_once_and_overfills_no_row(case, method, data):
    """With segments of any length, ends or none, and documents in any order, some of them left out,
    some twice.
    """
    lengths, row_tokens = case
    shape = Shape(row_tokens=row_tokens, segment_tokens=data.draw(st.integers(1, row_tokens)))
    ends = data.draw(st.one_of(st.none(), ends_of(lengths)))
    assert_sound(pack(lengths, method=method, shape=shape, ends=ends), lengths)
    places = (
        st.lists(st.integers(0, len(lengths) - 1), max_size=60) if len(lengths) else st.just([])
    )
    order = np.array(data.draw(places), np.int64)
    assert_sound(
        pack(lengths, method=method, shape=shape, ends=ends, order=order),
        lengths,
        times=np.bincount(order, minlength=len(lengths)),
    )


@given(case=documents(), method=st.sampled_from(["bestfit", "concat"]), data=st.data())
def test_groups_are_packed_as_their_documents_end_to_end(case, method, data):
    """Like one document each, in the order of their numbers; within one by the column, then as
    given.
    """
    lengths, row_tokens = case
    some = st.lists(st.integers(0, 4), min_size=len(lengths), max_size=len(lengths))
    group, order_by = (np.array(data.draw(some), np.int64) for _ in range(2))
    packing = pack_groups(
        lengths, group, order_by, method=method, shape=Shape(row_tokens=row_tokens)
    )
    assert_sound(packing, lengths)
    tokens = {number: [] for number in sorted(set(group.tolist()))}
    for document in sorted(range(len(lengths)), key=lambda at: (order_by[at], at)):
        tokens[int(group[document])] += [(document, at) for at in range(lengths[document])]
    whole_groups = pack(
        np.array([len(own) for own in tokens.values()], np.int64),
        method=method,
        shape=Shape(row_tokens=row_tokens),
    )
    of_group = list(tokens.values())
    assert [
        [(document, at) for document, start, stop in row for at in range(start, stop)]
        for row in as_lists(packing)
    ] == [
        [token for number, start, stop in row for token in of_group[number][start:stop]]
        for row in as_lists(whole_groups)
    ]


@given(case=documents())
def test_the_balance_adds_up(case):
    """Tokens in and repeated are tokens in rows and left over; rows are tokens and padding; against
    sums over lists.
    """
    lengths, row_tokens = case
    order = np.arange(len(lengths))[::2].repeat(2)
    packing = pack(lengths, method="concat", shape=Shape(row_tokens=row_tokens), order=order)
    found, rows = balance(packing, lengths), as_lists(packing)
    assert found.tokens == lengths.sum()
    assert found.tokens + found.repeated == found.in_rows + found.left_over
    assert found.in_rows + found.padding == found.rows * row_tokens
    assert (found.repeated, found.left_over) == (lengths[::2].sum(), lengths[1::2].sum())
    assert found.attention == sum((stop - start) ** 2 for row in rows for _, start, stop in row)
    cut = {
        document
        for row in rows
        for document, start, stop in row
        if stop - start < lengths[document]
    }
    assert found.cut == len(cut)
    assert found.cut_needlessly == sum(lengths[document] <= row_tokens for document in cut)


@pytest.fixture(autouse=True, scope="module")
def few_pieces_are_packed_by_compiled_code_too():
    methods._fit.compile()


def test_a_few_documents_are_packed_without_numba():
    """By the same function, in the interpreter, into the same rows."""
    lengths = [3, 9, 5, 1, 8, 2, 2]
    code = (
        "import sys, numpy as np; from lc_assets.packing.methods import best_fit;"
        f"print(best_fit(np.array({lengths}), row_tokens=8).row.tolist());"
        "sys.exit('numba' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(ended.stdout) == best_fit(np.array(lengths), row_tokens=8).row.tolist()


@given(case=documents(most=200))
def test_best_fit_equals_the_reference(case):
    """The tree finds what the sorted list of rooms finds."""
    lengths, row_tokens = case
    pieces = cut_evenly(whole(lengths), row_tokens)
    row, n_rows = reference.fit(pieces.lengths, row_tokens)
    found = best_fit(lengths, row_tokens=row_tokens)
    expected = Packing.of(pieces, row, row_tokens=row_tokens, n_rows=n_rows)
    assert as_lists(found) == as_lists(expected)


@given(case=documents())
def test_best_fit_cuts_nothing_that_a_row_holds_and_leaves_no_two_halves(case):
    """A document is cut when it is longer than a row, and then into full rows and a rest; two rows
    at most half full never stand.
    """
    lengths, row_tokens = case
    packing = best_fit(lengths, row_tokens=row_tokens)
    np.testing.assert_array_equal(cut_documents(packing.pieces, lengths), lengths > row_tokens)
    assert len(packing.pieces) == (-(-lengths // row_tokens)).sum()
    assert (reference.used(packing) * 2 <= row_tokens).sum() <= 1


def test_best_fit_takes_the_fullest_row_that_has_room():
    """By hand: 6 | 5 | 4 → 5+4 fits 9 exactly, 3 goes with 6, not into a new row; 2 opens one."""
    packing = best_fit(np.array([4, 2, 6, 3, 5]), row_tokens=9)
    assert as_lists(packing) == [[(2, 0, 6), (3, 0, 3)], [(0, 0, 4), (4, 0, 5)], [(1, 0, 2)]]


@given(case=documents())
def test_concatenation_cuts_only_at_the_ends_of_rows(case):
    """Against one line of all tokens, chopped up; only the last row has padding."""
    lengths, row_tokens = case
    line = [(document, token) for document, length in enumerate(lengths) for token in range(length)]
    chunks = [line[start : start + row_tokens] for start in range(0, len(line), row_tokens)]
    packing = concatenate(lengths, row_tokens=row_tokens)
    assert [
        [(d, t) for d, start, stop in row for t in range(start, stop)] for row in as_lists(packing)
    ] == chunks
    assert all(len({d for d, _, _ in row}) == len(row) for row in as_lists(packing))
    assert (reference.used(packing)[:-1] == row_tokens).all()


@given(case=documents(), data=st.data())
def test_a_dispatched_document_has_one_segment_in_a_row_at_most(case, data):
    """So that no two of its tokens in a row are further apart than a segment."""
    lengths, row_tokens = case
    segment_tokens = data.draw(st.integers(1, row_tokens))
    ends = data.draw(st.one_of(st.none(), ends_of(lengths)))
    packing = dispatch(lengths, row_tokens=row_tokens, segment_tokens=segment_tokens, ends=ends)
    for row in as_lists(packing):
        assert len({document for document, _, _ in row}) == len(row)
        assert all(stop - start <= segment_tokens for _, start, stop in row)


@given(case=documents(most=120), data=st.data())
def test_dealing_equals_the_reference(case, data):
    """Segments of random documents, each document's the longest first, into a random number of rows
    to begin with.
    """
    lengths, row_tokens = case
    lengths = np.minimum(lengths[lengths > 0], row_tokens)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lengths)), max_size=20)) | {0, len(lengths)})
    parts = [np.sort(lengths[start:stop])[::-1] for start, stop in itertools.pairwise(cuts)]
    ordered, first = np.concatenate([*parts, np.empty(0, np.int64)]), np.array(cuts, np.int64)
    n_rows = data.draw(st.integers(0, 30))
    row, n_found = reference.deal(ordered, first, n_rows, row_tokens)
    found = np.empty(len(ordered), np.int64)
    assert segments._deal(ordered, first, n_rows, row_tokens, found) == n_found
    np.testing.assert_array_equal(found, row)
    assert (np.bincount(row, ordered) <= row_tokens).all() if len(ordered) else n_found == n_rows


@given(case=documents(), data=st.data())
def test_segments_end_at_ends_where_there_are_any(case, data):
    """As by the reference; a segment is at most as long as asked, ends at an end or is full,
    and loses no token.
    """
    lengths, segment_tokens = case
    ends = data.draw(ends_of(lengths))
    pieces = cut_evenly(whole(lengths), 3 * segment_tokens)
    fast, slow = (cut(pieces, segment_tokens, ends) for cut in (cut_into_segments, reference.cut))
    np.testing.assert_array_equal(
        [fast.document, fast.start, fast.stop], [slow.document, slow.start, slow.stop]
    )
    assert (fast.lengths <= segment_tokens).all()
    assert covered_as_often(fast, lengths, np.ones(len(lengths), np.int64))
    kept = set(zip(pieces.document.tolist(), pieces.stop.tolist(), strict=True))
    for document, start, stop in zip(
        fast.document.tolist(), fast.start.tolist(), fast.stop.tolist(), strict=True
    ):
        own = ends.token[ends.first[document] : ends.first[document + 1]].tolist()
        if (document, stop) not in kept and stop - start < segment_tokens:
            assert stop in own
            assert 2 * (stop - start) >= segment_tokens
            assert not any(stop < end <= start + segment_tokens for end in own)


@given(case=documents(), data=st.data())
def test_turns_keep_every_row_and_take_segments_one_of_each_piece(case, data):
    """Against the obvious: the row's pieces chopped, first ones first; each row keeps its very
    tokens.
    """
    lengths, row_tokens = case
    segment_tokens = data.draw(st.integers(1, row_tokens))
    before = concatenate(lengths, row_tokens=row_tokens)
    after = interleave(before, segment_tokens)
    for row, turned in zip(as_lists(before), as_lists(after), strict=True):
        chopped = [
            [(d, at, min(at + segment_tokens, stop)) for at in range(start, stop, segment_tokens)]
            for d, start, stop in row
        ]  # fmt: skip
        most = max(map(len, chopped))
        assert turned == [
            parts[turn] for turn in range(most) for parts in chopped if turn < len(parts)
        ]


@given(case=documents(), data=st.data())
def test_turns_conserve_pairs_and_move_them_outwards(case, data):
    """Pairs of tokens of one document within a row are as many as before: a row keeps its tokens;
    distances add up to no less.
    """
    lengths, row_tokens = case
    before = concatenate(lengths, row_tokens=row_tokens)
    after = interleave(before, data.draw(st.integers(1, row_tokens)))
    for row, turned in zip(as_lists(before), as_lists(after), strict=True):
        pairs, moved = pair_distances(row), pair_distances(turned)
        assert len(pairs) == len(moved)
        assert sum(pairs) <= sum(moved)


def pair_distances(row):
    """Distances between any two tokens of one document in a row."""
    line = [document for document, start, stop in row for _ in range(start, stop)]
    places = {
        document: [at for at, other in enumerate(line) if other == document]
        for document in set(line)
    }
    return [
        b - a for own in places.values() for number, a in enumerate(own) for b in own[number + 1 :]
    ]


def test_a_document_of_more_segments_than_rows_makes_rows():
    """Nothing is left out and nothing shares a row; the padding shows the cost."""
    packing = dispatch(np.array([40, 3]), row_tokens=8, segment_tokens=4)
    assert packing.n_rows == 10
    assert balance(packing, np.array([40, 3])).padding == 37


@pytest.mark.parametrize(("n_docs", "most"), [(174, 0.04), (2000, 0.03)])
def test_dealing_leaves_no_rows_nearly_empty(n_docs, most):
    """A tenth of the paper's lengths: rows that are full all at once would each leave a segment
    over, in a row of its own.
    """
    lengths = np.random.default_rng(7).integers(1600, 6400, n_docs)
    found = balance(dispatch(lengths, row_tokens=13_107, segment_tokens=410), lengths)
    assert found.padding_share < most


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda p: Pieces(p.document, p.start, np.minimum(p.stop + 1, 6)), "overlap"),
        (lambda p: Pieces(p.document[1:], p.start[1:], p.stop[1:]), "lost"),
        (lambda p: p.take(np.array([0, 0, 1, 2])), "twice"),
        (lambda p: Pieces(p.document, p.start - 1, p.stop), "before the beginning"),
        (lambda p: Pieces(p.document + 1, p.start, p.stop), "of another"),
    ],
    ids=lambda spoil: spoil if isinstance(spoil, str) else "",
)
def test_the_count_of_coverage_finds_what_is_wrong(spoil, words):
    """An assertion that nothing can fail would promise nothing."""
    lengths, once = np.array([6, 4]), np.array([1, 1])
    pieces = cut_evenly(whole(lengths), 4)
    assert covered_as_often(pieces, lengths, once)
    assert not covered_as_often(spoil(pieces), lengths, once)


@given(case=documents(), data=st.data())
def test_coverage_is_counted_token_by_token(case, data):
    """For any pieces, sound or not: sorting ends gives the result of counting every token."""
    lengths, most = case
    pieces = cut_evenly(whole(lengths), most)
    some = st.lists(st.integers(0, len(pieces) - 1), max_size=12) if len(pieces) else st.just([])
    chosen = pieces.take(np.array(data.draw(some), np.int64))
    times = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(lengths), max_size=len(lengths))),
        np.int64,
    )
    counts = [np.zeros(length, np.int64) for length in lengths]
    for document, start, stop in zip(
        chosen.document.tolist(), chosen.start.tolist(), chosen.stop.tolist(), strict=True
    ):
        counts[document][start:stop] += 1
    assert covered_as_often(chosen, lengths, times) == all(
        (count == often).all() for count, often in zip(counts, times, strict=True)
    )


def test_invalid_arguments_are_refused():
    """Each message states what is allowed."""
    for wrong in (0, -1, MOST_ROW_TOKENS + 1):
        for method in (best_fit, concatenate):
            with pytest.raises(
                BadInput, match=f"a row must have 1 to {MOST_ROW_TOKENS:,} tokens, got {wrong:,}"
            ):
                method(np.array([3]), row_tokens=wrong)
    with pytest.raises(BadInput, match="a segment must have 1 to 8 tokens, got 9"):
        dispatch(np.array([3]), row_tokens=8, segment_tokens=9)
    with pytest.raises(BadInput, match="a segment must have at least 1 token, got 0"):
        cut_into_segments(
            whole(np.array([3])), 0, Ends(first=np.array([0, 0]), token=np.empty(0, np.int64))
        )
    with pytest.raises(BadInput, match="none negative"):
        best_fit(np.array([3, -1]), row_tokens=8)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_document_is_no_row(method):
    packing = pack(
        np.empty(0, np.int64), method=method, shape=Shape(row_tokens=8, segment_tokens=2)
    )
    assert (packing.n_rows, len(packing.pieces), packing.padding) == (0, 0, 0)
    assert balance(packing, np.empty(0, np.int64)).padding_share == 0


def test_the_cost_of_attention_does_not_overflow():
    start, length = np.zeros(3, np.int64), 2**31 - 1
    pieces = Pieces(np.arange(3), start, start + length)
    packing = Packing(row_tokens=length, n_rows=3, row=np.arange(3), pieces=pieces)
    assert balance(packing, pieces.lengths).attention == 3 * length**2


@given(case=documents(), data=st.data())
def test_rows_in_another_order_are_the_same_rows(case, data):
    lengths, row_tokens = case
    packing = best_fit(lengths, row_tokens=row_tokens)
    order = np.array(data.draw(st.permutations(range(packing.n_rows))), np.int64)
    rows = as_lists(packing)
    assert as_lists(packing.in_row_order(order)) == [rows[row] for row in order]
    np.testing.assert_array_equal(
        reference.used(packing.in_row_order(order)), reference.used(packing)[order]
    )


@given(case=documents(), align=st.integers(1, 6), method=st.sampled_from(["bestfit", "concat"]))
def test_aligned_pieces_begin_at_multiples(case, align, method):
    """And every token is in one piece still; what is between pieces is less than a multiple."""
    lengths, row_tokens = case
    shape = Shape(row_tokens=row_tokens * align)
    packed = pack(aligned(lengths, align), method=method, shape=shape).padded(lengths, align)
    packed = packed.in_row_order(np.arange(packed.n_rows)[::-1])
    assert covered_as_often(packed.pieces, lengths, np.ones_like(lengths))
    assert (packed.places % align == 0).all()
    stops = packed.places + packed.pieces.lengths
    assert (stops <= shape.row_tokens).all()
    same_row = packed.row[1:] == packed.row[:-1]
    gaps = (packed.places[1:] - stops[:-1])[same_row]
    assert ((gaps >= 0) & (gaps < align)).all()
