"""Withdrawal: what a list names goes, and what is the same content; nobody comes back, nobody else
moves, nothing else is built.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.lists import withdrawal_lists
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import removed_documents as removals
from lc_assets.stages.deduplication.removals import removed_ids
from lc_assets.stages.lineage import tracing
from lc_assets.stages.planning import plan
from lc_assets.stages.withdrawal import (
    snapshot_withdrawals as withdrawals,
    withdrawn_documents as withdrawing,
)
from lc_assets.stages.withdrawal.withdrawn_documents import withdrawn_lines
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS, TAGS, deduplication, tiny_context
from lc_assets_tests.faults import digests
from lc_assets_tests.withdrawing import (
    ALONE_NEW,
    ALONE_OLD,
    COPIED,
    NEW,
    OLD,
    id_of,
    with_list,
    withdrawing_lake,
)

OF_ALL = {
    "longcrawl/all",
    "longcrawl_flat/all",
    "data_set_card/all",
    "blended_mix/by-tokens",
    "blended_mix/one-sided",
}
LOOKED_UP = {
    "withdrawn_documents/all",
    "snapshot_withdrawals/2023-06",
    "snapshot_withdrawals/2023-14",
}


def of_snapshot(snapshot):
    return {
        f"{stage}/{snapshot}"
        for stage in (
            "removed_documents",
            "token_documents",
            "token_grid",
            "row_lineage",
            "megatron_rows",
            "packing_tokens",
            "packed_rows",
        )
    }


@pytest.fixture(scope="module")
def whole(lake_with_copies):
    return lake_with_copies


@pytest.fixture
def lake(whole, tmp_path):
    return whole.copy(tmp_path)


def withdrawn(lake):
    return {line["id"]: line for line in withdrawn_lines(lake.published("withdrawn_documents/all"))}


def test_the_lake_is_what_these_tests_take_it_for(whole):
    """Copies are removed instead of the old texts; what one snapshot has alone is served;
    nothing is withdrawn.
    """
    gone = removed_ids(whole.published(f"removed_documents/{NEW}").folder)
    assert {id_of(NEW, COPIED), id_of(NEW, COPIED + 1)} <= gone.keys()
    assert set(gone.values()) == {"near duplicate"}
    assert {id_of(OLD, COPIED), id_of(OLD, ALONE_OLD), id_of(NEW, ALONE_NEW)} <= whole.served()
    assert withdrawn(whole) == {}


def test_a_document_goes_and_nothing_else_moves(whole, lake):
    """Rows before and after are equal but for its own: order, split, shift, priority; the tokens of
    every row are the document's.
    """
    name = id_of(OLD, ALONE_OLD)
    lake.say(("document", name))
    lake.build()
    for snapshot in SNAPSHOTS:
        assert lake.rows(snapshot) == [row for row in whole.rows(snapshot) if row["id"] != name]
    assert name not in lake.served()
    for split in SPLITS:
        before, after = (order_of(found, split) for found in (whole, lake))
        assert [row.id for row in after] == [row.id for row in before if row.id != name]
        assert [(row.shift, row.split) for row in after] == [
            (row.shift, row.split) for row in before if row.id != name
        ]
        arrays = [
            GridReader(found.published(f"token_grid/{OLD}").folder / f"{split}.zarr").read()
            for found in (whole, lake)
        ]
        kept = [row.row for row in grid_rows(whole, OLD, split) if row.id != name]
        np.testing.assert_array_equal(arrays[0][kept], arrays[1])


def order_of(lake, split):
    n_rows = lake.published("longcrawl/all").receipt.counts.extra[f"{split} rows"]
    return [tracing.row_of_order(lake.lake, split, position) for position in range(n_rows)]


def grid_rows(lake, snapshot, split):
    grid = lake.published(f"token_grid/{snapshot}")
    return [
        tracing.find_row(lake.lake, grid, split, row)
        for row in range(grid.receipt.counts.extra[f"{split} rows"])
    ]


def test_only_partitions_that_hold_a_match_are_built(lake):
    """One snapshot's document: its own row-making stages and what is of all; the other snapshot is
    looked up, and stands.
    """
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    assert lake.rebuilt() == LOOKED_UP | of_snapshot(NEW) | OF_ALL
    assert lake.rebuilt() == set()


@pytest.mark.parametrize(
    "entry",
    [
        ("url", "https://nobody.invalid/page"),
        ("domain", "nobody.invalid"),
        ("document", "2019-04/0000/en_head.json.gz/3"),
        ("digest", "sha1:AAAA"),
    ],
)
def test_what_is_found_nowhere_builds_nothing(lake, entry):
    """The list is looked up; its table says nothing new, and nothing behind it is touched."""
    lake.say(entry)
    assert lake.rebuilt() == {"withdrawn_documents/all"}
    assert (
        lake.published("withdrawn_documents/all").receipt.counts.extra["entries that find nothing"]
        == 1
    )


def test_what_was_removed_for_it_does_not_come_back(whole, lake):
    """The old text is withdrawn; its copy in the new snapshot stays out, as a near duplicate of a
    withdrawn one.
    """
    old, new = id_of(OLD, COPIED + 1), id_of(NEW, COPIED + 1)
    lake.say(("document", old))
    decided = ("removed_documents", "row_lineage", "token_documents", "packing_tokens")
    assert lake.rebuilt() == LOOKED_UP | of_snapshot(OLD) | OF_ALL | {
        f"{stage}/{NEW}" for stage in decided
    }  # the copy has one reason more; what goes on has the bytes it had
    assert withdrawn(lake)[new]["how"] == "near duplicate"
    assert withdrawn(lake)[new]["for_id"] == old
    assert whole.served() - lake.served() == {old}
    assert lake.served() <= whole.served()


def test_the_same_content_elsewhere_goes_too(whole, lake):
    """The copy that has no row is withdrawn: the old text, which is served and is the same content,
    goes.
    """
    old, new = id_of(OLD, COPIED + 1), id_of(NEW, COPIED + 1)
    lake.say(("document", new))
    lake.build()
    lines = withdrawn(lake)
    assert (lines[new]["how"], lines[old]["how"], lines[old]["for_id"]) == (
        "listed",
        "near duplicate",
        new,
    )
    assert lines[old]["similarity"] >= 0.8
    assert whole.served() - lake.served() == {old}
    reasons = removed_ids(lake.published(f"removed_documents/{OLD}").folder)
    assert reasons[old] == "withdrawn"


def test_the_same_text_is_found_by_its_digest_without_near_duplicates(tmp_path):
    """With the search for near duplicates switched off, what has the same text goes by the text's
    digest.
    """
    lake = withdrawing_lake(tmp_path / "made")
    lake = replace(
        lake,
        context=replace(
            lake.context,
            recipe=msgspec.structs.replace(
                lake.context.recipe, **deduplication(lake.context.recipe, near=False)
            ),
        ),
    )
    lake.say(("document", id_of(OLD, COPIED)))
    lake.build()
    assert {name: line["how"] for name, line in withdrawn(lake).items()} == {
        id_of(OLD, COPIED): "listed",
        id_of(NEW, COPIED): "same digest",
    }
    assert not lake.served() & withdrawn(lake).keys()


def test_with_stays_only_what_is_listed_goes_and_still_nobody_comes_back(whole, lake, tmp_path):
    lake = replace(lake, context=with_list(lake.context, tmp_path, same_content="stays"))
    lake.say(("document", id_of(NEW, COPIED + 1)))
    lake.build()
    assert withdrawn(lake).keys() == {id_of(NEW, COPIED + 1)}
    assert lake.served() == whole.served()
    lake.say(("document", id_of(OLD, COPIED + 1)))
    lake.build()
    assert whole.served() - lake.served() == {id_of(OLD, COPIED + 1)}


def test_every_kind_finds_its_documents(whole, lake):
    """By address, however it is written; by domain, of all hosts below it; by the page's digest and
    by the text's.
    """
    line = whole.document(id_of(NEW, ALONE_NEW))
    bare = line["url"].removeprefix("https://www.")
    for entry in (
        ("url", f"HTTP://{bare}/#top"),
        ("digest", line["digest"]),
        ("digest", line["text_digest"]),
    ):
        lake.say(entry)
        lake.build()
        assert whole.served() - lake.served() == {line["id"]}, entry
    lake.say(("domain", "Site4.Example.org"))
    lake.build()
    wanted = {id_of(snapshot, 4, tag) for snapshot in SNAPSHOTS for tag in TAGS}
    assert whole.served() - lake.served() == (wanted | {line["id"]}) & whole.served()
    lake.say(("domain", "example.org"))
    stage_named("withdrawn_documents").build(lake.context, "all")
    assert withdrawn(lake).keys() >= whole.served()


def test_other_words_build_nothing_but_the_list(lake):
    """Reason, date and comments of an entry that stands: what is of a snapshot has the same
    bytes.
    """
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    lake.list_file.write_text("# a comment\n\n" + lake.list_file.read_text())
    assert lake.rebuilt() == set()
    lake.say(
        ("document", id_of(OLD, ALONE_OLD)), reason="another, longer reason", date="2026-04-01"
    )
    assert lake.rebuilt() == LOOKED_UP
    assert {line["reason"] for line in withdrawn(lake).values()} == {"another, longer reason"}


def test_a_reinstated_entry_gives_the_first_bytes_again(whole, lake):
    """Taken out of the list, the entries stay in force; reinstated, every digest is the first."""
    entries = [("document", id_of(OLD, ALONE_OLD)), ("domain", "site1.example.org")]
    lake.say(*entries)
    gone = digests(lake.build())
    lake.say()
    assert {name for name, digest in digests(lake.build()).items() if digest != gone[name]} == {
        *LOOKED_UP,
        f"removed_documents/{OLD}",  # its reasons
    }
    path = lake.list_file.with_name("reinstated.csv")
    lake.say(*entries)
    lake.list_file.rename(path)
    lake.say()
    recipe = lake.context.recipe
    named = msgspec.structs.replace(recipe.withdrawn_documents, reinstated=(str(path),))
    recipe = msgspec.structs.replace(recipe, withdrawn_documents=named)
    lake = replace(lake, context=replace(lake.context, recipe=recipe))
    assert digests(lake.build()) == whole.digests()


def test_several_lists_count_as_one(lake, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text(f"kind,value,reason,date\ndocument,{id_of(OLD, ALONE_OLD)},second,2026-03-02\n")
    named = WithdrawalSettings(lists=(str(lake.list_file), str(more)))
    lake = replace(
        lake,
        context=replace(
            lake.context,
            recipe=msgspec.structs.replace(lake.context.recipe, withdrawn_documents=named),
        ),
    )
    lake.say(
        ("document", id_of(NEW, ALONE_NEW)), ("document", id_of(OLD, ALONE_OLD)), reason="first"
    )
    lake.build()
    assert withdrawn(lake).keys() == {id_of(OLD, ALONE_OLD), id_of(NEW, ALONE_NEW)}
    assert {line["reason"] for line in withdrawn(lake).values()} == {"first"}


def test_the_planner_names_the_list_and_then_only_what_holds_a_match(lake):
    """First the look-up is stale and the rest waits for it; once the parts stand, only the matching
    snapshot is.
    """
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    found = {
        made.name: made.status
        for made in plan(lake.lake, lake.context.recipe, SNAPSHOTS)
        if made.status != "current"
    }
    assert {name for name, status in found.items() if status == "stale"} == {
        "withdrawn_documents/all"
    }
    stage_named("withdrawn_documents").build(lake.context, "all")
    for snapshot in SNAPSHOTS:
        stage_named("snapshot_withdrawals").build(lake.context, snapshot)
    found = {
        made.name: made.status
        for made in plan(lake.lake, lake.context.recipe, SNAPSHOTS)
        if made.status != "current"
    }
    assert {name for name, status in found.items() if status == "stale"} == {
        f"removed_documents/{NEW}"
    }
    assert not {name for name in found if name.endswith(OLD)}


def test_a_new_snapshot_is_looked_through_before_its_rows_are_made(tmp_path):
    """A list that stood before names a document of the new snapshot: it never becomes a row, and
    the old snapshot stands.
    """
    lake = withdrawing_lake(tmp_path, snapshots=[OLD], blended_mix={"by-tokens": MixSettings()})
    before = {name: lake.published(name).folder for name in of_snapshot(OLD)}
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    lake.build()
    assert id_of(NEW, ALONE_NEW) not in lake.served()
    assert {name: lake.published(name).folder for name in before} == before


def test_no_megatron_file_holds_the_tokens(whole, lake):
    """Its row's tokens stand in the Megatron file before, and in none after."""
    name = id_of(OLD, ALONE_OLD)
    row = next(row for split in SPLITS for row in grid_rows(whole, OLD, split) if row.id == name)
    tokens = GridReader(whole.published(f"token_grid/{OLD}").folder / f"{row.split}.zarr").read(
        slice(row.row, row.row + 1)
    )[0]
    lake.say(("document", name))
    lake.build()
    found = [
        [
            np.array_equal(ids, tokens)
            for ids in MegatronReader(of.published(f"megatron_rows/{OLD}").folder / row.split)
        ]
        for of in (whole, lake)
    ]
    assert (sum(found[0]), sum(found[1])) == (1, 0)


