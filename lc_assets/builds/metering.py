"""Metering builds: CPU seconds and memory of this process and of the workers that ran its tasks.
Receipts record them.
"""

import contextlib
import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class Spent(msgspec.Struct, frozen=True):
    """Resources used by a task: CPU seconds, the peak memory of its process in MiB, and wall-clock
    seconds; ``process`` is the process id.
    """

    process: int
    cpu_seconds: float
    peak_rss_mb: float
    seconds: float = 0.0


@dataclass(slots=True)
class Meter:
    """Resources used by the tasks of a build, in all processes.

    Attributes:
        spent: of each task.
        shards_computed: number of shards computed.
        shards_reused: number of shards reused from an older version.
        bytes_read: size of the inputs of the computed shards, or of all inputs where a stage has no
            shards.
    """

    spent: list[Spent] = field(default_factory=list)
    shards_computed: int = 0
    shards_reused: int = 0
    bytes_read: int = 0


def metered(function: Callable[[Task], Answer], task: Task) -> tuple[Answer, Spent]:
    """Run a task; return its result and the resources used."""
    wall, before = time.perf_counter(), usage().cpu_seconds
    answer = function(task)
    after, seconds = usage(), time.perf_counter() - wall
    return answer, Spent(os.getpid(), after.cpu_seconds - before, after.peak_rss_mb, seconds)


@contextlib.contextmanager
def measured_by(meter: Meter) -> Iterator[dict[str, float]]:
    """Measure a block together with the tasks of its meter; the mapping is filled at the end."""
    measured: dict[str, float] = {}
    wall, before = time.perf_counter(), usage()
    yield measured
    now = usage()
    others = [spent for spent in meter.spent if spent.process != os.getpid()]
    cpu_seconds = now.cpu_seconds - before.cpu_seconds + sum(spent.cpu_seconds for spent in others)
    measured["seconds"] = round(time.perf_counter() - wall, 3)
    measured["cpu_seconds"] = round(cpu_seconds, 3)
    measured["peak_rss_mb"] = round(max(spent.peak_rss_mb for spent in (now, *others)), 1)
    measured["bytes_read"] = float(meter.bytes_read)
    if meter.shards_computed or meter.shards_reused:
        measured["shards_computed"] = float(meter.shards_computed)
        measured["shards_reused"] = float(meter.shards_reused)


def usage() -> Spent:
    """Resources used by this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Spent(
        os.getpid(), used.ru_utime + used.ru_stime, (_peak_of_program() or used.ru_maxrss) / 1024
    )


def _peak_of_program() -> int:
    """Peak memory of this program in KiB, 0 where Linux does not report it: getrusage of a worker
    includes what its parent held.
    """
    found = None
    with contextlib.suppress(OSError):
        found = re.search(
            r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii", "replace")
        )
    return int(found[1]) if found else 0
