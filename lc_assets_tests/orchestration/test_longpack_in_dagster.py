"""LongPack in Dagster: who holds what, packed documents, their growth beside the paper's; told in
tables and plots.
"""

import re

import dagster as dg
import pytest

from lc_assets.builds.settings.longpack import LongPackSettings, PackingSettings
from lc_assets.definitions import build_defs
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.links.link_tables import LINK_CLAIMS
from lc_assets_tests.builders import CRAWL, SNAPSHOTS, recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.materializations import assert_columns_described, assert_metadata

OLD = SNAPSHOTS[0]
ASSETS = ("link_claims", "longpack_documents")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One snapshot with the crawl that it is of, and the instance that knows what became of
    them.
    """
    folder = tmp_path_factory.mktemp("longpack")
    lake, upstream = (
        Lake(folder / "lake"),
        tiny_upstream(folder / "upstream", snapshots=[OLD]),
    )
    recipe = tiny_recipe(
        folder,
        packed_rows=PackingSettings(),
        longpack_documents=LongPackSettings(wanted=True, max_tokens=600, portals="keep"),
    )
    places = {"lake": str(lake.root), "upstream": str(upstream), "crawl": str(upstream / CRAWL)}
    defs = build_defs(**places, recipe=str(recipe_file(folder / "recipe.toml", recipe)))
    (folder / "instance").mkdir()
    instance = dg.DagsterInstance.ephemeral(tempdir=str(folder / "instance"))
    for job in ("snapshot", "snapshot_longpack"):
        assert (
            defs.resolve_job_def(job)
            .execute_in_process(partition_key=OLD, instance=instance)
            .success
        )
    return lake, instance


def told_of(finished, asset):
    (record,) = finished[1].fetch_materializations(dg.AssetKey(asset), limit=10).records
    return record.asset_materialization


def test_claims_tell_who_holds_what_and_why_the_others_do_not(finished):
    told, published = (
        told_of(finished, "link_claims"),
        finished[0].partition("link_claims", OLD).require(),
    )
    assert told.tags["dagster/data_version"] == published.digest
    assert told.metadata["dagster/row_count"].value == published.receipt.counts.kept > 0
    assert told.metadata["first_claims"].value.startswith(
        "| " + " | ".join(LINK_CLAIMS.names).replace("_", "\\_")
    )


def test_packed_documents_tell_how_they_grew(finished):
    """Five measures beside the paper's, shares by length, the beginning and end of some
    documents.
    """
    told, published = (
        told_of(finished, "longpack_documents"),
        finished[0].partition("longpack_documents", OLD).require(),
    )
    assert told.metadata["dagster/row_count"].value == published.receipt.counts.kept
    growth = {line.data["measure"]: line.data for line in told.metadata["growth"].value.records}
    assert growth["hit rate"]["paper"] == "0.117"
    assert 0 < float(growth["hit rate"]["here"]) <= 1
    assert float(growth["ratio of sums"]["here"]) > 1
    assert "data:image/png;base64," in told.metadata["tokens_by_length"].value
    _, _, *parts = told.metadata["example"].value.splitlines()
    assert len(parts) > 1
    assert not parts[-1].split("|")[1].strip()  # the root has no anchor text
    assert all(line.split("|")[4].strip() for line in parts)
    first_words, begins = re.search(
        r"\*\*first\\_words\*\* (.+)\n\n> (.+)\n", told.metadata["examples"].value
    ).groups()
    assert begins.startswith(first_words)


def test_everything_on_the_way_tells_what_a_person_wants_to_know(finished):
    told = {
        name: told_of(finished, name)
        for name in ("filtered_documents", "html_index", "page_links", *ASSETS)
    }
    for name, found in told.items():
        assert_metadata(found, finished[0].partition(stage_named(name).name, OLD).require())
    assert_columns_described(told, judged={"filtered_documents"})


def test_every_claim_about_them_is_a_check_that_passed(finished):
    for name in ASSETS:
        checks = [
            dg.AssetCheckKey(dg.AssetKey(name), claim.__name__)
            for claim in stage_named(name).checks
        ]
        found = finished[1].event_log_storage.get_asset_check_summary_records(checks)
        assert {summary.last_check_execution_record.status.value for summary in found.values()} == {
            "SUCCEEDED"
        }
