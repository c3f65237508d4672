"""Machines that die, or stand still, at each request of a build in a bucket: the old or the new,
one pointer, no mixture.

Real stages, in processes of their own, against emulators of Google, S3 and Azure. The plain run
takes some requests of one stage; the slow one takes those of several
(``pytest -m slow -s``), at most ``LC_REQUESTS`` of each.
"""

import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import STAGES as ALL_STAGES, stage_named
from lc_assets.stages.planning import keys_of
from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_context, tiny_upstream
from lc_assets_tests.kill_points import Ended, KillableRunner
from lc_assets_tests.other_stores import Server
from lc_assets_tests.two_versions import key_of, read_all_of

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MOST = int(os.environ.get("LC_REQUESTS", "1000"))
STAGES = (
    "raw_snapshot",
    "filtered_documents",
    "document_keys",
    "token_documents",
    "token_grid",
    "longcrawl",
    "megatron_rows",
    "blended_mix",
)
RIVALS = {
    "filtered_documents": {"filtered_documents": {"min_words": 43}},
    "token_documents": {"token_documents": {"min_tokens": 66}},
    "token_grid": {"token_grid": {"seed": 65}},
    "megatron_rows": {"megatron_rows": {"sequence_length": 25}},
}
"""Settings by which another machine builds the same partition: another version of the same inputs.
"""


@dataclass
class Machines:
    """A bucket in which stages stand in two versions, and machines that build there.

    Attributes:
        folder: where the machines keep their copies.
        server: the bucket's.
        context: what they build, in a lake of no importance.
        runner: runs builds on the machine that is killed.
        old: versions by stage.
        new: those that a build ends with.
    """

    folder: Path
    server: Server
    context: BuildContext
    runner: KillableRunner
    old: dict[str, Published]
    new: dict[str, Published]

    @property
    def url(self) -> str:
        """The lake's."""
        return f"{self.server.scheme}://crawl/lake"

    def machine(self, name: str) -> BuildContext:
        """One with copies of its own."""
        copies = {"LC_CACHE": str(self.folder / name)}
        return replace(self.context, lake=open_lake(self.url, environment=copies))

    def as_before(self, stage: str, *, published: bool = True) -> None:
        """Nothing of the stage's partition but its old version, which is published, or nothing is;
        no copies anywhere.
        """
        partition = self.machine("first").lake.partition(stage, key_of(stage))
        at = f"{stage}/{key_of(stage)}/"
        names = [
            name.removeprefix("lake/")
            for name in self.server.names()
            if name.startswith(f"lake/{at}")
        ]
        partition.bucket.remove(
            [name for name in names if not name.startswith(f"{at}{self.old[stage].version}/")]
        )
        for copies in self.folder.glob(f"*/**/crawl/lake/{at}"):
            shutil.rmtree(copies)
        if published:
            partition.point_at(self.old[stage])

    def dies(self, stage: str, at: int) -> Ended:
        """Build on the killed machine, which gets SIGKILL at a request; 0 for none, and for counting
        them in ``calls``.
        """
        return self._watched(stage, at, signal.SIGKILL)[0]

    def stands_still(
        self, stage: str, at: int, rival: BuildContext
    ) -> tuple[Ended, Published | None]:
        """Build on the killed machine, which stands still from a request on until the rival has
        built the same partition.
        """
        return self._watched(stage, at, signal.SIGSTOP, rival)

    def _watched(
        self, stage: str, at: int, what: signal.Signals, rival: BuildContext | None = None
    ) -> tuple[Ended, Published | None]:
        begun, reached, pids, seen = threading.Event(), threading.Event(), list[int](), 0

        def watch(_kind: str) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                begun.wait()
                os.kill(pids[0], what)
                reached.set()

        self.server.watch = watch
        pids.append(
            self.runner.begin(
                environment={"LC_CACHE": str(self.folder / "killed")},
                stage=stage,
                key=key_of(stage),
            )
        )
        begun.set()
        made = None
        if rival is not None:
            while not reached.wait(0.01) and Path(f"/proc/{pids[0]}").exists():
                pass
            self.server.watch = lambda _kind: None
            made = stage_named(stage).build(rival, key_of(stage)).published
            if reached.is_set():
                os.kill(pids[0], signal.SIGCONT)
        ended = replace(self.runner.wait(), calls=seen)
        self.server.watch = lambda _kind: None
        return ended, made


