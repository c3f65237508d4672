"""Whatever the planner reports as out of date has a warning in Dagster's graph, and nothing else."""

import logging

import dagster as dg
import msgspec
import pytest

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.definitions import ASSET_OF
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, line_of
from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.staleness import CHECK, newest_of, warned_of, why
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets_tests.builders import SNAPSHOTS, tiny_upstream
from lc_assets_tests.orchestration.clockwork import Clockwork

OLD, NEW = SNAPSHOTS


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """A code location in which nothing is built but the manifests."""
    folder = tmp_path_factory.mktemp("staleness")
    made = Clockwork(folder / "clock", tiny_upstream(folder / "upstream"))
    for snapshot in SNAPSHOTS:
        made.run(["raw_snapshot"], snapshot)
    return made


def look(clock) -> int:
    """A tick of the sensor, recorded as the daemon does; returns the number of events."""
    sensor = clock.defs.resolve_sensor_def("staleness")
    cursor = clock.sensor_cursors.get("staleness")
    tick = sensor.evaluate_tick(
        dg.build_sensor_context(instance=clock.instance, cursor=cursor, definitions=clock.defs)
    )
    assert not tick.run_requests
    clock.sensor_cursors["staleness"] = tick.cursor
    for event in tick.asset_events:
        clock.instance.report_runless_asset_event(event)
    return len(tick.asset_events)


def warned(clock) -> set[str]:
    """The assets with a warning; each has an observation of what the planner says of a partition."""
    found = warned_of(
        clock.instance, ASSET_OF.values(), newest_of(clock.instance, ASSET_OF.values())
    )
    for made in clock.planned().values():
        assert why(made) == observed(clock, made.stage, made.key)
    return {asset.to_user_string() for asset, warns in found.items() if warns}


def expected(clock) -> set[str]:
    return {made.stage for made in clock.planned().values()}


def observed(clock, stage: str, key: str) -> str:
    of_it = dg.AssetRecordsFilter(
        ASSET_OF[stage], asset_partitions=None if key == GLOBAL else [key]
    )
    record = clock.instance.fetch_observations(of_it, limit=1).records[0]
    return record.asset_observation.metadata[CHECK].value


def test_warnings_are_what_the_planner_reports(clock):
    """After nothing, everything, a threshold, a withdrawn document and a changed manifest; a second
    look records nothing, and a change of mind between two looks is not lost.
    """
    look(clock)
    assert warned(clock) == expected(clock)
    assert look(clock) == 0
    while clock.tick():
        pass
    assert look(clock) > 0
    assert warned(clock) == expected(clock) == set()

    filtering = clock.recipe.filtered_documents
    stricter = msgspec.structs.replace(filtering, min_words=filtering.min_words + 40)
    clock.change_recipe(filtered_documents=stricter)
    look(clock)
    assert warned(clock) == expected(clock) != set()
    assert "min_words" in observed(clock, "filtered_documents", OLD)
    clock.change_recipe(filtered_documents=filtering)
    look(clock)
    assert warned(clock) == set()
    assert observed(clock, "filtered_documents", OLD) == "current"

    victim = min(rows_table(clock.lake.partition("token_grid", NEW).require())["id"].to_pylist())
    withdrawal = Withdrawal(kind="document", value=victim, reason="asked for", date="2026-03-01")
    names = clock.folder / "withdrawn.csv"
    names.write_text(f"{','.join(COLUMNS)}\n{line_of(withdrawal)}\n")
    clock.change_recipe(withdrawn_documents=WithdrawalSettings(lists=(str(names),)))
    look(clock)
    assert {"withdrawn_documents", "token_grid"} <= warned(clock)
    assert warned(clock) == expected(clock)


def test_of_an_empty_lake_nothing_is_recorded(tmp_path, clock):
    """What was never begun is neither up to date nor out of date."""
    assert look(Clockwork(tmp_path / "empty", clock.upstream)) == 0


def test_a_run_checks_what_it_built(clock):
    """The step of the checks plans once, and its results stand in the history before any tick."""
    ended = clock.materialize(["raw_snapshot", "filtered_documents"], OLD)
    assert ended.success
    results = {
        found.asset_key.to_user_string(): found.passed
        for found in ended.get_asset_check_evaluations()
        if found.check_name == CHECK
    }
    assert results == {
        name: name not in expected(clock) for name in ("raw_snapshot", "filtered_documents")
    }


def test_a_run_signs_what_it_filters(tmp_path, clock, caplog):
    """Without reading it again, where both assets are selected."""
    run = Clockwork(tmp_path / "run", clock.upstream)
    with caplog.at_level(logging.INFO, "lc_assets.shards"):
        assert run.materialize(
            ["raw_snapshot", "filtered_documents", "document_signatures"], OLD
        ).success
    found = {
        (one.outcome.stage, one.outcome.outcome)
        for one in caplog.records
        if one.name == "lc_assets.shards"
    }
    assert found == {("filtered_documents", "computed"), ("document_signatures", "ahead")}


def test_a_recipe_that_cannot_be_read_skips_the_tick(clock):
    """Nothing is recorded, and the tick says why."""
    before = clock.recipe_path.read_text()
    clock.recipe_path.write_text("[filtered_documents]\nmin_wrods = 3\n")
    sensor = clock.defs.resolve_sensor_def("staleness")
    tick = sensor.evaluate_tick(
        dg.build_sensor_context(instance=clock.instance, definitions=clock.defs)
    )
    clock.recipe_path.write_text(before)
    assert not tick.asset_events
    assert "min_wrods" in tick.skip_message
