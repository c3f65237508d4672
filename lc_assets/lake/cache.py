"""Copies of a bucket's versions on this machine, up to a limit: the least recently used are removed
first, never one that is in use.

::

    {root}/{lake}/{stage}/{key}/{version}/…          copies, with the version's receipt
    {root}/.uses/{lake}/{stage}/{key}/{version}      size of the copies; its time is the last use's

A version is **in use** as long as any process holds a `Lease` on it: a shared lock on its file
below ``.uses``, which the operating system releases when the process ends. A version is removed
only under the exclusive lock. Versions that were used within the last minutes stay too, for callers
that kept a path but not the `Published`. So only versions in use can exceed the limit. What a build
is writing counts when it is published.

What is copied is decided by `lc_assets.lake.bucket_lake`. Libraries that limit a folder of files
(diskcache, fsspec's caches) know neither versions nor files that other processes have open.
"""

import contextlib
import fcntl
import os
import shutil
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lc_assets.errors import BadInput
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.publishing import staging_path
from lc_assets.records import frozen

BYTES_VARIABLE = "LC_CACHE_BYTES"
USES = ".uses"
SHARE_OF_DISK = 0.5
"""Share of the disk for copies, unless a limit is given."""
AT_LEAST_SECONDS = 600.0
"""How long a version is kept after its last use."""


class Lease:
    """Keeps a version's copies as long as this object exists."""

    def __init__(self, mark: Path) -> None:
        """Use the version of this mark; waits while another process is removing it."""
        mark.parent.mkdir(parents=True, exist_ok=True)
        self._mark = os.open(mark, os.O_RDWR | os.O_CREAT, 0o644)
        weakref.finalize(self, os.close, self._mark)
        fcntl.flock(self._mark, fcntl.LOCK_SH)

    def used(self) -> None:
        """Note that the version is used now."""
        os.utime(self._mark)

    def holds(self, n_bytes: int) -> None:
        """Note the size of the copies."""
        _write(self._mark, n_bytes)


class Copy(NamedTuple):
    """A version with copies: its mark, their size, and the time of the last use in seconds since
    1970.
    """

    mark: Path
    n_bytes: int
    used: float


@frozen
class VersionCache:
    """The folder of this machine's copies.

    Attributes:
        root: folder of the copies of all lakes.
        most_bytes: limit for all copies together; None means `SHARE_OF_DISK` of the disk.
        at_least_seconds: how long a version is kept after its last use.
    """

    root: Path
    most_bytes: int | None = None
    at_least_seconds: float = AT_LEAST_SECONDS

    def lease(self, home: Path) -> Lease:
        """Use a version.

        Raises:
            StorageFull: when the disk is full.
            NotWritable: when the folder is not writable.
        """
        with os_errors_as_lc_errors(home):
            lease = Lease(self._mark(home))
            lease.used()
            return lease

    def make_room(self, n_bytes: int) -> int:
        """Remove the least recently used versions that are not in use until ``n_bytes`` more fit;
        return how many bytes were removed.
        """
        copies = sorted(self.copies(), key=lambda copy: copy.used)
        too_many, gone = sum(copy.n_bytes for copy in copies) + n_bytes - self._bound(), 0
        for copy in copies:
            if gone >= too_many or copy.used > time.time() - self.at_least_seconds:
                break
            gone += copy.n_bytes if self._remove(copy) else 0
        return gone

    def copies(self) -> Iterator[Copy]:
        """Every version with copies."""
        for mark in (self.root / USES).rglob("*"):
            if (
                mark.is_file()
                and self._home(mark).is_dir()
                and (n_bytes := int(mark.read_bytes() or b"0"))
            ):
                yield Copy(mark, n_bytes, mark.stat().st_mtime)

    def _remove(self, copy: Copy) -> bool:
        """Remove a version's copies; False when it is in use, or already removed."""
        home = self._home(copy.mark)
        going = staging_path(home)
        with contextlib.suppress(BlockingIOError, FileNotFoundError), copy.mark.open("r+b") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            home.rename(going)  # so that no process finds a part of it
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
    """The limit in ``LC_CACHE_BYTES``; None when it is empty.

    >>> parse_byte_bound("200e9"), parse_byte_bound("")
    (200000000000, None)

    Raises:
        BadInput: when it is not a number of bytes.
    """
    if not words.strip():
        return None
    try:
        found = int(float(words))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"{BYTES_VARIABLE}={words}: expected a number of bytes, such as 200e9"
        ) from error
    if found < 0:
        raise BadInput(f"{BYTES_VARIABLE}={words}: expected a number of bytes, 0 or more")
    return found


def _write(mark: int, n_bytes: int) -> None:
    content = f"{n_bytes}\n".encode()
    os.pwrite(mark, content, 0)
    os.ftruncate(mark, len(content))
