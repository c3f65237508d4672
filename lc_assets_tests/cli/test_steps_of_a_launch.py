"""What a launch of Megatron trained on at a step: the tokens of its samples, and the documents that
these are of, by microbatch and rank.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.tables import read_table
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.megatron.launch_arguments import parse_launch, read_batches
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage.launches import Step, seen, served
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets.stages.mixes.launching import build_mix_cache
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.stages.test_mixes_in_megatron import samples_of
from lc_assets_tests.stages.test_mixes_of_long_and_short import mixed

IDENTITY = {"this": {"class": "Mine"}}
STEP = Step(iteration=2, batch=12, micro_batch=2, n_ranks=3)


@pytest.fixture(scope="module")
def lake(published_lake, tmp_path_factory):
    """A lake with a mix of both kinds of rows."""
    parts = {"megatron_rows": 0.34, "packed_rows": 0.66}
    mixes = {"both": MixSettings(parts=parts, samples=120)}
    return mixed(published_lake, tmp_path_factory.mktemp("steps"), mixes)


@pytest.fixture(scope="module")
def mix(lake):
    return stage_named("blended_mix").build(lake, "both").published


@pytest.fixture(scope="module", params=["rows", "pieces"])
def cache(request, lake, mix, tmp_path_factory):
    """Megatron's cache of the mix."""
    folder, executor = tmp_path_factory.mktemp("cache"), LocalExecutor()
    pieces = request.param == "pieces"
    build_mix_cache(lake.lake, mix, IDENTITY, folder, executor=executor, pieces=pieces)
    return folder


def launch_in(cache):
    return parse_launch((cache / "launch.args").read_text().split(), folder=cache)[0]


@pytest.fixture(scope="module")
def stored(lake):
    """Ids of every tokenized document with its end of text, by the kind of store and its name."""
    found = {}
    for stage in ("token_documents", "packing_tokens"):
        for published in lake.lake.published(stage).values():
            for table in sorted(published.folder.glob("*.documents.parquet")):
                names = read_table(table, ["id"])["id"].to_pylist()
                prefix = table.with_name(table.name.split(".")[0])
                data = MegatronReader(prefix) if names else ()
                for name, ids in zip(names, data, strict=True):
                    found[stage, name] = [*ids.tolist(), GPT2_EOT]
    return found


def test_a_step_is_its_samples_and_every_token_its_documents(lake, mix, cache, stored):
    launch = launch_in(cache)
    samples = list(samples_of(lake.lake, mix, read_mix(mix.folder)))[12:24]
    found = list(served(launch, STEP, cache))
    covered = [np.full(launch.sequence_length + 1, GPT2_EOT) for _ in samples]
    for piece in found:
        assert 12 <= piece.sample < 24
        own = slice(piece.start, piece.start + len(piece.ids))
        covered[piece.sample - 12][own] = piece.ids
        stage = "packing_tokens" if piece.piece.span.is_packed else "token_documents"
        ids = stored[stage, piece.piece.span.id]
        tokens = piece.piece.span.tokens_in(piece.piece.start, piece.piece.stop)
        assert piece.ids.tolist() == [token for a, b in tokens for token in ids[a:b]]
    np.testing.assert_array_equal(covered, samples)
    assert {piece.piece.span.is_packed for piece in found} == {True, False}
    assert next(served(launch, STEP, None)).ids.tolist() == found[0].ids.tolist()


def test_microbatches_are_dealt_to_ranks_as_megatrons_sampler_does(cache):
    """By the rule of `MegatronPretrainingSampler`, rank by rank."""
    found = {
        (one.microbatch, one.rank, one.sample) for one in served(launch_in(cache), STEP, cache)
    }
    expected = set()
    for rank in range(3):
        batch, microbatch = [], 0
        for sample in range(12, 24):
            batch.append(sample)
            if len(batch) == 2 * 3:
                expected |= {(microbatch, rank, own) for own in batch[2 * rank : 2 * rank + 2]}
                batch, microbatch = [], microbatch + 1
    assert found == expected


