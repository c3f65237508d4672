"""The whole chain with a bucket for a lake, through Dagster and dagster-gcp's resource, against an
emulator on loopback.
"""

import shutil

import dagster as dg
import numpy as np
import pytest
from dagster_gcp.gcs.compute_log_manager import GCSComputeLogManager

from lc_assets.definitions import build_defs
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.loaders.rows import open_rows
from lc_assets.orchestration.assets import every_file_is_as_published
from lc_assets.orchestration.bucket_resources import BucketBuildContextResource
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import plan
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_recipe
from lc_assets_tests.materializations import skip_plots

pytest.importorskip("gcsfs")
pytestmark = pytest.mark.filterwarnings(
    # Google's client keeps connections open until it is collected
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:InitResourceContext.dagster_run is deprecated",  # dagster-gcp 0.29 asks for it
)

LAKE = "gs://crawl/lake"
JOBS = [
    *((job, snapshot) for snapshot in SNAPSHOTS for job in ("snapshot", "snapshot_packing")),
    ("all_snapshots", None),
]
MOST_REQUESTS = 60
"""Of one partition, files included; a listing per file would be hundreds."""


@pytest.fixture(scope="module")
def local(published_lake):
    return published_lake


@pytest.fixture(scope="module")
def in_bucket(tmp_path_factory, local):
    """Everything built once in a bucket; requests by job."""
    folder = tmp_path_factory.mktemp("bucket")
    with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as server:
        patched.setenv("LC_CACHE", str(folder / "cache"))
        skip_plots(patched)
        recipe = recipe_file(folder / "recipe.toml", tiny_recipe(folder))
        defs = build_defs(lake=LAKE, upstream=local.context.upstream.root, recipe=str(recipe))
        instance = dg.DagsterInstance.ephemeral(tempdir=str(folder))
        requests = {}
        for job, key in [
            *JOBS,
            *(("mixes", mix) for mix in sorted(tiny_recipe(folder).blended_mix)),
            ("card", None),
        ]:
            server.requests.clear()
            ended = defs.resolve_job_def(job).execute_in_process(
                partition_key=key, instance=instance, raise_on_error=False
            )
            assert ended.success, [event.message for event in ended.all_events if event.is_failure]
            requests[job, key] = server.requests.copy()
        yield server, folder, tiny_recipe(folder), requests


def test_the_bucket_holds_the_same_bytes_as_a_folder(in_bucket, local):
    """Every partition's digest is the local lake's; another machine, with nothing at hand, reads
    what is promised.
    """
    _, folder, _, _ = in_bucket
    other = open_lake(LAKE, environment={"LC_CACHE": str(folder / "other")})
    for step in STAGES:
        wanted = {
            key: published.digest
            for key, published in local.context.lake.published(step.name).items()
        }
        found = other.published(step.name)
        assert {key: published.digest for key, published in found.items()} == wanted
        assert [
            damage
            for published in found.values()
            for damage in (published.folder and published.damage())
        ] == []


def test_what_stands_in_a_bucket_is_current(in_bucket):
    _, folder, recipe, _ = in_bucket
    plans = plan(
        open_lake(LAKE, environment={"LC_CACHE": str(folder / "cache")}), recipe, SNAPSHOTS
    )
    assert {made.status for made in plans} == {"current"}


def test_requests_are_bounded_and_listings_few(in_bucket):
    """A listing for the check of each partition, one for each stage that is read in all of its
    partitions, and for the plan at the end of a run one for each stage.
    """
    _, _, _, requests = in_bucket
    for (job, _), counted in requests.items():
        n_partitions = {
            "snapshot": 14,
            "snapshot_packing": 2,
            "all_snapshots": 2,
            "mixes": 1,
            "card": 2,  # one, which reads nearly all of the others
        }[job]
        assert sum(counted.values()) <= MOST_REQUESTS * (n_partitions + 2)  # two for the plan
        assert counted["list"] <= 2 * n_partitions + 4 + len(STAGES)


def test_rows_are_read_from_the_bucket_as_from_the_folder(in_bucket, local):
    ours, theirs = open_rows(LAKE), open_rows(local.root)
    assert ours.n_rows == theirs.n_rows > 0
    everything = slice(0, ours.n_rows), slice(0, ours.row_tokens)
    assert np.array_equal(ours.read(*everything), theirs.read(*everything))


def test_a_check_finds_a_bit_that_was_flipped_in_the_bucket(in_bucket, tmp_path):
    """The check reads what is published, not what this machine has copied."""
    server, folder, _, _ = in_bucket
    name = next(
        name
        for name in server.names()
        if name.startswith("lake/token_documents/") and name.endswith(".bin")
    )
    whole = server.storage.get_file("crawl", name)
    server.spoil(name)
    for at_hand in (tmp_path, folder / "cache"):
        lake = open_lake(LAKE, environment={"LC_CACHE": str(at_hand)})
        finding = every_file_is_as_published(
            lake.partition("token_documents", name.split("/")[2]).require()
        )
        assert not finding.passed
        assert name.rsplit("/", 1)[1] in finding.message
    server.storage.create_file(
        "crawl",
        name,
        whole,
        server.storage.get_file_obj("crawl", name) | {"crc32c": None, "md5Hash": None},
    )


def test_without_its_copies_a_machine_goes_on(in_bucket, tmp_path):
    """The copies may be removed at any time."""
    _, folder, _, _ = in_bucket
    shutil.rmtree(folder / "cache")
    lake = open_lake(LAKE, environment={"LC_CACHE": str(folder / "cache")})
    assert lake.partition("token_grid", SNAPSHOTS[0]).require().damage() == []


def test_the_resource_is_dagster_gcps_and_only_then(monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    assert isinstance(build_defs(lake=LAKE).resources["build_context"], BucketBuildContextResource)
    assert set(build_defs(lake="lake").resources) == {"build_context"}


def test_what_steps_print_is_kept_in_the_bucket(tmp_path, monkeypatch):
    """dagster-gcp's manager of compute logs, as docs/object-stores.md sets it up."""
    with bucket_server(monkeypatch) as server:
        manager = GCSComputeLogManager(bucket="crawl", local_dir=str(tmp_path), prefix="logs")
        key = ["run", "compute_logs", "step"]
        with manager.open_log_stream(
            key, dg._core.storage.compute_log_manager.ComputeIOType.STDERR
        ) as stream:
            stream.write("40 shards a minute")
        assert any(name.startswith("logs/") for name in server.names())
        assert manager.get_log_data(key).stderr == b"40 shards a minute"
