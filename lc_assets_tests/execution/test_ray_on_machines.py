"""A cluster of several machines, each with a network of its own: one loses its power, its cable is
cut, the head goes away.

Machines are network namespaces on a bridge; each node of Ray is on one, and so is the process that
asks. Needs root, ``ip`` and ``lc_assets[ray]``: ``pytest -s -m network
lc_assets_tests/execution/test_ray_on_machines.py``.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lc_assets_tests.builders import tiny_upstream
from lc_assets_tests.execution.clusters import (
    HASTY,
    cluster,
    environment,
    kill,
    machines,
    needs_machines,
    workers_of,
)

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),
    needs_machines,
]

ASKS_OFTEN = {
    "RAY_grpc_client_keepalive_time_ms": "15000",
    "RAY_grpc_client_keepalive_timeout_ms": "15000",
}
"""Whether anybody is at the other end of a cable; for long tasks it would be too often
(docs/clusters.md).
"""

TASK_SECONDS = "0.4"
"""What each task takes more, so that there is a middle to strike at."""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory, upstream):
    """Digests of the whole chain by two processes of this machine."""
    folder = tmp_path_factory.mktemp("here")
    return ended_well(drive("local", folder / "lake", upstream, folder, seconds="0"))


@pytest.fixture
def two_machines():
    with machines(2) as made:
        yield made


DRIVERS: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nobody_drives_on():
    """Processes that were begun end with their test."""
    yield
    for driver in DRIVERS:
        driver.kill()
        driver.wait()


def drive(
    executor: str,
    lake: object,
    upstream: object,
    folder: Path,
    *,
    before: Sequence[str] = (),
    seconds: str = TASK_SECONDS,
    **more: str,
):
    """Begin to build the whole chain, from a process on some machine."""
    command = [
        *before,
        sys.executable,
        "-m",
        "lc_assets_tests.execution.driving",
        executor,
        str(lake),
        str(upstream),
        str(folder),
        seconds,
    ]
    DRIVERS.append(
        subprocess.Popen(
            command,
            env=environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    return DRIVERS[-1]


def ended_well(driver: subprocess.Popen[str]) -> dict[str, str]:
    said, complained = driver.communicate(timeout=300)
    assert driver.returncode == 0, said + complained
    return json.loads(said.splitlines()[-1])


def strike(driver: subprocess.Popen[str], lake: Path, blow: Callable[[], object]) -> float:
    """Wait until the chain is in its middle, strike, and say when."""
    deadline = time.monotonic() + 200
    while not list(lake.glob("document_signatures/*/*/*.parquet")):
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    blow()
    return time.monotonic()


def test_a_machine_that_loses_its_power_changes_no_byte(two_machines, tmp_path, upstream, wanted):
    """The lake is a folder that all share; one of two machines goes away with all its processes, in
    the middle.
    """
    _, (here, there) = two_machines
    with cluster(here.host, **HASTY) as nodes:
        nodes.start_head(before=here.on_it, processors=1)
        node = nodes.start_worker(host=there.host, before=there.on_it)
        driver = drive(
            f"ray:{nodes.address}", tmp_path / "lake", upstream, tmp_path, before=here.on_it
        )
        at_work = []
        begun = strike(
            driver, tmp_path / "lake", lambda: (at_work.extend(workers_of(node)), kill(node))
        )
        assert ended_well(driver) == wanted
    assert at_work, "it was to work"
    print(
        f"\n{len(wanted)} partitions, the same bytes, {time.monotonic() - begun:.0f} s after one "
        "of two machines was lost"
    )


def test_a_cable_that_is_cut_changes_no_byte_of_a_lake_in_a_bucket(
    two_machines, tmp_path, upstream
):
    """Pages come from a bucket and the lake is one, on a server that both machines reach; one is
    cut off from all, in the middle.
    """
    from lc_assets_tests.bucket_server import BucketServer

    bridge, (here, there) = two_machines
    with BucketServer(host=bridge) as server:
        for path in upstream.rglob("*"):
            if path.is_file():
                server.storage.create_file(
                    "crawl",
                    f"pages/{path.relative_to(upstream)}",
                    path.read_bytes(),
                    described(path, upstream),
                )
        of_bucket = {
            "STORAGE_EMULATOR_HOST": server.url,
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            "GOOGLE_CLOUD_PROJECT": "test",
        }
        alone = drive(
            "local",
            "gs://crawl/alone",
            "gs://crawl/pages",
            tmp_path,
            seconds="0",
            **of_bucket,
            LC_CACHE=str(tmp_path / "alone"),
        )
        wanted = ended_well(alone)
        together = {**of_bucket, **ASKS_OFTEN, "LC_CACHE": str(tmp_path / "together")}
        with cluster(here.host, **HASTY, **together) as nodes:
            nodes.start_head(before=here.on_it, processors=1)
            nodes.start_worker(host=there.host, before=there.on_it)
            driver = drive(
                f"ray:{nodes.address}",
                "gs://crawl/lake",
                "gs://crawl/pages",
                tmp_path,
                before=here.on_it,
                **together,
            )
            begun = strike(driver, tmp_path / "together" / "crawl" / "lake", there.cut_off)
            assert ended_well(driver) == wanted
        print(
            f"\n{len(wanted)} partitions, the same bytes, {time.monotonic() - begun:.0f} s after "
            "one of two machines was cut off"
        )


def described(path: Path, upstream: Path) -> dict[str, object]:
    """What the emulator keeps of an object besides its bytes."""
    from gcp_storage_emulator.handlers.objects import _checksums, _make_object_resource

    name, content = f"pages/{path.relative_to(upstream)}", path.read_bytes()
    return _checksums(
        content, _make_object_resource("", "crawl", name, "application/octet-stream", len(content))
    )


@pytest.mark.parametrize("outside", [False, True], ids=["of the cluster", "by Ray's client"])
def test_a_head_that_goes_away_is_said_and_a_rerun_completes(
    two_machines, tmp_path, upstream, wanted, outside
):
    """One sentence, no traceback, within a minute; another cluster goes on with what was left."""
    _, (here, there) = two_machines
    with cluster(here.host, **HASTY) as nodes:
        head = nodes.start_head(
            *(["--ray-client-server-port=10001"] if outside else []),
            before=here.on_it,
            processors=1,
        )
        nodes.start_worker(host=there.host, before=there.on_it)
        address = f"ray://{here.host}:10001" if outside else f"ray:{nodes.address}"
        driver = drive(address, tmp_path / "lake", upstream, tmp_path, before=here.on_it)
        begun = strike(driver, tmp_path / "lake", lambda: kill(head))
        said, complained = driver.communicate(timeout=200)
        print(f"\nsaid {time.monotonic() - begun:.0f} s after the head was lost: {said.strip()}")
    assert driver.returncode == 1
    assert re.fullmatch(
        r"Unreachable: the cluster at \S+ went away while it worked: .*; run this again\n", said
    ), said
    assert "Traceback" not in complained
    finished = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "lake").glob("*/*/*/receipt.json")
    }
    assert 0 < len(finished) < len(wanted)
    with cluster(here.host, **HASTY) as nodes:
        nodes.start_head(before=here.on_it, processors=2)
        assert (
            ended_well(
                drive(
                    f"ray:{nodes.address}",
                    tmp_path / "lake",
                    upstream,
                    tmp_path,
                    before=here.on_it,
                    seconds="0",
                )
            )
            == wanted
        )
    assert finished == {path: path.stat().st_mtime_ns for path in finished}, (
        "what was done is not done again"
    )