def test_documents_of_a_token_store_are_known_and_others_are_numbered(lake, tmp_path):
    store = next(iter(lake.lake.published("token_documents").values())).folder
    table = next(iter(sorted(store.glob("*.documents.parquet"))))
    prefix = table.with_name(table.name.split(".")[0])
    with MegatronWriter.publishing(tmp_path / "other", np.dtype(np.uint16)) as writer:
        writer.add(np.arange(900, dtype=np.uint16))
    words = f"--data-path 1 {prefix} 1 {tmp_path}/other --split 1,0,0 --seq-length 32"
    launch, _ = parse_launch(f"{words} --train-samples 8 --eval-iters 0".split(), folder=tmp_path)
    found = list(served(launch, Step(iteration=1, batch=8, micro_batch=8), None))
    known = read_table(table, ["id", "url"]).to_pylist()
    for piece in found:
        if piece.data_set == str(prefix):
            assert {"id": piece.piece.span.id, "url": piece.piece.span.url} == known[piece.number]
        else:
            assert (piece.piece, piece.number, piece.tokenizer) == (None, 0, "")
            assert piece.ids.tolist() == list(range(piece.ids[0], piece.ids[0] + 33))
    assert {piece.piece is None for piece in found} == {True, False}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"iteration": 0}, "iterations count from 1"),
        ({"n_ranks": 5}, "must divide a batch of 12"),
        ({"iteration": 99}, "no iteration 99: the launch has 12\\d samples, 12 a step"),
    ],
)
def test_a_step_that_there_is_not_is_refused(cache, step, said):
    with pytest.raises(BadInput, match=said):
        list(
            served(
                launch_in(cache),
                Step(**{"iteration": 1, "batch": 12, "micro_batch": 2} | step),
                cache,
            )
        )


def test_batches_are_read_from_the_launch(tmp_path):
    path = tmp_path / "launch.args"
    path.write_text("--global-batch-size 12 --micro-batch-size 2 --seq-length 8 # rest")
    assert read_batches(path) == (12, 2)
    for more, said in (
        ("--global-batch-size 12", "micro-batch-size"),
        ("--global-batch-size 2 --micro-batch-size 1 --dataloader-type cyclic", "cyclic"),
    ):
        path.write_text(more)
        with pytest.raises(BadInput, match=said):
            read_batches(path)


def test_the_command_lists_documents_and_gives_programs_their_texts(lc, cache):
    path = cache / "mine.args"
    words = (cache / "launch.args").read_text().strip()
    path.write_text(f"{words}\n--global-batch-size 12 --micro-batch-size 2\n")
    said = lc("trace", "--launch", path, "--step", 2, "--ranks", 3)
    assert said.code == 0
    found = list(served(launch_in(cache), STEP, cache))
    assert f"{len(found):,} pieces of documents" in said.out
    made = json.loads(lc("trace", "--launch", path, "--step", 2, "--ranks", 3, "--json").out)
    lines = made["sections"][0]["tables"][0]["rows"]
    assert [line["document"] for line in lines] == [piece.piece.span.id for piece in found]
    assert [line["text"] for line in lines] == [text_of("gpt2", one.ids.tolist()) for one in found]
    assert lc("trace", "--launch", path).code == 2
    assert lc("trace", "--row", 0).code == 2


def test_what_was_seen_is_what_the_mix_serves_first(lc, mix, cache):
    """Samples, tokens and epochs of every data set, up to a step."""
    launch = launch_in(cache)
    found = seen(launch, Step(iteration=3, batch=12, micro_batch=2), cache)
    first = read_npy(mix.folder / "dataset_index.npy")[: 3 * 12]
    assert tuple(found) == launch.sources[0].prefixes
    assert [n for n, _ in found.values()] == np.bincount(first, minlength=len(found)).tolist()
    for prefix, (n_samples, epochs) in found.items():
        n_tokens = MegatronReader(Path(prefix)).lengths.sum()
        assert epochs == n_samples * launch.sequence_length / n_tokens
    path = cache / "seen.args"
    words = (cache / "launch.args").read_text().strip()
    path.write_text(f"{words}\n--global-batch-size 12 --micro-batch-size 2\n")
    made = json.loads(lc("trace", "--launch", path, "--seen-until", 3, "--json").out)
    lines = made["sections"][0]["tables"][0]["rows"]
    assert {line["data set"]: line["samples"] for line in lines} == {
        name: n for name, (n, _) in found.items()
    }
    assert lc("trace", "--launch", path, "--seen-until", 3, "--step", 3).code == 2
    assert "no iteration 99" in lc("trace", "--launch", path, "--seen-until", 99).err


def test_packed_pieces_say_whose_rows_they_are(cache):
    """So that they are traced, although their own folder is in no lake."""
    for note in cache.glob("*.rows"):
        assert (Path(note.read_text().strip()) / "spans.parquet").is_file()
