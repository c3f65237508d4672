"""Published mixes and rows in the real MaxText, which ``LC_MAXTEXT_PYTHON`` has: a Python 3.12 with
``maxtext`` and what its input pipeline imports.
"""

import json
import os
import subprocess

import pytest

import lc_assets
from lc_assets.loaders.random_access import RowRecords
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets_tests.stages.test_mixes_in_megatron import digest_of, lake_of_mixes, samples_of

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]
PEER = "lc_assets_tests.maxtext_peer"


@pytest.fixture(scope="module")
def ask():
    """Ask MaxText."""
    if not (python := os.environ.get("LC_MAXTEXT_PYTHON")):
        pytest.skip("LC_MAXTEXT_PYTHON names no Python with MaxText")

    def asked(**question):
        done = subprocess.run(
            [python, "-m", PEER, json.dumps(question)], capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        pytest.fail(done.stderr[-3000:])

    return asked


@pytest.fixture(scope="module")
def lake(published_lake, tmp_path_factory):
    """A copy of the lake with some of the mixes that Megatron is given."""
    folder = tmp_path_factory.mktemp("mixes")
    return lake_of_mixes(published_lake, folder, lambda name: not name.startswith("goes-on"))


@pytest.mark.parametrize("name", ["by-weights", "many-epochs", "of-parts-sized", "moving"])
def test_a_mix_is_what_maxtext_reads(lake, ask, tmp_path, name):
    """By its configuration alone; the order of a schedule is the mix's own."""
    published = stage_named("blended_mix").build(lake, name).published
    mix = read_mix(published.folder)
    settings = {"blend_index_dir": str(published.folder)} if mix.schedule else {}
    n_samples = mix.n_samples if mix.schedule else mix.samples
    files = [
        f"{tmp_path}/{number}|{lake.lake.root / source.prefix},{weight!r}"
        for number, (source, weight) in enumerate(zip(mix.sources, mix.weights, strict=True))
    ]
    found = ask(
        ask="mix",
        folder=str(tmp_path),
        sequence_length=mix.sequence_length,
        n_samples=n_samples,
        grain_train_files=";".join(files),
        data_shuffle_seed=mix.seed,
        **settings,
    )
    expected = [digest_of(tokens) for tokens in samples_of(lake.lake, published, mix)]
    assert found == expected[:n_samples]


@pytest.mark.parametrize("then", [1, 4])
@pytest.mark.parametrize("path", ["", "packed_rows/2023-14"])
@pytest.mark.parametrize("elastic", [True, False])
def test_hosts_share_all_rows_and_others_go_on(published_lake, ask, tmp_path, path, then, elastic):
    """One, two, eight hosts one after the other, and another number to the end, by single rows and
    by batches.
    """
    root = str(published_lake.context.lake.root / path)
    found = ask(
        ask="rows", folder=str(tmp_path), path=root, sequence_length=32, batch=8, then=then,
        n_before=1, elastic=elastic,
    )  # fmt: skip
    batch_rows = 1 if elastic else 8
    records = RowRecords(lc_assets.open(root), context_tokens=32, batch_rows=batch_rows)
    n_whole = len(records) // 8 * 8 if elastic else len(records)
    rows = [row for number in range(n_whole) for row in records[number]["targets"].tolist()]
    assert sorted(found) == sorted(rows)
