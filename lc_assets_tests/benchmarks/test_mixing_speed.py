"""Blends and GPT indices against their plain twins. Run with ``-s`` to see the figures."""

import time

import numpy as np
import pytest

from lc_assets.mixing.blending import blend, normalise
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets_tests.oracles.blending import slow_blend
from lc_assets_tests.oracles.gpt_index import slow_gpt_index


def cpu_seconds(work):
    """CPU seconds of a call, and what it returned."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


@pytest.mark.parametrize("n_datasets", [3, 84, 1000])
def test_a_blend_against_the_plain_loop(n_datasets):
    """Microseconds per sample; for a handful of data sets plain Python is as fast, and nobody waits for either."""
    weights = normalise(np.random.default_rng(1).uniform(0.1, 10, n_datasets).tolist())
    size = 200_000 // n_datasets + 2_000
    fast, found = cpu_seconds(lambda: blend(weights, size))
    slow, wanted = cpu_seconds(lambda: slow_blend(weights.tolist(), size))
    assert (found[0].tolist(), found[1].tolist()) == wanted
    print(
        f"\nblend of {n_datasets:,}: {fast / size * 1e6:.2f} µs per sample, plain Python {slow / size * 1e6:.2f}, ratio {slow / fast:.1f}"
    )


def test_a_gpt_index_against_the_plain_walk():
    """Samples per CPU second, 3 epochs of 2,000 documents."""
    lengths = np.random.default_rng(1).integers(0, 400, 2_000)
    settings = {"sequence_length": 64, "seed": 1, "n_samples": int(2.3 * lengths.sum()) // 64}
    fast, index = cpu_seconds(lambda: build_gpt_index(lengths, **settings))
    slow, (order, begins, served) = cpu_seconds(lambda: slow_gpt_index(lengths.tolist(), **settings))
    assert (index.document_index.tolist(), index.shuffle_index.tolist()) == (order, served)
    assert list(map(tuple, index.sample_index.tolist())) == begins
    print(f"\nGPT index: {index.n_samples / fast:,.0f} samples/CPU-s, plain walk {index.n_samples / slow:,.0f}, ratio {slow / fast:.1f}")
    assert fast < slow
