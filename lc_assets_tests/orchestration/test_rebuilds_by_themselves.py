"""Rebuilds that take care of themselves: what changed is asked for once, in order, until it is
built; nothing else is.
"""

import functools
import http.server
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import ClassVar

import dagster as dg
import msgspec
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.longpack import LongPackSettings, PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.stage import Stage
from lc_assets.definitions import ASSET_OF, build_defs, from_environment
from lc_assets.errors import BadInput, CorruptFile, Unreachable
from lc_assets.formats.lists.withdrawal_lists import COLUMNS
from lc_assets.orchestration import automation
from lc_assets.orchestration.automation import DagsterPlanner, decoded
from lc_assets.orchestration.resources import RETRIES
from lc_assets.orchestration.sensors import Cursor, Request, decide
from lc_assets.sources import redpajama_v2
from lc_assets.stages import catalogue
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.documents import filtered_documents as filtering, raw_snapshot as raw
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.stages.tokens import token_documents as tokenizing
from lc_assets.stages.watching import Survey
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    CRAWL,
    N_LONG,
    SNAPSHOTS,
    build_all,
    deduplication,
    tiny_context,
    tiny_crawl,
    tiny_documents,
    tiny_recipe,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.faults import copied
from lc_assets_tests.orchestration.clockwork import START, Clockwork

