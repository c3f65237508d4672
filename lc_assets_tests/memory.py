"""Peak memory of this process, from Linux's high-water mark of the running program.

`resource.getrusage` is not suitable: it keeps its value across exec, so a child of a large test
starts with the size of its parent; and it cannot be reset.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
THE_MARK = "5"
"""See proc(5): sets the peak back to what is held now."""


def peak_bytes() -> int:
    """Peak memory of this process since it started this program, or since the mark was set back."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())[1]) * 1024  # type: ignore[index]


def peak_mb() -> float:
    """The same in MB."""
    return peak_bytes() / 1e6


@contextlib.contextmanager
def added() -> Iterator[Callable[[], int]]:
    """Within the block: peak memory above that at its beginning, in bytes."""
    CLEAR.write_text(THE_MARK)
    before = peak_bytes()
    yield lambda: peak_bytes() - before
