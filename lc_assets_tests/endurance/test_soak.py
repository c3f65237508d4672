"""A house that is lived in for half an hour: snapshots come, settings change, documents are
withdrawn, loaders train, runs die.

``LC_SOAK_SECONDS`` says for how long (1,800). Memory, file handles and threads of this one process
are written down all the while. They must be flat once it is warm: over the second half of the time
their slope adds less than a few hundredths.
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

from lc_assets.randomness import rng_for
from lc_assets_tests.builders import tiny_context, tiny_upstream
from lc_assets_tests.dying import Dying
from lc_assets_tests.endurance.house import SNAPSHOTS, House
from lc_assets_tests.withdrawing import with_list

SECONDS = float(os.environ.get("LC_SOAK_SECONDS", "1800"))
LINES = 20
"""Of the table of what was measured."""
COLUMNS = ("MB", "held", "files", "threads")
ROOM = 0.02
"""What slopes may add, as a part of what the process holds: caches that are bounded fill, by some
bytes for each version.
"""
FEWEST_ROUNDS = 12


def measured() -> tuple[float, float, int, int]:
    """Resident memory in MB, as it is and when allocators have given back what is free; open files
    and threads of this process.

    What allocators keep goes up and down by some 20 MB over minutes: a slope of that says nothing
    about what is held.
    """
    resident = _resident_mb()
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return resident, _resident_mb(), len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def slope(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Theil and Sen's slope, the median of those between all pairs of points: a few that lie far
    off do not move it.
    """
    x, y = np.asarray(seconds), np.asarray(values)
    one, two = np.triu_indices(len(x), k=1)
    return float(np.median((y[two] - y[one]) / (x[two] - x[one])))


def growth(seconds: Sequence[float], values: Sequence[float]) -> float:
    """What the slope adds over the second half of the time, as a part of the median there."""
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
    assert (growth(seconds.tolist(), values.tolist()) < ROOM) == is_flat


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_memory_and_files_stay_flat(tmp_path):
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=SNAPSHOTS)
    context = with_list(tiny_context(tmp_path, upstream=upstream, blended_mix={}), tmp_path)
    began, curve = time.monotonic(), []
    with Dying.over(context) as dying:
        house = House(context, dying, rng_for("soak", seed=64, key="house"))
        house.build()
        while time.monotonic() - began < SECONDS:
            house.live()
            curve.append((time.monotonic() - began, *measured()))
    print(f"\n{len(curve)} rounds: {dict(house.done)}\n  seconds      MB    held  files  threads")
    for seconds, megabytes, held, n_files, n_threads in curve[:: max(1, len(curve) // LINES)]:
        print(f"{seconds:9.0f}{megabytes:8.1f}{held:8.1f}{n_files:7d}{n_threads:9d}")
    assert len(curve) >= FEWEST_ROUNDS, "too short to tell: give it more LC_SOAK_SECONDS"
    times, *columns = zip(*curve, strict=True)
    grown = {what: growth(times, values) for what, values in zip(COLUMNS, columns, strict=True)}
    print(
        "growth over the second half, by the slope: "
        + ", ".join(f"{what} {part:+.2%}" for what, part in grown.items())
    )
    assert all(grown[what] <= ROOM for what in COLUMNS[1:]), grown
