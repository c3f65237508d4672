"""Source files of a repository, as it lies in a folder.

Files come sorted by path. What is hidden, in a hidden folder, or a link is passed over without a
word: nothing outside the folder is ever read. What is no text is `Unread`: not UTF-8, with a zero
    byte in it, empty, or too long.
Here: reading. Not here: what is made of it (`lc_assets.packing.imports`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.records import CorpusDocument, Unread

MAX_FILE_BYTES: Final = 8 << 20
"""A longer one was made by a machine."""


def read_folder(
    folder: Path, *, max_file_bytes: int = MAX_FILE_BYTES
) -> Iterator[CorpusDocument | Unread]:
    """Yield a repository's files; the repository is called as its folder, and a file's path is
    relative to it.

    A document's ``rest`` holds ``repo`` and ``path``, its id is the two with a ``/`` between.

    Raises:
        BadInput: when there is no such folder.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: is no folder of source files")
    repo = folder.resolve().name
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        text = _text(path, max_file_bytes)
        if isinstance(text, Unread):
            yield msgspec.structs.replace(text, id=f"{repo}/{name}")
            continue
        rest = msgspec.Raw(msgspec.json.encode({"repo": repo, "path": name}))
        yield CorpusDocument(id=f"{repo}/{name}", text=text, rest=rest)


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder, each folder's in the order of their names; links are not followed."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path.is_dir():
            inside = (
                one
                for one in path.iterdir()
                if not one.name.startswith(".") and not one.is_symlink()
            )
            waiting += sorted(inside, reverse=True)
        elif path.is_file():
            yield path


def _text(path: Path, max_file_bytes: int) -> str | Unread:
    with path.open("rb") as file:
        data = file.read(max_file_bytes + 1)
    if len(data) > max_file_bytes:
        return Unread(id="", where=str(path), why="file too long")
    if b"\0" in data:
        return Unread(id="", where=str(path), why="binary")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Unread(id="", where=str(path), why="not UTF-8")
    return text or Unread(id="", where=str(path), why="empty")