def test_a_list_that_cannot_be_read_stops_everything(lake):
    lake.list_file.write_text("kind,value,reason,date\nplanet,Earth,why not,2026-03-01\n")
    with pytest.raises(BadInput, match="line 2: no kind 'planet'"):
        stage_named("withdrawn_documents").build(lake.context, "all")
    lake.list_file.unlink()
    with pytest.raises(BadInput, match="no such list"):
        plan(lake.lake, lake.context.recipe, SNAPSHOTS)


def test_a_list_that_changes_meanwhile_is_noticed(lake, monkeypatch):
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    read, changed = withdrawal_lists.read_withdrawals, []

    def reading(path):
        changed.append(path)
        return read(path)[: 1 if len(changed) < 3 else 0]

    monkeypatch.setattr(withdrawal_lists, "read_withdrawals", reading)
    with pytest.raises(Mismatch, match="changed while it was read"):
        stage_named("withdrawn_documents").build(lake.context, "all")


def test_rows_wait_for_the_look_up(tmp_path):
    """Without `withdrawn` there are no parts, and without its part no snapshot decides who goes
    on.
    """
    context = tiny_context(tmp_path)
    for stage in (
        "raw_snapshot",
        "filtered_documents",
        "document_signatures",
        "document_keys",
        "signature_index",
        "near_duplicate_pairs",
        "contaminated_documents",
    ):
        stage_named(stage).build(context, OLD)
    with pytest.raises(NotPublished, match="withdrawn_documents/all is not published"):
        stage_named("snapshot_withdrawals").build(context, OLD)
    with pytest.raises(NotPublished, match="materialize `snapshot_withdrawals` first"):
        stage_named("removed_documents").build(context, OLD)


