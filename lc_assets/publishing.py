"""Publishing one file: it is missing or complete, never partial.

A file is written under a temporary name in its folder, flushed to the disk, and renamed.
`os.replace` within one folder is atomic on POSIX file systems; the folder is flushed too, so that
the rename survives a power cut. Formats and the lake both use this, so it is below them.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO, BinaryIO

from zlib_ng import gzip_ng, zlib_ng

from lc_assets.errors import BadInput, Busy
from lc_assets.foreign_errors import os_errors_as_lc_errors

STAGING_PREFIX = ".staging-"
"""Names with this prefix are unfinished: readers ignore them, the next build removes its own."""

PUBLISHED: ContextVar[list[Path]] = ContextVar("PUBLISHED")
"""Collects the paths of published files, when a task is run that has to know them."""

_STAGING_NAME = re.compile(rf"{re.escape(STAGING_PREFIX)}[0-9a-f]{{8}}-")
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
"""Another file system, one without hard links, too many of them, or a file of another owner."""
BUSY_SECONDS = 30.0
"""How long a command waits for another one that works in the same folder."""

_HELD = (errno.EAGAIN, errno.EACCES)
"""Errors of a lock that another process holds."""


def staging_path(path: Path) -> Path:
    """A new name in the folder of ``path`` for a file or folder that is not finished."""
    return path.with_name(f"{STAGING_PREFIX}{uuid.uuid4().hex[:8]}-{path.name}")


@contextlib.contextmanager
def publish(path: Path, *, flush_names: bool = True) -> Iterator[Path]:
    """Hand out a temporary path; rename that file to ``path`` if the block succeeds, else remove
    it.

    Args:
        path: the file.
        flush_names: whether the folder is flushed, so that the file's name survives a power cut;
            callers that publish many files into one folder call `flush` once instead.

    >>> import tempfile
    >>> greeting = Path(tempfile.mkdtemp()) / "greeting.txt"
    >>> with publish(greeting) as staging:
    ...     _ = staging.write_text("hello")
    >>> greeting.read_text()
    'hello'

    Raises:
        StorageFull: when the disk is full; what was at ``path`` before is unchanged.
        NotWritable: when the folder cannot be written to.
    """
    staging = staging_path(path)
    with os_errors_as_lc_errors(path):
        make_folder(path.parent)
        try:
            yield staging
            flush(staging)
            staging.replace(path)
            PUBLISHED.get([]).append(path)
            if flush_names:
                flush(path.parent)
        finally:
            staging.unlink(missing_ok=True)


@contextlib.contextmanager
def publish_folder(folder: Path) -> Iterator[Path]:
    """Hand out a temporary folder; rename it to ``folder``, which is new or empty, if the block
    succeeds, else remove it.

    Raises:
        BadInput: when there is something already.
        StorageFull: when the disk is full.
        NotWritable: when the folder cannot be written to.
    """
    with writing_in(folder.parent), os_errors_as_lc_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: there is something already; name a new folder")
        draft = staging_path(folder)
        draft.mkdir()
        try:
            yield draft
            for path in sorted(draft.iterdir()):
                flush(path)
            draft.replace(folder)
            flush(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def publish_bytes(path: Path, content: bytes, *, flush_names: bool = True) -> None:
    """Publish ``content`` as the whole file at ``path``; see `publish`."""
    with publish(path, flush_names=flush_names) as staging:
        staging.write_bytes(content)


def publish_linked(source: Path, path: Path) -> None:
    """Publish a finished file under a second name: a hard link, or a copy where none can be made.

    Neither may ever be written to; this package only renames complete files. The folder's names are
    not flushed: callers that link many files call `flush` once.

    Raises:
        StorageFull: when the disk is full.
        NotWritable: when the folder cannot be written to.
    """
    staging = staging_path(path)
    with os_errors_as_lc_errors(path):
        try:
            _link_or_copy(source, staging)
            staging.replace(path)  # removes neither of two names of one file, see rename(2)
        finally:
            staging.unlink(missing_ok=True)


@contextlib.contextmanager
def writing_in(folder: Path, *, below: bool = False) -> Iterator[None]:
    """Make a folder outside any lake, to publish in, while no other command does that; remove
    staging files of killed runs from it, and ``below`` it.

    Raises:
        Busy: when another command has been working there for longer than `BUSY_SECONDS`.
        StorageFull: when the disk is full.
        NotWritable: when the folder cannot be made or read.
    """
    with os_errors_as_lc_errors(folder):
        make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        if wait_for_lock(descriptor, fcntl.LOCK_EX, folder, seconds=BUSY_SECONDS):
            remove_staging_files(folder, below=below)
        yield
    finally:
        os.close(descriptor)


def wait_for_lock(file: IO[str] | int, kind: int, what: object, *, seconds: float) -> bool:
    """Lock an open file or folder; return whether the file system has locks. Where it has none, no
    one is excluded.

    Args:
        file: the file, or its descriptor.
        kind: of the lock, for `fcntl.flock`.
        what: the folder that is locked by it, or its name, for the message.
        seconds: to wait for other processes.

    Raises:
        Busy: when others hold it for longer.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                return False
        else:
            return True
        if time.monotonic() > until:
            raise Busy(
                f"{what}: another command has been working there for {seconds:.0f} s; wait for "
                "it and run this again"
            )
        time.sleep(0.05)


def _link_or_copy(source: Path, staging: Path) -> None:
    try:
        staging.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, staging)
        flush(staging)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents; when this returns, their names survive a power cut.

    A folder's fsync keeps the names in it, not its own: a pointer could outlive the folder that it
    names.
    """
    if folder.is_dir():
        return
    missing = [folder, *folder.parents]
    missing = missing[
        : next((number for number, path in enumerate(missing) if path.is_dir()), len(missing))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        flush(path.parent)


def flush(path: Path) -> None:
    """Force a file's bytes, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def finished(paths: Iterable[Path]) -> list[Path]:
    """The finished files among some, sorted by name: a killed worker leaves unfinished ones.

    >>> names = ("b.parquet", ".staging-0f3c2a51-a.parquet", "a.parquet")
    >>> [path.name for path in finished(map(Path, names))]
    ['a.parquet', 'b.parquet']
    """
    return sorted(path for path in paths if not path.name.startswith(STAGING_PREFIX))


def remove_staging_files(folder: Path, *, below: bool = True) -> None:
    """Remove files and folders that killed writers left in ``folder``, and ``below`` it.

    Only names that `staging_path` gives are removed.
    """
    found = (folder.rglob if below else folder.glob)(f"{STAGING_PREFIX}*")
    for path in [path for path in found if _STAGING_NAME.match(path.name)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


LEVEL = 2
"""Of zlib-ng's 0 to 9. English novels, per CPU-second: 108 MB, 2.35 times smaller; level 1: 195 and
1.67; level 6: 57 and 2.59.
"""

_GZIP_MEMBER = 16 + zlib_ng.MAX_WBITS


@contextlib.contextmanager
def gzipped(path: Path) -> Iterator[BinaryIO]:
    """Open a gzip file for writing."""
    with (
        path.open("wb") as file,
        gzip_ng.GzipNGFile(
            filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0
        ) as out,
    ):
        yield out


def gzip_member(content: bytes) -> bytes:
    """One gzip member without name and time.

    >>> import gzip
    >>> gzip.decompress(gzip_member(b"one") + gzip_member(b"two"))
    b'onetwo'
    """
    packed: bytes = zlib_ng.compress(content, LEVEL, _GZIP_MEMBER)
    return packed
