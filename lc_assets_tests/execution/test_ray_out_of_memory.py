"""Memory that runs out on a cluster's worker: the kernel's killer in a group of bounded memory, and
Ray's own watch.

Needs ``lc_assets[ray]``, root and control groups (v1): ``pytest -m network
lc_assets_tests/execution/test_ray_out_of_memory.py``.
"""

import os
import time
from pathlib import Path

import pytest

from lc_assets.errors import WorkerDied
from lc_assets.execution.on_ray import RayExecutor
from lc_assets_tests.execution.clusters import cluster
from lc_assets_tests.execution.contract import QUICK
from lc_assets_tests.execution.work import chores, do_chore

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.network, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

GROUPS = Path("/sys/fs/cgroup/memory")
BOUND_BYTES = 2 << 30


@pytest.fixture
def group():
    """A group of processes that may have 2 GiB."""
    if os.geteuid() != 0 or not (GROUPS / "memory.limit_in_bytes").exists():
        pytest.skip("needs root and control groups of the first version")
    made = GROUPS / f"lc{os.getpid()}"
    made.mkdir()
    (made / "memory.limit_in_bytes").write_text(str(BOUND_BYTES))
    yield made
    deadline = time.monotonic() + 30
    while (made / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    made.rmdir()


@pytest.fixture(autouse=True)
def own_cluster():
    """One process has one cluster at a time."""
    ray.shutdown()
    yield
    ray.shutdown()


def test_a_task_that_the_kernel_kills_for_memory_is_tried_again_and_then_named(group, tmp_path):
    """It takes 16 GB, where its node has 2; what it takes once only, is done on the second try. The
    node lives on.
    """
    with cluster() as nodes:
        nodes.start_head()
        nodes.start_worker(
            before=["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        )
        executor = RayExecutor(address=nodes.address, policy=QUICK, folders=(tmp_path,))
        tasks = chores(tmp_path, "double", "swell_once", "double")
        assert dict(executor.run(do_chore, tasks, what="once")) == {
            task: 2 * task.number for task in tasks
        }
        assert tasks[1].begun == 2
        tasks = chores(tmp_path, "double", "double", "double", "swell")
        with pytest.raises(WorkerDied, match=r"^swell-3 cost 2 workers: the last was killed"):
            list(executor.run(do_chore, tasks, what="again"))
        assert tasks[3].begun == 2
        assert nodes.nodes[1].poll() is None


def test_a_task_that_ray_ends_for_memory_is_named(tmp_path):
    """A node whose watch finds that any use is too much ends the workers there."""
    with cluster(RAY_memory_usage_threshold="0.001", RAY_memory_monitor_refresh_ms="200") as nodes:
        nodes.start_head()
        nodes.start_worker()
        tasks = chores(tmp_path, "hang")
        with pytest.raises(WorkerDied, match=r"^hang-0 cost 2 workers: the last ran out of memory"):
            list(
                RayExecutor(address=nodes.address, policy=QUICK, folders=(tmp_path,)).run(
                    do_chore, tasks, what="watched"
                )
            )
