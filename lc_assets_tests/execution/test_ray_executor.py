"""The cluster executor on a real cluster: a head and two workers of Ray on this machine, talked to
over loopback.

Needs ``lc_assets[ray]``: ``pytest -m network lc_assets_tests/execution/test_ray_executor.py``.
"""

import contextlib
import functools
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace

import pytest
from numpy.random import default_rng

from lc_assets.builds.building import WORKERS_IMPORT
from lc_assets.errors import BadInput, LcError, Unreachable, WorkerUnfit
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets.execution.on_ray import RayExecutor, executor_at
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_context, tiny_upstream
from lc_assets_tests.execution import clusters
from lc_assets_tests.execution.contract import QUICK, ExecutorContract
from lc_assets_tests.execution.driving import Slowly
from lc_assets_tests.execution.test_containment import ContainmentContract
from lc_assets_tests.execution.work import chores, do_chore, process_after
from lc_assets_tests.faults import build_snapshot, digests

pytest.importorskip("ray")
pytestmark = [pytest.mark.network, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def nodes():
    """A head without processors and two workers of one each: three nodes of Ray, each with a raylet
    of its own.
    """
    with clusters.cluster() as made:
        made.start_head()
        made.start_worker()
        made.start_worker()
        yield made


@pytest.fixture(scope="module")
def cluster(nodes):
    """Its address."""
    return nodes.address


class OnRay:
    @pytest.fixture
    def executor_on(self, cluster, tmp_path):
        return lambda policy: RayExecutor(
            address=cluster, policy=policy, folders=(tmp_path,), libraries=("numpy",)
        )


class TestRayExecutor(OnRay, ExecutorContract):
    """What holds for every executor."""

    def test_a_worker_that_dies_once_costs_its_own_task_again_and_nothing_else(
        self, executor_on, tmp_path
    ):
        """Or the short tasks that were sent with it, each of which is then sent alone."""
        tasks = chores(tmp_path, *["double"] * 100, "die_once", *["double"] * 100)
        found = dict(executor_on(replace(QUICK, deaths=1)).run(do_chore, tasks, what="chores"))
        assert found == {task: 2 * task.number for task in tasks}
        assert {task.begun for task in tasks} == {1, 2}


class TestContainmentOnRay(OnRay, ContainmentContract):
    """Hostile documents in a child process of a Ray worker."""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def of_this_machine(tmp_path_factory, upstream):
    """Digests of the whole chain by two processes of this machine, and the seconds that it took,
    begun warm.
    """
    for name in ("warm", "here"):
        here = tiny_context(tmp_path_factory.mktemp(name), upstream=upstream)
        here = replace(here, executor=LocalExecutor(workers=2, preload=WORKERS_IMPORT))
        begun = time.monotonic()
        built = digests(build_all(here))
    return built, time.monotonic() - begun


def on_cluster(folder, upstream, address, *, deaths=2):
    """A context whose shards are done on the cluster."""
    there = tiny_context(folder, upstream=upstream)
    executor = RayExecutor(
        address=address,
        folders=(there.lake.root.resolve(),),
        sees=(upstream,),
        policy=TaskPolicy(deaths=deaths),
    )
    return replace(there, executor=executor)


def test_the_whole_chain_has_the_bytes_of_this_machine(
    cluster, tmp_path, upstream, of_this_machine
):
    """Every stage of the chain, its shards on two workers of the cluster; prints what the cluster
    cost.
    """
    wanted, here = of_this_machine
    for name in ("warm", "there"):
        begun = time.monotonic()
        found = digests(build_all(on_cluster(tmp_path / name, upstream, cluster)))
        there = time.monotonic() - begun
    print(
        f"\n{len(found)} partitions: two processes here {here:.1f} s, two workers of the cluster "
        f"{there:.1f} s"
    )
    assert found == wanted


def test_the_driver_is_idle_while_short_tasks_run(cluster):
    """CPU of the driver: at most a twentieth of a run of many short tasks by two workers, and two
    milliseconds of an empty task, which takes no longer by the clock either.
    """
    executor = RayExecutor(address=cluster)
    tasks = {abs: range(1_000), process_after: [0.02] * 1_500}
    shares, by_task = {}, {}
    for function, given in (*tasks.items(), *tasks.items()):  # the second time all is imported
        begun, used = time.perf_counter(), time.process_time()
        found = list(executor.run(function, given, what="short"))
        seconds, used = time.perf_counter() - begun, time.process_time() - used
        assert len(found) == len(given)
        shares[function], by_task[function] = used / seconds, 1e3 * seconds / len(given)
        print(f"{function.__name__}: {by_task[function]:.2f} ms, driver {shares[function]:.1%}")
    assert by_task[abs] < 2
    assert shares[process_after] < 0.05


def test_a_password_of_the_upstream_is_in_no_log_of_the_cluster(
    nodes, cluster, tmp_path, upstream, capfd
):
    """Tasks carry it to the workers; what they print, what they fail with, and what Ray writes down
    does not.
    """
    secret = "planted-pa55word-of-a-cluster"  # noqa: S105
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0),
        functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(upstream)),
    )
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    try:
        there = replace(
            on_cluster(tmp_path, upstream, cluster),
            upstream=Upstream(f"http://me:{secret}@127.0.0.1:{server.server_port}"),
        )
        assert build_snapshot(there, SNAPSHOTS[0], ["raw_snapshot"])
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(LcError) as caught:  # nobody answers there any more
        build_snapshot(there, SNAPSHOTS[0], ["filtered_documents"])
    said = (
        "".join(traceback.format_exception(caught.value))
        + repr(caught.value)
        + "".join(capfd.readouterr())
    )
    assert "127.0.0.1" in said
    assert secret not in said
    written = [
        path for top in (nodes.folder, tmp_path) for path in top.rglob("*") if path.is_file()
    ]
    assert written
    assert not [path for path in written if secret.encode() in path.read_bytes()]


