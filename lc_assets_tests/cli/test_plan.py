"""``lc plan``: what is out of date, and why; 3 when something is."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.stages.planning import Plan
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import N_LONG, recipe_file, tiny_documents, tiny_upstream, write_shard


@pytest.fixture
def planned(lc, published_lake, tmp_path):
    """Run ``lc plan`` over the standing lake with a recipe."""

    def run(
        *words,
        upstream=published_lake.root.parent / "upstream",
        recipe=published_lake.context.recipe,
        lake=published_lake.root,
    ):
        path = recipe_file(tmp_path / "recipe.toml", recipe)
        return lc("plan", "--lake", lake, "--upstream", upstream, "--recipe", path, *words)

    return run


def test_a_lake_as_the_recipe_wants_it_is_current(planned, published_lake):
    said = planned("--look-upstream")
    assert (said.code, said.out) == (
        0,
        (
            f"{len(published_lake.built)} partitions: {len(published_lake.built)} current, 0 out "
            "of "
            "date\n"
        ),
    )


def test_all_shows_what_is_current_too(planned, published_lake):
    said = planned("--all")
    assert said.code == 0
    assert all(f" {name} " in said.out for name in published_lake.built)


def test_json_has_the_partitions_that_are_out_of_date(planned, published_lake):
    """Every field of a plan, and nothing else on standard output; the same exit status."""
    changed = msgspec.structs.replace(
        published_lake.context.recipe,
        token_grid=GriddingSettings(row_tokens=64, heldout_fraction=0.5),
    )
    said = planned("--json", recipe=changed)
    found = json.loads(said.out)
    assert (said.code, found["status"], found["format"], found["command"]) == (3, 3, 1, "plan")
    by_name = {f"{made['stage']}/{made['key']}": made for made in found["partitions"]}
    grid = by_name["token_grid/2023-06"]
    assert set(grid) == set(Plan.__struct_fields__)
    assert grid["status"] != "current"
    assert by_name["longcrawl/all"]["waits_for"] == ["token_grid/2023-06", "token_grid/2023-14"]
    current = planned("--json")
    found = json.loads(current.out)
    assert (current.code, found["status"], found["partitions"]) == (0, 0, [])


def test_a_changed_setting_is_said_with_both_values_and_ends_with_3(planned, published_lake):
    changed = msgspec.structs.replace(
        published_lake.context.recipe,
        token_grid=GriddingSettings(row_tokens=64, heldout_fraction=0.5),
    )
    said = planned(recipe=changed)
    assert said.code == 3
    assert "heldout_fraction 0.2 → 0.5" in said.out
    assert " near_duplicate_pairs/2023-06 " not in said.out
    assert "after token_grid/2023-06, token_grid/2023-14" in said.out


def test_other_rules_are_said_in_a_line(planned, published_lake):
    """The first of many reasons, and how many more there are; --json has them all."""
    recipe = published_lake.context.recipe
    filtering = msgspec.structs.replace(recipe.filtered_documents, rules="gopher-paper")
    changed = msgspec.structs.replace(recipe, filtered_documents=filtering)
    said = planned(recipe=changed)
    (line, *_) = (line for line in said.out.splitlines() if "filtered_documents/" in line)
    assert re.search(r"→ 'gopher-paper'.* and \d+ more", line)
    assert len(line.rstrip()) < 400
    (made, *_) = (
        made
        for made in json.loads(planned("--json", recipe=changed).out)["partitions"]
        if made["stage"] == "filtered_documents"
    )
    assert len(made["reasons"]) > 10


def test_a_file_changed_upstream_is_seen_when_looked_for(planned, published_lake, tmp_path):
    root = shutil.copytree(published_lake.root.parent / "upstream", tmp_path / "upstream")
    shard = Shard.parse("2023-14/0000/en_head")
    write_shard(root, shard, tiny_documents(shard, seed=1), duplicates=[N_LONG + 3])
    assert planned(upstream=root).code == 0
    said = planned("--look-upstream", upstream=root)
    assert said.code == 3
    assert " raw_snapshot/2023-14 " in said.out
    assert " raw_snapshot/2023-06 " not in said.out


def test_snapshots_come_from_the_listings_when_the_lake_is_empty(planned, tmp_path):
    said = planned(
        upstream=tiny_upstream(tmp_path / "one", snapshots=["2019-04"], tags=["0000/en_head"]),
        lake=tmp_path / "none",
    )
    assert said.code == 3
    assert "raw_snapshot/2019-04" in said.out
    assert "never built" in said.out
    assert not (tmp_path / "none").exists()


def test_snapshots_come_from_the_lake_when_nothing_is_listed(planned, published_lake, tmp_path):
    said = planned("--all", upstream=tmp_path)
    assert (said.code, said.out.count("current ")) == (0, len(published_lake.built))


def test_a_snapshot_that_neither_lake_nor_upstream_has_is_refused(planned):
    """Where the upstream is a folder, which can be listed."""
    said = planned("--snapshot", "2023-60")
    assert said.code == 2
    assert "2023-60: no snapshot of the lake or of its sources, which have" in said.err
    assert "2023-06" in said.err


def test_a_named_snapshot_is_planned_alone(planned):
    said = planned("--snapshot", "2023-06", "--all")
    assert "token_grid/2023-06" in said.out
    assert "token_grid/2023-14 " not in said.out


def test_a_name_that_is_none_is_refused(planned):
    said = planned("--snapshot", "../etc")
    assert said.code == 2
    assert "not a snapshot" in said.err


def test_nothing_known_is_said(planned, tmp_path):
    said = planned(upstream=tmp_path, lake=tmp_path)
    assert said.code == 2
    assert "no snapshot is known" in said.err


PLANNING = """
import sys
from lc_assets.cli.app import app as main
try:
    main()
finally:
    loaded = {"numba", "duckdb", "tokenizers", "dagster"} & set(sys.modules)
    print("loaded:", sorted(loaded))
"""


def test_planning_loads_neither_kernels_nor_databases_nor_tokenizers(published_lake, tmp_path):
    """A plan of a small lake starts fast, so it must not import what only builds need."""
    recipe = recipe_file(tmp_path / "recipe.toml", published_lake.context.recipe)
    words = ["plan", "--lake", published_lake.root, "--recipe", recipe]
    said = subprocess.run(
        [sys.executable, "-c", PLANNING, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert "0 out of" in said.stdout
    assert "loaded: []" in said.stdout


def test_the_lake_of_a_command_is_planned_by_its_own_recipe(lc, tmp_path, monkeypatch):
    """Only the stages that the command needed; a changed file is noticed from any folder."""
    monkeypatch.chdir(tmp_path)
    Path("docs.jsonl").write_text('{"id": "a", "text": "one text"}\n')
    assert lc("dedup", "docs.jsonl", "out").code == 0
    monkeypatch.chdir("/")
    current = lc("plan", "--lake", tmp_path / "out", "--look-upstream")

    with (tmp_path / "docs.jsonl").open("a") as file:
        file.write('{"id": "b", "text": "another text"}\n')
    changed = lc("plan", "--lake", tmp_path / "out", "--look-upstream")

    assert (current.code, changed.code) == (0, 3)
    assert "11 partitions: 11 current, 0 out of date" in current.out
    assert "raw_snapshot/docs" in changed.out
    assert "token_grid" not in changed.out
