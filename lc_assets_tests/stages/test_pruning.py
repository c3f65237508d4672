"""Pruning and purging: what is needed stays readable and testable; what holds withdrawn documents
is found, and goes.
"""

import dataclasses
import os
import shutil

import msgspec
import numpy as np
import pytest

from lc_assets.builds.building import (
    audit,
    check_input_of,
)
from lc_assets.errors import Busy, NotPublished
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.lake import staging
from lc_assets.lake.receipts import with_checksum
from lc_assets.lake.releases import gone_of, lake_of_release, publish_release
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.lineage import tracing
from lc_assets.stages.planning import plan
from lc_assets.stages.releases.pruning import carry_out, needed_versions, plan_pruning, plan_purge
from lc_assets.stages.releases.releasing import described, pinned_now, release, release_damage
from lc_assets.stages.withdrawal.contents import versions_with
from lc_assets.stages.withdrawal.reporting import versions_holding, withdrawn_by_reason
from lc_assets.stages.withdrawal.withdrawn_documents import withdrawn_lines
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS, build_all
from lc_assets_tests.faults import digests
from lc_assets_tests.withdrawing import ALONE_NEW, ALONE_OLD, NEW, OLD, id_of

SERVING = {
    "token_documents",
    "token_grid",
    "row_lineage",
    "megatron_rows",
    "longcrawl",
    "longcrawl_flat",
    "packing_tokens",
    "packed_rows",
    "blended_mix",
}


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


def versions(lake):
    return {
        f"{partition.name}/{name}"
        for partition in lake.lake.partitions()
        for name in partition.version_names()
    }


def withdraw(lake, *names):
    lake.say(*(("document", name) for name in names))
    lake.build()
    return {line["id"] for line in withdrawn_lines(lake.published("withdrawn_documents/all"))}


def test_a_fresh_lake_has_nothing_to_prune(lake):
    assert plan_pruning(lake.lake).deletions == ()
    assert needed_versions(lake.lake) == versions(lake)


def test_only_what_nobody_needs_goes(lake):
    """After a change the old versions go; everything published is whole, current, and stands every
    claim as before.
    """
    before = versions(lake)
    withdraw(lake, id_of(OLD, ALONE_OLD))
    after = versions(lake)
    current = {
        f"{published.name}/{published.version}"
        for found in STAGES
        for published in lake.lake.published(found.name).values()
    }
    carry_out(lake.lake, plan_pruning(lake.lake))
    left = versions(lake)
    assert left == current
    assert before - left
    assert after - left == before - current
    assert all(made.status == "current" for made in plan(lake.lake, lake.context.recipe, SNAPSHOTS))
    for found in STAGES:
        for published in lake.lake.published(found.name).values():
            assert published.damage() == []
            assert all(
                finding.passed for finding in audit(found, check_input_of(lake.lake, published))
            )
    assert all(built.reused for built in lake.build().values())


def test_a_release_keeps_what_it_pins(lake):
    rows = {split: open_rows(lake.lake.root, split).read() for split in SPLITS}
    samples = [tracing.sample_of_mix(lake.lake, "by-tokens", number) for number in range(5)]
    release(lake.lake, "v1", lake.context.recipe)
    withdraw(lake, id_of(OLD, ALONE_OLD))
    deletions = {one.name.partition("/")[0] for one in plan_pruning(lake.lake).deletions}
    assert deletions == {
        "removed_documents",
        "snapshot_withdrawals",
        "data_set_card",
    }
    carry_out(lake.lake, plan_pruning(lake.lake))
    assert release_damage(lake.lake, "v1") == []
    for split in SPLITS:
        np.testing.assert_array_equal(
            open_rows(lake.lake.root, split, release="v1").read(), rows[split]
        )
    pinned = lake_of_release(lake.lake, "v1")
    assert [tracing.sample_of_mix(pinned, "by-tokens", number) for number in range(5)] == samples


