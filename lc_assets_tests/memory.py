"""How much memory this process had, by Linux's own mark of the program that runs.

`resource.getrusage` will not do: where a process becomes another program it goes on from what it
had before, so a child of a large test begins with the size of its parent; nor can it be set back.
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
    """The most memory that this process held since it became this program, or since the mark was
    set back.
    """
    return int(re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())[1]) * 1024  # type: ignore[index]


def peak_mb() -> float:
    """The same in MB."""
    return peak_bytes() / 1e6


@contextlib.contextmanager
def added() -> Iterator[Callable[[], int]]:
    """Within the block: how many bytes more than at its beginning were held at the worst moment."""
    CLEAR.write_text(THE_MARK)
    before = peak_bytes()
    yield lambda: peak_bytes() - before
