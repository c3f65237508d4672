"""SIGKILL at any moment of any stage: readers see the old version or the new one, a rerun ends with
the same bytes.
"""

import functools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lc_assets.builds.stage import BuildContext
from lc_assets.errors import WorkerDied
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.partition import CURRENT, Partition
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import stage_named
from lc_assets_tests.builders import (
    SNAPSHOTS,
    build_all,
    recipe_file,
    tiny_context,
    tiny_upstream,
    wanted_steps,
)
from lc_assets_tests.faults import build_snapshot, digests
from lc_assets_tests.killing import Killer
from lc_assets_tests.two_versions import left_behind, read_all_of, sampled

OLD = SNAPSHOTS[0]
STAGES = [found.name for found in wanted_steps()]


def key_of(stage: str) -> str:
    return {
        "withdrawn_documents": "all",
        "data_set_card": "all",
        "longcrawl": "all",
        "longcrawl_flat": "all",
        "blended_mix": "one-sided",
    }.get(stage, OLD)


@dataclass(frozen=True, slots=True)
class VersionsAndKiller:
    """A lake in which the whole chain was built over one upstream, then over another: each place
    has two versions.
    """

    context: BuildContext
    old: dict[str, Published]
    new: dict[str, Published]
    killer: Killer

    def partition(self, stage: str) -> Partition:
        return self.context.lake.partition(stage, key_of(stage))

    def as_before(self, stage: str, *, published: bool) -> Published | None:
        """Put a place back to before its new version was begun: with the old one published, or with
        none.

        Of what does not depend on the upstream, such as an empty list of withdrawals, the two are
        one version: then with none.
        """
        partition, name = self.partition(stage), f"{stage}/{key_of(stage)}"
        shutil.rmtree(self.new[name].folder)
        if published and self.old[name].home != self.new[name].home:
            partition.point_at(self.old[name])
        else:
            (partition.folder / CURRENT).unlink()
        return partition.current()

    def kill(self, stage: str, kill_at: int) -> bool:
        return self.killer.kill(stage, key_of(stage), kill_at)

    def build(self, stage: str) -> Published:
        return stage_named(stage).build(self.context, key_of(stage)).published


@pytest.fixture(scope="module")
def versions(tmp_path_factory) -> Iterator[VersionsAndKiller]:
    folder = tmp_path_factory.mktemp("versions")
    context = tiny_context(folder, upstream=tiny_upstream(folder / "old", seed=1))
    old = build_all(context)
    context = replace(context, upstream=Upstream(str(tiny_upstream(folder / "new"))))
    new = build_all(context)
    with Killer(context) as killer:
        yield VersionsAndKiller(
            context,
            {name: found.published for name, found in old.items()},
            {name: found.published for name, found in new.items()},
            killer,
        )


def assert_survives(
    versions: VersionsAndKiller, stage: str, kill_at: int, *, published: bool
) -> None:
    """Kill, look, run again, look."""
    before = versions.as_before(stage, published=published)
    partition, new = versions.partition(stage), versions.new[f"{stage}/{key_of(stage)}"]
    assert versions.kill(stage, kill_at)
    now = partition.current()
    assert now == before or (
        now is not None and (now.folder, now.digest) == (new.folder, new.digest)
    )
    if now is not None:
        assert now.damage() == []
        read_all_of(now)
    assert versions.build(stage).digest == new.digest
    after = partition.require()
    assert after.folder == new.folder
    assert after.damage() == []
    read_all_of(after)
    assert left_behind(partition) == []


def n_flushes(versions: VersionsAndKiller, stage: str) -> int:
    versions.as_before(stage, published=True)
    return versions.killer.count(stage, key_of(stage))


