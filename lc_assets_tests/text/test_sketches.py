"""A sketch holds the smallest distinct hashes, however often shingles are repeated."""

import numpy as np
import pytest

from lc_assets.text.duplicates.keys import Shingles, grams_of
from lc_assets.text.duplicates.sketches import NONE, SKETCH_HASHES, sketch
from lc_assets_tests.named_draws import rng_for


@pytest.mark.parametrize("n_words", [3, 40, 127, 128, 129, 2_000])
@pytest.mark.parametrize("n_kinds", [1, 2, 5, 40, 10_000])
def test_a_sketch_is_of_the_smallest_distinct_hashes(n_words, n_kinds):
    """From texts that repeat everything to texts that repeat nothing; also some hashes many times
    among many others.
    """
    drawn = rng_for("sketches", seed=n_words, key=str(n_kinds)).integers(n_kinds, size=n_words)
    text = " ".join(f"w{number}" for number in [*drawn, *[0] * (n_words // 2)])
    grams, _ = grams_of(text, 3)
    least = np.unique(grams)[:SKETCH_HASHES]
    found = sketch(text, Shingles(3))
    assert found[: len(least)].tolist() == least.tolist()
    assert (found[len(least) :] == NONE).all()
