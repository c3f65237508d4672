"""Our blends are Megatron's: the real program's arrays, and an eight-line reference."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import blend, blend_all, normalise, requests, targets
from lc_assets_tests.reference.blending import slow_blend, slow_blend_all

GOLDEN = Path(__file__).parents[1] / "golden" / "megatron"
WEIGHTS = st.lists(
    st.floats(1e-6, 1e6) | st.sampled_from([1.0, 0.1, 0.3, 0.25]), min_size=1, max_size=8
)


def golden(name):
    """Cases of one golden file."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def assert_is(case, blended):
    """Values and dtypes are those of the real program."""
    for name, found in zip(("dataset_index", "dataset_sample_index"), blended, strict=True):
        np.testing.assert_array_equal(
            found, np.array(case[name]["values"], case[name]["dtype"]), strict=True
        )


@pytest.mark.parametrize("case", golden("blends"), ids=lambda case: str(case["weights"]))
def test_a_blend_is_megatrons(case):
    """Weights that fused arithmetic would order otherwise, ties, tiny weights, one data set, none
    asked for.
    """
    weights = normalise(case["weights"])
    assert weights.tolist() == case["normalised"]
    assert_is(case, blend(weights, case["size"]))


@pytest.mark.parametrize("case", golden("exhaustive"), ids=lambda case: str(case["sizes"]))
def test_a_blend_of_everything_is_megatrons(case):
    """Sizes that are equal, far apart, alone."""
    assert_is(case, blend_all(case["sizes"]))


@pytest.mark.parametrize("case", golden("sizes"), ids=lambda case: str(case["weights"]))
def test_sizes_are_megatrons(case):
    """Both rounded up, the surplus on top of the rounded target."""
    assert targets(case["weights"], case["n_samples"]) == case["targets"]
    assert requests(case["weights"], case["n_samples"], surplus=case["surplus"]) == case["requests"]


@given(WEIGHTS, st.integers(0, 120))
def test_a_blend_equals_megatrons_rule_in_python(weights, size):
    """Plain Python floats round each step, as we do."""
    shares = normalise(weights)
    datasets, samples = blend(shares, size)
    assert (datasets.tolist(), samples.tolist()) == slow_blend(shares.tolist(), size)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_a_blend_of_everything_equals_megatrons_rule_in_python(sizes):
    """Each data set until it is spent."""
    datasets, samples = blend_all(sizes)
    assert (datasets.tolist(), samples.tolist()) == slow_blend_all(sizes)


@given(WEIGHTS, st.integers(0, 100), st.integers(0, 100))
def test_a_longer_blend_only_appends(weights, shorter, extra):
    """Asking for more samples never reorders the ones already promised."""
    short, long = (blend(normalise(weights), size) for size in (shorter, shorter + extra))
    for one, other in zip(short, long, strict=True):
        assert one.tolist() == other[:shorter].tolist()


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_a_blend_of_everything_takes_every_sample_once(sizes):
    """No sample twice, none left."""
    datasets, samples = blend_all(sizes)
    taken = sorted(zip(datasets.tolist(), samples.tolist(), strict=True))
    assert taken == [
        (dataset, sample) for dataset, size in enumerate(sizes) for sample in range(size)
    ]


@given(WEIGHTS, st.integers(1, 10_000), st.floats(0, 0.5))
def test_sizes_are_enough_and_rise_with_the_surplus(weights, n_samples, surplus):
    """The blend is at least as long as asked for."""
    plain = targets(weights, n_samples)
    assert sum(plain) >= n_samples
    assert all(
        few <= many
        for few, many in zip(plain, requests(weights, n_samples, surplus=surplus), strict=True)
    )
    assert requests(weights, n_samples, surplus=0) == plain


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_is_a_positive_number(wrong):
    """Named by its place."""
    with pytest.raises(BadInput, match="weight 1 is"):
        normalise([1.0, wrong])


def test_weights_too_far_apart_are_refused():
    """A share that rounds to zero would mean a data set that is silently left out."""
    with pytest.raises(BadInput, match="shares are zero"):
        normalise([5e-324, 1e300])


@pytest.mark.parametrize(
    "make",
    [normalise, lambda many: blend(np.array(many), 1), lambda many: blend_all([1 for _ in many])],
)
@pytest.mark.parametrize("n_datasets", [0, 32_767])
def test_an_int16_numbers_the_data_sets(make, n_datasets):
    """At least one, and fewer than 32,767, as Megatron asserts."""
    with pytest.raises(BadInput, match="1 to 32,766 data sets"):
        make([1.0] * n_datasets)


def test_an_empty_data_set_cannot_be_blended_in():
    """Megatron would write past the end of its arrays."""
    with pytest.raises(BadInput, match="data set 1 has 0 samples"):
        blend_all([3, 0])


def test_a_size_is_not_negative():
    """Nor is a surplus."""
    for wrong in (lambda: blend(normalise([1]), -1), lambda: targets([1], -1)):
        with pytest.raises(BadInput, match="at least 0 samples"):
            wrong()
    with pytest.raises(BadInput, match="surplus"):
        requests([1], 1, surplus=-0.1)


def test_no_data_set_is_ever_far_from_its_share():
    """Within one sample at every place, for weights of every size."""
    weights = normalise([0.5, 0.3, 0.15, 0.05])
    datasets, _ = blend(weights, 1_000)
    taken = np.cumsum(datasets[:, np.newaxis] == np.arange(4), axis=0)
    off = taken - np.arange(1, 1_001)[:, np.newaxis] * weights
    assert np.abs(off).max() < 1
    assert all(later >= sooner for sooner, later in pairwise(taken[:, 3].tolist()))
