"""Referrals are counted as if every pair were looked at, and every sum comes out."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.text.referrals.referrals import (
    DISTANCES,
    Mentions,
    bucket_names,
    count_referrals,
)
from lc_assets_tests.reference.referral_pairs import slow_counts

N_SENTENCES = 40

EDGES = st.lists(st.integers(2, N_SENTENCES + 5), unique=True, max_size=4).map(
    lambda edges: tuple(sorted(edges))
)
SENTENCES_OF = st.lists(st.lists(st.integers(0, N_SENTENCES - 1), max_size=12), max_size=6).map(
    lambda lists: {str(number): sentences for number, sentences in enumerate(lists)}
)


@given(SENTENCES_OF, EDGES)
@example({"a": []}, DISTANCES)
@example({}, ())
@example({"a": [0, 31, 32, 33], "b": [], "c": [39, 39]}, (32,))
def test_counts_are_those_of_every_pair_looked_at(sentences_of, edges):
    """Counted one by one; and the sums are n (n - 1) / 2 and n - 1."""
    mentions = Mentions.of(N_SENTENCES, sentences_of)
    pairs, neighbours, concepts = slow_counts(sentences_of, edges)
    found = count_referrals(mentions, edges)
    assert found.pairs == tuple(pairs)
    assert found.neighbours == tuple(neighbours)
    assert found.concepts == tuple(concepts)
    sizes = [len(sentences) for sentences in sentences_of.values()]
    assert sum(found.pairs) == sum(n * (n - 1) // 2 for n in sizes)
    assert sum(found.neighbours) == sum(max(n - 1, 0) for n in sizes)
    assert (found.n_concepts, found.n_mentions) == (len(sizes), sum(sizes))


@given(SENTENCES_OF, st.permutations(range(N_SENTENCES)))
def test_sentences_in_another_order_keep_the_sum_of_pairs(sentences_of, order):
    """Reordering moves pairs between buckets, the mentions stay: nothing is won or lost, but for
    what is in one sentence, which stays.
    """
    moved = {
        concept: [order[sentence] for sentence in sentences]
        for concept, sentences in sentences_of.items()
    }
    before, after = (
        count_referrals(Mentions.of(N_SENTENCES, found), (4, 16)) for found in (sentences_of, moved)
    )
    assert sum(before.pairs) == sum(after.pairs)
    assert before.pairs[0] == after.pairs[0]
    assert sum(before.neighbours) == sum(after.neighbours)


@given(SENTENCES_OF, st.lists(st.integers(0, 3), min_size=N_SENTENCES, max_size=N_SENTENCES))
def test_within_documents_no_pair_joins_two_of_them(sentences_of, documents):
    """A concept of two documents is two concepts: counted as if each document were counted alone,
    in the text's sentences.
    """
    found = count_referrals(
        Mentions.of(N_SENTENCES, sentences_of).within(np.array(documents, np.int32)), (4, 16)
    )
    apart = {
        f"{concept} in {document}": kept
        for concept, sentences in sentences_of.items()
        for document in range(4)
        if (kept := [sentence for sentence in sentences if documents[sentence] == document])
    }
    assert (list(found.pairs), list(found.neighbours), list(found.concepts)) == slow_counts(
        apart, (4, 16)
    )
    assert found.n_concepts == len(apart)


def test_a_segment_of_its_own_has_nothing_beyond_its_length():
    """Sentences dealt out in segments of 10: with a document each, no pair is 10 sentences
    apart.
    """
    rng = np.random.default_rng(0)
    mentions = Mentions.of(
        1000, {str(number): rng.integers(0, 1000, 200).tolist() for number in range(5)}
    )
    segment_of = np.arange(1000, dtype=np.int32) // 10
    assert count_referrals(mentions, (10,)).pairs[2] > 0
    assert count_referrals(mentions.within(segment_of), (10,)).pairs[2] == 0


def test_a_million_mentions_of_one_concept_are_counted_at_once():
    """Half of 10¹² pairs; enumerating them would take hours, and the sum fits."""
    n_mentions = 10**6
    mentions = Mentions.of(n_mentions, {"a": range(n_mentions)})
    found = count_referrals(mentions)
    assert sum(found.pairs) == n_mentions * (n_mentions - 1) // 2
    assert found.pairs[1] == sum(n_mentions - distance for distance in range(1, 32))
    assert found.neighbours == (0, n_mentions - 1, 0, 0, 0)


@pytest.mark.parametrize("edges", [(1,), (0, 5), (32, 32), (128, 32)])
def test_edges_that_cut_no_buckets_are_refused(edges):
    with pytest.raises(BadInput, match="expected ascending numbers above 1"):
        count_referrals(Mentions.of(1, {}), edges)


def test_a_mention_outside_the_text_is_refused():
    for sentence in (-1, 3):
        with pytest.raises(BadInput, match="a text of 3 sentences"):
            Mentions.of(3, {"a": [sentence]})


def test_buckets_have_names():
    assert bucket_names() == ["same sentence", "1-32", "32-128", "128-512", "512-"]
    assert bucket_names(()) == ["same sentence", "1-"]


def test_counts_by_hand():
    """The paper's three measures of a text of 700 sentences, one of them with two mentions."""
    found = count_referrals(Mentions.of(700, {"a": [0, 10, 10, 200, 650], "b": [5, 40]}))
    # a: 0-10 twice; 0-200, 10-200 twice, 200-650; 0-650, 10-650 twice. b: 5-40.
    assert found.pairs == (1, 2, 1, 4, 3)
    # a: 0-10, 10-10, 10-200, 200-650. b: 5-40.
    assert found.neighbours == (1, 1, 1, 2, 0)
    assert found.concepts == (1, 1, 1, 1, 1)
    assert (found.n_concepts, found.n_mentions) == (2, 7)
