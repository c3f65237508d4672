"""The same comparisons as with the golden files, on random corpora, where the real megatron-core is installed.

``golden/megatron/README.md`` says how to install it.
"""

import numpy as np
import pytest

from lc_assets.mixing.blending import blend, blend_all, normalise
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets_tests.golden.megatron import make_golden

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def helpers():
    """Megatron's compiled helpers."""
    return pytest.importorskip("megatron.core.datasets.helpers", reason="megatron-core is not installed")


def random_case(rng):
    """Lengths and settings of one corpus; every third has empty documents, every fourth a partial last sample."""
    lengths = rng.integers(rng.integers(0, 3) == 0, 12, rng.integers(1, 12)).tolist()
    lengths[-1] = max(1, lengths[-1])
    return {
        "lengths": lengths,
        "sequence_length": int(rng.integers(2, 10)),
        "n_samples": None if rng.integers(0, 4) == 0 else int(rng.integers(0, 60)),
        "seed": int(rng.integers(0, 2**32)),
        "extra_token": bool(rng.integers(0, 2)),
        "keep_partial": bool(rng.integers(0, 4) == 0) and min(lengths) > 0,
    }


def test_gpt_indices_of_random_corpora_are_megatrons(helpers):
    """Values, shapes and dtypes, 300 corpora."""
    rng = np.random.default_rng(1)
    for case in (random_case(rng) for _ in range(300)):
        golden = make_golden.gpt_index(case)
        index = build_gpt_index(np.array(case["lengths"]), **{name: value for name, value in case.items() if name != "lengths"})
        for name, array in golden.items():
            np.testing.assert_array_equal(getattr(index, name), np.array(array["values"], array["dtype"]), strict=True, err_msg=str(case))


def test_random_blends_are_megatrons(helpers):
    """300 weighted and 300 exhaustive blends."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        weights = rng.choice([0.1, 0.3, 1, 7, *rng.uniform(0.01, 5, 4).tolist()], rng.integers(1, 20)).tolist()
        golden = make_golden.blend({"weights": weights, "size": int(rng.integers(0, 400))})
        assert_is(blend(normalise(weights), len(golden["dataset_index"]["values"])), golden)
        sizes = rng.integers(1, 40, rng.integers(1, 12)).tolist()
        assert_is(blend_all(sizes), make_golden.exhaustive(sizes))


def assert_is(blended, golden):
    """Both arrays, value by value."""
    for name, found in zip(("dataset_index", "dataset_sample_index"), blended, strict=True):
        np.testing.assert_array_equal(found, np.array(golden[name]["values"], golden[name]["dtype"]), strict=True)
