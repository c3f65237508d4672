"""``lc rebuild``: the plan first, then exactly what is out of date, in order; 3 when it was only
asked, 1 when something failed.
"""

import re
import shutil

import dagster as dg
import msgspec
import pytest

from lc_assets.definitions import ASSET_OF
from lc_assets.errors import CorruptFile, WorkerDied
from lc_assets.lake.lake import Lake
from lc_assets.stages.tokens import token_documents as tokenizing
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import N_LONG, tiny_documents, write_shard
from lc_assets_tests.cli.conftest import ONE
from lc_assets_tests.faults import flipped
from lc_assets_tests.materializations import skip_plots

STRICTER = ("min_words = 40", "min_words = 100")


def test_where_nothing_is_out_of_date_nothing_is_built(rebuild):
    before = sorted((path, path.stat().st_mtime_ns) for path in (rebuild.here / "lake").rglob("*"))
    said = rebuild()
    assert said.code == 0
    assert said.out.endswith("current, 0 out of date\n")
    assert (
        sorted((path, path.stat().st_mtime_ns) for path in (rebuild.here / "lake").rglob("*"))
        == before
    )


def test_a_snapshot_that_dagster_lacks_is_named(lc, tmp_path):
    """Before Dagster is asked for it, whose answer has many lines."""
    where = ("--lake", tmp_path / "lake", "--upstream", tmp_path, "--dagster-home", tmp_path / "h")
    said = lc("rebuild", *where, "--snapshot", "2023-07")
    assert said.code == 2
    assert said.err == (
        "2023-07: no snapshot of RedPajama-V2 or of the recipe's sources; names of your own are "
        "read from a file, --own\n"
    )


def test_repair_builds_what_lost_files_and_nothing_else(rebuild):
    """A lost and a flipped file; a changed setting waits for a rebuild without --repair."""
    lake = Lake(rebuild.here / "lake")
    grid, flat = lake.partition("token_grid", ONE).require(), lake.partition("longcrawl_flat")
    lost = grid.folder / "train.zarr/c/0/0"
    wrong = next(flat.require().folder.glob("train.zarr/[0-9]*"))
    contents = {path: path.read_bytes() for path in (lost, wrong)}
    lost.unlink()
    flipped(wrong)
    assert f"token_grid/{ONE}" in rebuild("--repair", "--dry-run").out
    change = ("sequence_length = ", "sequence_length = 1")
    said = rebuild("--repair", change=change)
    assert said.code == 0
    assert "1 partitions built in" in said.out
    assert lost.read_bytes() == contents[lost]
    assert wrong.read_bytes() != contents[wrong]
    assert wrong.name in rebuild("--verify", "--dry-run", change=change).out
    said = rebuild("--repair", "--verify", change=change)
    assert said.code == 0
    assert f"{wrong}: missing or damaged" in said.out
    assert "1 partitions built in" in said.out
    assert {path: path.read_bytes() for path in contents} == contents
    assert "0 out of date" in rebuild("--repair", change=change).out


def test_a_dry_run_prints_the_plan_and_ends_with_3(rebuild):
    said = rebuild("--dry-run", change=STRICTER)
    assert said.code == 3
    assert "min_words 40 → 100" in said.out
    assert "3 shards to compute, 0 to reuse" in said.out
    assert "partitions built" not in said.out


def test_what_is_out_of_date_is_built_in_order_and_once(rebuild):
    said = rebuild(change=STRICTER)
    assert said.code == 0
    names = [
        line.split()[0]
        for line in said.out.splitlines()
        if " kept" in line or "nothing was computed" in line
    ]
    assert names[0] == f"filtered_documents/{ONE}"
    assert len(names) == len(set(names))
    assert (
        names.index(f"token_documents/{ONE}")
        < names.index(f"token_grid/{ONE}")
        < names.index("longcrawl/all")
    )
    assert f"raw_snapshot/{ONE}" not in names
    assert f"{len(names)} partitions built in" in said.out
    assert rebuild(change=STRICTER).code == 0


def test_upstream_is_looked_at_when_asked_and_shards_are_taken_over(rebuild, tmp_path):
    """A changed shard: nothing without a look; with one, a shard done and two taken over, said so,
    and a line each in the log.
    """
    shard = Shard.parse(f"{ONE}/0001/en_head")
    write_shard(
        rebuild.here / "upstream", shard, tiny_documents(shard, seed=4), duplicates=[N_LONG + 3]
    )
    assert rebuild().out.endswith("0 out of date\n")
    said = rebuild("--look-upstream", "--log", tmp_path / "shards.jsonl")
    assert said.code == 0
    assert f"filtered_documents/{ONE}: 1 of 3 shards computed, 2 reused unchanged" in said.out
    assert "1 shards computed and 2 reused" in said.out
    lines = [
        msgspec.json.decode(line) for line in (tmp_path / "shards.jsonl").read_bytes().splitlines()
    ]
    assert [line["outcome"] for line in lines if line["stage"] == "filtered_documents"] == [
        "reused",
        "reused",
        "computed",
    ]


