"""The reports in Dagster: materialized by their job, with plots and tables, each claim a check that
passed.
"""

import dagster as dg
import pytest

from lc_assets.builds.settings.longpack import PackingSettings, ReferralReportSettings
from lc_assets.definitions import build_defs
from lc_assets.stages.catalogue import stage_named
from lc_assets_tests.builders import recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.materializations import assert_columns_described

OLD = "2023-06"


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """A snapshot's natural documents, and the reports on them."""
    folder = tmp_path_factory.mktemp("reports")
    recipe = tiny_recipe(
        folder,
        packed_rows=PackingSettings(),
        referral_report=ReferralReportSettings(wanted=True, sample=3),
    )
    defs = build_defs(
        lake=str(folder / "lake"),
        upstream=str(tiny_upstream(folder / "upstream", snapshots=[OLD])),
        recipe=str(recipe_file(folder / "recipe.toml", recipe)),
    )
    found = dg.DagsterInstance.ephemeral(tempdir=str(folder))
    every = defs.resolve_implicit_global_asset_job_def()
    assert (
        defs.resolve_job_def("snapshot_documents")
        .execute_in_process(partition_key=OLD, instance=found)
        .success
    )
    assert defs.resolve_job_def("withdrawn").execute_in_process(instance=found).success
    removed = [dg.AssetKey("snapshot_withdrawals"), dg.AssetKey("removed_documents")]
    assert every.execute_in_process(
        partition_key=OLD, instance=found, asset_selection=removed
    ).success
    assert (
        defs.resolve_job_def("snapshot_reports")
        .execute_in_process(partition_key=OLD, instance=found)
        .success
    )
    return found


def metadata_of(instance, asset):
    return told_of(instance, asset).metadata


def told_of(instance, asset):
    (newest, *_) = instance.fetch_materializations(dg.AssetKey(asset), limit=1).records
    return newest.asset_materialization


def test_lengths_are_plotted_and_listed(instance):
    found = metadata_of(instance, "length_report")
    assert found["where_tokens_are"].value.startswith("![")
    assert len(found["where_tokens_are"].value) < 100_000
    _, _, *lines = found["shares"].value.splitlines()
    assert [line.split(" | ")[1] for line in lines[:2]] == ["0-4K", "4K-8K"]
    assert found["growth"].value == "nothing"


def test_densities_are_plotted_beside_the_papers(instance):
    found = metadata_of(instance, "referral_report")
    assert found["by_distance"].value.startswith("![Pairs of mentions by distance and length]")
    _, _, *lines = found["densities"].value.splitlines()
    papers = {cells[5]: cells[7].strip(" |") for cells in (line.split(" | ") for line in lines)}
    assert papers == {
        "same sentence": "",
        "1-32": "0.57",
        "32-128": "0.41",
        "128-512": "0.02",
        "512-": "0",
    }


def test_the_reports_tell_what_a_person_wants_to_know(instance):
    told = {
        name: told_of(instance, name)
        for name in ("length_report", "referral_report", "filtered_documents")
    }
    assert_columns_described(told, judged={"filtered_documents"})
    for name in ("length_report", "referral_report"):
        assert told[name].metadata["summary"].value.startswith("**")


def test_every_claim_is_a_check_that_passed(instance):
    for name in ("length_report", "referral_report"):
        checks = {claim.__name__ for claim in stage_named(name).checks} | {
            "every_file_is_as_published"
        }
        keys = [dg.AssetCheckKey(dg.AssetKey(name), check) for check in checks]
        summaries = instance.event_log_storage.get_asset_check_summary_records(keys)
        assert {
            summary.last_check_execution_record.status.value for summary in summaries.values()
        } == {"SUCCEEDED"}