OLD, NEW = SNAPSHOTS
IN_A_ROW = (
    "contaminated_documents",
    "document_keys",
    "document_signatures",
    "filtered_documents",
    "signature_index",
)
ROWS = (
    "megatron_rows",
    "removed_documents",
    "row_lineage",
    "snapshot_withdrawals",
    "token_documents",
    "token_grid",
)
"""What waits for `withdrawn`, which is of all snapshots."""
THEN = tuple(sorted((*ROWS, "heldout_pairs", "near_duplicate_pairs")))
SMALL = {
    "blended_mix": {"by-tokens": MixSettings()},
    **deduplication(near=False),
    "packed_rows": PackingSettings(),
}
"""One mix, no comparison of texts, no second branch: as little work as shows every kind of
partition.
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"), tags=("0000/en_head", "0001/en_head"))


@pytest.fixture
def clock(tmp_path, upstream) -> Clockwork:
    """A code location over an upstream that a test may change, with one mix, nothing built."""
    (tmp_path / "clock").mkdir()
    recipe = tiny_recipe(tmp_path / "clock", **SMALL)
    return Clockwork(tmp_path / "clock", copied(upstream, tmp_path / "upstream"), recipe)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, upstream) -> Path:
    """A lake in which everything is built; to be copied. Paths of rules are in no version's name,
    only what they say.
    """
    folder = tmp_path_factory.mktemp("whole")
    build_all(tiny_context(folder, upstream=upstream, **SMALL))
    return folder / "lake"


@pytest.fixture
def built(clock, whole) -> Clockwork:
    """The same with everything built, and no history."""
    shutil.copytree(whole, clock.lake.root)
    return clock


@pytest.fixture
def looked(built) -> Clockwork:
    """The same after the upstream was looked at."""
    built.look()
    built.log.clear()
    return built


def change_shard(clock: Clockwork, tag: str, seed: int = 9) -> None:
    shard = Shard.parse(tag)
    write_shard(clock.upstream, shard, tiny_documents(shard, seed=seed), duplicates=[N_LONG + 3])


def stages_of(clock: Clockwork) -> Counter:
    """How often each partition was asked for."""
    return Counter(
        f"{stage}/{asked.partition or 'all'}" for asked in clock.log for stage in asked.stages
    )


def filtering_with(clock: Clockwork, **changes):
    return msgspec.structs.replace(clock.recipe.filtered_documents, **changes)


def test_from_nothing_everything_is_built_once_and_in_order(clock):
    """The sensor begins two snapshots; in four ticks all of it stands, each partition asked for
    once.
    """
    asked, _ = clock.look()
    assert [(one.partition, one.stages) for one in asked] == [
        (OLD, ("raw_snapshot",)),
        (NEW, ("raw_snapshot",)),
    ]
    ticks = [[tuple(one) for one in tick] for tick in clock.settle()]
    assert ticks == [
        [
            (OLD, tuple(sorted((*IN_A_ROW, "heldout_pairs", "near_duplicate_pairs")))),
            (NEW, IN_A_ROW),
            (None, ("withdrawn_documents",)),
        ],
        [(OLD, ROWS), (NEW, ("heldout_pairs", "near_duplicate_pairs", "snapshot_withdrawals"))],
        [(NEW, tuple(stage for stage in ROWS if stage != "snapshot_withdrawals"))],
        [(None, ("longcrawl", "longcrawl_flat")), ("by-tokens", ("blended_mix",))],
        [(None, ("data_set_card",))],
    ]
    assert clock.planned() == {}
    assert set(stages_of(clock).values()) == {1}


def test_an_empty_lake_asks_for_nothing(clock):
    """No snapshot was begun: there is nothing to order, to mix or to describe."""
    assert clock.tick() == []
    assert clock.night() == []


def test_where_nothing_changed_nothing_is_asked_for_and_the_planner_once_a_tick(
    looked, monkeypatch
):
    """Five ticks of each: no run, one plan per tick of the condition, however many assets."""
    plans, really = [], automation.plan
    monkeypatch.setattr(
        automation, "plan", lambda *words, **more: plans.append(1) or really(*words, **more)
    )
    for _ in range(5):
        assert looked.tick() == []
        assert looked.look()[0] == []
    assert len(plans) == 5
    assert looked.night() == []
    assert looked.log == []


def test_a_changed_rule_is_seen_without_loading_anything_again(built):
    """The recipe's file changes under the running code location: every partition behind the rule is
    built once, the manifests stay.
    """
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    built.settle()
    assert built.planned() == {}
    counts = stages_of(built)
    assert set(counts.values()) == {1}
    assert not any(name.startswith("raw_snapshot/") for name in counts)
    assert len(built.log) == 6


def test_a_rule_that_changes_no_document_costs_the_filter_and_the_card(built):
    """What follows in the same run is found finished; then the card is asked for, which states the
    rule.
    """
    before = {
        name: built.lake.partition(*name.split("/")).require()
        for name in (f"token_documents/{OLD}", f"token_documents/{NEW}", "longcrawl/all")
    }
    built.change_recipe(filtered_documents=filtering_with(built, min_words=41))
    (_, *asked) = [[tuple(one) for one in tick] for tick in built.settle()]
    assert asked == [[(None, ("data_set_card",))]]
    assert built.planned() == {}
    assert {name: built.lake.partition(*name.split("/")).require() for name in before} == before


def test_a_withdrawn_document_costs_other_snapshots_a_look(built, tmp_path):
    """A list names a document of one snapshot: of the other its part of the list is made, and
    nothing behind that is asked for.
    """
    before = {
        stage: built.lake.partition(stage, OLD).require()
        for stage in ROWS
        if stage != "snapshot_withdrawals"
    }
    held = rows_table(built.lake.partition("token_grid", NEW).require())["id"].to_pylist()
    (tmp_path / "withdrawn.csv").write_text(
        f"{','.join(COLUMNS)}\ndocument,{held[0]},asked for,2026-03-01\n"
    )
    built.change_recipe(
        withdrawn_documents=WithdrawalSettings(lists=(str(tmp_path / "withdrawn.csv"),))
    )
    ticks = [[tuple(one) for one in tick] for tick in built.settle()]
    assert ticks == [
        [(None, ("withdrawn_documents",))],
        [(OLD, ("snapshot_withdrawals",)), (NEW, ("snapshot_withdrawals",))],
        [(NEW, tuple(stage for stage in ROWS if stage != "snapshot_withdrawals"))],
        [(None, ("longcrawl", "longcrawl_flat")), ("by-tokens", ("blended_mix",))],
        [(None, ("data_set_card",))],
    ]
    assert built.planned() == {}
    assert before == {stage: built.lake.partition(stage, OLD).require() for stage in before}
    assert (
        held[0]
        not in rows_table(built.lake.partition("token_grid", NEW).require())["id"].to_pylist()
    )


def test_a_changed_mix_is_built_alone(built):
    """A mix: one run of one partition, and the data sheet that speaks of it."""
    built.change_recipe(blended_mix={"by-tokens": MixSettings(samples=50)})
    built.settle()
    assert [tuple(one) for one in built.log] == [
        ("by-tokens", ("blended_mix",)),
        (None, ("data_set_card",)),
    ]
    assert built.planned() == {}


def test_one_changed_shard_upstream_rebuilds_its_snapshot_and_what_reads_it(looked):
    """The sensor asks for that snapshot alone; of the other only what reads both may follow."""
    built = looked
    change_shard(built, f"{NEW}/0001/en_head")
    asked, _ = built.look()
    assert [tuple(one) for one in asked] == [(NEW, ("raw_snapshot",))]
    built.settle()
    assert built.planned() == {}
    assert {one.partition for one in built.log} == {NEW, None, "by-tokens"}
    measured = built.lake.partition("filtered_documents", NEW).require().receipt.measured
    assert (measured["shards_computed"], measured["shards_reused"]) == (1, 1)
    assert built.look()[0] == []


UPSTREAM = dg.AssetKey("upstream")


def version_of(clock: Clockwork, snapshot: str) -> tuple[str, str, bool]:
    """The newest data version of the upstream's partition, that which its manifest is of, and whether
    Dagster calls the manifest stale.
    """
    seen = clock.instance.get_latest_data_version_record(UPSTREAM, partition_key=snapshot)
    manifest = ASSET_OF["raw_snapshot"]
    made = clock.instance.fetch_materializations(
        dg.AssetRecordsFilter(manifest, asset_partitions=[snapshot]), limit=1
    ).records[0]
    status = CachingStaleStatusResolver(
        clock.instance,
        clock.defs.resolve_asset_graph(),
        LoadingContextForTest(clock.instance),
    ).get_status(manifest, snapshot)
    return (
        seen.event_log_entry.asset_observation.tags["dagster/data_version"],
        made.asset_materialization.metadata["upstream_state"].value,
        status == StaleStatus.STALE,
    )


def observations(clock: Clockwork) -> int:
    return len(clock.instance.fetch_observations(UPSTREAM, limit=99).records)


def test_the_upstream_is_an_asset_whose_data_versions_are_observed(built):
    """By the sensor, by whoever builds a manifest, and by a person: the same versions. The manifest
    built with an observed change is up to date, and only that of a changed snapshot is not.
    """
    built.run(["raw_snapshot"], OLD)  # never observed before
    state, read, stale = version_of(built, OLD)
    assert (read, stale) == (state, False)
    built.look()
    assert version_of(built, OLD) == (state, state, False)
    first, read, stale = version_of(built, NEW)
    assert (read, stale) == (first, False)
    change_shard(built, f"{NEW}/0000/en_head")
    built.look(run=False)
    second, read, stale = version_of(built, NEW)
    assert (read, stale, second != first) == (first, True, True)
    assert built.job.execute_in_process(asset_selection=[UPSTREAM], instance=built.instance).success
    assert version_of(built, NEW) == (second, first, True)
    assert version_of(built, OLD) == (state, state, False)
    change_shard(built, f"{OLD}/0000/en_head")
    built.run(["raw_snapshot"], OLD)  # the run itself is the first to see the change
    changed, read, stale = version_of(built, OLD)
    assert (read, stale, changed != state) == (changed, False, True)
    before = observations(built)
    built.run(["raw_snapshot"], NEW)
    assert version_of(built, NEW) == (second, second, False)
    built.look()
    built.look()
    assert observations(built) == before + 2, (
        "the run's, and one of the sensor: it had not seen OLD"
    )


def test_changed_archives_of_the_crawl_are_seen_where_pages_were_looked_up(tmp_path, upstream):
    """Of two snapshots one was indexed: its archives are watched, the other's are not; what has
    changed is asked for once.
    """
    (tmp_path / "clock").mkdir()
    recipe = tiny_recipe(
        tmp_path / "clock", **SMALL, longpack_documents=LongPackSettings(wanted=True)
    )
    there = copied(upstream, tmp_path / "upstream")
    clock = Clockwork(tmp_path / "clock", there, recipe, crawl=str(there / CRAWL))
    assert clock.look(sensor="crawl")[0] == []
    clock.materialize(["raw_snapshot", "filtered_documents", "html_index"], OLD)
    before = clock.lake.partition("html_index", OLD).require()
    assert clock.look(sensor="crawl")[0] == []
    for snapshot in SNAPSHOTS:
        shard = Shard.parse(f"{snapshot}/0000/en_head")
        tiny_crawl(there / CRAWL / snapshot, tiny_documents(shard)[:4])
    assert [tuple(one) for one in clock.look(sensor="crawl")[0]] == [(OLD, ("html_index",))]
    assert clock.lake.partition("html_index", OLD).require().version != before.version
    assert clock.look(sensor="crawl")[0] == []


def test_an_update_that_comes_while_a_run_is_asked_for_is_not_lost(built):
    """Asked for and not yet run, the recipe changes again: the next tick asks anew, because another
    version is wanted.
    """
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    first = built.tick(run=False)
    built.change_recipe(filtered_documents=filtering_with(built, min_words=90))
    second = built.tick(run=False)
    assert [tuple(one) for one in first] == [tuple(one) for one in second]
    for one in second:
        built.run(one.stages, one.partition)
    built.settle()
    assert built.planned() == {}


def test_nothing_is_asked_for_twice_while_it_waits_to_run(built):
    """The same wish stands until somebody has seen to it: ticks in between are silent."""
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    assert built.tick(run=False)
    assert built.tick(run=False) == []
    assert built.tick(run=False) == []


def test_a_change_while_its_partition_is_being_built_waits_for_the_end(built, monkeypatch):
    """In the middle of a run the recipe changes again: no second run beside it, and afterwards the
    newer one.
    """
    during = []
    really = stage_named("filtered_documents").build

    def changing(context, snapshot):
        built.change_recipe(filtered_documents=filtering_with(built, min_words=90))
        during.extend(built.tick(run=False))
        return really(context, snapshot)

    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    built.tick(run=False)
    instead(monkeypatch, filtering.STAGE, changing)
    built.materialize(["filtered_documents"], OLD)
    monkeypatch.undo()
    assert [tuple(one) for one in during] == [(NEW, IN_A_ROW)]
    for one in during:
        built.run(one.stages, one.partition)
    built.settle()
    assert built.planned() == {}


def test_what_has_been_built_since_the_plan_was_made_is_not_asked_for(built, monkeypatch):
    """A run ends between the plan and the question what is being built."""
    planned = DagsterPlanner.runs

    def overtaken(planner):
        runs = planned(planner)
        for run in runs:
            built.run(run.stages, run.key)
        return runs

    monkeypatch.setattr(DagsterPlanner, "runs", overtaken)
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    assert built.tick(run=False) == []
    monkeypatch.undo()
    assert built.settle()


def test_without_its_history_the_lake_still_says_what_stands(built):
    """Dagster's database is lost: nothing is rebuilt; the sensor looks once, and finds the
    manifests finished.
    """
    before = {path: path.stat().st_mtime_ns for path in built.lake.root.rglob("receipt.json")}
    assert built.cursor is None
    assert not built.sensor_cursors
    assert built.tick() == []
    assert [one.stages for one in built.look()[0]] == [("raw_snapshot",), ("raw_snapshot",)]
    assert built.look()[0] == []
    assert built.tick() == []
    assert {
        path: path.stat().st_mtime_ns for path in built.lake.root.rglob("receipt.json")
    } == before


def test_what_fails_is_not_tried_again_until_something_changes(built, monkeypatch):
    """A stage that cannot end well is asked for twice at most (once in a row with others), then
    left alone; a new recipe frees it.
    """
    monkeypatch.setattr(tokenizing, "tokenize_shard", broken)
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    built.settle()
    counts = stages_of(built)
    assert counts[f"filtered_documents/{OLD}"] == 1
    assert 1 <= counts[f"token_documents/{OLD}"] <= 2
    assert built.tick() == built.tick() == []
    assert built.planned()[f"token_documents/{OLD}"].status == "stale"
    monkeypatch.undo()
    assert built.tick() == []
    built.change_recipe(filtered_documents=filtering_with(built, min_words=90))
    built.settle()
    assert built.planned() == {}


def broken(task):
    raise CorruptFile(f"{task}: no good")


def test_an_audit_that_fails_is_not_repeated_not_even_by_night(built, monkeypatch):
    """The very version that was refused is not made again by any machine; `lc plan` says where it
    lies.
    """
    wrong = {"id": f"{NEW}/0000/en_head.json.gz/0", "raw_content": "x"}
    monkeypatch.setattr(
        "lc_assets.stages.documents.kept_lines.described",
        lambda records, *_: {name: [of] * len(records) for name, of in wrong.items()},
    )
    built.change_recipe(filtered_documents=filtering_with(built, min_words=41))
    built.settle()
    made = built.planned()[f"filtered_documents/{NEW}"]
    assert made.rejected
    assert f"rejected-{made.target}" in made.reasons[-1]
    assert stages_of(built)[f"filtered_documents/{NEW}"] == 1
    assert built.night() == []


def test_the_night_tries_once_more_what_failed(built, monkeypatch):
    """What the condition has given up is asked for by the schedule: once a night, not once an hour,
    and the next night again.
    """
    monkeypatch.setattr(tokenizing, "tokenize_shard", broken)
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    built.settle()
    built.log.clear()
    first = built.night()
    assert tuple(first[0]) == (
        OLD,
        ("megatron_rows", "row_lineage", "token_documents", "token_grid"),
    )
    again = built.night(START.replace(hour=2))
    assert again == []
    monkeypatch.undo()
    tomorrow = built.night(START.replace(day=2))
    assert [one.partition for one in tomorrow] == [OLD, NEW]
    built.settle()
    assert built.planned() == {}


def test_nights_alone_rebuild_everything(built):
    """With the condition off, each hour of a night builds what can be built then; mixes have a
    schedule of their own.
    """
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    for hour in range(1, 7):
        for name in ("nightly", "nightly_mixes"):
            built.night(START.replace(hour=hour), name)
    assert built.planned() == {}
    assert set(stages_of(built).values()) == {1}


def test_the_night_leaves_alone_what_is_being_built(built, monkeypatch):
    """A tick in the middle of a run does not ask for its partition, and asks for the others."""
    during = []
    really = stage_named("filtered_documents").build

    def looking(context, snapshot):
        during.extend(built.night(run=False))
        return really(context, snapshot)

    instead(monkeypatch, filtering.STAGE, looking)
    built.change_recipe(filtered_documents=filtering_with(built, min_words=100))
    built.materialize(["filtered_documents"], OLD)
    assert [one.partition for one in during] == [NEW]


def test_a_new_snapshot_is_seen_begun_and_built_and_the_old_ones_stay(looked, tmp_path):
    """Listed upstream and in no list: said, with what to do. Written down and loaded again: built,
    and nothing of the others.
    """
    built = looked
    tiny_upstream(built.upstream, snapshots=["books-1"], tags=("0000/en_head",))
    asked, said = built.look()
    assert asked == []
    assert "listed upstream, but no partitions: books-1: write them into a text file" in said
    built.own = tmp_path / "mine.txt"
    built.own.write_text("books-1\n")
    built.load()
    before = {name: built.lake.partition(name, OLD).require() for name in (*IN_A_ROW, *THEN)}
    asked, _ = built.look()
    assert [tuple(one) for one in asked] == [("books-1", ("raw_snapshot",))]
    built.settle()
    assert built.planned((*SNAPSHOTS, "books-1")) == {}
    assert {one.partition for one in built.log} == {"books-1", None, "by-tokens"}
    assert {name: built.lake.partition(name, OLD).require() for name in before} == before


def test_a_schedules_own_tick_asks_for_the_same(built, tmp_path):
    """Evaluated as the daemon does, by an instance on disk: runs with keys of the night, or a word
    that nothing is to be done.
    """
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for name, wanted in (("nightly", []), ("nightly_mixes", ["by-tokens"])):
            built.change_recipe(blended_mix={"by-tokens": MixSettings(samples=50)})
            context = dg.build_schedule_context(
                instance=instance,
                scheduled_execution_time=START,
                repository_def=built.defs.get_repository_def(),
            )
            found = built.defs.resolve_schedule_def(name).evaluate_tick(context)
            assert [request.partition_key for request in found.run_requests or []] == wanted
            assert all(
                request.run_key.startswith("2030-01-01/by-tokens/")
                for request in found.run_requests or []
            )
            assert wanted or found.skip_message == "nothing is out of date that could be built now"


def test_what_asks_is_off_by_default_and_on_by_one_switch():
    """Sensors and schedules: stopped, running, and a word that is neither; what only records
    staleness runs in any case.
    """
    for said, status in (("off", "STOPPED"), ("on", "RUNNING")):
        defs = from_environment({"LC_AUTOMATION": said})
        found = {made.name: made.default_status.value for made in [*defs.sensors, *defs.schedules]}
        asking = ("upstream", "out_of_date", "nightly", "nightly_mixes")
        assert found == dict.fromkeys(asking, status) | {"staleness": "RUNNING"}
    off = {
        made.name for made in from_environment({}).sensors if made.default_status.value == "STOPPED"
    }
    assert off == {"upstream", "out_of_date"}
    with pytest.raises(BadInput, match="LC_AUTOMATION is 'yes'; expected on or off"):
        from_environment({"LC_AUTOMATION": "yes"})


def test_the_condition_is_evaluated_by_its_sensor_where_our_code_is(built):
    """The sensor's own tick: runs with a low priority, so that what a person starts goes first."""
    built.change_recipe(blended_mix={"by-tokens": MixSettings(samples=50)})
    sensor = built.defs.resolve_sensor_def("out_of_date")
    found = sensor.evaluate_tick(
        dg.build_sensor_context(instance=built.instance, definitions=built.defs)
    )
    (request,) = found.run_requests or []
    assert (request.partition_key, request.asset_selection) == (
        "by-tokens",
        [ASSET_OF["blended_mix"]],
    )
    assert request.tags["dagster/priority"] == "-1"


