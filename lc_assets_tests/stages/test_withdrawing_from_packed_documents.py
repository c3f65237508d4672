"""A withdrawn page goes out of LongPack's documents and packed rows, as a root, as a child and as a
document of its own.
"""

from dataclasses import replace

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.formats.withdrawal_lists import Withdrawal, append_withdrawal
from lc_assets.stages import longpack
from lc_assets.stages.catalogue import step
from lc_assets.stages.holding import versions_with
from lc_assets.stages.longpack_settings import LongPackSettings, PackingSettings
from lc_assets.stages.packed_whereabouts import packed_by, pages_within
from lc_assets.stages.pruning import carry_out, plan_purge
from lc_assets.stages.row_settings import MixSettings
from lc_assets.stages.serving import ROSTERS_OF, nothing_withdrawn_is_served
from lc_assets.stages.settings import WithdrawalSettings
from lc_assets_tests.builders import tiny_upstream, tiny_workshop
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot
from lc_assets_tests.link_builders import OLD, publish_links

CHAIN = (
    "withdrawn",
    "withdrawals",
    "removals",
    "link_claims",
    "longpack",
    "packing_tokens",
    "packed",
)
LONGPACK = LongPackSettings(wanted=True, max_tokens=600, depth=2, hub_share=1.0)
PACKING = PackingSettings(
    megatron="rows",
    wanted=True,
    documents="both",
    row_tokens=300,
    heldout_fraction=0.2,
    min_tokens=10,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workshop over one snapshot with LongPack's documents, packed rows of these and natural
    ones, and a mix of packed rows.
    """
    folder = tmp_path_factory.mktemp("packed")
    path = folder / "withdrawn.csv"
    path.write_text("kind,value,reason,date\n")
    workshop = tiny_workshop(
        folder,
        upstream=tiny_upstream(folder / "upstream", snapshots=[OLD]),
        longpack=LONGPACK,
        packing=PACKING,
        withdrawals=WithdrawalSettings(lists=(str(path),)),
        mixes={"packed": MixSettings(parts={"packed": 1.0})},
    )
    build_snapshot(workshop, OLD, BEFORE_TOKENS)
    publish_links(workshop.lake)
    build(workshop)
    return workshop, path


def build(workshop):
    built = build_snapshot(workshop, OLD, CHAIN)
    return built | {"mixes": step("mixes").verb(workshop, "packed")}


def spans_of(workshop):
    folder = workshop.lake.place("longpack", OLD).require().folder
    return [
        line for path in longpack.spans_files(folder) for line in pq.read_table(path).to_pylist()
    ]


def packed_ids(workshop):
    return set(
        pq.read_table(workshop.lake.place("packed", OLD).require().folder / "spans.parquet")[
            "id"
        ].to_pylist()
    )


def served(workshop, stage, key=OLD):
    return nothing_withdrawn_is_served(
        workshop.lake, workshop.recipe, workshop.lake.place(stage, key).require()
    )


def test_a_page_within_leads_to_the_rows_of_its_document_and_back(made):
    """By its id and by its address; each row's document tells its pages in their order."""
    workshop, _ = made
    lines = spans_of(workshop)
    children = [
        line for line in lines if line["role"] == "child" and line["id"] in packed_ids(workshop)
    ]
    assert children
    for child in children[:5]:
        for kind, value in (("document", child["child_id"]), ("url", child["url"])):
            found = packed_by(workshop.lake, kind, value)
            assert child["id"] in {stretch.id for _, stretch in found}
            for _, stretch in found:
                told = [
                    (page.id, page.start, page.stop)
                    for page in pages_within(workshop.lake, stretch)
                ]
                wanted = [
                    line
                    for line in lines
                    if line["id"] == stretch.id and stretch.token_shard.startswith("longpack-")
                ]
                assert told == [(line["child_id"], line["start"], line["stop"]) for line in wanted]


def test_whoever_is_in_a_packed_document_is_on_its_roster(made):
    workshop, _ = made
    within = {span["child_id"] for span in spans_of(workshop)}
    natural = packed_ids(workshop) - {span["id"] for span in spans_of(workshop)}
    assert within
    assert natural
    for stage, wanted in (("longpack", within), ("packed", within | natural)):
        rosters = list(ROSTERS_OF[stage](workshop.lake, workshop.lake.place(stage, OLD).require()))
        found = {
            name
            for roster in rosters
            for name in roster.found_by([("document", name) for name in sorted(within | natural)])
        }
        assert found == wanted


@pytest.mark.parametrize("role", ["child", "root", "natural"])
def test_a_withdrawn_page_goes_out_of_everything(made, role):
    """Its artefacts fail while it is in them, and pass when they are made again; then old versions
    that hold it are found and go.
    """
    workshop, path = made
    if role == "natural":
        name = min(packed_ids(workshop) - {span["id"] for span in spans_of(workshop)})
    else:
        name = min(span["child_id"] for span in spans_of(workshop) if span["role"] == role)
    append_withdrawal(
        path, Withdrawal(kind="document", value=name, reason="asked for", date="2026-03-01")
    )
    step("withdrawn").verb(workshop, "all")
    places = [
        ("packed", OLD),
        ("mixes", "packed"),
        *([] if role == "natural" else [("longpack", OLD)]),
    ]
    for stage, key in places:
        found = served(workshop, stage, key)
        assert not found.passed
        assert name in found.words
    build(workshop)
    assert all(served(workshop, stage, key).passed for stage, key in places)
    assert name not in {span["child_id"] for span in spans_of(workshop)} | packed_ids(workshop)
    held = {
        one.published.name.partition("/")[0]
        for one in versions_with(workshop.lake, [name])
        if not one.is_current
    }
    assert held >= {"packing_tokens", "packed", "mixes"} | (
        {"longpack"} if role != "natural" else set()
    )
    carry_out(workshop.lake, plan_purge(workshop.lake, [name]))
    assert {
        one.published.name.partition("/")[0] for one in versions_with(workshop.lake, [name])
    } == {"filtered", "keys"}


def test_a_roster_does_without_longpack(made, tmp_path):
    """Packed rows of natural documents alone."""
    workshop, _ = made
    packing = msgspec.structs.replace(PACKING, documents="natural")
    recipe = msgspec.structs.replace(workshop.recipe, packing=packing)
    other = replace(workshop, recipe=recipe)
    for stage in ("packing_tokens", "packed"):
        step(stage).verb(other, OLD)
    assert (
        len(list(ROSTERS_OF["packed"](other.lake, other.lake.place("packed", OLD).require()))) == 1
    )
