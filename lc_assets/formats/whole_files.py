"""Writing one file so that it is absent or whole, whatever kills the writer.

Here: the few lines that formats of many files need while they write. Not here: publishing a version, and the
sentence for a full disk (`lc_assets.storage`, which this room does not know; drafts are named alike, so that
its `remove_drafts` finds these too).
"""

import os
import uuid
from pathlib import Path
from typing import Final

DRAFT_PREFIX: Final = ".draft-"


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` as the whole of the file at ``path``: into a draft beside it, flushed to the disk and renamed.

    Two processes that write the same content to the same path do each other no harm.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "c" / "0" / "0"
    >>> write_whole(place, b"ids")
    >>> place.read_bytes(), len(list(place.parent.iterdir()))
    (b'ids', 1)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT_PREFIX}{uuid.uuid4().hex[:8]}-{path.name}")
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
        _flush_names(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _flush_names(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