@dataclass(frozen=True)
class Watched:
    """An executor that says when a task has ended: a new worker may need longer than the pause
    between two kills to do its first one.
    """

    executor: Slowly
    has_result: threading.Event

    def run(self, function, tasks, *, what):
        for found in self.executor.run(function, tasks, what=what):
            self.has_result.set()
            yield found


def test_workers_killed_while_the_chain_is_built_change_no_byte(
    nodes, cluster, tmp_path, upstream, of_this_machine
):
    """One of the workers of the cluster, at random, three seconds after the last one and once a task
    has ended since, until the end; each task is made to take half a second.
    """
    there, done, killed, chance = (
        on_cluster(tmp_path, upstream, cluster, deaths=50),
        threading.Event(),
        [],
        default_rng(64),
    )
    executor = Watched(Slowly(there.executor, 0.5), threading.Event())

    def kill() -> None:
        while not done.wait(3.0):
            if executor.has_result.is_set() and (living := nodes.workers):
                executor.has_result.clear()
                killed.append(int(chance.choice(living)))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    begun = time.monotonic()
    try:
        found = digests(build_all(replace(there, executor=executor)))
    finally:
        done.set()
        killer.join()
    print(
        f"\n{len(killed)} workers killed while {len(found)} partitions were built in "
        f"{time.monotonic() - begun:.0f} s"
    )
    assert found == of_this_machine[0]
    assert len(set(killed)) >= 10


def test_workers_killed_again_and_again_change_no_result(cluster, tmp_path):
    """A worker every second until the end; prints what it cost."""
    n_tasks = 300
    tasks = chores(tmp_path, *["while"] * n_tasks)
    done = threading.Event()
    killed = []

    def kill() -> None:
        while not done.wait(1.0):
            recent = sorted(tmp_path.glob("*.begun.*"), key=lambda path: path.stat().st_mtime)[-1:]
            for path in recent:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.suffix[1:]), signal.SIGKILL)
                    killed.append(path)

    killer = threading.Thread(target=kill)
    killer.start()
    begun = time.monotonic()
    found = dict(
        RayExecutor(address=cluster, policy=TaskPolicy(deaths=20), folders=(tmp_path,)).run(
            do_chore, tasks, what="killed"
        )
    )
    done.set()
    killer.join()
    n_begun = sum(task.begun for task in tasks)
    print(
        f"{len(killed)} workers killed over {n_tasks} tasks in {time.monotonic() - begun:.0f} s: "
        f"{n_begun - n_tasks} begun again"
    )
    assert found == {task: 2 * task.number for task in tasks}
    assert killed


def test_a_worker_with_other_code_is_refused(cluster, tmp_path, monkeypatch):
    """The process that asks has another version than the workers."""
    monkeypatch.setattr("lc_assets.execution.environment.code_digest", lambda: "0" * 64)
    tasks = chores(tmp_path, "double")
    with pytest.raises(
        WorkerUnfit,
        match="has another version of lc_assets: give it that of the submitting process",
    ):
        list(
            RayExecutor(address=cluster, folders=(tmp_path,)).run(
                do_chore, tasks, what="other code"
            )
        )
    assert tasks[0].begun == 0


def test_a_cluster_without_workers_is_waited_for_and_then_said(tmp_path, cluster):
    """No worker has so many processors."""
    executor = RayExecutor(address=cluster, processors=64, patience=0.0, policy=QUICK)
    with pytest.raises(Unreachable, match="the cluster has had no worker of 64 processors"):
        list(executor.run(do_chore, chores(tmp_path, "double"), what="too large"))


NOBODY_THERE = """
from lc_assets.execution.on_ray import executor_at
list(executor_at("{address}").run(abs, [1], what="nobody"))
"""


@pytest.mark.parametrize(
    "address", ["ray:127.0.0.1:1", "ray://127.0.0.1:1", "ray:no-such-host.invalid:6379"]
)
def test_an_address_that_does_not_answer_is_said(address):
    """In a process of its own: one process has one cluster."""
    environment = clusters.environment()
    code = NOBODY_THERE.format(address=address)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )
    assert "lc_assets.errors.Unreachable: no Ray cluster answers at" in done.stderr
    assert "is it started, and is the address that of its head?" in done.stderr


def test_without_ray_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"pip install 'lc_assets\[ray\]'"):
        list(executor_at("ray").run(abs, [1], what="nothing"))


HIDDEN = """
mount -t tmpfs none {folder}
exec {ray} --address={address} --num-cpus=1 --resources='{{"blind": 1}}' --node-ip-address=127.0.0.1
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0,
    reason="needs a namespace of its own for mounts",
)
def test_a_worker_that_does_not_see_the_lake_is_refused(cluster, tmp_path):
    """A node whose mounts hide the folder; the one task that only it can take is not begun."""
    script = HIDDEN.format(folder=tmp_path, address=cluster, ray=" ".join(clusters.ray_start()))
    environment = clusters.environment()
    node = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        import ray

        deadline = time.monotonic() + 30
        while "blind" not in ray.cluster_resources() and time.monotonic() < deadline:
            time.sleep(0.2)
        tasks = chores(tmp_path, *["while"] * 60)
        with pytest.raises(
            WorkerUnfit,
            match=f"does not see {tmp_path}: mount the same folder there under the same path",
        ):
            list(
                RayExecutor(address=cluster, folders=(tmp_path,)).run(do_chore, tasks, what="blind")
            )
    finally:
        clusters.kill(node)
