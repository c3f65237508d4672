"""The embedded executor: every task once, failures at once, a dead worker survived."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.progress import in_log
from lc_assets_tests.execution.contract import QUICK, ExecutorContract
from lc_assets_tests.execution.work import chores, do_chore
from lc_assets_tests.processes import (
    is_running,
    processes_of_session,
    state_of,
    wait_until,
    wait_until_session_ends,
)


class TestLocalExecutor(ExecutorContract):
    @pytest.fixture
    def executor_on(self):
        return lambda policy: LocalExecutor(workers=2, policy=policy)


class TestLocalExecutorOfWarmWorkers(ExecutorContract):
    @pytest.fixture
    def executor_on(self):
        def made(policy):
            executor = LocalExecutor(workers=2, policy=policy)
            list(executor.run(time.sleep, [0.01] * 4, what="warm"))
            return executor

        return made


def test_one_worker_is_this_very_process(tmp_path):
    """No process is started; faults that pass are tried again there too."""
    tasks = chores(tmp_path, "double", "stale_twice")
    assert list(LocalExecutor(policy=QUICK).run(do_chore, tasks, what="alone")) == [
        (tasks[0], 0),
        (tasks[1], 2),
    ]
    assert {path.suffix for path in tmp_path.iterdir()} == {f".{os.getpid()}"}


def test_a_worker_killed_while_it_has_nothing_to_do_costs_nobody(tmp_path):
    """The next task simply goes to another."""
    tasks = chores(tmp_path, *["double"] * 8)
    results = LocalExecutor(workers=1 + 1, policy=QUICK).run(do_chore, tasks, what="idle")
    found = dict([next(results)])
    wait_until(lambda: are_idle(tmp_path), "no worker has anything to do")
    workers = {int(path.suffix[1:]) for path in tmp_path.iterdir()}
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, workers)), f"{sorted(workers)} have ended")
    found |= dict(results)
    assert found == {task: 2 * task.number for task in tasks}
    assert {task.begun for task in tasks} == {1}


def are_idle(folder: Path) -> bool:
    """Whether every worker that has begun a task sleeps, and begins no other for half a second."""
    begun = sorted(folder.iterdir())
    for _ in range(50):
        time.sleep(0.01)
        workers = {int(path.suffix[1:]) for path in begun}
        if sorted(folder.iterdir()) != begun or {state_of(worker) for worker in workers} != {"S"}:
            return False
    return True


HUNG = """
import time
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
list(LocalExecutor(workers=2, policy=TaskPolicy(seconds=0.3, deaths=1)).run(time.sleep, [60.0, 60.0], what="sleep"))
"""


def test_where_a_task_hung_is_in_the_log():
    """The stack of the worker that was ended, to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", HUNG],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert "Timeout (0:00:00.3" in done.stderr
    assert "executor.py" in done.stderr
    assert (
        "WorkerDied: 60.0 cost 1 workers: the last was ended after 0.3 s, the log has its stack"
        in done.stderr
    )


@pytest.mark.slow
def test_workers_killed_again_and_again_change_no_result(tmp_path):
    """A worker every tenth of a second, until the end; prints what it cost."""
    n_tasks = 200
    tasks = chores(tmp_path, *["while"] * n_tasks)
    executor = LocalExecutor(workers=2, policy=TaskPolicy(deaths=20))
    done = threading.Event()
    killed = []

    def kill() -> None:
        while not done.wait(0.1):
            living = [
                path
                for path in tmp_path.glob("*.begun.*")
                if Path(f"/proc/{path.suffix[1:]}").exists()
            ]
            if (
                living
                and (victim := int(max(living, key=lambda path: path.stat().st_mtime).suffix[1:]))
                != os.getpid()
            ):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()
    found = dict(executor.run(do_chore, tasks, what="killed"))
    done.set()
    killer.join()
    begun = sum(task.begun for task in tasks)
    print(f"{len(killed)} workers killed over {n_tasks} tasks: {begun - n_tasks} begun again")
    assert found == {task: 2 * task.number for task in tasks}
    assert len(killed) > 10
    assert begun - n_tasks <= len(killed)


def test_zero_workers_are_refused():
    """A setting that can do nothing is an error, not a hang."""
    with pytest.raises(BadInput, match="at least 1"):
        LocalExecutor(workers=0)


def test_progress_says_what_how_far_and_how_fast():
    """The log's last line has the name, the count and the rate."""
    said = []
    executor = LocalExecutor(watch=in_log(said.append))
    list(executor.run(abs, range(5), what="halve 2023-06"))
    assert "halve 2023-06" in said[-1]
    assert "5/5" in said[-1]
    assert "tasks/s" in said[-1]
    assert not [line for line in said if "0/5" in line], "a line before any work says nothing"
    list(executor.run(abs, [], what="nothing"))
    assert "nothing" not in said[-1]


def test_progress_is_no_line_per_task(monkeypatch):
    """A thousand tasks in a moment: the last line alone. Where they last longer: a line in a while,
    each with rate and time left.
    """
    said = []
    list(LocalExecutor(watch=in_log(said.append)).run(abs, range(1000), what="count"))
    assert len(said) == 1
    assert "1000/1000" in said[0]
    said.clear()
    monkeypatch.setattr("lc_assets.execution.progress.LOG_EVERY_SECONDS", 0.1)
    begun = time.monotonic()
    list(LocalExecutor(watch=in_log(said.append)).run(time.sleep, [0.01] * 60, what="sleep"))
    assert 3 <= len(said) <= 2 + (time.monotonic() - begun) / 0.1
    for line in said:
        assert re.search(r"sleep: +\d+%\|.*\| \d+/60 \[00:\d\d<00:\d\d, +[\d.]+ tasks/s\]", line), (
            line
        )


def test_progress_counts_documents():
    """Of results that have counts, as those of shards."""

    def finished(n):
        return SimpleNamespace(counts=Counts(seen=1000 * n, kept=0, dropped={"short": 1000 * n}))

    said = []
    list(LocalExecutor(watch=in_log(said.append)).run(finished, [1, 2], what="filter"))
    assert re.search(r"2/2 \[.* tasks/s, 3,000 documents, [\d,]+/s\]", said[-1])


KILLED_AT_WORK = """
import time
from lc_assets.execution.local import LocalExecutor
tasks = [0.001, 0.001, 600.0, 600.0]
for _ in LocalExecutor(workers=2).run(time.sleep, tasks, what="sleep"):
    print("done", flush=True)
"""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them"
)
def test_workers_end_when_the_process_that_started_them_is_killed():
    """SIGKILL to the parent while both workers are in a task of ten minutes: not one process
    stays.
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_WORK],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    with parent:
        assert [parent.stdout.readline(), parent.stdout.readline()] == [b"done\n"] * 2
        assert len(processes_of_session(parent.pid)) >= 4
        parent.kill()
    wait_until_session_ends(parent.pid)