@pytest.fixture(scope="module")
def made(whole, tmp_path_factory):
    """A lake in which a domain is withdrawn, and what is the same content."""
    lake = whole.copy(tmp_path_factory.mktemp("made"))
    lake.say(("domain", "site1.example.org"), ("document", id_of(OLD, COPIED)))
    lake.build()
    return lake


def edited(path, change):
    pq.write_table(
        pa.Table.from_pylist(change(pq.read_table(path).to_pylist()), schema=pq.read_schema(path)),
        path,
    )


def as_near(lines):
    """The first listed document, as if it were a near duplicate of one that is not withdrawn."""
    return [
        line | {"how": "near duplicate", "for_id": "nobody/0"} if line is lines[0] else line
        for line in lines
    ]


SPOILS = [
    (withdrawing, "all", "the_withdrawn_add_up", lambda found: found[1:]),
    (withdrawing, "all", "the_withdrawn_add_up", lambda found: [found[0], *found[:-1]]),
    (withdrawing, "all", "the_withdrawn_add_up", as_near),
    (
        withdrawing,
        "all",
        "the_withdrawn_add_up",
        lambda found: [found[0] | {"reason": ""}, *found[1:]],
    ),
    (
        withdrawing,
        "all",
        "every_entry_finds_its_documents",
        lambda found: [line for line in found if line["id"] != id_of(OLD, 1)],
    ),
    (
        withdrawing,
        "all",
        "every_entry_finds_its_documents",
        lambda found: [line | {"value": "site2.example.org"} for line in found],
    ),
    (withdrawals, OLD, "the_part_is_this_snapshots", lambda found: found[1:]),
    (
        withdrawals,
        OLD,
        "the_part_is_this_snapshots",
        lambda found: [found[0] | {"id": id_of(NEW, 1)}, *found[1:]],
    ),
    (
        removals,
        OLD,
        "everything_withdrawn_goes",
        lambda found: [line | {"reason": ""} for line in found],
    ),
    (
        removals,
        OLD,
        "everything_withdrawn_goes",
        lambda found: [line | {"reason": "withdrawn"} for line in found],
    ),
]


@pytest.mark.parametrize(("module", "key", "check", "spoil"), SPOILS)
def test_a_check_fails_with_a_message(made, tmp_path, module, key, check, spoil):
    published = made.lake.partition(module.STAGE.name, key).require()
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    check_input = replace(check_input_of(made.lake, published), folder=folder)
    test = {found.__name__: found for found in module.STAGE.checks}[check]
    assert test(check_input).passed
    edited(folder / module.TABLE, spoil)
    found = test(check_input)
    assert not found.passed
    assert found.message


def test_the_same_bytes_whatever_stood_before(made, tmp_path):
    """Built from nothing with the list in force, every partition has the bytes of the one that was
    changed.
    """
    fresh = replace(made, context=replace(made.context, lake=Lake(tmp_path / "lake")))
    assert digests(fresh.build()) == {name: made.published(name).digest for name in made.built}
