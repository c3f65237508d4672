"""Clusters of Ray for tests: nodes that one starts, kills and outlives, on loopback or on machines
that Linux makes up.

A machine is a network namespace with an address of its own on a bridge (`machines`); it needs root
and ``ip``. Every node has what Ray keeps in a folder of the test's own, and all that was started is
ended.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
HASTY = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
}
"""Who is gone is given up after seconds, not after a minute."""


def environment(**more: str) -> dict[str, str]:
    """Of what a test starts: this checkout first, no reports to anybody."""
    return {**os.environ, "PYTHONPATH": str(HERE), "RAY_USAGE_STATS_ENABLED": "0", **more}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass(slots=True)
class Cluster:
    """Nodes of one cluster, the head first.

    Attributes:
        address: host and port of its head.
        folder: where Ray keeps its own; short, for sockets lie there.
        nodes: processes that keep a node each.
        more: of the environment of nodes.
    """

    address: str
    folder: Path
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)

    def start_head(
        self, *options: str, before: Sequence[str] = (), processors: int = 0
    ) -> subprocess.Popen[bytes]:
        """The head, on the machine that the words ``before`` lead to."""
        host, _, port = self.address.rpartition(":")
        head = [
            "--head",
            f"--port={port}",
            f"--node-ip-address={host}",
            "--include-dashboard=false",
            f"--temp-dir={self.folder}",
        ]
        head += [f"--num-cpus={processors}", *options]
        return self._start([*before, *ray_start(), *head])

    def start_worker(
        self, *options: str, host: str = "127.0.0.1", before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """A node of one processor."""
        return self._start(
            [
                *before,
                *ray_start(),
                f"--address={self.address}",
                "--num-cpus=1",
                f"--node-ip-address={host}",
                *options,
            ]
        )

    @property
    def workers(self) -> list[int]:
        """Processes of all nodes that have or await a task."""
        return [worker for node in self.nodes for worker in workers_of(node)]

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a node and wait until it stands: two that start at once on one machine may take the
        same ports.
        """
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as said:
            self.nodes.append(
                subprocess.Popen(command, env=environment(**self.more), stdout=said, stderr=said)
            )
        deadline = time.monotonic() + 90
        while b"Ray runtime started" not in log.read_bytes():
            assert self.nodes[-1].poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        return self.nodes[-1]


def ray_start() -> list[str]:
    """Words that start a node which ends with its process."""
    ray = str(Path(sys.executable).parent / "ray")
    return [ray, "start", "--disable-usage-stats", "--block", "--object-store-memory=100000000"]


@contextlib.contextmanager
def cluster(host: str = "127.0.0.1", **more: str) -> Iterator[Cluster]:
    """A cluster without nodes; all that it is given are ended."""
    folder = Path(
        tempfile.mkdtemp(prefix="lc", dir="/tmp")
    )  # a path of a socket may have 107 bytes
    made = Cluster(f"{host}:{free_port()}", folder, more=more)
    try:
        yield made
    finally:
        if "ray" in sys.modules:
            sys.modules[
                "ray"
            ].shutdown()  # else Ray ends this process a minute after the head is gone
        for node in reversed(made.nodes):
            kill(node)
        shutil.rmtree(folder, ignore_errors=True)


def kill(node: subprocess.Popen[bytes]) -> None:
    """End a node and everything that it started, at once, as a machine ends that loses its
    power.
    """
    family = [node.pid, *descendants(node.pid)]
    for one in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    node.wait(30)


def descendants(ancestor: int) -> list[int]:
    """Processes that a process started, and those that these did, where Linux lists them."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [ancestor]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def workers_of(node: subprocess.Popen[bytes]) -> list[int]:
    """Processes of a node that have or await a task; a node ends with its agents, which are left
    alone.
    """
    found = []
    for process in descendants(node.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name = Path(f"/proc/{process}/cmdline").read_bytes()
            if name.startswith(b"ray::") and b"Agent" not in name:
                found.append(process)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Machine:
    """A made-up machine: ``host`` is its address, ``link`` this end of its cable."""

    name: str
    host: str
    link: str

    @property
    def on_it(self) -> list[str]:
        """Words before a command that is to run there."""
        return ["ip", "netns", "exec", self.name]

    def cut_off(self) -> None:
        """Cut its cable."""
        ip("link", "set", self.link, "down")

    def join_again(self) -> None:
        """Mend it."""
        ip("link", "set", self.link, "up")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


needs_machines = pytest.mark.skipif(
    shutil.which("ip") is None or os.geteuid() != 0, reason="needs root and ip, to make up machines"
)


@contextlib.contextmanager
def machines(count: int) -> Iterator[tuple[str, list[Machine]]]:
    """Some machines on a bridge, and the address that the bridge has on this one."""
    tag, net = (
        f"lc{secrets.token_hex(3)}",
        f"10.{os.getpid() % 250 + 1}.{time.time_ns() // 1000 % 250 + 1}",
    )
    made = [
        Machine(f"{tag}n{number}", f"{net}.{number + 10}", f"{tag}v{number}")
        for number in range(count)
    ]
    with contextlib.ExitStack() as stack:
        try:
            ip("link", "add", tag, "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no bridge can be made here: {error.stderr.decode()}")
        stack.callback(ip, "link", "del", tag)
        ip("addr", "add", f"{net}.1/24", "dev", tag)
        ip("link", "set", tag, "up")
        for machine in made:
            ip("netns", "add", machine.name)
            stack.callback(ip, "netns", "del", machine.name)
            ip(
                "link",
                "add",
                machine.link,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                machine.name,
            )
            ip("link", "set", machine.link, "master", tag)
            ip("link", "set", machine.link, "up")
            ip("-n", machine.name, "addr", "add", f"{machine.host}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", machine.name, "link", "set", device, "up")
        yield f"{net}.1", made
