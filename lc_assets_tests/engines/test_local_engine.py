"""The embedded engine: every task once, failures at once, a dead worker survived."""

import os
import signal
import time
from pathlib import Path

import pytest

from lc_assets.engines.local import LocalEngine
from lc_assets.engines.progress import in_log
from lc_assets.errors import BadInput, CorruptFile, WorkerDied


def double(number):
    return 2 * number


def fail_on_three(number):
    if number == 3:
        raise CorruptFile("task 3 is no good")
    return number


def die_once(path):
    marker = Path(path)
    if marker.name.startswith("bad") and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return marker.name


def always_die(task):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_gets_its_own_result(workers):
    """In one process or in two, the pairs are the same."""
    found = LocalEngine(workers=workers).run(double, range(20), what="double")
    assert sorted(found) == [(number, 2 * number) for number in range(20)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_is_raised_as_itself(workers):
    """A task's own error arrives, with its type and words."""
    with pytest.raises(CorruptFile, match="task 3 is no good"):
        list(LocalEngine(workers=workers).run(fail_on_three, range(6), what="fail"))


def test_a_worker_that_dies_once_costs_nothing_but_time(tmp_path):
    """The tasks of a killed worker are done again, and each result is given once."""
    tasks = [str(tmp_path / name) for name in ("a", "bad", "c", "d")]
    found = list(LocalEngine(workers=2).run(die_once, tasks, what="die once"))
    assert sorted(result for _, result in found) == ["a", "bad", "c", "d"]


def test_a_task_that_always_kills_its_worker_is_named():
    """After two deaths the engine gives up and says which tasks were in hand."""
    with pytest.raises(WorkerDied, match="killed 2 times .* poison-"):
        list(LocalEngine(workers=2).run(always_die, ["poison-1", "poison-2"], what="die"))


def test_no_task_is_no_work():
    """An empty snapshot is finished at once."""
    assert list(LocalEngine(workers=2).run(double, [], what="nothing")) == []


def test_zero_workers_are_refused():
    """A setting that can do nothing is an error, not a hang."""
    with pytest.raises(BadInput, match="at least 1"):
        LocalEngine(workers=0)


def test_progress_says_what_how_far_and_how_fast():
    """The log's last line has the name, the count and the rate."""
    said = []
    engine = LocalEngine(watch=in_log(said.append))
    started = time.perf_counter()
    list(engine.run(double, range(5), what="double 2023-06"))
    assert time.perf_counter() - started < 5
    assert "double 2023-06" in said[-1]
    assert "5/5" in said[-1]
    assert "tasks/s" in said[-1]
