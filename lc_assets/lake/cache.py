"""Copies of a bucket's versions on this machine, within a bound: those used least recently go
first, none that is in use.

::

    {root}/{lake}/{stage}/{key}/{version}/…          copies, with the version's receipt
    {root}/.uses/{lake}/{stage}/{key}/{version}      how many bytes of it are here; when it was last used, by its time

A version is **in use** as long as a `Lease` on it lives, in whichever process: a shared lock on its
file below ``.uses``, which the system gives back when a process dies. Who makes room takes that
lock alone, or leaves the version be. What was asked for within the last minutes stays too, for
whoever kept a path and let go of the version. So the bound is passed where more is in use than it
allows, and never by what is not; what a build is writing is no copy, and not counted, until it is
published.

Here: room. Not here: what is copied (`lc_assets.lake.bucket_lake`). Libraries that bound a
    folder of files (diskcache,
fsspec's caches) know nothing of files that others have open, nor of versions.
"""

import contextlib
import fcntl
import os
import shutil
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from lc_assets.errors import BadInput
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.publishing import staging_path

BYTES_VARIABLE: Final = "LC_CACHE_BYTES"
USES: Final = ".uses"
SHARE_OF_DISK: Final = 0.5
"""Of the disk that copies lie on, unless a bound is said."""
AT_LEAST_SECONDS: Final = 600.0
"""So long a version stays after it was asked for."""


class Lease:
    """Keeps a version's copies here as long as it lives."""

    def __init__(self, mark: Path) -> None:
        """Take the version whose mark that is; waits for who is removing it just now."""
        mark.parent.mkdir(parents=True, exist_ok=True)
        self._mark = os.open(mark, os.O_RDWR | os.O_CREAT, 0o644)
        weakref.finalize(self, os.close, self._mark)
        fcntl.flock(self._mark, fcntl.LOCK_SH)

    def used(self) -> None:
        """Say that the version is used now."""
        os.utime(self._mark)

    def holds(self, n_bytes: int) -> None:
        """Say how many bytes of it are here."""
        _write(self._mark, n_bytes)


class Copy(NamedTuple):
    """A version that is here: its mark, its bytes, when it was last used."""

    mark: Path
    n_bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class VersionCache:
    """The folder of this machine's copies.

    Attributes:
        root: of the copies of all lakes.
        most_bytes: all of them together; None means `SHARE_OF_DISK` of the disk.
        at_least_seconds: how long a version stays after it was asked for.
    """

    root: Path
    most_bytes: int | None = None
    at_least_seconds: float = AT_LEAST_SECONDS

    def lease(self, home: Path) -> Lease:
        """Take a version into use.

        Raises:
            StorageFull: when the disk is full.
            NotWritable: when nothing may be written there.
        """
        with os_errors_as_lc_errors(home):
            lease = Lease(self._mark(home))
            lease.used()
            return lease

    def make_room(self, n_bytes: int) -> int:
        """Remove what was used least recently, and is not in use, until so many bytes fit beside
        the rest; return how many went.
        """
        copies = sorted(self.copies(), key=lambda copy: copy.used)
        too_many, gone = sum(copy.n_bytes for copy in copies) + n_bytes - self._bound(), 0
        for copy in copies:
            if gone >= too_many or copy.used > time.time() - self.at_least_seconds:
                break
            gone += copy.n_bytes if self._put_away(copy) else 0
        return gone

    def copies(self) -> Iterator[Copy]:
        """Every version of which bytes are here."""
        for mark in (self.root / USES).rglob("*"):
            if (
                mark.is_file()
                and self._home(mark).is_dir()
                and (n_bytes := int(mark.read_bytes() or b"0"))
            ):
                yield Copy(mark, n_bytes, mark.stat().st_mtime)

    def _put_away(self, copy: Copy) -> bool:
        """Remove a version's copies; False when it is in use, or somebody else has just removed
        it.
        """
        home = self._home(copy.mark)
        going = staging_path(home)
        with contextlib.suppress(BlockingIOError, FileNotFoundError), copy.mark.open("r+b") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            home.rename(going)  # at once, so that nobody finds half of it
            _write(mark.fileno(), 0)
            shutil.rmtree(going, ignore_errors=True)
            return True
        return False

    def _mark(self, home: Path) -> Path:
        return self.root / USES / home.relative_to(self.root)

    def _home(self, mark: Path) -> Path:
        return self.root / mark.relative_to(self.root / USES)

    def _bound(self) -> int:
        return (
            int(shutil.disk_usage(self.root).total * SHARE_OF_DISK)
            if self.most_bytes is None
            else self.most_bytes
        )


def parse_byte_bound(words: str) -> int | None:
    """The bound that ``LC_CACHE_BYTES`` states; None where it states none.

    >>> parse_byte_bound("200e9"), parse_byte_bound("")
    (200000000000, None)

    Raises:
        BadInput: when it is no number of bytes.
    """
    if not words.strip():
        return None
    try:
        found = int(float(words))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"{BYTES_VARIABLE}={words}: wanted a number of bytes, such as 200e9"
        ) from error
    if found < 0:
        raise BadInput(f"{BYTES_VARIABLE}={words}: wanted a number of bytes, 0 or more")
    return found


def _write(mark: int, n_bytes: int) -> None:
    content = f"{n_bytes}\n".encode()
    os.pwrite(mark, content, 0)
    os.ftruncate(mark, len(content))
