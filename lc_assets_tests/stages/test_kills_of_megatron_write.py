"""SIGKILL at any call of `lc megatron write`, with and without the power: the old data set, none,
or the new one; and a rerun mends it.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from lc_assets.errors import CorruptFile
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.randomness import rng_for
from lc_assets_tests.kill_points import KillableRunner
from lc_assets_tests.lost_writes import cut_power

KILLS = 10
"""Of the plain run; the slow one takes each call in turn."""


def corpus(folder: Path, words: str) -> Path:
    """Three files of five documents."""
    folder.mkdir()
    for number in range(3):
        lines = [json.dumps({"text": f"{words} {number} {line}"}) for line in range(5)]
        (folder / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


class Place:
    """A data set's place, an old content and a new one."""

    def __init__(self, folder: Path, runner: KillableRunner) -> None:
        self.runner, self.prefix = runner, folder / "out" / "mine"
        self.old, self.new = (
            corpus(folder / "old", "an old text"),
            corpus(folder / "new", "a newer one of other words"),
        )
        self.whole = {}
        for source in (self.old, self.new):
            assert self.write(source).code == 0
            self.whole[source] = self.bytes()

    def write(self, source: Path, **how):
        return self.runner.run(source=str(source), prefix=str(self.prefix), **how)

    def bytes(self) -> tuple[bytes, ...]:
        return tuple(path(self.prefix).read_bytes() for path in (bin_path, idx_path))

    def survive(self, kill_at: int, rng, *, old: bool = True, cut: bool = True) -> bool:
        """Kill while the old is being replaced, or none; with the power cut, or not; whether it
        came to that.
        """
        shutil.rmtree(self.prefix.parent)
        if old:
            assert self.write(self.old).code == 0
        ended = self.write(self.new, kill_at=kill_at, logged=True)
        if cut:
            cut_power(self.runner.log, rng=rng)
        if idx_path(self.prefix).is_file() and bin_path(self.prefix).is_file():
            assert self.bytes() in self.whole.values()
            assert len(MegatronReader(self.prefix)) == 15
        else:
            with pytest.raises(CorruptFile):
                MegatronReader(self.prefix)
        again = self.write(self.new)
        assert (again.code, again.said) == (0, "")
        assert self.bytes() == self.whole[self.new]
        assert sorted(path.name for path in self.prefix.parent.iterdir()) == [
            "mine.bin",
            "mine.idx",
            "mine.receipt",
        ]
        return ended.killed


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("megatron")
    with KillableRunner(folder / "out", {}) as runner:
        yield Place(folder, runner)


def n_calls(place: Place) -> int:
    place.runner.warm(source=str(place.new), prefix=str(place.prefix))
    shutil.rmtree(place.prefix.parent)
    return place.write(place.new).calls


def test_kills_here_and_there(place):
    rng, last = rng_for("kills of megatron write", seed=64, key="sample"), n_calls(place)
    assert all(
        place.survive(int(kill_at), rng, cut=bool(kill_at % 2))
        for kill_at in rng.integers(1, last, size=KILLS)
    )


def test_a_kill_at_the_receipt_leaves_no_draft_for_ever(place):
    """The last calls of a run write the receipt; that draft lies beside the data set."""
    rng, last = rng_for("kills of megatron write", seed=64, key="receipt"), n_calls(place)
    for kill_at in range(last - 3, last):
        assert place.survive(kill_at, rng, cut=bool(kill_at % 2))


def survive_parts(place: Place, out: Path, kill_at: int, rng) -> bool:
    """Kill while parts are written, with the power cut every second time; what has an ``.idx`` is
    whole, a rerun does the rest.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    ended = place.runner.run(source=str(place.old), folder=str(out), kill_at=kill_at, logged=True)
    if kill_at % 2:
        cut_power(place.runner.log, rng=rng)
    assert all(len(MegatronReader(path.with_suffix(""))) == 5 for path in out.glob("[!.]*.idx"))
    assert place.runner.run(source=str(place.old), folder=str(out)).said == ""
    return ended.killed


def parts_that_survive(place: Place, key: str) -> tuple[Callable[[int], None], int]:
    """What kills a run at a call and asserts what a rerun ends with; and how many calls there
    are.
    """
    rng, out = (
        rng_for("kills of megatron write", seed=64, key=key),
        place.prefix.parent / "parts",
    )
    survive_parts(place, out, 0, rng)
    wanted = files_in(out)
    assert len(wanted) == 3 * 4  # .bin, .idx, .receipt and the memo
    shutil.rmtree(out)

    def assert_survived(kill_at: int) -> None:
        assert survive_parts(place, out, kill_at, rng)
        assert files_in(out) == wanted

    return assert_survived, place.runner.run(source=str(place.old), folder=str(out)).calls


def files_in(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_kills_while_parts_are_written(place):
    """A data set per file: the same files after every kill, no draft among them."""
    assert_survived, last = parts_that_survive(place, "parts")
    for kill_at in (*range(3, last, last // 4), last):
        assert_survived(kill_at)


@pytest.mark.slow
def test_kills_at_every_call_while_parts_are_written(place):
    assert_survived, last = parts_that_survive(place, "all parts")
    for kill_at in range(1, last + 1):
        assert_survived(kill_at)
    print(f"\nmegatron write, a data set per file: {last} calls, {last} kills, all survived")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kills_at_every_call(place):
    """Each call in turn, where an old data set stands, with and without the power; and where none
    does, with the power cut.
    """
    rng, last, killed = (
        rng_for("kills of megatron write", seed=64, key="all"),
        n_calls(place),
        Counter[str](),
    )
    for kill_at in range(1, last + 1):
        killed["at a call"] += place.survive(kill_at, rng, cut=False)
        killed["with a power cut"] += place.survive(kill_at, rng) + place.survive(
            kill_at, rng, old=False
        )
    print(f"\nmegatron write: {last} calls; {dict(killed)}, all survived")
    assert killed.total() >= 3 * last - 4  # with an old data set its folder need not be made
