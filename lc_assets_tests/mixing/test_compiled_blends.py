"""Compiled blends equal the reference: ties, extreme weights, equal shards, one to a thousand
sources; and nothing is fused.
"""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.mixing.blending import _draw, _drawn, blend, counts, normalise
from lc_assets_tests.reference import mixing as reference

ENDLESS = 2**62

KINDS = st.sampled_from([1.0, 0.1, 0.3, 0.25, 2.0, 1e-9, 1e9, 2.0**-40]) | st.floats(1e-6, 1e6)


@st.composite
def weighted(draw):
    """Weights of 1 to 1,000 data sets, few kinds or all different, and a size; some with limits
    that are soon reached.
    """
    n_datasets = draw(
        st.sampled_from([1, 2, 3, 7, 16, 17, 63, 64, 65, 100, 300, 1000]) | st.integers(1, 1000)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from(["drawn", "random", "near", "shards", "powers"]))
    if kinds == "drawn":
        weights = rng.choice(draw(st.lists(KINDS, min_size=1, max_size=6)), n_datasets)
    elif kinds == "random":
        weights = rng.uniform(0.01, 10, n_datasets)
    elif kinds == "near":
        weights = np.nextafter(1.0, 2.0, dtype=np.float64) ** rng.integers(0, 9, n_datasets)
    elif kinds == "powers":
        weights = 2.0 ** rng.integers(-30, 30, n_datasets)
    else:
        weights = np.repeat(rng.uniform(0.01, 10, n_datasets), rng.integers(1, 50))[:n_datasets]
    return normalise(weights.tolist()), draw(st.integers(0, 600))


@given(weighted())
def test_a_blend_equals_the_reference(case):
    """Few lanes and many, on the very same numbers."""
    weights, size = case
    endless = np.full(len(weights), ENDLESS, np.int64)
    assert_same(_drawn(weights, endless, size), reference.blend(weights, endless, size))


@given(weighted(), st.floats(0.01, 1))
def test_weights_need_not_sum_to_one(case, scale):
    """Everybody falls behind for ever, or runs ahead."""
    weights, size = case
    endless = np.full(len(weights), ENDLESS, np.int64)
    for scaled in (weights * scale, weights / scale):
        assert_same(_drawn(scaled, endless, size), reference.blend(scaled, endless, size))


@given(st.integers(1, 1000), st.integers(0, 2**32), st.sampled_from([1, 3, 40, 3000]))
def test_a_blend_of_everything_equals_the_reference(n_datasets, seed, spread):
    """Equal sizes, sizes far apart; each data set until it is spent."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 1 + spread, n_datasets)
    while sizes.sum() > 3000:
        sizes = sizes[: max(1, len(sizes) // 2)] if len(sizes) > 1 else sizes // 2 + 1
    limits = sizes.astype(np.int64)
    weights = limits / float(limits.sum())
    assert_same(
        _drawn(weights, limits, int(limits.sum())),
        reference.blend(weights, limits, int(limits.sum())),
    )


@pytest.mark.parametrize("n_datasets", [30, 100, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_a_long_blend_equals_the_reference(n_datasets, seed):
    """Long enough that the bar is moved up and down."""
    rng = np.random.default_rng(seed)
    weights = normalise((rng.uniform(0.01, 1, n_datasets) ** (1 + 3 * seed)).tolist())
    endless = np.full(n_datasets, ENDLESS, np.int64)
    assert_same(_drawn(weights, endless, 20_000), reference.blend(weights, endless, 20_000))


def test_two_sources_far_apart_in_size_are_drawn_apart():
    """Limits belong to a lane as weights do: equal weights with other limits are two lanes."""
    weights, limits = np.full(100, 0.01), np.where(np.arange(100) % 3, 5, 50).astype(np.int64)
    size = int(limits.sum())
    assert_same(_drawn(weights, limits, size), reference.blend(weights, limits, size))


def test_counts_are_of_every_data_set():
    chosen, _ = blend(normalise([3, 1e-9, 1]), 4_000)
    assert (
        counts(chosen, 3) == [3000, 0, 1000]
        or counts(chosen, 3) == np.bincount(chosen, minlength=3).tolist()
    )
    assert counts(np.zeros(2**20 + 5, np.int16), 2) == [2**20 + 5, 0]


def test_no_step_is_fused():
    """Neither x86's fused instructions nor ARM's stand in the machine code: weights give one order
    on every processor.
    """
    import numba

    # Compiled without the cache, because cached code cannot be inspected.
    fresh = numba.njit(nogil=True)(_draw.py_func)
    weights, limits, out = (
        np.array([0.25, 0.75]),
        np.full(2, ENDLESS, np.int64),
        (np.zeros(9, np.int16), np.zeros(9, np.int64)),
    )
    fresh(weights, limits, np.array([0, 1, 2]), np.array([0, 1]), *out)
    assert out[0].tolist() == reference.blend(weights, limits, 9)[0].tolist()
    code = "\n".join(fresh.inspect_asm().values())
    assert re.search(r"\bv?(mul|sub)[sp]d|\bfmul|\bfsub", code)
    assert not re.search(r"\bv?fn?m(add|sub)|\bfml[as]", code)


def assert_same(ours, theirs):
    """Values and dtypes."""
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
