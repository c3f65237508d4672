"""Functions that tests of executors run in workers: they return, die, hang, fail, or answer too
much.
"""

import errno
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lc_assets.errors import CorruptFile
from lc_assets_tests.processes import wait_until


@dataclass(frozen=True)
class Chore:
    """One task: what to do, and a folder in which each start leaves a file, to be counted."""

    kind: str
    number: int
    folder: Path

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}"

    @property
    def begun(self) -> int:
        """How often it was started."""
        return len(list(self.folder.glob(f"{self}.begun.*")))


def do_chore(chore: Chore) -> int:
    """Do what the chore names."""
    n_before = chore.begun
    (chore.folder / f"{chore}.begun.{n_before}.{os.getpid()}").touch()
    return KINDS[chore.kind](chore, n_before)


def process_after(seconds: float) -> int:
    """Sleep; return the process."""
    time.sleep(seconds)
    return os.getpid()


def process_beside(meeting: tuple[Path, int]) -> int:
    """Wait in a folder until so many processes are there; return this one.

    A worker has one task at a time, so each of as many tasks runs in a worker of its own.
    """
    folder, n_processes = meeting
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) == n_processes, f"{n_processes} meet")
    return os.getpid()


def double(chore: Chore, _: int) -> int:
    return 2 * chore.number


def take_a_while(chore: Chore, _: int) -> int:
    time.sleep(0.05)
    return 2 * chore.number


def die(_: Chore, __: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def die_once(chore: Chore, n_before: int) -> int:
    return die(chore, n_before) if n_before == 0 else 2 * chore.number


def hang(_: Chore, __: int) -> int:
    while True:
        time.sleep(60)


def fail(chore: Chore, _: int) -> int:
    raise CorruptFile(f"{chore} is no good")


def stale_twice(chore: Chore, n_before: int) -> int:
    if n_before < 2:
        raise OSError(errno.ESTALE, "Stale file handle")
    return 2 * chore.number


def full(_: Chore, __: int) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def swell(_: Chore, __: int) -> int:
    """Take 16 GB, some at a time."""
    return sum(len(taken) for taken in [bytearray(os.urandom(1 << 20) * 64) for _ in range(256)])


def swell_once(chore: Chore, n_before: int) -> int:
    return swell(chore, n_before) if n_before == 0 else 2 * chore.number


def say(chore: Chore, _: int) -> int:
    print(f"{chore} says so", file=sys.stderr, flush=True)
    return 2 * chore.number


def exhaust(_: Chore, __: int) -> int:
    raise MemoryError


def answer_much(_: Chore, __: int) -> bytes:
    return b"x" * (2 << 20)


KINDS = {
    "double": double,
    "while": take_a_while,
    "die": die,
    "die_once": die_once,
    "hang": hang,
    "fail": fail,
    "stale_twice": stale_twice,
    "full": full,
    "exhaust": exhaust,
    "answer_much": answer_much,
    "swell": swell,
    "swell_once": swell_once,
    "say": say,
}


def chores(folder: Path, *kinds: str) -> list[Chore]:
    """A chore per kind, numbered."""
    return [Chore(kind, number, folder) for number, kind in enumerate(kinds)]
