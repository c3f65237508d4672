"""The processes that tests start, as Linux lists them, and waiting for them."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

HANG_SECONDS = 300
"""Only a hang takes longer, even on a machine with ten other busy processes."""


def wait_until(condition: Callable[[], bool], what: str, *, every: float = 0.02) -> None:
    """Wait until a condition holds, tested ``every`` so many seconds; fail when it has not after
    `HANG_SECONDS`.
    """
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"still waiting until {what}"
        time.sleep(every)


def wait_until_session_ends(leader: int) -> None:
    """Wait until no process of a session is left; kill the rest when that does not happen."""
    try:
        wait_until(lambda: not processes_of_session(leader), f"session {leader} has ended")
    finally:
        for process in processes_of_session(leader):
            os.kill(int(process), signal.SIGKILL)


def state_of(process: int) -> str:
    """Return a process's state as Linux names it, such as ``S`` when it waits; "" when it has
    ended.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_running(process: int) -> bool:
    """Whether a process exists and has not ended."""
    return state_of(process) not in {"", "Z", "X"}


def processes_of_session(leader: int) -> list[str]:
    """Return the ids of a session's processes that have not ended."""
    return list(_states_of_session(leader))


def cpu_seconds_of_session(leader: int) -> float:
    """Return the processor time of a session's processes, and of their children that have ended."""
    ticks = [sum(map(int, fields[11:15])) for fields in _states_of_session(leader).values()]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _states_of_session(leader: int) -> dict[str, list[str]]:
    """The fields of ``/proc/PID/stat`` after the name, by id of the process (`man proc`)."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found[stat.parent.name] = fields
    return found
