"""A withdrawn page goes out of LongPack's documents and packed rows, as a root, as a child and as a
document of its own.
"""

from dataclasses import replace

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.longpack import LongPackSettings, PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.formats.lists.withdrawal_lists import Withdrawal, append_withdrawal
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage.whereabouts import packed_by, pages_within
from lc_assets.stages.longpack import longpack_documents as longpack
from lc_assets.stages.releases.pruning import carry_out, plan_purge
from lc_assets.stages.withdrawal.contents import (
    Search,
    nothing_withdrawn_is_served,
    versions_with,
)
from lc_assets_tests.builders import tiny_context, tiny_upstream
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot
from lc_assets_tests.link_builders import OLD, publish_links

CHAIN = (
    "withdrawn_documents",
    "snapshot_withdrawals",
    "removed_documents",
    "link_claims",
    "longpack_documents",
    "packing_tokens",
    "packed_rows",
)
LONGPACK = LongPackSettings(wanted=True, max_tokens=600, depth=2, hub_share=1.0)
PACKING = PackingSettings(
    megatron="rows",
    wanted=True,
    documents="both",
    row_tokens=300,
    min_tokens=10,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A context over one snapshot with LongPack's documents, packed rows of these and natural
    ones, and a mix of packed rows.
    """
    folder = tmp_path_factory.mktemp("packed")
    path = folder / "withdrawn.csv"
    path.write_text("kind,value,reason,date\n")
    context = tiny_context(
        folder,
        upstream=tiny_upstream(folder / "upstream", snapshots=[OLD]),
        longpack_documents=LONGPACK,
        packed_rows=PACKING,
        withdrawn_documents=WithdrawalSettings(lists=(str(path),)),
        blended_mix={"packed_rows": MixSettings(parts={"packed_rows": 1.0})},
    )
    build_snapshot(context, OLD, BEFORE_TOKENS)
    publish_links(context.lake)
    build(context)
    return context, path


def build(context):
    built = build_snapshot(context, OLD, CHAIN)
    return built | {"blended_mix": stage_named("blended_mix").build(context, "packed_rows")}


def spans_of(context):
    folder = context.lake.partition("longpack_documents", OLD).require().folder
    return [
        line for path in longpack.spans_files(folder) for line in pq.read_table(path).to_pylist()
    ]


def packed_ids(context):
    return set(
        pq.read_table(
            context.lake.partition("packed_rows", OLD).require().folder / "spans.parquet"
        )["id"].to_pylist()
    )


def served(context, stage, key=OLD):
    return nothing_withdrawn_is_served(
        context.lake, context.recipe, context.lake.partition(stage, key).require()
    )


def test_a_page_within_leads_to_the_rows_of_its_document_and_back(made):
    """By its id and by its address; each row's document tells its pages in their order."""
    context, _ = made
    lines = spans_of(context)
    children = [
        line for line in lines if line["role"] == "child" and line["id"] in packed_ids(context)
    ]
    assert children
    for child in children[:5]:
        for kind, value in (("document", child["child_id"]), ("url", child["url"])):
            found = packed_by(context.lake, kind, value)
            assert child["id"] in {span.id for span in found}
            for span in found:
                pages = [
                    (page["id"], page["start"], page["stop"])
                    for page in pages_within(context.lake, span)
                ]
                wanted = [
                    line
                    for line in lines
                    if line["id"] == span.id and span.token_shard.startswith("longpack-")
                ]
                assert pages == [(line["child_id"], line["start"], line["stop"]) for line in wanted]


def test_every_document_in_a_packed_document_is_found(made):
    context, _ = made
    within = {span["child_id"] for span in spans_of(context)}
    natural = packed_ids(context) - {span["id"] for span in spans_of(context)}
    assert within
    assert natural
    for stage, wanted in (("longpack_documents", within), ("packed_rows", within | natural)):
        search = Search(context.lake, [("document", name) for name in sorted(within | natural)])
        found = search.found_in(context.lake.partition(stage, OLD).require())
        assert found == {OLD: wanted}


@pytest.mark.parametrize("role", ["child", "root", "natural"])
def test_a_withdrawn_page_goes_out_of_everything(made, role):
    """Its artefacts fail while it is in them, and pass when they are made again; then old versions
    that hold it are found and go.
    """
    context, path = made
    if role == "natural":
        name = min(packed_ids(context) - {span["id"] for span in spans_of(context)})
    else:
        name = min(span["child_id"] for span in spans_of(context) if span["role"] == role)
    append_withdrawal(
        path, Withdrawal(kind="document", value=name, reason="asked for", date="2026-03-01")
    )
    stage_named("withdrawn_documents").build(context, "all")
    places = [
        ("packed_rows", OLD),
        ("blended_mix", "packed_rows"),
        *([] if role == "natural" else [("longpack_documents", OLD)]),
    ]
    for stage, key in places:
        found = served(context, stage, key)
        assert not found.passed
        assert name in found.message
    build(context)
    assert all(served(context, stage, key).passed for stage, key in places)
    assert name not in {span["child_id"] for span in spans_of(context)} | packed_ids(context)
    held = {
        one.published.name.partition("/")[0]
        for one in versions_with(context.lake, [name])
        if not one.is_current
    }
    assert held >= {"packing_tokens", "packed_rows", "blended_mix"} | (
        {"longpack_documents"} if role != "natural" else set()
    )
    carry_out(context.lake, plan_purge(context.lake, [name]))
    assert {
        one.published.name.partition("/")[0] for one in versions_with(context.lake, [name])
    } == {"filtered_documents", "document_keys"}


def test_packed_rows_without_longpack_are_searched(made):
    """Packed rows of natural documents alone."""
    context, _ = made
    packing = msgspec.structs.replace(PACKING, documents="natural")
    recipe = msgspec.structs.replace(context.recipe, packed_rows=packing)
    other = replace(context, recipe=recipe)
    for stage in ("packing_tokens", "packed_rows"):
        stage_named(stage).build(other, OLD)
    names = packed_ids(other)
    search = Search(other.lake, [("document", name) for name in sorted(names)])
    assert search.found_in(other.lake.partition("packed_rows", OLD).require()) == {OLD: names}
