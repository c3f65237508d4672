"""What an executor costs per task: the embedded one against a plain pool of processes, and a
cluster's against the embedded one.
"""

import multiprocessing
import time
from dataclasses import replace

import pytest

from lc_assets.builds.building import WORKERS_IMPORT
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.processes import IDLE_POOL
from lc_assets_tests.builders import build_all, tiny_context, tiny_upstream

TASKS = 4_000
SHARDS, SHARD_SECONDS = 60, 0.02


def wall_seconds(work):
    """Wall time of work, after it was done once with little."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def test_a_task_costs_little_more_than_in_a_plain_pool():
    """Tasks of nothing, then tasks of 20 ms, by two processes; start included."""
    executor = LocalExecutor(workers=2)

    def plainly(function, tasks):
        with multiprocessing.get_context("forkserver").Pool(2) as pool:
            return list(pool.imap_unordered(function, tasks))

    for function, tasks in ((abs, range(TASKS)), (time.sleep, [SHARD_SECONDS] * SHARDS)):
        list(executor.run(function, tasks[:2], what="warm"))
        ours = wall_seconds(lambda: list(executor.run(function, tasks, what="ours")))  # noqa: B023
        theirs = wall_seconds(lambda: plainly(function, tasks))  # noqa: B023
        overhead = (ours - theirs) / len(tasks)
        print(
            f"\n{len(tasks):,} × {function.__name__}: ours {ours:.2f} s, plain pool {theirs:.2f} "
            f"s: {overhead * 1e6:+,.0f} µs per task"
        )
        assert overhead < 0.005


def test_a_run_after_another_starts_no_workers():
    """Twenty short runs, by workers that stay from one to the next, and by new ones for each."""
    executor, n_runs = LocalExecutor(workers=2), 20

    def runs(between):
        for _ in range(n_runs):
            assert len(list(executor.run(abs, range(4), what="short"))) == 4
            between()

    runs(lambda: None)
    staying, anew = (
        wall_seconds(lambda: runs(lambda: None)) / n_runs,
        wall_seconds(lambda: runs(IDLE_POOL.clear)) / n_runs,
    )
    print(
        f"\na run of 4 tasks: {staying * 1e3:.1f} ms by workers that stay, {anew * 1e3:.0f} ms by "
        "new ones"
    )
    assert staying < anew / 3


class Anew:
    """An executor whose workers start anew for every run."""

    def __init__(self, executor):
        self.executor = executor

    def run(self, function, tasks, *, what):
        yield from self.executor.run(function, tasks, what=what)
        IDLE_POOL.clear()


@pytest.mark.slow
def test_a_tiny_lake_by_workers_that_stay(tmp_path):
    """The whole chain, some thirty partitions of a few kB: what is waited for is workers."""
    executor, upstream, seconds = (
        LocalExecutor(workers=2, preload=WORKERS_IMPORT),
        tiny_upstream(tmp_path / "upstream"),
        {},
    )
    for name, chosen in (("first", executor), ("staying", executor), ("anew", Anew(executor))):
        context = replace(tiny_context(tmp_path / name, upstream=upstream), executor=chosen)
        begun = time.perf_counter()
        built = build_all(context)
        seconds[name] = time.perf_counter() - begun
    print(
        f"\n{len(built)} partitions: {seconds['staying']:.1f} s by workers that stay, "
        f"{seconds['anew']:.1f} s by new ones for every run"
    )
    assert seconds["staying"] < seconds["anew"] / 2
