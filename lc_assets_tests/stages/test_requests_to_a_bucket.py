"""What building and checking a partition costs a bucket in requests, stage by stage; run with
``-s`` to see the table.

A file costs one request up; what else is asked does not grow with files and shards, and listings
are one or two.
"""

import pytest

from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.upstream import Upstream
from lc_assets.orchestration.assets import every_file_is_as_published
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.planning import keys_of, plan
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import SNAPSHOTS, tiny_recipe, tiny_upstream

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SHARDS = {1: ("0000/en_head",), 4: tuple(f"{number:04d}/en_head" for number in range(4))}
SNAPSHOT = SNAPSHOTS[0]
MOST_LISTINGS = 3
"""Of a partition that reads one snapshot; what reads all snapshots lists each stage that it reads
once.
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Requests of each stage's partition by the number of shards: to build it, from another
    machine's cache; and its files.
    """
    found = {}
    for n_shards, tags in SHARDS.items():
        folder = tmp_path_factory.mktemp(f"shards{n_shards}")
        with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as server:
            upstream = tiny_upstream(folder / "upstream", snapshots=[SNAPSHOT], tags=tags)
            found[n_shards] = dict(_counted(server, folder, upstream))
    return found


def _counted(server, folder, upstream):
    recipe = tiny_recipe(folder)
    for of in STAGES:
        for key in keys_of(of, recipe, [SNAPSHOT])[:1]:
            lake = open_lake(
                "gs://crawl/lake", environment={"LC_CACHE": str(folder / of.name)}
            )  # a machine of its own
            server.requests.clear()
            context = BuildContext(
                lake=lake, upstream=Upstream(str(upstream)), recipe=recipe, executor=LocalExecutor()
            )
            published = stage_named(of.name).build(context, key).published
            built = server.requests.copy()
            server.requests.clear()
            assert every_file_is_as_published(lake.partition(of.name, key).require()).passed
            read = sum(
                len(lake.partition(*name.split("/")).require().receipt.files)
                for name in published.receipt.fingerprint.inputs
                if "/" in name
            )
            yield of.name, (built, server.requests.copy(), len(published.receipt.files), read)


def test_listings_are_few_and_do_not_grow_with_shards(counted):
    lines = []
    for stage, (built, checked, n_files, _) in counted[4].items():
        asked = f"built with {sum(built.values()):4} requests, {built['list']} of them listings"
        lines.append(
            f"{stage:16} {n_files:5} files: {asked}; checked with {sum(checked.values())} and "
            f"{checked['list']}"
        )
        assert built["list"] <= MOST_LISTINGS + (
            len(stage_named(stage).upstream) if stage_named(stage).reads_others else 0
        )
        assert checked["list"] == 1
    print("\n" + "\n".join(lines))
    lists = {
        n_shards: {
            stage: (built["list"], checked["list"]) for stage, (built, checked, _, _) in of.items()
        }
        for n_shards, of in counted.items()
    }
    assert lists[1] == lists[4]


def test_further_requests_are_files_that_go_up_or_come_down(counted):
    """Three more shards cost their own files: one request up, two down at most, and nothing
    else.
    """
    for stage, (built, _, n_files, n_read) in counted[4].items():
        before, _, n_before, n_read_before = counted[1][stage]
        more = sum(built.values()) - sum(before.values())
        assert more <= (n_files - n_before) + 2 * (n_read - n_read_before), stage


def test_a_plan_asks_for_pointers_and_for_no_listing_of_files(counted, tmp_path):
    """Two requests a partition and a receipt each at first; once receipts are here, two."""
    with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as server:
        upstream = tiny_upstream(tmp_path / "upstream", snapshots=[SNAPSHOT], tags=SHARDS[1])
        recipe = tiny_recipe(tmp_path)
        lake = open_lake("gs://crawl/lake", environment={"LC_CACHE": str(tmp_path / "copies")})
        context = BuildContext(
            lake=lake, upstream=Upstream(str(upstream)), recipe=recipe, executor=LocalExecutor()
        )
        for stage in ("raw_snapshot", "filtered_documents"):
            stage_named(stage).build(context, SNAPSHOT)
        server.requests.clear()
        plans = plan(lake, recipe, [SNAPSHOT])
        print(f"\na plan of {len(plans)} partitions: {dict(server.requests)}")
        assert server.requests["list"] <= len(STAGES)
        assert sum(server.requests.values()) - server.requests["list"] <= 3 * len(plans)