def test_the_condition_is_labelled_in_plain_words(built):
    """As the UI reads it, with what holds a request back."""
    condition = built.defs.resolve_assets_def("raw_snapshot").get_asset_spec().automation_condition
    assert condition.get_node_snapshot("").label == "out of date"
    assert [one.get_node_snapshot("").label for one in condition.children] == [
        "it or an input is being built"
    ]


def test_a_cursor_of_another_condition_says_nothing():
    assert decoded(None) == decoded("[]") == decoded("nonsense") == {}
    assert decoded('{"a": "b"}') == {"a": "b"}


@pytest.mark.parametrize(
    "error", sorted(RETRIES, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__
)
def test_what_may_pass_is_tried_again_in_the_same_run(clock, monkeypatch, error):
    """It fails as often as is borne with, then it works: one run, one materialization, and the
    attempts in its history.
    """
    left = [RETRIES[error][0]]
    really = stage_named("raw_snapshot").build

    def flaky(context, snapshot):
        if left[0]:
            left[0] -= 1
            raise error("not now")
        return really(context, snapshot)

    instead(monkeypatch, raw.STAGE, flaky)
    monkeypatch.setattr(
        "lc_assets.orchestration.resources.RETRIES", {error: (RETRIES[error][0], 0)}
    )
    ended = clock.materialize(["raw_snapshot"], OLD)
    assert ended.success
    assert (
        sum(event.event_type_value == "STEP_UP_FOR_RETRY" for event in ended.all_events)
        == RETRIES[error][0]
    )


def test_what_goes_on_for_too_long_fails_with_its_words(clock, monkeypatch):
    """More often than is borne with: the run fails, and says what upstream said."""
    instead(monkeypatch, raw.STAGE, functools.partial(always, Unreachable("the bucket is asleep")))
    monkeypatch.setattr("lc_assets.orchestration.resources.RETRIES", {Unreachable: (2, 0)})
    ended = clock.materialize(["raw_snapshot"], OLD)
    (failure,) = [event for event in ended.all_events if event.event_type_value == "STEP_FAILURE"]
    assert (
        "Unreachable: the bucket is asleep"
        in failure.step_failure_data.user_failure_data.description
    )


def test_what_cannot_pass_is_not_tried_again(clock, monkeypatch):
    """A corrupt file is corrupt in a minute, too."""
    instead(monkeypatch, raw.STAGE, functools.partial(always, CorruptFile("no good")))
    ended = clock.materialize(["raw_snapshot"], OLD)
    assert not ended.success
    assert not [
        event for event in ended.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"
    ]


def instead(monkeypatch, stage, write):
    """Let another function write a stage's partitions."""
    really = Stage.build

    def build(self, context, key):
        return write(context, key) if self is stage else really(self, context, key)

    monkeypatch.setattr(Stage, "build", build)


def always(error, *_):
    raise error


def test_a_run_notes_what_became_of_each_shard_beside_its_log(clock):
    """JSON lines in Dagster's storage of the run, and one line of the log that says where."""
    clock.materialize(["raw_snapshot"], OLD)
    ended = clock.materialize(["filtered_documents"], OLD)
    path = Path(clock.instance.storage_directory()) / ended.run_id / "shards.jsonl"
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [(line["stage"], line["outcome"]) for line in lines] == [
        ("filtered_documents", "computed")
    ] * 2
    said = [
        entry.user_message
        for entry in clock.instance.all_logs(ended.run_id)
        if entry.dagster_event is None
    ]
    assert f"a line per shard: {path}" in said
    assert len(said) < 6


SEEN = Survey(states={"a": "1", "b": "1"})


def decided(cursor=None, *, looked=None, running=(), now=1000.0, seen=SEEN):
    return decide(
        seen,
        cursor or Cursor(),
        looked=(looked or {}).get,
        is_running=lambda name: name in running,
        now=now,
    )


def test_a_snapshot_is_requested_until_a_run_has_seen_that_state():
    """Requested; not again before it is due; then again, later and later; done when the history has
    that state.
    """
    requests, cursor = decided(looked={"b": "1"})
    assert list(requests) == ["a"]
    assert cursor.seen == {"b": "1"}
    now, gaps = 1000.0, []
    for _ in range(12):
        assert decided(cursor, now=now + 1)[0] == {}
        due = next(
            wait
            for wait in (600.0 * 2**n for n in range(9))
            if decided(cursor, now=now + min(wait, 86400.0))[0]
        )
        now += min(due, 86400.0)
        cursor = decided(cursor, now=now)[1]
        gaps.append(min(due, 86400.0))
    assert gaps[:4] == [600, 1200, 2400, 4800]
    assert gaps[-1] == 86400
    requests, cursor = decided(cursor, looked={"a": "1"}, now=now)
    assert (requests, cursor.seen, cursor.requested) == ({}, {"a": "1", "b": "1"}, {})


def test_another_state_is_requested_at_once_and_a_running_look_is_waited_for():
    """Back-off is about one state; while a look is under way nothing is requested, and nothing is
    forgotten.
    """
    cursor = Cursor(seen={"b": "1"}, requested={"a": Request("0", 5, 999.0)})
    assert {name: one.times for name, one in decided(cursor)[0].items()} == {"a": 1}
    requests, waited = decided(cursor, running=("a",))
    assert (requests, waited.requested) == ({}, cursor.requested)


class Quiet(http.server.SimpleHTTPRequestHandler):
    requests: ClassVar[list[str]] = []

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.requests.append(self.path)
        super().do_HEAD()

    def end_headers(self):
        name = Path(self.translate_path(self.path))
        self.send_header("ETag", f'"{name.stat().st_mtime_ns if name.exists() else 0}"')
        super().end_headers()


@pytest.fixture
def served(clock):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(clock.upstream))
    )
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    Quiet.requests.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_of_a_web_server_those_snapshots_are_watched_that_were_begun(clock, served):
    """Nothing is begun by itself; what is published is asked for when its listing changes, by one
    request a tick.
    """
    clock.upstream, folder = served, clock.upstream
    clock.load()
    assert clock.look()[0] == []
    assert Quiet.requests == []
    clock.run(["raw_snapshot"], OLD)
    assert clock.look()[0] == []
    path = redpajama_v2.listing_path(parse_snapshot(OLD), "en")
    (folder / path).write_text(f"{OLD}/0001/en_head\n")
    Quiet.requests.clear()
    asked, _ = clock.look(run=False)
    assert [tuple(one) for one in asked] == [(OLD, ("raw_snapshot",))]
    assert Quiet.requests == [f"/{path}"]


def test_an_upstream_that_does_not_answer_is_said_and_nothing_is_forgotten(clock, served):
    """The tick is skipped, with the reason; what was seen before stays seen."""
    clock.upstream = served
    clock.load()
    clock.run(["raw_snapshot"], OLD)
    clock.look()
    before = dict(clock.sensor_cursors)
    clock.upstream = "http://127.0.0.1:9"
    clock.load()
    clock.sensor_cursors = before
    asked, said = clock.look()
    assert asked == []
    assert "upstream does not answer" in said


def test_every_stage_of_the_chain_is_watched():
    """Each asset has the condition of its own stage, and the sensor's target is all of them."""
    defs = build_defs()
    conditions = {
        spec.key: spec.automation_condition
        for spec in defs.resolve_all_asset_specs()
        if spec.key != dg.AssetKey("upstream")
    }
    assert {key: condition.stage for key, condition in conditions.items()} == {
        key: stage for stage, key in ASSET_OF.items()
    }
    assert set(ASSET_OF) == {found.name for found in catalogue.STAGES}
