"""Calibration builds growing parts of a partition in a scratch lake, and fills in what a plan does
not know.
"""

import math
from dataclasses import replace
from itertools import count

import pytest

from lc_assets.errors import BadInput
from lc_assets.lake.lake import Lake
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages import calibrating
from lc_assets.stages.calibrating import Calibration, Line, calibrate
from lc_assets.stages.catalogue import needed_by
from lc_assets.stages.costing import Cost, costs_of
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import SNAPSHOTS, TAGS, tiny_context


@pytest.fixture
def context(tmp_path):
    return tiny_context(tmp_path)


def test_every_stage_of_a_lake_that_holds_nothing_is_estimated(context):
    """All but the manifest, whose time is the upstream's; the lake itself is not written to."""
    found = calibrate(context, SNAPSHOTS, at_once=1, seconds=math.inf)
    (lines,) = found.lines.values()
    assert lines.keys() == needed_by(context.recipe) - {"raw_snapshot"}
    assert not context.lake.root.exists()
    assert set(found.n_shards.values()) == {len(TAGS)}
    costs = costs_of(context.lake, context.recipe, plan(context.lake, context.recipe, SNAPSHOTS))
    unknown = [cost.name for cost in found.filled(costs) if cost.seconds is None]
    assert unknown == [f"raw_snapshot/{name}" for name in SNAPSHOTS]


def test_parts_grow_from_a_shard_a_worker_until_time_or_shards_end(context, monkeypatch):
    """The first build only warms up; three are measured at least."""
    built = []

    def note(_context, _key, _clock, files):
        built.append(len(files))
        return {"filtered_documents": 2.0 + 3.0 * len(files)}

    monkeypatch.setattr(calibrating, "_built", note)
    found = calibrate(context, SNAPSHOTS[:1], at_once=2, seconds=math.inf)
    assert found.n_shards == {SNAPSHOTS[0]: len(TAGS)} == {SNAPSHOTS[0]: 3}
    assert built == [2, 2, 3]
    assert found.lines[SNAPSHOTS[0]]["filtered_documents"].fixed > 0
    built.clear()
    calibrate(context, SNAPSHOTS[:1], at_once=1, seconds=0.0)
    assert built == [1, 1, 2, 3]


def test_what_builds_in_the_lake_tell_is_kept():
    """Of one partition its own bytes count, of one over all partitions all of them."""
    found = Calibration(
        n_shards={"a": 1},
        lines={"a": {"filtered_documents": Line(1.0, 0.1), "longcrawl": Line(0, 1)}},
        like={"a": "a", "b": "a"}, n_bytes={"a": 10, "b": 20},
    )  # fmt: skip
    costs = [
        Cost(name="filtered_documents/b"),
        Cost(name="filtered_documents/a", seconds=7.0),
        Cost(name="filtered_documents/a", seconds=7.0, at_most=True),
        Cost(name="longcrawl/all"),
        Cost(name="html_index/a"),
    ]
    assert [cost.seconds for cost in found.filled(costs)] == [3.0, 7.0, 2.0, 30.0, None]


def test_each_source_is_foreseen_by_its_own_documents(tmp_path, monkeypatch):
    """Of a stage over all partitions, each source's bytes count by its own line."""
    for name, n_bytes in (("pages/a", 10), ("pages/b", 20), ("books/a", 40)):
        for number in range(2):
            path = tmp_path / name / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x" * n_bytes)
    sources = {
        name: SourceSettings(path=str(tmp_path / name), partition="folder")
        for name in ("pages", "books")
    }
    seconds = {"pages-b": 3.0, "books-a": 0.5}
    monkeypatch.setattr(
        calibrating,
        "_built",
        lambda _, key, _clock, files: {"longcrawl": seconds[key] * calibrating._n_bytes(files)},
    )
    context = tiny_context(tmp_path / "tiny", sources=sources)
    found = calibrate(context, ["pages-a", "pages-b", "books-a"], at_once=1)
    costs = [Cost(name=f"longcrawl/{key}") for key in ("pages-a", "books-a", "all")]
    assert [cost.seconds for cost in found.filled(costs)] == [60.0, 40.0, 220.0]


def test_documents_of_other_lengths_are_measured_apart(tmp_path, monkeypatch):
    """Each partition is foreseen by the largest one whose documents are about as long."""
    lengths = {"a": [100], "b": [120, 130], "c": [90_000], "d": [9_000, 9_000], "e": [10_000]}
    for name, own in lengths.items():
        path = tmp_path / "corpus" / name / "0.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f'{{"text": "{"x" * length}"}}\n' for length in own))
    monkeypatch.setattr(calibrating, "_built", lambda *_: {"token_documents": 1.0})
    sources = {"corpus": SourceSettings(path=str(tmp_path / "corpus"), partition="folder")}
    found = calibrate(tiny_context(tmp_path / "tiny", sources=sources), sorted(lengths), at_once=1)
    assert found.like == {"a": "b", "b": "b", "c": "c", "d": "d", "e": "d"}
    assert found.lines.keys() == {"b", "c", "d"}


def test_stages_are_measured_by_the_clock_that_is_given(context):
    """Each takes a tick of it, of however many shards."""
    found = calibrate(
        context, SNAPSHOTS[:1], at_once=1, seconds=0.0, clock=map(float, count()).__next__
    )
    assert set(found.lines[SNAPSHOTS[0]].values()) == {Line(1.0, 0.0)}


def test_a_stage_that_does_not_grow_has_no_cost_per_byte(context, monkeypatch):
    """Whatever noise is in its measurements; another's are fitted by a line."""
    ticks = count(1)
    took = {"data_set_card", "token_grid"}
    monkeypatch.setattr(calibrating, "_built", lambda *_: dict.fromkeys(took, float(next(ticks))))
    lines = calibrate(context, SNAPSHOTS[:1], at_once=1, seconds=0.0).lines[SNAPSHOTS[0]]
    assert lines["data_set_card"].per_byte == 0 < lines["token_grid"].per_byte


def test_nothing_upstream_is_refused(tmp_path):
    context = replace(tiny_context(tmp_path), lake=Lake(tmp_path / "lake"))
    with pytest.raises(BadInput, match="no files upstream"):
        calibrate(context, [], at_once=1)
