"""SIGKILL at any call that changes a file, at any moment, beside another run, with power cut: the
old or the new, and the same bytes.

``LC_KILLS`` is how many kills of each stage the campaign tries (``pytest -m slow -s``); the plain
run takes a sample.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from lc_assets.errors import CorruptFile, NotPublished
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import SNAPSHOTS
from lc_assets_tests.kill_points import KillableRunner
from lc_assets_tests.lost_writes import cut_power, letters
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.two_versions import (
    TwoVersions,
    build_two_versions,
    key_of,
    left_behind,
    read_all_of,
    sampled,
)

STAGES = [found.name for found in STAGES]
KILLS = int(os.environ.get("LC_KILLS", "300"))
COLUMNS = ("at a call", "with a power cut", "at a moment", "beside another", "and its rerun")
TEN_YEARS = 10 * 365 * 86_400
A_CENTURY = 100 * 365 * 86_400
LETTERS = {
    "C": "create",
    "W": "write",
    "S": "fsync",
    "R": "rename",
    "L": "link",
    "U": "unlink",
    "M": "mkdir",
    "D": "rmdir",
}


@pytest.fixture(scope="module")
def versions(tmp_path_factory) -> TwoVersions:
    return build_two_versions(tmp_path_factory.mktemp("two-versions"))


@pytest.fixture(scope="module")
def runner(versions) -> Iterator[KillableRunner]:
    with KillableRunner.over(versions.context) as runner:
        yield runner


def n_calls(versions: TwoVersions, runner: KillableRunner, stage: str) -> int:
    versions.as_before(stage, published=True)
    runner.warm(stage=stage, key=key_of(stage))
    versions.as_before(stage, published=True)
    ended = runner.run(stage=stage, key=key_of(stage), logged=True)
    assert (ended.code, ended.said) == (0, "")
    return ended.calls


def assert_old_or_new(versions: TwoVersions, stage: str, before) -> None:
    partition, new = versions.partition(stage), versions.newer(stage)
    now = partition.current()
    assert now == before or (now is not None and (now.home, now.digest) == (new.home, new.digest))
    if now is not None:
        assert now.damage() == []
        read_all_of(now)


def assert_rerun_ends_well(versions: TwoVersions, stage: str) -> None:
    partition, new = versions.partition(stage), versions.newer(stage)
    assert versions.build(stage).digest == new.digest
    after = partition.require()
    assert (after.home, after.damage()) == (new.home, [])
    read_all_of(after)
    assert left_behind(partition) == []


def survive(
    versions: TwoVersions, runner: KillableRunner, stage: str, *, published: bool, **how
) -> bool:
    """Kill, look, run again, look; whether it was killed before it ended."""
    before = versions.as_before(stage, published=published)
    killed = runner.run(stage=stage, key=key_of(stage), **how).killed
    assert_old_or_new(versions, stage, before)
    assert_rerun_ends_well(versions, stage)
    return killed


def survive_twice(
    versions: TwoVersions, runner: KillableRunner, stage: str, *, kill_at: int, again_at: int
) -> int:
    """The run that is to mend it is killed too; how many of the two were killed before they
    ended.
    """
    before = versions.as_before(stage, published=True)
    killed = [
        runner.run(stage=stage, key=key_of(stage), kill_at=at).killed for at in (kill_at, again_at)
    ]
    assert_old_or_new(versions, stage, before)
    assert_rerun_ends_well(versions, stage)
    return sum(killed)


def survive_power_cut(
    versions: TwoVersions,
    runner: KillableRunner,
    stage: str,
    *,
    kill_at: int,
    published: bool,
    rng: np.random.Generator,
) -> tuple[bool, int]:
    """The same when the disk loses what no fsync had made sure of; whether it was killed, and how
    many files and names were lost.
    """
    before = versions.as_before(stage, published=published)
    killed = runner.run(stage=stage, key=key_of(stage), kill_at=kill_at, logged=True).killed
    lost = cut_power(runner.log, rng=rng)
    assert_old_or_new(versions, stage, before)
    assert_rerun_ends_well(versions, stage)
    return killed, sum(lost)


def survive_beside_another(
    versions: TwoVersions, runner: KillableRunner, stage: str, *, kill_at: int, published: bool
) -> bool:
    """One run dies while another waits for its lock: that one ends, with the same bytes; whether it
    came to that.
    """
    versions.as_before(stage, published=published)
    ended = runner.two(kill_at=kill_at, stage=stage, key=key_of(stage))
    if len(ended) == 1:
        assert_rerun_ends_well(versions, stage)
        return False
    one, two = ended
    assert one.killed
    assert (two.code, two.said) == (0, "")
    assert versions.partition(stage).require().digest == versions.newer(stage).digest
    assert versions.partition(stage).require().damage() == []
    assert_rerun_ends_well(versions, stage)
    return True


@pytest.mark.parametrize("stage", sampled(STAGES))
def test_kills_here_and_there(versions, runner, stage):
    """A sample: a call anywhere, with the power cut, and the last call of the build."""
    rng, last = (
        rng_for("kills here and there", seed=64, key=stage),
        n_calls(versions, runner, stage),
    )
    assert {"C", "W", "S", "R"} <= set(letters(runner.log))
    survive_power_cut(
        versions, runner, stage, published=True, kill_at=int(rng.integers(1, last)), rng=rng
    )
    assert survive(versions, runner, stage, published=False, kill_at=last)


@pytest.mark.parametrize("stage", ["token_documents", "longpack_documents"])
def test_two_runs_at_once_one_of_which_dies(versions, runner, stage):
    """The first holds the lock in the middle of its work, the second asks for it, the first dies:
    the second does the work.
    """
    last = n_calls(versions, runner, stage)
    assert survive_beside_another(versions, runner, stage, kill_at=last // 2, published=True)
    assert Counter(letters(runner.log))["K"] >= 2, (
        "the second run never had to ask for the lock again"
    )
    assert "R" in set(letters(runner.log)), "the second run found the work done"


@pytest.mark.parametrize("stage", ["filtered_documents", "token_grid"])
def test_a_clock_that_jumps_changes_nothing(versions, runner, stage):
    """Each time it is asked, the clock is a century ahead or behind: the same bytes; and what
    stands is found to stand.
    """
    for jump in (A_CENTURY, -A_CENTURY // 4):
        versions.as_before(stage, published=True)
        assert runner.run(stage=stage, key=key_of(stage), jump=jump).said == ""
        assert versions.partition(stage).require().digest == versions.newer(stage).digest
        calls = runner.run(stage=stage, key=key_of(stage), jump=-jump, logged=True).calls
        assert "R" not in set(letters(runner.log)), f"{calls} calls: it was built again"


def calls_in_turn(last: int) -> list[tuple[int, bool]]:
    """At which calls to kill, and whether an old version stands: each call both ways, or half of
    ``LC_KILLS`` spread over them.
    """
    both = [(kill_at, published) for kill_at in range(1, last + 1) for published in (True, False)]
    chosen = np.linspace(0, len(both) - 1, min(len(both), max(1, KILLS // 2))).astype(int)
    return [
        (both[number][0], bool(index % 2) if len(chosen) < len(both) else both[number][1])
        for index, number in enumerate(chosen)
    ]


def assert_the_clock_does_not_matter(
    versions: TwoVersions, runner: KillableRunner, stage: str, shift: int
) -> None:
    """Built ten years from now, or ago: the same bytes; the plan, by the true clock, is current;
    nor is it built again by the wrong one.
    """
    versions.as_before(stage, published=True)
    ended = runner.run(stage=stage, key=key_of(stage), shift=shift)
    assert (ended.code, ended.said) == (0, "")
    assert abs(ended.clock - time.time() - shift) < 3600
    assert versions.partition(stage).require().digest == versions.newer(stage).digest
    made = {
        found.name: found.status
        for found in plan(versions.context.lake, versions.context.recipe, SNAPSHOTS)
    }
    assert made[f"{stage}/{key_of(stage)}"] == "current"
    again = runner.run(stage=stage, key=key_of(stage), shift=-shift, logged=True)
    assert "R" not in set(letters(runner.log)), f"{again.calls} calls: it was built again"


@pytest.mark.parametrize(
    ("stage", "shift"),
    [
        ("raw_snapshot", TEN_YEARS),
        ("longcrawl", -TEN_YEARS),
        ("token_documents", TEN_YEARS),
        ("snapshot_withdrawals", -TEN_YEARS),
    ],
)
def test_a_clock_that_is_wrong_by_years_changes_nothing(versions, runner, stage, shift):
    assert_the_clock_does_not_matter(versions, runner, stage, shift)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [TEN_YEARS, -TEN_YEARS], ids=["ahead", "behind"])
@pytest.mark.parametrize("stage", STAGES)
def test_no_clock_changes_anything_in_any_stage(versions, runner, stage, shift):
    assert_the_clock_does_not_matter(versions, runner, stage, shift)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", STAGES)
def test_a_campaign_of_kills(versions, runner, stage):
    """Calls in turn; then power cuts, moments, runs beside others, and reruns that die too. Prints
    what was killed, as a row of a table.
    """
    rng, last = rng_for("a campaign of kills", seed=64, key=stage), n_calls(versions, runner, stage)
    kinds = Counter(LETTERS[letter] for letter in letters(runner.log) if letter in LETTERS)
    seconds, tried, in_turn = (
        seconds_of(versions, runner, stage),
        Counter[str](),
        calls_in_turn(last),
    )
    for kill_at, published in in_turn:
        tried["at a call"] += survive(versions, runner, stage, kill_at=kill_at, published=published)
    for number in range(3 * KILLS // 4 - len(in_turn)):
        kill_at = int(rng.integers(1, last + 1))
        killed, lost = survive_power_cut(
            versions, runner, stage, kill_at=kill_at, published=bool(number % 2), rng=rng
        )
        tried["with a power cut"] += killed
        tried["lost"] += lost
    for number in range(KILLS // 12):
        kill_at, again_at = (int(at) for at in rng.integers(1, last + 1, size=2))
        tried["at a moment"] += survive(
            versions, runner, stage, after=float(rng.random() * seconds), published=bool(number % 2)
        )
        tried["beside another"] += survive_beside_another(
            versions, runner, stage, kill_at=kill_at, published=bool(number % 2)
        )
        tried["and its rerun"] += survive_twice(
            versions, runner, stage, kill_at=kill_at, again_at=again_at
        )
    n_kills = sum(tried.values()) - tried["lost"]
    row = [f"`{stage}`", last, *(tried[what] for what in COLUMNS), n_kills]
    print(f"\n| {' | '.join(map(str, row))} |\n{dict(kinds)}; {tried['lost']} files and names lost")
    assert n_kills >= 0.9 * KILLS


def seconds_of(versions: TwoVersions, runner: KillableRunner, stage: str) -> float:
    """How long a build takes that nobody kills."""
    versions.as_before(stage, published=True)
    began = time.monotonic()
    runner.run(stage=stage, key=key_of(stage))
    return time.monotonic() - began


def test_the_harness_finds_a_pointer_that_was_not_flushed(versions, runner):
    """What the power cut model is worth: without any fsync, some cut leaves a version that is
    damaged, or a pointer to none.
    """
    stage, rng, found = "token_documents", rng_for("no flush", seed=1, key="x"), 0
    for _ in range(6):
        versions.as_before(stage, published=True)
        runner.run(stage=stage, key=key_of(stage), logged=True)
        runner.log.write_text(
            "".join(
                line for line in runner.log.read_text().splitlines(keepends=True) if line[0] != "S"
            )
        )
        cut_power(runner.log, rng=rng)
        try:
            now = versions.partition(stage).current()
            found += now is not None and now.damage() != []
        except (NotPublished, CorruptFile):
            found += 1
    assert found
