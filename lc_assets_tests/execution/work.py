"""Functions that workers are sent in tests of executors: they do as told, or die, hang, fail, or
answer too much.
"""

import errno
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lc_assets.errors import CorruptFile


@dataclass(frozen=True)
class Chore:
    """One task: what to do, and a folder in which each beginning leaves a file, so that these can
    be counted.
    """

    kind: str
    number: int
    folder: Path

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}"

    @property
    def begun(self) -> int:
        """How often it was begun."""
        return len(list(self.folder.glob(f"{self}.begun.*")))


def do_chore(chore: Chore) -> int:
    """Do as the chore says."""
    n_before = chore.begun
    (chore.folder / f"{chore}.begun.{n_before}.{os.getpid()}").touch()
    return KINDS[chore.kind](chore, n_before)


def process_after(seconds: float) -> int:
    """Sleep, and say who did."""
    time.sleep(seconds)
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
