"""Workers that stay for the next run: who gets them, who does not, and that none is left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from lc_assets.errors import CorruptFile
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.processes import ALIVE, IDLE_POOL
from lc_assets_tests.execution.work import chores, do_chore, process_after, process_beside
from lc_assets_tests.processes import (
    HANG_SECONDS,
    processes_of_session,
    wait_until,
    wait_until_session_ends,
)

EXECUTOR = LocalExecutor(workers=2)


@pytest.fixture(autouse=True)
def own_pool():
    """No idle worker is there before a test, and none after."""
    IDLE_POOL.clear()
    yield
    IDLE_POOL.clear()


def variable(name: str) -> tuple[int, str | None]:
    time.sleep(0.05)
    return os.getpid(), os.environ.get(name)


def workers_of(executor: LocalExecutor) -> set[int]:
    """Return the processes of all workers of a run."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(Path(folder), executor.workers)] * executor.workers
        return {process for _, process in executor.run(process_beside, tasks, what="meet")}


def is_there(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def wait_until_gone(processes: set[int]) -> None:
    wait_until(lambda: not any(map(is_there, processes)), f"{sorted(processes)} have ended")


def test_the_next_run_has_the_same_workers():
    first = workers_of(EXECUTOR)
    assert workers_of(EXECUTOR) == first
    assert workers_of(LocalExecutor(workers=2)) == first, "executors share them"
    assert len(workers_of(LocalExecutor(workers=3)) & first) == 2


def test_workers_without_work_are_ended_after_a_while(monkeypatch):
    monkeypatch.setattr(IDLE_POOL, "seconds", 5.0)
    workers = workers_of(EXECUTOR)
    assert all(map(is_there, workers))
    wait_until_gone(workers)
    assert not ALIVE
    assert len(workers_of(EXECUTOR)) == 2


def test_who_wants_other_modules_or_stands_elsewhere_gets_others(tmp_path, monkeypatch):
    """Modules imported first, working folder, search path: each change gives new workers, and the
    change undone the old ones.
    """
    first = workers_of(EXECUTOR)
    assert not workers_of(LocalExecutor(workers=2, preload=("json",))) & first
    with monkeypatch.context() as changed:
        changed.chdir(tmp_path)
        assert not workers_of(EXECUTOR) & first
    with monkeypatch.context() as changed:
        changed.syspath_prepend(tmp_path)
        assert not workers_of(EXECUTOR) & first
    assert workers_of(EXECUTOR) == first


def test_workers_have_the_environment_of_the_run(monkeypatch):
    """Not that of an earlier run, nor that of the server which forks them."""
    for value in ("one", "two"):
        monkeypatch.setenv("LC_TEST_VARIABLE", value)
        assert {
            found for _, (_, found) in EXECUTOR.run(variable, ["LC_TEST_VARIABLE"] * 4, what="ask")
        } == {value}
    monkeypatch.delenv("LC_TEST_VARIABLE")
    assert {
        found for _, (_, found) in EXECUTOR.run(variable, ["LC_TEST_VARIABLE"] * 4, what="ask")
    } == {None}


def blocked_signals(_: int) -> list[int]:
    return sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_never_end_by_a_keyboard_interrupt(monkeypatch, method):
    """They block it from their first instruction on; this process does not."""
    monkeypatch.setattr(IDLE_POOL, "method", method)  # the second after a fork
    assert {tuple(found) for _, found in EXECUTOR.run(blocked_signals, [0] * 4, what="ask")} == {
        (signal.SIGINT,)
    }
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_waits_until_a_worker_has_started(monkeypatch, number):
    """Also one that another thread receives: a worker that is started by halves ends with a
    traceback.
    """
    submit, started, stopped = ProcessPoolExecutor.submit, [], threading.Event()
    other = threading.Thread(target=stopped.wait)
    other.start()

    def interrupted(self, *given):
        signal.pthread_kill(other.ident, number)
        assert other.is_alive()  # a moment for the signal
        started.append(submit(self, *given))
        return started[-1]

    def stop(*_):
        assert started
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    before = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(EXECUTOR.run(blocked_signals, [0] * 4, what="ask"))
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
        stopped.set()


def test_workers_killed_between_two_runs_cost_nobody(tmp_path):
    workers = workers_of(EXECUTOR)
    for process in workers:
        os.kill(process, signal.SIGKILL)
    wait_until_gone(workers)
    tasks = chores(tmp_path, *["double"] * 4)
    assert dict(EXECUTOR.run(do_chore, tasks, what="double")) == {
        task: 2 * task.number for task in tasks
    }
    assert {task.begun for task in tasks} == {1}


def test_workers_of_a_run_that_is_broken_off_or_fails_are_ended(tmp_path):
    workers = workers_of(EXECUTOR)
    results = EXECUTOR.run(process_after, [0.05, 600.0, 600.0], what="sleep")
    next(results)
    results.close()
    wait_until_gone(workers)
    workers = workers_of(EXECUTOR)
    with pytest.raises(CorruptFile):
        list(EXECUTOR.run(do_chore, chores(tmp_path, "fail", "hang"), what="fail"))
    wait_until_gone(workers)
    assert not ALIVE


def test_runs_of_many_threads_have_workers_of_their_own(tmp_path):
    """Eight runs at once, again and again: each has its results, and no worker two tasks at a
    time.
    """
    found = []

    def run(number: int) -> None:
        for _ in range(3):
            tasks = chores(tmp_path / str(number), *["double"] * 6)
            found.append(
                dict(EXECUTOR.run(do_chore, tasks, what="double"))
                == {task: 2 * task.number for task in tasks}
            )

    for number in range(8):
        (tmp_path / str(number)).mkdir()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 24
    assert len(ALIVE) <= 16


FROM_THERE = """
import sys, time
from lc_assets.execution.local import LocalExecutor
if __name__ == "__main__":
    results = LocalExecutor(workers=2, preload=("lc_assets.execution.executor",)).run(time.sleep, [0.01] * 4, what="sleep")
    print(len(list(results)))
"""
PLANTED = """
import os
open(os.path.join({folder!r}, "imported"), "a").write(__name__)
"""


def test_nothing_is_imported_from_where_one_happens_to_be(tmp_path):
    """A folder with modules of well-known names: who works there by a script gets none of them,
    neither here nor in workers.
    """
    (tmp_path / "there").mkdir()
    for name in ("lc_assets", "multiprocessing", "socket", "tenacity", "selectors"):
        (tmp_path / "there" / f"{name}.py").write_text(PLANTED.format(folder=str(tmp_path)))
    (tmp_path / "script.py").write_text(FROM_THERE)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path / "there",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=HANG_SECONDS,
    )
    assert (done.stdout, done.stderr) == ("4\n", "")
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()