def built(context: BuildContext, stages: list[str]) -> dict[str, Published]:
    """All partitions of some stages; by stage, the one that is built again and again."""
    for stage in stages:
        for key in keys_of(stage_named(stage), context.recipe, SNAPSHOTS):
            stage_named(stage).build(context, key)
    return {stage: context.lake.partition(stage, key_of(stage)).require() for stage in stages}


def settle(machines: Machines, last: str) -> None:
    """Build the chain up to a stage in both versions, but for what stands."""
    chain = [found.name for found in ALL_STAGES if found.wanted(Recipe())]
    stages = chain[: chain.index(last) + 1]
    first = machines.machine("first")
    if not set(stages) <= machines.new.keys():
        stricter = changed(
            first.recipe,
            {"raw_snapshot": {"buckets": ("head",)}, "filtered_documents": {"min_words": 80}},
        )
        machines.old |= built(replace(first, recipe=stricter), stages)
        machines.new |= built(first, stages)


@pytest.fixture(scope="module")
def machines(running, tmp_path_factory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("machines")
    there = tiny_context(folder, upstream=tiny_upstream(folder / "upstream"))
    context = replace(there, lake=Lake(folder / "nowhere"), executor=LocalExecutor())
    assert isinstance(context.crawl, Upstream)
    work = {
        "lake": f"{running.scheme}://crawl/lake",
        "upstream": context.upstream.root,
        "crawl": context.crawl.root,
        "recipe": str(recipe_file(folder / "killed.toml", context.recipe)),
    }
    key = key_of("filtered_documents")
    stage_named("raw_snapshot").build(context, key)
    with KillableRunner(folder / "killed", work) as runner:
        # in a folder: who used obstore cannot fork those that use it
        runner.warm(lake=context.lake.url, stage="filtered_documents", key=key)
        yield Machines(folder, running, context, runner, {}, {})


def assert_survives(machines: Machines, stage: str, at: int, *, published: bool) -> bool:
    """Kill, read on another machine, build again on this one or on another, read again; whether it
    was killed.
    """
    machines.as_before(stage, published=published)
    old, new = machines.old[stage], machines.new[stage]
    ended = machines.dies(stage, at)
    now = machines.machine("reader").lake.partition(stage, key_of(stage)).current()
    found = None if now is None else (now.version, now.digest)
    assert found in {(old.version, old.digest) if published else None, (new.version, new.digest)}
    if (
        now is not None and found == (new.version, new.digest) and stage != "longcrawl"
    ):  # its grids are no files of it
        read_all_of(now)
    assert now is None or now.damage() == []
    assert (
        stage_named(stage)
        .build(machines.machine("killed" if at % 2 else "other"), key_of(stage))
        .published.digest
        == new.digest
    )
    after = machines.machine("reader").lake.partition(stage, key_of(stage)).require()
    assert (after.version, after.digest, after.damage()) == (new.version, new.digest, [])
    assert what_lies_in_the_bucket(machines, stage) == {CURRENT, *files_of(old), *files_of(new)}
    return ended.killed


def files_of(published: Published) -> set[str]:
    return {
        f"{published.version}/{path}"
        for path in (RECEIPT, *(fact.path for fact in published.receipt.files))
    }


def what_lies_in_the_bucket(machines: Machines, stage: str) -> set[str]:
    at = f"lake/{stage}/{key_of(stage)}/"
    return {name.removeprefix(at) for name in machines.server.names() if name.startswith(at)}


def n_requests(machines: Machines, stage: str, *, published: bool = True) -> int:
    """How many a build makes on a machine that has copies of what it reads."""
    for _ in range(2):
        machines.as_before(stage, published=published)
        ended = machines.dies(stage, 0)
        assert (ended.code, ended.said) == (0, "")
    return ended.calls


def test_kills_at_some_requests(machines):
    settle(machines, "filtered_documents")
    last = n_requests(machines, "filtered_documents")
    for at, published in ((2, True), (last // 2, False), (last - 1, True), (last, True)):
        assert assert_survives(machines, "filtered_documents", at, published=published)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stage", STAGES)
def test_kills_at_every_request(machines, stage):
    """Each request in turn, by turns with an old version and without one."""
    settle(machines, STAGES[-1])
    require_survival(machines, stage)


def spread(points: list[int]) -> list[int]:
    """At most ``LC_REQUESTS`` of some points, evenly, the first and last among them."""
    chosen = np.linspace(0, len(points) - 1, min(MOST, len(points))).round().astype(int)
    return [points[at] for at in chosen]


def require_survival(machines: Machines, stage: str) -> None:
    last = {
        published: n_requests(machines, stage, published=published) for published in (True, False)
    }
    points = [at for at in range(1, max(last.values()) + 1) if at <= last[bool(at % 2)]]
    points = spread(points)
    n_killed = sum(assert_survives(machines, stage, at, published=bool(at % 2)) for at in points)
    print(f"\n{stage} in {machines.url}: {last[True]} requests, {n_killed} kills, all survived")
    assert n_killed >= len(points) - 1  # a request more or less, as answers come


def races(machines: Machines, stage: str, points: list[int], *, same: bool) -> str:
    """How it ended when one machine stood still at each point while a rival built: ``o`` ours
    stands, ``B`` busy, ``r`` the rival's stands.

    Whatever happened there is one pointer, and it and every other version that has a receipt are
    whole; asked again, the loser is done.
    """
    rival, said = machines.machine("rival"), ""
    if not same:
        rival = replace(rival, recipe=changed(rival.recipe, RIVALS[stage]))
    for at in points:
        machines.as_before(stage)
        ended, made = machines.stands_still(stage, at, rival)
        assert ended.code == 0
        partition = machines.machine("reader").lake.partition(stage, key_of(stage))
        now, ours = partition.require(), machines.new[stage]
        assert made is not None
        assert now.version in {ours.version, made.version}
        assert all(partition.at(version).damage() == [] for version in partition.version_names())
        assert ended.said in {"", "Busy"}
        said += "B" if ended.said else "o" if now.version == ours.version else "r"
        assert not ended.said or now.version == made.version
        again = stage_named(stage).build(machines.machine("killed"), key_of(stage)).published
        assert (again.version, again.digest) == (ours.version, ours.digest)
        assert (
            machines.machine("reader").lake.partition(stage, key_of(stage)).require().version
            == ours.version
        )
    return said


def changed(recipe: Recipe, settings: dict[str, dict[str, Any]]) -> Recipe:
    return msgspec.structs.replace(
        recipe,
        **{
            name: msgspec.structs.replace(getattr(recipe, name), **values)
            for name, values in settings.items()
        },
    )


def test_two_machines_at_once_at_some_requests(machines):
    settle(machines, "filtered_documents")
    last = n_requests(machines, "filtered_documents")
    assert re.fullmatch(
        "o?B+r", races(machines, "filtered_documents", [1, last // 2, last - 1, last], same=False)
    )


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stage", RIVALS)
def test_two_machines_at_once_at_every_request(machines, stage):
    """Before it looked at the pointer, ours comes second and stands; then it is Busy; once it wrote
    the pointer, the rival's stands.
    """
    settle(machines, STAGES[-1])
    last = n_requests(machines, stage)
    said = races(machines, stage, spread(list(range(1, last + 1))), same=False)
    print(
        f"\n{stage} in {machines.url}, another version by another machine meanwhile, at requests "
        f"of {last}: {said}"
    )
    assert re.fullmatch("o*B+r+", said)
    assert set(races(machines, stage, [last // 3, last // 2, last - 2], same=True)) == {"o"}
