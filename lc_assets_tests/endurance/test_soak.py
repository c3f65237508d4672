"""Half an hour of random operations on a lake: new snapshots, changed settings, withdrawals,
training, killed runs.

``LC_SOAK_SECONDS`` sets the duration (1,800). Memory, file handles and threads of this process are
recorded throughout. They must be flat after the warm-up: over the second half their slope may add
at most `MOST_GROWTH`.
"""

import ctypes
import gc
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lc_assets_tests.builders import tiny_context, tiny_upstream
from lc_assets_tests.endurance.changing_lake import SNAPSHOTS, ChangingLake
from lc_assets_tests.kill_points import KillableRunner
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.withdrawing import with_list

SECONDS = float(os.environ.get("LC_SOAK_SECONDS", "1800"))
LINES = 20
"""Lines of the printed table of measurements."""
COLUMNS = ("MB", "held", "files", "threads")
MOST_GROWTH = 0.02
"""What slopes may add, as a fraction of what the process holds: bounded caches fill by some bytes
for each version.
"""
FEWEST_ROUNDS = 12


def measured() -> tuple[float, float, int, int]:
    """Return this process's resident memory in MB, before and after allocators have released free
    memory, and its open files and threads.

    What allocators keep varies by some 20 MB over minutes, so its slope says nothing about leaks.
    """
    resident = _resident_mb()
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return resident, _resident_mb(), len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def slope(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Return Theil and Sen's slope, the median over all pairs of points: outliers do not move it."""
    x, y = np.asarray(seconds), np.asarray(values)
    one, two = np.triu_indices(len(x), k=1)
    return float(np.median((y[two] - y[one]) / (x[two] - x[one])))


def growth(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Return what the slope adds over the second half of the time, relative to its median."""
    half = len(seconds) // 2
    late, found = seconds[half:], values[half:]
    return slope(late, found) * (late[-1] - late[0]) / float(np.median(found))


@pytest.mark.parametrize(
    ("leak", "is_flat"),
    [(0.0, True), (0.05, True), (1.0, False)],
    ids=["none", "little", "a megabyte a round"],
)
def test_the_slope_finds_a_leak_among_ups_and_downs(leak, is_flat):
    rng, seconds = np.random.default_rng(5), np.arange(120.0)
    values = 500 + leak * seconds + rng.normal(0, 4, size=120) + 40 * (rng.random(120) < 0.1)
    assert (growth(seconds.tolist(), values.tolist()) < MOST_GROWTH) == is_flat


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_memory_and_files_stay_flat(tmp_path):
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=SNAPSHOTS)
    context = with_list(tiny_context(tmp_path, upstream=upstream, blended_mix={}), tmp_path)
    began, curve = time.monotonic(), []
    with KillableRunner.over(context) as runner:
        lake = ChangingLake(context, runner, rng_for("soak", seed=64, key="house"))
        lake.build()
        while time.monotonic() - began < SECONDS:
            lake.step()
            curve.append((time.monotonic() - began, *measured()))
    print(f"\n{len(curve)} rounds: {dict(lake.done)}\n  seconds      MB    held  files  threads")
    for seconds, megabytes, held, n_files, n_threads in curve[:: max(1, len(curve) // LINES)]:
        print(f"{seconds:9.0f}{megabytes:8.1f}{held:8.1f}{n_files:7d}{n_threads:9d}")
    assert len(curve) >= FEWEST_ROUNDS, "too short to tell: give it more LC_SOAK_SECONDS"
    times, *columns = zip(*curve, strict=True)
    grown = {what: growth(times, values) for what, values in zip(COLUMNS, columns, strict=True)}
    print(
        "growth over the second half, by the slope: "
        + ", ".join(f"{what} {part:+.2%}" for what, part in grown.items())
    )
    assert all(grown[what] <= MOST_GROWTH for what in COLUMNS[1:]), grown
