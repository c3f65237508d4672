"""Pieces of 2^k tokens: none crosses a document, each token is in one piece or left over at the
end.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.packing.cutting import decomposed

LENGTHS = st.lists(st.integers(0, 300), max_size=20)
BOUNDS = st.tuples(st.integers(0, 6), st.integers(0, 4)).map(lambda found: (found[0], sum(found)))


def plainly(lengths, shortest, longest):
    """Take the longest piece that fits, again and again."""
    pieces = []
    for document, n_tokens in enumerate(lengths):
        start, left = 0, n_tokens
        for exponent in range(longest, shortest - 1, -1):
            while left >= 2**exponent:
                pieces.append((document, start, exponent))
                start, left = start + 2**exponent, left - 2**exponent
    return pieces


def listed(pieces):
    """As tuples."""
    exponents = [length.bit_length() - 1 for length in pieces.lengths.tolist()]
    return list(zip(pieces.document.tolist(), pieces.start.tolist(), exponents, strict=True))


@given(LENGTHS, BOUNDS)
def test_it_takes_the_longest_that_fits(lengths, bounds):
    """As one would cut by hand."""
    pieces = decomposed(np.array(lengths, np.int64), shortest=bounds[0], longest=bounds[1])
    assert listed(pieces) == plainly(lengths, *bounds)
    assert pieces.n_tokens == sum(n >> bounds[0] << bounds[0] for n in lengths)


@given(LENGTHS, BOUNDS, st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_drawn_order_is_the_same_pieces_without_a_gap(lengths, bounds, seed, random):
    """Whatever else is in the set, a document is cut in the same way."""
    keys = [f"doc {n}" for n in range(len(lengths))]
    pieces = listed(
        decomposed(
            np.array(lengths, np.int64), shortest=bounds[0], longest=bounds[1], keys=keys, seed=seed
        )
    )
    usual = plainly(lengths, *bounds)
    assert sorted((document, exponent) for document, _, exponent in pieces) == sorted(
        (document, exponent) for document, _, exponent in usual
    )
    end = dict.fromkeys(range(len(lengths)), 0)
    for document, start, exponent in pieces:
        assert start == end[document]
        end[document] += 2**exponent
    places = list(range(len(lengths)))
    random.shuffle(places)
    shuffled = decomposed(
        np.array([lengths[n] for n in places], np.int64),
        shortest=bounds[0],
        longest=bounds[1],
        keys=[keys[n] for n in places],
        seed=seed,
    )
    assert sorted(
        (places[document], start, exponent) for document, start, exponent in listed(shuffled)
    ) == sorted(pieces)


def test_a_drawn_order_draws():
    """Short pieces come from everywhere in a document, not from its end alone."""
    pieces = decomposed(
        np.full(200, 15), shortest=0, longest=3, keys=[str(n) for n in range(200)], seed=1
    )
    assert set(pieces.start[pieces.lengths == 1].tolist()) == {0, 2, 4, 6, 8, 10, 12, 14}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shortest": 5}, "shortest <= longest"),
        ({"longest": 31}, "<= 30, got 1 and 31"),
        ({"lengths": np.array([4, -1])}, "none negative"),
        ({"keys": ["a"]}, "2 keys, one per document, got 1"),
    ],
)
def test_invalid_arguments_are_refused(changed, message):
    with pytest.raises(BadInput, match=message):
        decomposed(**{"lengths": np.array([4, 5]), "shortest": 1, "longest": 4, **changed})
