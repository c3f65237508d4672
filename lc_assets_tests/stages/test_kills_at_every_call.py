"""SIGKILL at any call that changes a file, at any moment, beside another run, with power cut: the old or the new, and the same bytes.

``LC_KILLS`` is how many kills of each stage the campaign tries (``pytest -m slow -s``); the plain run takes a sample.
"""

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from lc_assets.errors import CorruptFile, NotPublished
from lc_assets.randomness import rng_for
from lc_assets.stages.catalogue import CHAIN
from lc_assets_tests.dying import Dying
from lc_assets_tests.lost_writes import cut_power, letters
from lc_assets_tests.twice import TwoVersions, built_twice, key_of, left_behind, read_all_of

STAGES = [found.name for found in CHAIN]
KILLS = int(os.environ.get("LC_KILLS", "300"))
A_CENTURY = 100 * 365 * 86_400
LETTERS = {"C": "create", "W": "write", "S": "fsync", "R": "rename", "L": "link", "U": "unlink", "M": "mkdir", "D": "rmdir"}


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> TwoVersions:
    return built_twice(tmp_path_factory.mktemp("twice"))


@pytest.fixture(scope="module")
def dying(twice) -> Iterator[Dying]:
    with Dying.over(twice.workshop) as dying:
        yield dying


def n_calls(twice: TwoVersions, dying: Dying, stage: str) -> int:
    twice.as_before(stage, published=True)
    ended = dying.run(stage=stage, key=key_of(stage), logged=True)
    assert (ended.code, ended.said) == (0, "")
    return ended.calls


def assert_old_or_new(twice: TwoVersions, stage: str, before) -> None:
    place, new = twice.place(stage), twice.newer(stage)
    now = place.current()
    assert now == before or (now is not None and (now.home, now.digest) == (new.home, new.digest))
    if now is not None:
        assert now.damage() == []
        read_all_of(now)


def assert_rerun_ends_well(twice: TwoVersions, stage: str) -> None:
    place, new = twice.place(stage), twice.newer(stage)
    assert twice.build(stage).digest == new.digest
    after = place.require()
    assert (after.home, after.damage()) == (new.home, [])
    read_all_of(after)
    assert left_behind(place) == []


def survive(twice: TwoVersions, dying: Dying, stage: str, *, published: bool, **how) -> bool:
    """Kill, look, run again, look; whether it was killed before it ended."""
    before = twice.as_before(stage, published=published)
    killed = dying.run(stage=stage, key=key_of(stage), **how).killed
    assert_old_or_new(twice, stage, before)
    assert_rerun_ends_well(twice, stage)
    return killed


def survive_power_cut(twice: TwoVersions, dying: Dying, stage: str, *, kill_at: int, published: bool, rng: np.random.Generator) -> int:
    """The same when the disk loses what no fsync had made sure of; how many files and names were lost."""
    before = twice.as_before(stage, published=published)
    killed = dying.run(stage=stage, key=key_of(stage), kill_at=kill_at, logged=True).killed
    lost = cut_power(dying.log, rng=rng)
    assert_old_or_new(twice, stage, before)
    assert_rerun_ends_well(twice, stage)
    return sum(lost) if killed else 0


def survive_beside_another(twice: TwoVersions, dying: Dying, stage: str, *, kill_at: int, published: bool) -> bool:
    """Two runs of one partition at once, one of which dies: the other one ends, with the same bytes."""
    twice.as_before(stage, published=published)
    one, two = dying.two(kill_at=kill_at, stage=stage, key=key_of(stage))
    assert (two.code, two.said) == (0, "")
    assert twice.place(stage).require().digest == twice.newer(stage).digest
    assert twice.place(stage).require().damage() == []
    assert_rerun_ends_well(twice, stage)
    return one.killed


@pytest.mark.parametrize("stage", STAGES)
def test_kills_here_and_there(twice, dying, stage):
    """A sample: a call anywhere, with the power cut, and the last call of the build."""
    rng, last = rng_for("kills here and there", seed=64, key=stage), n_calls(twice, dying, stage)
    assert {"C", "W", "S", "R"} <= set(letters(dying.log))
    survive_power_cut(twice, dying, stage, published=True, kill_at=int(rng.integers(1, last)), rng=rng)
    assert survive(twice, dying, stage, published=False, kill_at=last)


@pytest.mark.parametrize("stage", ["tokens", "longpack"])
def test_two_runs_at_once_one_of_which_dies(twice, dying, stage):
    last = n_calls(twice, dying, stage)
    survive_beside_another(twice, dying, stage, kill_at=last // 2, published=True)


@pytest.mark.parametrize("stage", ["filtered", "grid"])
def test_a_clock_that_jumps_changes_nothing(twice, dying, stage):
    """Each time it is asked, the clock is a century ahead or behind: the same bytes; and what stands is found to stand."""
    for jump in (A_CENTURY, -A_CENTURY // 4):
        twice.as_before(stage, published=True)
        assert dying.run(stage=stage, key=key_of(stage), jump=jump).said == ""
        assert twice.place(stage).require().digest == twice.newer(stage).digest
        calls = dying.run(stage=stage, key=key_of(stage), jump=-jump, logged=True).calls
        assert "R" not in set(letters(dying.log)), f"{calls} calls: it was built again"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", STAGES)
def test_a_campaign_of_kills(twice, dying, stage):
    """Every call in turn, or so many as were asked for; then moments, power cuts and runs beside others. Prints what was tried."""
    rng, last = rng_for("a campaign of kills", seed=64, key=stage), n_calls(twice, dying, stage)
    kinds = Counter(LETTERS[letter] for letter in letters(dying.log) if letter in LETTERS)
    tried: Counter[str] = Counter()
    for number, kill_at in enumerate(np.unique(np.linspace(1, last, min(last, max(1, KILLS // 2))).astype(int))):
        tried["at a call"] += survive(twice, dying, stage, kill_at=int(kill_at), published=bool(number % 2))
    for number in range(KILLS // 4):
        cut = survive_power_cut(twice, dying, stage, kill_at=int(rng.integers(1, last + 1)), published=bool(number % 2), rng=rng)
        tried["with the power"] += 1
        tried["files and names lost"] += cut
    for number in range(KILLS // 8):
        kill_at, published = int(rng.integers(1, last + 1)), bool(number % 2)
        tried["at a moment"] += survive(twice, dying, stage, after=float(rng.random() * 0.1), published=published)
        tried["beside another run"] += survive_beside_another(twice, dying, stage, kill_at=kill_at, published=published)
    print(f"\n{stage}: {last} calls ({dict(kinds)}); killed and survived: {dict(tried)}")


def test_the_harness_finds_a_pointer_that_was_not_flushed(twice, dying):
    """What the power cut model is worth: without any fsync, some cut leaves a version that is damaged, or a pointer to none."""
    stage, rng, found = "tokens", rng_for("no flush", seed=1, key="x"), 0
    for _ in range(6):
        twice.as_before(stage, published=True)
        dying.run(stage=stage, key=key_of(stage), logged=True)
        dying.log.write_text("".join(line for line in dying.log.read_text().splitlines(keepends=True) if line[0] != "S"))
        cut_power(dying.log, rng=rng)
        try:
            now = twice.place(stage).current()
            found += now is not None and now.damage() != []
        except (NotPublished, CorruptFile):
            found += 1
    assert found
