"""What work takes: CPU seconds and memory, of this process and of the workers that did its tasks.

Here: measuring. Not here: what is measured (`lc_assets.build.building`), showing it (receipts, `lc
    plan`, the UI).
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
    """What a task took: CPU seconds, the highest memory its process (by number) has reached, in
    MiB, and seconds by the clock.
    """

    process: int
    cpu_seconds: float
    peak_rss_mb: float
    seconds: float = 0.0


@dataclass(slots=True)
class Meter:
    """What the tasks of a build took, in whatever process they ran.

    Attributes:
        spent: by each task.
        shards_computed: how many shards were done.
        shards_taken_over: how many an older version held.
        bytes_read: size of what was read for the shards that were done, or for the whole version
            where there are no shards.
    """

    spent: list[Spent] = field(default_factory=list)
    shards_computed: int = 0
    shards_taken_over: int = 0
    bytes_read: int = 0

    def add(self, spent: Spent) -> None:
        """Note one task."""
        self.spent.append(spent)


def metered(function: Callable[[Task], Answer], task: Task) -> tuple[Answer, Spent]:
    """Do a task and say what it took."""
    wall, before = time.perf_counter(), usage().cpu_seconds
    answer = function(task)
    after = usage()
    return answer, Spent(
        os.getpid(), after.cpu_seconds - before, after.peak_rss_mb, time.perf_counter() - wall
    )


@contextlib.contextmanager
def measured_by(meter: Meter) -> Iterator[dict[str, float]]:
    """Measure a block, and the tasks that its meter was told of in other processes; the mapping is
    filled when the block ends.
    """
    measured: dict[str, float] = {}
    wall, before = time.perf_counter(), usage()
    yield measured
    now = usage()
    others = [spent for spent in meter.spent if spent.process != os.getpid()]
    measured["seconds"] = round(time.perf_counter() - wall, 3)
    measured["cpu_seconds"] = round(
        now.cpu_seconds - before.cpu_seconds + sum(spent.cpu_seconds for spent in others), 3
    )
    measured["peak_rss_mb"] = round(max(spent.peak_rss_mb for spent in (now, *others)), 1)
    measured["bytes_read"] = float(meter.bytes_read)
    if meter.shards_computed or meter.shards_taken_over:
        measured["shards_computed"] = float(meter.shards_computed)
        measured["shards_taken_over"] = float(meter.shards_taken_over)


def usage() -> Spent:
    """What this process has taken so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Spent(
        os.getpid(), used.ru_utime + used.ru_stime, (_peak_of_program() or used.ru_maxrss) / 1024
    )


def _peak_of_program() -> int:
    """KiB that this program held at most, 0 where Linux does not say: getrusage goes on from what a
    worker's parent had held.
    """
    found = None
    with contextlib.suppress(OSError):
        found = re.search(
            r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii", "replace")
        )
    return int(found[1]) if found else 0
