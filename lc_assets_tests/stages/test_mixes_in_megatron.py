"""Published mixes are those of the real megatron-core: its builder, given the launch arguments of a
mix and nothing else, writes the same files, finds all of them in the mix's cache, and serves the
published tokens.

``LC_MEGATRON_PYTHON`` names a Python that has another version than 0.16.1.
"""

import functools
import hashlib

import msgspec
import numpy as np
import pytest

from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.tables import read_table
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.megatron.launch_arguments import parse_launch
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage.launches import Step, served
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets.stages.mixes.launching import build_mix_cache
from lc_assets_tests.megatron_peer import Peer, interpreter
from lc_assets_tests.stages.test_mixes_of_long_and_short import mixed

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

IDENTITY = {"class": "Mine", "path": "gpt2"}
N_SAMPLES = 1000
PARTS = {"megatron_rows": 0.34, "packed_rows": 0.66}


def mixes_of(first, second):
    """One mix of each kind over two snapshots; the last continues another."""
    return {
        "by-tokens": {},
        "equal": {"weights": "equal"},
        "by-weights": {"weights": {first: 3.0, second: 1.0}},
        "many-epochs": {"weights": {first: 1.7, second: 1.1}, "samples": 333},
        "tempered": {"temperature": 2.0, "samples": 50},
        "one-source": {"weights": {first: 2.0}},
        "one-whole": {"epochs": {first: 1.0}},
        "by-epochs": {"epochs": {first: 1.0, second: 2.5}},
        "of-parts": {"parts": PARTS},
        "of-parts-sized": {"parts": PARTS, "samples": 120, "seed": 7},
        "ten-thousand": {"parts": PARTS, "samples": 10_000},
        "moving": {
            "schedule": [
                {"samples": 200, "weights": {first: 3.0, second: 1.0}},
                {"samples": 150, "weights": {first: 1.0}, "to": {f"packed_rows/{second}": 1.0}},
            ]
        },
        "goes-on-moving": {
            "schedule": [{"samples": 90, "weights": {second: 1.0}, "to": {first: 1.0}}],
            "continues": {"mix": "moving", "after": 260},
        },
        "goes-on": {
            "weights": {first: 1.0, second: 4.0},
            "samples": 500,
            "continues": {"mix": "by-weights", "after": 10},
        },
        "goes-on-packed": {
            "weights": {first: 1.0, second: 4.0},
            "parts": PARTS,
            "samples": 300,
            "continues": {"mix": "by-weights", "after": 10},
        },
    }


@pytest.fixture(scope="module")
def megatron(request):
    """The real program."""
    peer = Peer(interpreter(request.config))
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def lake(published_lake, tmp_path_factory):
    """A copy of the lake with mixes of all kinds."""
    return lake_of_mixes(published_lake, tmp_path_factory.mktemp("mixes"), lambda _name: True)


def lake_of_mixes(published_lake, folder, are_wanted):
    """A copy of a lake with those of the mixes that are wanted, by name."""
    first, second = sorted(published_lake.context.lake.published("megatron_rows"))[:2]
    mixes = {
        name: msgspec.convert(settings, MixSettings)
        for name, settings in mixes_of(first, second).items()
        if are_wanted(name)
    }
    return mixed(published_lake, folder, mixes)


@pytest.mark.parametrize("name", list(mixes_of("", "")))
def test_a_mix_is_what_megatron_builds_and_finds(lake, megatron, tmp_path, name):
    published = stage_named("blended_mix").build(lake, name).published
    cache, fresh = tmp_path / "cache", tmp_path / "fresh"
    entries, words = build_mix_cache(
        lake.lake, published, {"this": IDENTITY}, cache, executor=LocalExecutor()
    )
    assert (cache / "launch.args").read_text() == f"{words}\n"
    asked = {"words": words, "identity": IDENTITY, "folder": "/", "n_samples": N_SAMPLES}
    found = megatron.ask(ask="launched", **asked)
    assert "error" not in found, found
    assert found["written"] == []
    mix = read_mix(published.folder)
    n_expected = mix.n_samples if len(entries) > 1 else entries[0].request.parts[0].n_samples
    assert found["length"] >= n_expected >= mix.samples > 0
    expected = [digest_of(tokens) for tokens in samples_of(lake.lake, published, mix)]
    assert found["samples"][: len(expected)] == expected
    if not name.startswith(("goes-on", "moving")):  # no launch of Megatron builds that
        built = megatron.ask(ask="launched", cache=str(fresh), **asked)
        assert {name: digest_of_file(fresh / name) for name in built["written"]} == {
            path.name: digest_of_file(path) for path in cache.glob("*Dataset*")
        }


def launched_in_pieces(lake, published, megatron, cache):
    """What Megatron says of a mix whose cache was built with every piece a document."""
    built = {"executor": LocalExecutor(), "pieces": True}
    _, words = build_mix_cache(lake, published, {"this": IDENTITY}, cache, **built)
    asked = {"words": words, "identity": IDENTITY, "folder": "/", "n_samples": N_SAMPLES}
    found = megatron.ask(ask="launched", **asked)
    if "unsupported" in found:
        pytest.skip("this megatron-core has no masks by documents")
    return found