def broken(task):
    raise CorruptFile(f"{task.name}: no good")


def test_a_failure_is_said_and_ends_with_1_and_the_rest_is_built(rebuild, monkeypatch):
    monkeypatch.setattr(tokenizing, "tokenize_shard", broken)
    said = rebuild(change=STRICTER)
    assert said.code == 1
    assert re.search(rf"token_documents/{ONE}: \d+-en_\w+: no good", said.err)
    assert "1 failed" in said.out
    assert "wait for them" in said.out
    assert f"document_signatures/{ONE}" in said.out
    monkeypatch.undo()
    assert rebuild(change=STRICTER).code == 0


def test_the_first_failure_stops_when_asked(rebuild, monkeypatch):
    monkeypatch.setattr(tokenizing, "tokenize_shard", broken)
    said = rebuild("--stop", change=STRICTER)
    assert said.code == 1
    assert "partitions built" not in said.out


def test_through_dagster_the_history_has_it(rebuild, tmp_path, monkeypatch):
    """Each partition is a materialization with its checks, a failure is a failed run, and nothing
    is built twice.
    """
    skip_plots(monkeypatch)
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    change = ("samples = 60", "samples = 50")
    said = rebuild("--dagster-home", home, change=change)
    assert said.code == 0
    assert "blended_mix mine: computed" in said.out
    with dg.DagsterInstance.from_config(str(home)) as instance:
        records = instance.fetch_materializations(ASSET_OF["blended_mix"], limit=5).records
        assert [record.partition_key for record in records] == ["mine"]
        checked = instance.event_log_storage.get_asset_check_summary_records(
            [dg.AssetCheckKey(ASSET_OF["blended_mix"], "every_file_is_as_published")]
        )
        assert all(
            summary.last_check_execution_record.status.value == "SUCCEEDED"
            for summary in checked.values()
        )
        n_runs = instance.get_runs_count()
    again = rebuild("--dagster-home", home, change=change)
    assert (again.code, again.out.count("materialized")) == (0, 0)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert instance.get_runs_count() == n_runs


def test_a_history_is_of_one_lake(rebuild, tmp_path, monkeypatch):
    """Events of another lake would make this one's assets stale; a lake that was moved is known."""
    skip_plots(monkeypatch)
    home, other, moved = (tmp_path / name for name in ("home", "other", "moved"))
    shutil.copytree(rebuild.here / "lake", other)
    change = ("samples = 60", "samples = 50")
    assert rebuild("--dagster-home", home, change=change).code == 0
    said = rebuild("--dagster-home", home, lake=other, change=change)
    assert said.code == 2
    assert said.err == (
        f"this Dagster history is of the lake {rebuild.here / 'lake'}, not of {other}: set "
        "DAGSTER_HOME to another folder\n"
    )
    (rebuild.here / "lake").rename(moved)
    change = ("samples = 60", "samples = 40")
    assert rebuild("--dagster-home", home, lake=moved, change=change).code == 0


def test_through_dagster_a_failure_is_named_with_its_run(rebuild, monkeypatch, tmp_path):
    monkeypatch.setattr(tokenizing, "tokenize_shard", broken)
    (tmp_path / "home").mkdir()
    said = rebuild("--dagster-home", tmp_path / "home", change=STRICTER)
    assert said.code == 1
    assert re.search(rf"token_documents/{ONE}: CorruptFile: \d+-en_\w+: no good \(run ", said.err)


@pytest.mark.parametrize("through_dagster", [False, True])
def test_a_shard_that_takes_too_long_is_ended(rebuild, monkeypatch, tmp_path, through_dagster):
    """By a limit in the environment that no shard keeps: the run fails and names the shard; Dagster
    tries once more.
    """
    monkeypatch.setattr("lc_assets.orchestration.resources.RETRIES", {WorkerDied: (1, 0)})
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("LC_TASK_SECONDS", "0.0001")
    home = ("--dagster-home", tmp_path / "home") if through_dagster else ()
    said = rebuild("--workers", "2", "--stop", *home, change=STRICTER)
    assert said.code == 1
    assert re.search(
        r"filtered_documents/.*cost 2 workers: the last was ended after 0.0001 s", said.err
    )
