"""Our arrays are those of the real megatron-core, element by element, over thousands of random
configurations.

``LC_MEGATRON_PYTHON`` names a Python that has it; otherwise it is installed once
(``golden/megatron/README.md``).
"""

import numpy as np
import pytest

from lc_assets.mixing import shuffling
from lc_assets.mixing.blending import blend, blend_all, normalise
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets_tests.megatron_peer import Peer, digest, interpreter

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

N_CORPORA = 1200
N_BLENDS = 700
N_EXHAUSTIVE = 400


@pytest.fixture(scope="module")
def megatron(request):
    """The real program."""
    peer = Peer(interpreter(request.config))
    yield peer
    peer.close()


@pytest.fixture(params=["numpy", "compiled"])
def way(request, monkeypatch):
    """Both ways of shuffling."""
    monkeypatch.setattr(shuffling, "COMPILED_FROM", 0 if request.param == "compiled" else 10**18)


def random_case(rng):
    """Lengths and settings of one corpus: empty documents, one document, one epoch, many."""
    lengths = rng.integers(
        rng.integers(0, 3) == 0, rng.choice([3, 12, 200]), rng.choice([1, 2, 12, 60])
    ).tolist()
    lengths[-1] = max(1, lengths[-1])
    return {
        "lengths": lengths,
        "sequence_length": int(rng.integers(2, rng.choice([4, 10, 300]))),
        "n_samples": None
        if rng.integers(0, 4) == 0
        else int(rng.integers(0, rng.choice([5, 60, 400]))),
        "seed": int(rng.integers(0, 2**32)),
    }


@pytest.fixture(scope="module")
def corpora(megatron):
    """Random corpora with what megatron-core makes of them."""
    rng = np.random.default_rng(1)
    cases = [random_case(rng) for _ in range(N_CORPORA)]
    return [
        (case, megatron.ask(ask="gpt", case=case)) for case in cases if sum(case["lengths"]) > 1
    ]


def test_gpt_indices_are_megatrons(corpora, way):
    """Values, shapes and dtypes of all three arrays."""
    for case, answer in corpora:
        index = build_gpt_index(
            np.array(case["lengths"]),
            **{name: value for name, value in case.items() if name != "lengths"},
        )
        assert {name: digest(getattr(index, name)) for name in answer} == answer, case
    assert len(corpora) > 0.9 * N_CORPORA


def random_weights(rng):
    """One to a thousand weights: random, equal shards of a few sets, powers of two, far apart."""
    n = int(rng.choice([1, 2, 3, 10, 40, 64, 65, 150, 1000]))
    kind = rng.integers(0, 5)
    if kind == 0:
        return rng.uniform(0.01, 5, n)
    if kind == 1:
        return np.repeat(rng.uniform(0.01, 5, n), rng.integers(1, 30))[:n]
    if kind == 2:
        return rng.choice([0.1, 0.3, 1, 7, 0.25], n)
    return 2.0 ** rng.integers(-20, 20, n) if kind == 3 else 10.0 ** rng.uniform(-12, 12, n)


@pytest.fixture(scope="module")
def blends(megatron):
    """Random weights and sizes with what megatron-core makes of them."""
    rng = np.random.default_rng(2)
    cases = [
        {"weights": random_weights(rng).tolist(), "size": int(rng.choice([0, 1, 30, 2000, 20_000]))}
        for _ in range(N_BLENDS)
    ]
    return [(case, megatron.ask(ask="blend", **case)) for case in cases]


def test_blends_are_megatrons(blends, way):
    """Ties and extreme weights, equal shards, 1 to 1,000 sources."""
    for case, answer in blends:
        datasets, samples = blend(normalise(normalise(case["weights"]).tolist()), case["size"])
        assert (digest(datasets), digest(samples)) == (
            answer["dataset_index"],
            answer["dataset_sample_index"],
        ), case


@pytest.fixture(scope="module")
def blends_of_everything(megatron):
    """Random sizes with what megatron-core makes of them."""
    rng = np.random.default_rng(3)
    cases = [
        rng.integers(
            1, 1 + rng.choice([1, 3, 40, 300]), rng.choice([1, 2, 12, 64, 65, 400])
        ).tolist()
        for _ in range(N_EXHAUSTIVE)
    ]
    cases = [sizes for sizes in cases if sum(sizes) <= 20_000]
    return [(sizes, megatron.ask(ask="exhaustive", sizes=sizes)) for sizes in cases]


def test_blends_of_everything_are_megatrons(blends_of_everything, way):
    for sizes, answer in blends_of_everything:
        datasets, samples = blend_all(sizes)
        assert (digest(datasets), digest(samples)) == (
            answer["dataset_index"],
            answer["dataset_sample_index"],
        ), sizes
