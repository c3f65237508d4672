"""Memory that processes hold."""

import os
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def anonymous_bytes(process: int | str = "self") -> int:
    """Anonymous resident memory of a process, by default this one; 0 when it has ended, or not on
    Linux.
    """
    try:
        words = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * _PAGE_BYTES