TWO_RUNS = """
import os, time
from lc_assets.execution.local import LocalExecutor
for _ in range(2):
    list(LocalExecutor(workers=2).run(time.sleep, [0.01] * 4, what="sleep"))
{then}
"""
FORKED = """
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(read)
    print(len(list(LocalExecutor(workers=2).run(abs, [-1] * 4, what="in the child"))), flush=True)
    os.close(write)
    time.sleep(600)
    os._exit(0)
os.close(write)
os.read(read, 1)
from lc_assets_tests.execution.test_processes import EXECUTOR, workers_of
print(child, *workers_of(EXECUTOR), flush=True)
os.kill(os.getpid(), 9)
"""
linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them"
)


def started(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )


@linux
@pytest.mark.parametrize(
    ("then", "code"), [("", 0), ("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9)]
)
def test_workers_end_with_the_interpreter(then, code):
    """It waits for no idle worker and leaves none, however it ends."""
    with started(TWO_RUNS.format(then=then)) as process:
        said = process.communicate(timeout=HANG_SECONDS)[1]
    assert process.returncode == code
    wait_until_gone({int(left) for left in processes_of_session(process.pid)})
    assert "Traceback" not in said


@linux
def test_a_fork_has_its_own_workers_and_keeps_none_of_its_parents_alive():
    """Both work; when the parent is killed, its workers end, although its child lives on and had
    their pipes.
    """
    with started(TWO_RUNS.format(then=FORKED)) as process:
        in_child, (child, *in_parent) = (
            process.stdout.readline(),
            map(int, process.stdout.readline().split()),
        )
        try:
            assert (in_child, len(in_parent)) == ("4\n", 2)
            process.wait(HANG_SECONDS)
            wait_until_gone(set(in_parent))
            assert is_there(child)
        finally:
            os.kill(child, signal.SIGKILL)
    wait_until_gone({int(left) for left in processes_of_session(process.pid)})


IN_A_CHILD = """
import multiprocessing, signal, sys

def run(folder, *kinds):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in background
    from pathlib import Path
    from lc_assets.execution.local import LocalExecutor
    from lc_assets_tests.execution.work import chores, do_chore
    list(LocalExecutor(workers=2).run(do_chore, chores(Path(folder), *kinds), what="meet"))

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=run, args=sys.argv[1:])
    child.start()
    print(child.pid, flush=True)
    child.join()
    sys.exit(child.exitcode)
"""


@linux
@pytest.mark.parametrize(("kind", "code"), [("double", 0), ("fail", 1), ("hang", 1)])
def test_a_process_that_multiprocessing_started_ends_with_its_workers(tmp_path, kind, code):
    """As the code server of Dagster starts a run: when it has succeeded, failed or was
    interrupted.
    """
    script = tmp_path / "run.py"
    script.write_text(IN_A_CHILD)
    tasks = chores(tmp_path, kind, kind)
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), kind, kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        child = int(process.stdout.readline())
        if kind == "hang":
            wait_until(lambda: all(task.begun for task in tasks), "both tasks hang")

            def interrupted() -> bool:  # again: Python ignores one that arrives in a callback
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGINT)
                return not processes_of_session(process.pid)

            wait_until(interrupted, "the run has ended", every=5)
        wait_until_session_ends(process.pid)
    assert process.returncode == code
