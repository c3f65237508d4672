"""Our GPT index is Megatron's: the real program's arrays, and a slow reference that writes every
token down.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.mixing.gpt_index import build_gpt_index, plan_epochs
from lc_assets_tests.reference.gpt_index import slow_gpt_index

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "megatron" / "gpt_index.json").read_text()
)
NAMES = ("document_index", "sample_index", "shuffle_index")
SETTINGS = ("sequence_length", "n_samples")


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_the_arrays_are_megatrons(case):
    """Values, shapes and dtypes of what the real GPTDataset built."""
    arguments = {name: case[name] for name in SETTINGS if name in case} | {
        "seed": case.get("seed", 1234)
    }
    own = case.get("documents")
    documents = range(own[0], own[-1] + 1) if own else None
    index = build_gpt_index(np.array(case["lengths"]), documents=documents, **arguments)
    for name in NAMES:
        golden = case[name]
        np.testing.assert_array_equal(
            getattr(index, name), np.array(golden["values"], golden["dtype"]), strict=True
        )


@st.composite
def corpora(draw):
    """A small corpus with empty documents, and settings that fit it."""
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8))
    first = draw(st.integers(0, len(lengths) - 1))
    documents = draw(
        st.none() | st.integers(first + 1, len(lengths)).map(lambda n: range(first, n))
    )
    chosen = range(len(lengths)) if documents is None else documents
    assume(sum(lengths[document] for document in chosen))
    arguments = {
        "sequence_length": draw(st.integers(1, 12)),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "n_samples": draw(st.none() | st.integers(0, 40)),
    }
    return lengths, documents, arguments


@given(corpora())
def test_the_arrays_equal_megatrons_loops_in_python(corpus):
    """Epochs, splits, empty documents."""
    lengths, documents, arguments = corpus
    order, begins, served = slow_gpt_index(lengths, documents=documents, **arguments)
    index = build_gpt_index(np.array(lengths), documents=documents, **arguments)
    assert index.document_index.tolist() == order
    assert [tuple(row) for row in index.sample_index.tolist()] == begins
    assert index.shuffle_index.tolist() == served


@given(corpora())
def test_there_are_as_many_samples_as_were_asked_for(corpus):
    """At least; and each is served once."""
    lengths, documents, arguments = corpus
    index = build_gpt_index(np.array(lengths), documents=documents, **arguments)
    assert index.n_samples >= (arguments["n_samples"] or 0)
    assert sorted(index.shuffle_index.tolist()) == list(range(index.n_samples))


@pytest.mark.parametrize("n_samples", [None, 0, 5])
def test_no_token_at_all_is_refused(n_samples):
    """Megatron adds epochs of nothing for ever."""
    with pytest.raises(BadInput, match="have no tokens"):
        build_gpt_index(
            np.array([0, 0, 7]),
            documents=range(2),
            sequence_length=4,
            seed=1,
            n_samples=n_samples,
        )
    with pytest.raises(BadInput, match="have no tokens"):
        build_gpt_index(np.zeros(0, np.int32), sequence_length=4, seed=1, n_samples=n_samples)


def test_many_epochs_are_planned_at_once():
    """A loop over epochs would take minutes here."""
    assert plan_epochs(1, 8192, 10**9)[0] == 8192 * 10**9 + 1


@pytest.mark.parametrize(("needed", "apart"), [(20 + 7, 20), (20 + 8, None)])
def test_a_last_epoch_is_kept_apart_below_four_fifths(needed, apart):
    """Ten samples an epoch: at seven of them it is apart, at eight it is not."""
    assert plan_epochs(101, 10, needed)[1] == apart


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": -1}, "seed must be 0 to"),
        ({"seed": 2**32}, "seed must be 0 to"),
        ({"sequence_length": 0}, "sequence_length must be 1 to"),
        ({"n_samples": -1}, "n_samples must be at least 0"),
        ({"documents": range(3)}, "of 2 documents, counted from 0"),
        ({"documents": range(-1, 1)}, "of 2 documents, counted from 0"),
    ],
)
def test_invalid_arguments_are_refused(wrong, message):
    """Each with its bound."""
    with pytest.raises(BadInput, match=message):
        build_gpt_index(np.array([3, 4]), **({"sequence_length": 2, "seed": 1} | wrong))


def test_the_lengths_are_left_as_they_were():
    """Shuffling happens in copies."""
    lengths = np.array([3, 4, 5], np.int32)
    build_gpt_index(lengths, sequence_length=2, seed=1, n_samples=9)
    assert lengths.tolist() == [3, 4, 5]
