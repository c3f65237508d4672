"""The embedded engine: every task once, failures at once, a dead worker survived."""

import os
import signal
import subprocess
import sys
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
    """After two deaths the engine gives up and says which task it was."""
    with pytest.raises(WorkerDied, match="poison-. cost 2 workers: the last was killed"):
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


KILLED_AT_WORK = """
import time
from lc_assets.engines.local import LocalEngine
tasks = [0.001, 0.001, 60.0, 60.0]
for _ in LocalEngine(workers=2).run(time.sleep, tasks, what="sleep"):
    print("done", flush=True)
"""


def processes_of_session(leader: int) -> list[str]:
    """Numbers of the processes, ended ones aside, of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them")
def test_workers_end_when_the_process_that_started_them_is_killed():
    """SIGKILL to the parent while both workers are in a task of a minute: within seconds not one process is left."""
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_WORK], stdout=subprocess.PIPE, start_new_session=True, cwd=Path(__file__).parents[2]
    )
    with parent:
        assert [parent.stdout.readline(), parent.stdout.readline()] == [b"done\n"] * 2
        assert len(processes_of_session(parent.pid)) >= 4
        parent.kill()
    deadline = time.monotonic() + 20
    while (left := processes_of_session(parent.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in left:
        os.kill(int(process), signal.SIGKILL)
    assert left == []