def test_what_a_published_version_is_read_through_stays(lake):
    """The order and the mixes are of an older grid, which is not published any more: it stays, and
    they are read.
    """
    before = {split: open_rows(lake.lake.root, split).read() for split in SPLITS}
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    for stage in (
        "withdrawn_documents",
        "snapshot_withdrawals",
        "removed_documents",
        "token_documents",
        "token_grid",
    ):
        stage_named(stage).build(lake.context, "all" if stage == "withdrawn_documents" else OLD)
    carry_out(lake.lake, plan_pruning(lake.lake))
    for split in SPLITS:
        np.testing.assert_array_equal(open_rows(lake.lake.root, split).read(), before[split])
    assert all(
        tracing.sample_of_mix(lake.lake, mix, 0).pieces for mix in ("by-tokens", "one-sided")
    )
    assert digests(
        {name: found for name, found in lake.build().items() if name.startswith("raw_snapshot")}
    )


def test_what_a_published_version_was_made_from_stays(lake):
    """A rule that drops only what is too short for a row gives other tokens and the same rows. The
    order names the new version of the grid, and what it was made from stays.
    """
    recipe = lake.context.recipe
    tokens = msgspec.structs.replace(recipe.token_documents, min_tokens=160)
    orders = []
    for min_words in (41, 105):
        filtering = msgspec.structs.replace(recipe.filtered_documents, min_words=min_words)
        changed = msgspec.structs.replace(
            recipe, filtered_documents=filtering, token_documents=tokens
        )
        context = dataclasses.replace(lake.context, recipe=changed)
        built = build_all(context)
        order = GlobalOrder.open(built["longcrawl/all"].published.folder, "train")
        orders.append(order.sources)
    assert not built[f"token_documents/{OLD}"].reused
    assert [one.digest for one in orders[0]] == [one.digest for one in orders[1]]
    assert [one.version for one in orders[1]] == [
        built[f"token_grid/{one.snapshot}"].published.version for one in orders[1]
    ]
    carry_out(lake.lake, plan_pruning(lake.lake))
    line = list(lake.lake.published("longcrawl").values())
    for version in line:
        line += tracing.sources_of(lake.lake, version)
        found = list(lake.lake.inputs_of(version))
        assert len(found) == len(
            version.receipt.fingerprint.inputs.keys() - {"upstream", "receipts"}
        )
        line += found


def test_the_newest_stay_when_asked(lake):
    """Of each partition so many that nobody needs, by when they were finished."""
    for number, line in enumerate((ALONE_OLD, 1, 2)):
        withdraw(lake, id_of(OLD, line))
        for partition in lake.lake.partitions():
            for version in partition.versions():
                receipt = version.home / "receipt.json"
                if receipt.stat().st_mtime > 10**9 + number:
                    os.utime(receipt, (10**9 + number, 10**9 + number))
    everything = plan_pruning(lake.lake).deletions
    kept = plan_pruning(lake.lake, keep=1).deletions
    grids = [one.name for one in everything if one.name.startswith(f"token_grid/{OLD}")]
    assert len(grids) == 3
    assert {one.name for one in kept} < {one.name for one in everything}
    (stays,) = set(grids) - {one.name for one in kept}
    times = {name: (lake.lake.root / name / "receipt.json").stat().st_mtime for name in grids}
    assert times[stays] == max(times.values())
    assert plan_pruning(lake.lake, keep=9).deletions == ()


def test_what_failed_its_audit_goes(lake):
    folder = lake.lake.root / "token_grid" / OLD / "rejected-abc"
    folder.mkdir()
    (folder / "rows.parquet").write_bytes(b"12345")
    (deletions,) = plan_pruning(lake.lake).deletions
    assert (deletions.name, deletions.n_bytes) == (f"token_grid/{OLD}/rejected-abc", 5)
    assert carry_out(lake.lake, plan_pruning(lake.lake)) == 5
    assert not folder.exists()


