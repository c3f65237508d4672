"""Blends, GPT indices and caches against their plain ways, and against the real Megatron. Run with
``-s`` to see the figures.

The comparisons with Megatron are marked ``network``: they need its package
(``lc_assets_tests/megatron_peer.py``).
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.mixing.blending import _drawn, blend, blend_all, normalise
from lc_assets.mixing.cache_names import Launch, Sources
from lc_assets.mixing.gpt_index import build_gpt_index, sample_index
from lc_assets.mixing.shuffling import shuffle
from lc_assets.stages.megatron.caching import build_cache, look_at_cache
from lc_assets_tests.benchmarks.timing import cpu_seconds
from lc_assets_tests.megatron_peer import Peer, digest, interpreter
from lc_assets_tests.reference import mixing as reference
from lc_assets_tests.reference.gpt_index import slow_gpt_index

ENDLESS = 2**62
once = partial(cpu_seconds, rounds=1)


def weights_of(kind, rng):
    """Weights of the kinds that blends have."""
    if kind == "1,000 random":
        return normalise(rng.uniform(0.01, 1, 1000).tolist())
    if kind == "10 sets of 100 shards":
        return normalise(np.repeat(rng.uniform(0.01, 1, 10), 100).tolist())
    return normalise(rng.uniform(0.01, 1, int(kind.split()[0])).tolist())


KINDS = ("10 random", "100 random", "1,000 random", "10 sets of 100 shards")


@pytest.fixture(scope="module")
def compiled_once():
    """Everything compiled, or read from the cache of compiled code; that time is printed by
    itself.
    """
    begun = time.process_time()
    for n_datasets in (3, 70):
        _drawn(
            normalise([1.0] * (n_datasets - 1) + [2.0]), np.full(n_datasets, ENDLESS, np.int64), 10
        )
    shuffle(np.arange(200_000, dtype=np.int32), np.random.RandomState(1))
    sample_index(np.full(3, 9, np.int32), np.arange(3, dtype=np.int32), 2, 27)
    print(f"\ncompiling, or reading the cache: {time.process_time() - begun:.1f} CPU-seconds")


@pytest.mark.parametrize(("kind", "floor"), list(zip(KINDS, (15, 8, 4, 40), strict=True)))
def test_a_blend_against_the_plain_way(kind, floor, compiled_once):
    """Nanoseconds per sample; the plain way is NumPy, one sample after the other."""
    weights = weights_of(kind, np.random.default_rng(1))
    limits = np.full(len(weights), ENDLESS, np.int64)
    fast, found = once(lambda _: _drawn(weights, limits, 1_000_000))
    slow, wanted = once(lambda _: reference.blend(weights, limits, 20_000))
    np.testing.assert_array_equal(found[0][:20_000], wanted[0])
    np.testing.assert_array_equal(found[1][:20_000], wanted[1])
    ratio = slow * 50 / fast
    print(
        f"\nblend of {kind}: {fast * 1e3:.0f} ns per sample, plain {slow * 5e4:,.0f}, ratio "
        f"{ratio:.0f}"
    )
    assert ratio > floor


def test_a_blend_of_everything_against_the_plain_way(compiled_once):
    """1,000 sources of different sizes."""
    sizes = np.random.default_rng(1).integers(200, 1_800, 1000)
    fast, found = once(lambda _: blend_all(sizes.tolist()))
    weights = sizes / float(sizes.sum())
    slow, wanted = once(lambda _: reference.blend(weights, sizes.astype(np.int64), 20_000))
    np.testing.assert_array_equal(found[0][:20_000], wanted[0])
    size = int(sizes.sum())
    ratio = slow / 20_000 / (fast / size)
    print(
        f"\nblend of everything, 1,000 sources: {fast / size * 1e9:.0f} ns per sample, plain "
        f"{slow * 5e4:,.0f}, ratio {ratio:.0f}"
    )
    assert ratio > 4


def test_a_gpt_index_against_the_plain_walk():
    """Samples per CPU second, 3 epochs of 2,000 documents."""
    lengths = np.random.default_rng(1).integers(0, 400, 2_000)
    settings = {"sequence_length": 64, "seed": 1, "n_samples": int(2.3 * lengths.sum()) // 64}
    fast, index = once(lambda _: build_gpt_index(lengths, **settings))
    slow, (order, begins, served) = once(lambda _: slow_gpt_index(lengths.tolist(), **settings))
    assert (index.document_index.tolist(), index.shuffle_index.tolist()) == (order, served)
    assert list(map(tuple, index.sample_index.tolist())) == begins
    print(
        f"\nGPT index: {index.n_samples / fast:,.0f} samples/CPU-s, plain walk "
        f"{index.n_samples / slow:,.0f}, ratio {slow / fast:.1f}"
    )
    assert fast < slow


def test_a_shuffle_and_a_walk_against_numpys(compiled_once):
    """Two million documents: `RandomState.shuffle`, and the binary search."""
    lengths = np.random.default_rng(1).integers(100, 1500, 2_000_000).astype(np.int32)
    order, wanted = np.arange(len(lengths), dtype=np.int32), np.arange(len(lengths), dtype=np.int32)
    fast, _ = once(lambda _: shuffle(order, np.random.RandomState(7)))
    slow, _ = once(lambda _: np.random.RandomState(7).shuffle(wanted))
    np.testing.assert_array_equal(order, wanted)
    each = 1e9 / len(order)
    print(
        f"\nshuffle of {len(order):,}: {fast * each:.1f} ns an entry, NumPy {slow * each:.1f}, "
        f"ratio {slow / fast:.1f}"
    )
    assert slow > 2 * fast
    n_tokens = int(lengths.sum())
    fast, found = once(lambda _: sample_index(lengths, order, 4096, n_tokens))
    slow, searched = once(lambda _: reference.sample_index(lengths, order, 4096, n_tokens))
    np.testing.assert_array_equal(found, searched)
    print(
        f"\nwalk over {len(order):,}: {fast * each:.1f} ns a document, search {slow * each:.1f}, "
        f"ratio {slow / fast:.1f}"
    )
    assert slow > 2 * fast


@pytest.fixture(scope="module")
def megatron(request):
    """The real program."""
    peer = Peer(interpreter(request.config))
    yield peer
    peer.close()


@pytest.mark.network
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "floor"), list(zip(KINDS, (0.6, 1, 7, 30), strict=True)))
def test_a_blend_against_megatrons(kind, floor, megatron, compiled_once):
    """The compiled helper of the wheel, element by element the same."""
    weights = weights_of(kind, np.random.default_rng(1))
    size = 3_000_000
    answer = megatron.ask(ask="blend", weights=weights.tolist(), size=size)
    again = normalise(normalise(weights.tolist()).tolist())
    fast, found = once(lambda _: blend(again, size))
    assert [digest(array) for array in found] == [
        answer["dataset_index"],
        answer["dataset_sample_index"],
    ]
    ratio = answer["seconds"] / fast
    print(
        f"\nblend of {kind}: {fast / size * 1e9:.0f} ns per sample, Megatron "
        f"{answer['seconds'] / size * 1e9:.0f}, ratio {ratio:.1f}"
    )
    assert ratio > floor


@pytest.mark.network
@pytest.mark.timeout(900)
def test_a_blend_of_everything_against_megatrons(megatron, compiled_once):
    """1,000 sources."""
    sizes = np.random.default_rng(1).integers(200, 1_800, 1000).tolist()
    answer = megatron.ask(ask="exhaustive", sizes=sizes)
    fast, found = once(lambda _: blend_all(sizes))
    assert [digest(array) for array in found] == [
        answer["dataset_index"],
        answer["dataset_sample_index"],
    ]
    ratio, size = answer["seconds"] / fast, sum(sizes)
    print(
        f"\nblend of everything: {fast / size * 1e9:.0f} ns per sample, Megatron "
        f"{answer['seconds'] / size * 1e9:,.0f}, ratio {ratio:.1f}"
    )
    assert ratio > 50


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("epochs", "sequence_length", "floor"), [(None, 4096, 4), (9.95, 1024, 3)])
def test_a_gpt_index_against_megatrons(epochs, sequence_length, floor, megatron, compiled_once):
    """Ten million documents, one epoch or ten; Megatron's time counts that it writes its arrays."""
    lengths = np.random.default_rng(5).integers(100, 1500, 10_000_000).astype(np.int32)
    n_samples = None if epochs is None else int(epochs * int(lengths.sum())) // sequence_length
    build_gpt_index(lengths[:300_000], sequence_length=sequence_length, seed=1)
    answer = megatron.ask(
        ask="index_speed",
        seed=5,
        n_documents=len(lengths),
        sequence_length=sequence_length,
        n_samples=n_samples,
    )
    fast, index = once(
        lambda _: build_gpt_index(
            lengths, sequence_length=sequence_length, seed=1234, n_samples=n_samples
        )
    )
    for name in ("document_index", "sample_index", "shuffle_index"):
        assert digest(getattr(index, name)) == answer[name]
    ratio = answer["seconds"] / fast
    size = f"{len(index.document_index):,} documents, {index.n_samples:,} samples"
    print(f"\n{size}: {fast:.2f} s, Megatron {answer['seconds']:.2f}, ratio {ratio:.1f}")
    assert ratio > floor


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_on_a_thousand_prefixes_starts_from_our_cache(
    megatron, tmp_path, monkeypatch, compiled_once
):
    """The real builder writes nothing, and answers in seconds; the samples are those it would have
    built.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    prefixes = [f"data/part-{number:04}" for number in range(1000)]
    for prefix in prefixes:
        with MegatronWriter.publishing(Path(prefix), np.dtype("<u2")) as writer:
            for length in rng.integers(20, 400, 200):
                writer.add(np.arange(length, dtype=np.uint16))
    weights = rng.uniform(0.1, 5, len(prefixes)).tolist()
    sources = Sources(prefixes=tuple(prefixes), weights=tuple(weights))
    launch = Launch(
        sequence_length=64,
        n_samples=(2_000_000, 1_000, 0),
        sources=(sources, sources, sources),
        split="98,2,0",
    )
    identity = {"class": "Mine", "path": "here"}
    spent, _ = once(
        lambda _: build_cache(launch, {"mine": identity}, Path("cache"), executor=LocalExecutor())
    )
    checked, entries = once(lambda _: look_at_cache(launch, {"mine": identity}, Path("cache")))
    assert {entry.status for entry in entries} == {"found"}
    config = {
        "random_seed": 1234,
        "sequence_length": 64,
        "blend": [prefixes, weights],
        "split": "98,2,0",
    }
    question = {
        "ask": "job",
        "folder": str(tmp_path),
        "identity": identity,
        "sizes": [2_000_000, 1_000, 0],
    }
    ours = megatron.ask(**question, config=config | {"path_to_cache": "cache"})
    theirs = megatron.ask(**question, config=config | {"path_to_cache": "theirs"})
    assert ours["written"] == []
    assert (ours["lengths"], ours["tokens"]) == (theirs["lengths"], theirs["tokens"])
    assert len(theirs["written"]) == 2 * (4 * len(prefixes) + 3)
    print(
        f"\n1,000 prefixes: a start takes {ours['wall']:.1f} s ({ours['cpu']:.1f} CPU) with our "
        f"cache, {theirs['wall']:.1f} without"
        f" ({theirs['cpu']:.1f} CPU); building it {spent:.1f} CPU-seconds, checking it "
        f"{checked:.1f}"
    )
    assert ours["wall"] < 5
