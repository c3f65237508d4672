"""Documents of one's own in Dagster: two sources of files, their partitions, and a row's
lineage.
"""

import dagster as dg
import pytest

from lc_assets.definitions import ASSET_OF, build_defs
from lc_assets.lake.lake import Lake
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.lineage import tracing
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import recipe_file
from lc_assets_tests.materializations import skip_plots
from lc_assets_tests.sources.own_documents import PARTITIONS, own_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Every partition of both sources, built by jobs; the recipe, the lake and the instance."""
    folder = tmp_path_factory.mktemp("own")
    recipe = own_recipe(folder / "documents")
    defs = build_defs(
        lake=str(folder / "lake"),
        upstream=str(folder / "no upstream"),
        recipe=str(recipe_file(folder / "recipe.toml", recipe)),
    )
    (folder / "instance").mkdir()
    instance = dg.DagsterInstance.ephemeral(tempdir=str(folder / "instance"))

    def run(job, partition=None):
        made = defs.resolve_job_def(job)
        assert made.execute_in_process(partition_key=partition, instance=instance).success

    with pytest.MonkeyPatch.context() as patched:
        skip_plots(patched)
        for partition in PARTITIONS:
            run("snapshot", partition)
        run("all_snapshots")
    return defs, recipe, Lake(folder / "lake"), instance


def test_partitions_are_those_of_both_sources(finished):
    defs, *_ = finished
    asset = defs.resolve_assets_def(ASSET_OF[raw.STAGE.name])
    assert set(asset.partitions_def.get_partition_keys()) == set(PARTITIONS)


def test_every_partition_was_materialized_and_is_current(finished):
    _, recipe, lake, instance = finished
    records = instance.fetch_materializations(ASSET_OF[raw.STAGE.name], limit=10).records
    assert {record.partition_key for record in records} == set(PARTITIONS)
    later = {"blended_mix", "data_set_card", "packing_tokens", "packed_rows"}
    behind = [
        made.name
        for made in plan(lake, recipe, PARTITIONS)
        if made.status != "current" and made.stage not in later
    ]
    assert behind == []


def test_a_row_leads_back_to_its_record(finished):
    lake = finished[2]
    row = tracing.row_of_order(lake, "train", 0)
    where = raw.place_in_source(lake, row.id)
    assert row.snapshot in PARTITIONS
    assert where.startswith(("part-", "CC-MAIN-"))
