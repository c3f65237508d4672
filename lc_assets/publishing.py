"""Publishing one file: it is absent or whole, never half.

A file is written as a hidden draft beside its place, flushed to the disk, and renamed over it.
`os.replace` within one folder is atomic on POSIX file systems; the folder is flushed too, so that
the rename survives a power cut. Formats and storage both write so, which is why this stands below
them.
"""

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from lc_assets.foreign_errors import os_errors_as_lc_errors

STAGING_PREFIX = ".draft-"
"""Names that begin so are unfinished; no reader looks at them, and the next build of the folder
removes them.
"""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
"""Another file system, one without hard links, too many of them, or a file that somebody else owns.
"""
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


@contextlib.contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Hand out a draft's path; rename the draft to ``path`` when the block ends well, remove it
    otherwise.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "greeting.txt"
    >>> with publish(place) as draft:
    ...     _ = draft.write_text("hello")
    >>> place.read_text()
    'hello'

    Raises:
        StorageFull: when the disk is full; whatever stood at ``path`` before still stands there.
        NotWritable: when nothing may be written there.
    """
    draft = _draft_of(path)
    with os_errors_as_lc_errors(path):
        make_folder(path.parent)
        try:
            yield draft
            flush(draft)
            draft.replace(path)
            flush(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def publish_linked(source: Path, path: Path) -> None:
    """Publish a finished file under a second name: the same bytes on the disk, or a copy where no
    link can be made.

    Nothing may ever write into either: this package renames whole files into place. The folder's
    names are not flushed, so that whoever links many files can do that once, by `flush`.

    Raises:
        StorageFull: when the disk is full.
        NotWritable: when nothing may be written there.
    """
    draft = _draft_of(path)
    with os_errors_as_lc_errors(path):
        try:
            _link_or_copy(source, draft)
            draft.replace(path)  # of two names of one file it removes neither, see rename(2)
        finally:
            draft.unlink(missing_ok=True)


def _link_or_copy(source: Path, draft: Path) -> None:
    try:
        draft.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, draft)
        flush(draft)


def _draft_of(path: Path) -> Path:
    return path.with_name(f"{STAGING_PREFIX}{uuid.uuid4().hex[:8]}-{path.name}")


def publish_bytes(path: Path, content: bytes) -> None:
    """Publish ``content`` as the whole of the file at ``path``."""
    with publish(path) as draft:
        draft.write_bytes(content)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing; their names survive a power cut when this
    returns.

    Else a pointer could outlive the folder that it points at: a folder's fsync keeps the names in
    it, not its own name.
    """
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
    """Files in the order of their names, without drafts: a task whose worker was killed leaves one
    beside what was done again.

    >>> [path.name for path in finished(map(Path, ("b.parquet", ".draft-0f3c-a.parquet", "a.parquet")))]
    ['a.parquet', 'b.parquet']
    """
    return sorted(path for path in paths if not path.name.startswith(STAGING_PREFIX))


def remove_staging_files(folder: Path, *, below: bool = True) -> int:
    """Remove what a killed writer left in ``folder``, and ``below`` it; return how many files that
    were.
    """
    drafts = list((folder.rglob if below else folder.glob)(f"{STAGING_PREFIX}*"))
    for draft in drafts:
        draft.unlink(missing_ok=True)
    return len(drafts)