def test_a_running_build_is_waited_for(lake, monkeypatch):
    withdraw(lake, id_of(OLD, ALONE_OLD))
    monkeypatch.setattr(staging, "BUSY_SECONDS", 0.05)
    with (
        staging.locked(lake.lake.root / "token_documents" / OLD),
        pytest.raises(Busy, match=f"token_documents/{OLD}: another command"),
    ):
        carry_out(lake.lake, plan_pruning(lake.lake))


def test_what_is_released_after_the_plan_is_not_pruned(lake):
    """The release looked before the rebuild, and is published between plan and deletion."""
    note = with_checksum(described(lake.lake, pinned_now(lake.lake)))
    withdraw(lake, id_of(OLD, ALONE_OLD))
    planned = plan_pruning(lake.lake)
    publish_release(lake.lake, "v1", note)
    before = versions(lake)
    with pytest.raises(Busy, match="has been released or published in the meantime"):
        carry_out(lake.lake, planned)
    assert versions(lake) == before
    assert release_damage(lake.lake, "v1") == []


def test_releases_prunes_and_builds_exclude_each_other(lake, monkeypatch):
    """Builds share the lake's lock with builds only."""
    monkeypatch.setattr(staging, "BUSY_SECONDS", 0.05)
    root = lake.lake.root
    exclusive = (
        lambda: release(lake.lake, "v1", lake.context.recipe),
        lambda: carry_out(lake.lake, plan_pruning(lake.lake)),
    )
    with staging.locked(root, shared=True):
        lake.build()
        for run in exclusive:
            with pytest.raises(Busy, match="another command"):
                run()
    with staging.locked(root):
        for run in (*exclusive, lake.build):
            with pytest.raises(Busy):
                run()
    for run in exclusive:
        run()


def test_every_version_that_holds_a_document_is_found(lake):
    """Those that were made with it, wherever they stand; none that was made without."""
    before = versions(lake)
    ids = withdraw(lake, id_of(OLD, ALONE_OLD))
    held = {one.name: one for one in versions_with(lake.lake, ids)}
    of_old = {
        name for name in before if name.split("/")[0] in SERVING and name.split("/")[1] != NEW
    }
    working = {
        name
        for name in before
        if name.startswith((f"filtered_documents/{OLD}", f"document_keys/{OLD}"))
    }
    assert set(held) == of_old | working
    assert {one.n_documents for one in held.values()} == {1}
    assert {one.name for one in held.values() if one.is_current} == working
    assert list(versions_with(lake.lake, [])) == []


def test_a_purge_leaves_nothing_that_serves_them(lake):
    """Everything that holds them and is not published goes; what was there without them stays, also
    when nobody needs it.
    """
    ids = withdraw(lake, id_of(OLD, ALONE_OLD))
    planned = plan_purge(lake.lake, ids)
    assert {one.name.partition("/")[0] for one in planned.deletions} == SERVING
    assert {name.partition("/")[0] for name in planned.kept} == {
        "filtered_documents",
        "document_keys",
    }
    carry_out(lake.lake, planned)
    assert {one.published.receipt.fingerprint.stage for one in versions_with(lake.lake, ids)} == {
        "filtered_documents",
        "document_keys",
    }
    assert all(made.status == "current" for made in plan(lake.lake, lake.context.recipe, SNAPSHOTS))
    assert len(lake.lake.partition("removed_documents", OLD).version_names()) == 2


def test_a_purge_of_what_is_still_published_says_so(lake):
    """The list was looked up, and nothing was made again yet."""
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    stage_named("withdrawn_documents").build(lake.context, "all")
    planned = plan_purge(lake.lake, {id_of(OLD, ALONE_OLD)})
    assert planned.deletions == ()
    said = {name.partition("/")[0]: why for name, why in planned.kept.items()}
    assert said.keys() == {*SERVING, "filtered_documents", "document_keys"}
    assert "materialize" in said["token_grid"]


