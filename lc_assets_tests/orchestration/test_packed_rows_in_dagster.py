"""Packed rows in Dagster: made by a job of their own, where the recipe wants them; told in plots
and decoded lines.
"""

import dagster as dg
import pytest

from lc_assets.builds.tables import PACKED_SPANS
from lc_assets.definitions import build_defs
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.materializations import assert_columns_described, assert_metadata

SNAPSHOT = "2023-06"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One snapshot whose jobs have run, and the instance that knows it."""
    folder = tmp_path_factory.mktemp("packed")
    lake, upstream = folder / "lake", tiny_upstream(folder / "upstream", snapshots=[SNAPSHOT])
    recipe = tiny_recipe(folder)
    defs = build_defs(
        lake=str(lake),
        upstream=str(upstream),
        recipe=str(recipe_file(folder / "recipe.toml", recipe)),
    )
    (folder / "instance").mkdir()
    instance = dg.DagsterInstance.ephemeral(tempdir=str(folder / "instance"))
    for job in ("snapshot", "snapshot_packing"):
        assert (
            defs.resolve_job_def(job)
            .execute_in_process(partition_key=SNAPSHOT, instance=instance)
            .success
        )
    return Lake(lake), recipe, instance


def metadata_of(finished, asset):
    (record,) = finished[2].fetch_materializations(dg.AssetKey(asset), limit=10).records
    return record.asset_materialization


def test_packed_rows_tell_their_story(finished):
    """Shares, plots, columns, decoded lines, the receipt's digest as data version."""
    lake, *_ = finished
    told = metadata_of(finished, "packed_rows")
    published = lake.partition("packed_rows", SNAPSHOT).require()
    extra = published.receipt.counts.extra
    assert told.tags["dagster/data_version"] == published.digest
    assert told.metadata["dagster/row_count"].value == extra["train rows"] + extra["heldout rows"]
    n_tokens = 256 * told.metadata["dagster/row_count"].value
    assert told.metadata["padding_share"].value == pytest.approx(extra["padding"] / n_tokens)
    assert told.metadata["cut_share"].value == 0
    for plot in ("where_tokens_are", "rows_by_split", "piece_lengths", "pieces_per_row"):
        assert "data:image/png;base64," in told.metadata[plot].value
    heads, _, first, *_ = told.metadata["first_rows"].value.splitlines()
    assert heads.startswith("| row | piece | begins |")
    assert first.startswith("| 0 | 0 | ")
    assert [
        column.name for column in told.metadata["dagster/column_schema"].value.columns
    ] == PACKED_SPANS.names
    assert_metadata(told, published)


def test_their_tokens_are_of_documents_of_any_length(finished):
    told = {
        name: metadata_of(finished, name)
        for name in ("packing_tokens", "packed_rows", "filtered_documents")
    }
    assert "data:image/png;base64," in told["packing_tokens"].metadata["lengths"].value
    assert_metadata(
        told["packing_tokens"], finished[0].partition("packing_tokens", SNAPSHOT).require()
    )
    assert_columns_described(told, judged={"filtered_documents"})


def test_every_claim_about_them_is_a_check_that_passed(finished):
    for name in ("packing_tokens", "packed_rows"):
        checks = [
            dg.AssetCheckKey(dg.AssetKey(name), claim.__name__)
            for claim in stage_named(name).checks
        ]
        found = finished[2].event_log_storage.get_asset_check_summary_records(checks)
        assert {summary.last_check_execution_record.status.value for summary in found.values()} == {
            "SUCCEEDED"
        }


def test_the_planner_knows_them_where_they_are_wanted(finished, tmp_path):
    """Current once made; a recipe that does not want them has no such partitions."""
    lake, recipe, _ = finished
    made = {step.stage: step.status for step in plan(lake, recipe, [SNAPSHOT])}
    assert (made["packing_tokens"], made["packed_rows"]) == ("current", "current")
    without = tiny_recipe(tmp_path, packed_rows=type(recipe.packed_rows)())
    assert not {step.stage for step in plan(lake, without, [SNAPSHOT])} & {
        "packing_tokens",
        "packed_rows",
    }
