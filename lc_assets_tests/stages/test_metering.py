"""What a task took is what it took itself: a worker's memory does not begin with its parent's."""

import mmap
import subprocess
import sys
from pathlib import Path

from lc_assets_tests.memory import added, peak_bytes

CHILD = """
import resource
from lc_assets.builds.metering import usage
from lc_assets_tests.memory import peak_bytes
held = bytearray(b"x") * (64 << 20)
print(usage().peak_rss_mb * 2**20, peak_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
LARGE = 400 << 20


def test_a_large_parent_does_not_make_a_large_child():
    """The figures of receipts and of tests; the system's own, which goes on from the parent's, is
    why they ask elsewhere.
    """
    parent = bytearray(b"x") * LARGE
    command = [sys.executable, "-c", CHILD]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    ).stdout
    receipt, ours, system = map(float, said.split())
    assert len(parent) == LARGE <= system
    assert 64 << 20 < receipt < LARGE
    assert abs(receipt - ours) < 1 << 20


def test_what_a_block_adds_is_its_worst_moment():
    """Although the process was larger before it, and is smaller after it."""
    touched(96 << 20)
    with added() as more:
        touched(48 << 20)
        assert 40 << 20 < more() < 60 << 20
    assert peak_bytes() > 48 << 20


def touched(n_bytes: int) -> None:
    """Hold so many bytes for a moment, straight from the system: an allocator would give what it
    had kept of others' before.
    """
    with mmap.mmap(-1, n_bytes) as held:
        for place in range(0, n_bytes, mmap.PAGESIZE):
            held[place] = 1