def test_a_release_is_given_up_by_name_only(lake):
    """Pinned versions stay until the release is named; then they go, and the release says why for
    ever.
    """
    release(lake.lake, "v1", lake.context.recipe)
    release(lake.lake, "v2", lake.context.recipe)
    ids = withdraw(lake, id_of(OLD, ALONE_OLD))
    planned = plan_purge(lake.lake, ids)
    assert {one.name.partition("/")[0] for one in planned.deletions} == {
        "token_documents",
        "packing_tokens",
    }
    assert any("pinned by v1, v2" in why for why in planned.kept.values())
    one_of_two = plan_purge(lake.lake, ids, give_up=["v1"])
    assert {one.name.partition("/")[0] for one in one_of_two.deletions} == {
        "token_documents",
        "packing_tokens",
    }
    planned = plan_purge(lake.lake, ids, give_up=["v1", "v2"])
    assert {one.name.partition("/")[0] for one in planned.deletions} == SERVING
    carry_out(lake.lake, planned, reason="held a withdrawn document")
    for name in ("v1", "v2"):
        (note,) = gone_of(lake.lake, name)
        assert {version.partition("/")[0] for version in note.versions} == SERVING - {
            "token_documents",
            "packing_tokens",
        }
        with pytest.raises(NotPublished, match="gone: held a withdrawn document"):
            open_rows(lake.lake.root, release=name)
    assert plan_purge(lake.lake, ids).deletions == ()
    withdraw(lake, id_of(OLD, ALONE_OLD), id_of(NEW, ALONE_NEW))
    again = plan_purge(lake.lake, {id_of(NEW, ALONE_NEW)}, give_up=["v1", "v2"])
    carry_out(lake.lake, again)
    assert len(gone_of(lake.lake, "v1")) == 2


def test_what_nobody_can_tell_about_goes_too(lake):
    """Megatron's files of a grid that is gone: whether they hold the document is not known, so they
    are taken to.
    """
    ids = withdraw(lake, id_of(OLD, ALONE_OLD))
    for name in lake.lake.partition("token_grid", OLD).version_names():
        if name != lake.published(f"token_grid/{OLD}").version:
            shutil.rmtree(lake.lake.root / "token_grid" / OLD / name)
    held = {
        one.published.name: one.n_documents
        for one in versions_with(lake.lake, ids)
        if not one.is_current
    }
    assert held[f"megatron_rows/{OLD}"] is None
    assert held["blended_mix/by-tokens"] is None
    carry_out(lake.lake, plan_purge(lake.lake, ids))
    assert {one.is_current for one in versions_with(lake.lake, ids)} == {True}


def test_builds_that_were_killed_are_purged_too(lake):
    ids = withdraw(lake, id_of(OLD, ALONE_OLD))
    folder = lake.lake.root / "token_grid" / OLD / "abcabcabcabc"
    folder.mkdir()
    assert folder.name in {one.folder for one in plan_purge(lake.lake, ids).deletions}
    assert folder.name not in {one.folder for one in plan_pruning(lake.lake).deletions}


def test_the_report_balances(lake):
    lake.say(("document", id_of(OLD, ALONE_OLD)), ("document", id_of(NEW, 1)), reason="asked for")
    lake.build()
    lines = withdrawn_lines(lake.published("withdrawn_documents/all"))
    (line,) = withdrawn_by_reason(lake.lake, lines)
    assert (line["documents"], line["listed"], line["near duplicate"]) == (3, 2, 1)
    assert line["still served"] == 0
    assert {state for _, state in versions_holding(lake.lake, lines)} == {
        "not published",
        "published now, working material",
    }
    carry_out(lake.lake, plan_purge(lake.lake, [line["id"] for line in lines]))
    states = {state for _, state in versions_holding(lake.lake, lines)}
    assert states == {"published now, working material"}
    assert withdrawn_by_reason(lake.lake, []) == versions_holding(lake.lake, []) == []