@pytest.mark.parametrize("name", ["of-parts", "of-parts-sized", "goes-on-packed"])
def test_megatron_attends_within_the_pieces_of_packed_rows(lake, megatron, tmp_path, name):
    """Every `cu_seqlens` is what `spans.parquet` says of the row; rows of one document beside them
    have none. The tokens are the same, and nothing is built.
    """
    published = stage_named("blended_mix").build(lake, name).published
    found = launched_in_pieces(lake.lake, published, megatron, tmp_path / "cache")
    assert "error" not in found, found
    assert found["written"] == []
    mix = read_mix(published.folder)
    expected = [digest_of(tokens) for tokens in samples_of(lake.lake, published, mix)]
    assert found["samples"][: len(expected)] == expected
    edges = list(edges_of_samples(lake.lake, published, mix))
    assert found["cu_seqlens"][: len(edges)] == edges
    assert max(map(len, edges)) > 2


@pytest.mark.parametrize(("pieces", "cached"), [(False, True), (True, True), (False, False)])
def test_what_was_served_is_what_megatron_serves(lake, megatron, tmp_path, pieces, cached):
    """10,000 of 10,000 samples of a mix of many epochs, by the cache or without one."""
    published = stage_named("blended_mix").build(lake, "ten-thousand").published
    cache = tmp_path / "cache"
    _, words = build_mix_cache(
        lake.lake, published, {"this": IDENTITY}, cache, executor=LocalExecutor(), pieces=pieces
    )
    launch, _ = parse_launch(words.split(), folder=cache)
    step = Step(iteration=1, batch=10_000, micro_batch=1)
    tokens = np.full((10_000, launch.sequence_length + 1), 50_256)
    for piece in served(launch, step, cache if cached else None):
        tokens[piece.sample, piece.start : piece.start + len(piece.ids)] = piece.ids
    asked = {"words": words, "identity": IDENTITY, "folder": "/", "n_samples": 10_000}
    found = megatron.ask(ask="launched", **asked)
    if "unsupported" in found:
        pytest.skip("this megatron-core has no masks by documents")
    assert found["samples"][:10_000] == [digest_of(sample) for sample in tokens]


def test_aligned_pieces_are_aligned_in_megatron(published_lake, megatron, tmp_path):
    """Each begins at a multiple of twice the context-parallel size, padding belonging to it; what
    is padding teaches nothing, because its inputs are end of text.
    """
    mixes = {"packed": MixSettings(parts={"packed_rows": 1.0}, samples=40)}
    lake = mixed(published_lake, tmp_path, mixes, align_tokens=8)
    published = stage_named("blended_mix").build(lake, "packed").published
    found = launched_in_pieces(lake.lake, published, megatron, tmp_path / "cache")
    assert found["written"] == []
    mix = read_mix(published.folder)
    edges = list(edges_of_samples(lake.lake, published, mix))
    aligned = [sorted({-(-edge // 8) * 8 for edge in own}) for own in edges]
    assert found["cu_seqlens"][: len(edges)] == aligned
    assert any(edge % 8 for own in edges for edge in own)


def edges_of_samples(lake, published, mix):
    """Boundaries of documents in the first samples, from the table of spans."""
    chosen, numbers = (
        read_npy(published.folder / f"{of}.npy") for of in ("dataset_index", "dataset_sample_index")
    )
    for of, number in zip(chosen[:N_SAMPLES].tolist(), numbers[:N_SAMPLES].tolist(), strict=True):
        source, length = mix.sources[of], mix.sequence_length
        index = read_gpt_index(published.folder / source.name)
        lengths = MegatronReader(lake.root / source.prefix).lengths
        at = int(index.shuffle_index[number])
        place, offset = index.sample_index[at].tolist()
        edges, begin = {0, length}, -offset
        while begin < length:
            row = int(index.document_index[place])
            stops = {0, int(lengths[row]), *stops_of(lake, source, row)}
            edges |= {begin + stop for stop in stops if 0 < begin + stop < length}
            begin, place = begin + int(lengths[row]), place + 1
        yield sorted(edges)


def stops_of(lake, source, row):
    """Where the pieces of a packed row end; nothing of another row."""
    if source.part is msgspec.UNSET:
        return []
    table = lake.version_of(source.prefix).folder / "spans.parquet"
    stops = stops_by_row(table)
    return stops[row]


@functools.cache
def stops_by_row(table):
    """Of the training rows of a version."""
    found = {}
    for line in read_table(table, ["split", "row", "row_stop"]).to_pylist():
        if line["split"] == "train":
            found.setdefault(line["row"], []).append(line["row_stop"])
    return found


def samples_of(lake, published, mix):
    """Tokens of the first samples, from the mix's own arrays."""
    chosen, numbers = (
        read_npy(published.folder / f"{of}.npy") for of in ("dataset_index", "dataset_sample_index")
    )
    readers = [MegatronReader(lake.root / source.prefix) for source in mix.sources]
    indices = [read_gpt_index(published.folder / source.name) for source in mix.sources]
    for of, number in zip(chosen[:N_SAMPLES].tolist(), numbers[:N_SAMPLES].tolist(), strict=True):
        index, reader = indices[of], readers[of]
        at = int(index.shuffle_index[number])
        (place, offset), (last, stop) = index.sample_index[at : at + 2].tolist()
        documents = [reader[int(document)] for document in index.document_index[place : last + 1]]
        documents[-1] = documents[-1][: stop + 1]
        yield np.concatenate(documents)[offset:].astype(np.int64)


def digest_of(tokens):
    return hashlib.sha256(tokens.tobytes()).hexdigest()


def digest_of_file(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
