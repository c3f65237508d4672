"""Processes that tests start, as Linux lists them."""

from pathlib import Path


def processes_of_session(leader: int) -> list[str]:
    """Numbers of the processes, ended ones aside, of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(stat.parent.name)
    return found