@pytest.mark.parametrize("stage", sampled(STAGES))
def test_a_kill_here_and_there_leaves_the_old_or_the_new(versions, stage):
    """In the middle, between receipt and pointer, and before the last flush, in turn with and without
    an old version.
    """
    last = n_flushes(versions, stage)
    moments = sorted({last // 2, last - 2, last})
    for number, kill_at in enumerate(moments):
        assert_survives(versions, stage, kill_at, published=bool(number % 2))
    versions.as_before(stage, published=True)
    assert not versions.kill(stage, last + 1)


@pytest.mark.slow
@pytest.mark.parametrize("published", [True, False], ids=["an old version", "no version"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_anywhere_leaves_the_old_or_the_new(versions, stage, published):
    """At every flush of the stage."""
    last = n_flushes(versions, stage)
    for kill_at in range(1, last + 1):
        assert_survives(versions, stage, kill_at, published=published)
    print(f"{stage}: {last} kills")


@pytest.mark.parametrize(
    ("stage", "kill_at"), [("filtered_documents", 8), ("token_documents", 11), ("token_grid", 12)]
)
def test_a_machine_that_dies_again_and_again_gets_there(versions, stage, kill_at):
    """Killed at the same flush of every run: finished shards are not done again, so the runs end,
    with the same bytes.
    """
    versions.as_before(stage, published=True)
    n_kills = 0
    while versions.kill(stage, kill_at):
        n_kills += 1
        assert n_kills < 20
    assert n_kills > 1
    assert versions.partition(stage).require().digest == versions.new[f"{stage}/{OLD}"].digest
    assert left_behind(versions.partition(stage)) == []


TAGS = tuple(f"{number:04d}/en_{bucket}" for number in range(4) for bucket in ("head", "middle"))
TWO_WORKERS = {"workers": 2, "preload": ("lc_assets.stages.catalogue",)}
IN_SHARDS = ("filtered_documents", "token_documents")


@pytest.fixture(scope="module")
def eight_shards(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("eight"), snapshots=[OLD], tags=TAGS)


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory, eight_shards) -> dict[str, str]:
    return digests(
        build_snapshot(
            tiny_context(tmp_path_factory.mktemp("never"), upstream=eight_shards),
            OLD,
            STAGES[: STAGES.index("token_documents") + 1],
        )
    )


class KillingWatch:
    """Kills some workers of a stage when its first result arrives, while at least half of its eight
    shards wait for a worker.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers, self.killed = n_workers, 0

    def __call__(self, items, *, total, what):
        del total, what
        for item in items:
            if not self.killed:
                for worker in multiprocessing.active_children()[: self.n_workers]:
                    os.kill(worker.pid, signal.SIGKILL)
                    self.killed += 1
            yield item


@pytest.mark.parametrize("stage", IN_SHARDS)
def test_a_worker_killed_in_the_middle_costs_nothing(tmp_path, eight_shards, never_killed, stage):
    """One of two workers gets SIGKILL after the first of eight shards: the stage completes, with
    the same bytes and counts.
    """
    context = tiny_context(tmp_path, upstream=eight_shards)
    build_snapshot(context, OLD, STAGES[: STAGES.index(stage)])
    watch = KillingWatch(1)
    built = build_snapshot(
        replace(context, executor=LocalExecutor(watch=watch, **TWO_WORKERS)), OLD, [stage]
    )[stage]
    assert watch.killed == 1
    assert built.published.digest == never_killed[stage]
    assert built.counts.extra["shards"] == len(TAGS)
    assert left_behind(context.lake.partition(stage, OLD)) == []


@dataclass(frozen=True)
class PoisonedExecutor:
    """Two workers, each of which dies of one shard, the last one, however often it is tried."""

    poison: str

    def run(self, function, tasks, *, what):
        ordered = sorted(tasks, key=lambda task: task.name == self.poison)
        return LocalExecutor(**TWO_WORKERS).run(
            functools.partial(die_of, self.poison, function), ordered, what=what
        )


def die_of(poison, function, task):
    if task.name == poison:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(task)


def test_a_shard_that_kills_its_worker_stops_the_stage(tmp_path, eight_shards, never_killed):
    """Two deaths end the run, with a sentence; nothing is published; the rerun finds what was
    finished and completes.
    """
    context = tiny_context(tmp_path, upstream=eight_shards)
    build_snapshot(context, OLD, ["raw_snapshot"])
    with pytest.raises(
        WorkerDied, match="2023-06/0003/en_middle cost 2 workers: the last was killed"
    ):
        build_snapshot(
            replace(context, executor=PoisonedExecutor("0003-en_middle")),
            OLD,
            ["filtered_documents"],
        )
    assert context.lake.partition("filtered_documents", OLD).current() is None
    done = len(list(context.lake.root.glob("filtered_documents/*/*/.scratch/*.json")))
    assert done >= 1
    again = build_snapshot(context, OLD, ["filtered_documents"])["filtered_documents"]
    assert again.published.digest == never_killed["filtered_documents"]
    assert again.counts.extra["shards"] == len(TAGS)


KILLED_WITH_WORKERS = """
import os, signal, sys
from pathlib import Path
from lc_assets.execution.local import LocalExecutor
from lc_assets.builds.stage import BuildContext
from lc_assets.stages.catalogue import stage_named
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream

def until_the_third(items, *, total, what):
    for number, item in enumerate(items):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield item

lake, upstream, recipe = sys.argv[1:]
executor = LocalExecutor(workers=2, watch=until_the_third, preload=("lc_assets.stages.catalogue",))
context = BuildContext(lake=Lake(Path(lake)), upstream=Upstream(upstream), recipe=read_recipe(Path(recipe)), executor=executor)
stage_named("filtered_documents").build(context, "2023-06")
"""


def test_a_killed_run_and_its_workers_leave_a_place_for_the_next(
    tmp_path, eight_shards, never_killed
):
    """The parent of two workers gets SIGKILL among the shards: its lock is free at once, and
    nothing of it disturbs the rerun.
    """
    context = tiny_context(tmp_path, upstream=eight_shards)
    build_snapshot(context, OLD, ["raw_snapshot"])
    recipe = recipe_file(tmp_path / "recipe.toml", context.recipe)
    command = [
        sys.executable,
        "-c",
        KILLED_WITH_WORKERS,
        str(context.lake.root),
        str(eight_shards),
        str(recipe),
    ]
    ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    assert context.lake.partition("filtered_documents", OLD).current() is None
    built = build_snapshot(context, OLD, ["filtered_documents"])["filtered_documents"]
    assert built.published.digest == never_killed["filtered_documents"]
    assert built.published.damage() == []
    assert left_behind(context.lake.partition("filtered_documents", OLD)) == []
