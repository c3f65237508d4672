"""The files of a repository, by their paths. A path is a name: it is compared with other names, and
nothing is opened by it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lc_assets.packing.imports.scanned import Scanned

DEEPEST: Final = 32
"""Folders of a path that are looked at; a longer path is a name like any other, and nothing is
found from it.
"""


def normalised(path: str) -> str:
    r"""A path as a repository has it: relative, with ``/``, without ``.`` and ``..``.

    >>> normalised("./a//b/../c.py"), normalised("C:\\x\\y.h"), normalised("/etc/../../passwd")
    ('a/c.py', 'C:/x/y.h', 'passwd')
    """
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def folder_of(path: str) -> str:
    """The folder that a path lies in; empty for the topmost.

    >>> folder_of("a/b/c.py"), folder_of("c.py")
    ('a/b', '')
    """
    return path.rpartition("/")[0]


def joined(folder: str, name: str) -> str:
    """A name below a folder, perhaps the topmost; the name may climb.

    >>> joined("a/b", "../c.h"), joined("", "c.h")
    ('a/c.h', 'c.h')
    """
    return normalised(f"{folder}/{name}")


def below(folder: str, name: str) -> str:
    """The same for a name that is normalised, without looking at it again.

    >>> below("a/b", "c.h"), below("", "c.h")
    ('a/b/c.h', 'c.h')
    """
    return f"{folder}/{name}" if folder else name


class Tree:
    """Files by path, with what each says.

    Args:
        files: by normalised path.
    """

    def __init__(self, files: Mapping[str, Scanned]) -> None:
        self.files = files
        self._in_folder: dict[str, list[str]] = {}
        self._ending: dict[str, str] = {}
        for path in sorted(files, key=lambda path: (path.count("/"), path)):
            self._in_folder.setdefault(folder_of(path), []).append(path)
            for suffix in _suffixes(path):
                self._ending.setdefault(suffix, path)
        self._stems = {stem for path in files for stem in _stems(path)}

    def has(self, path: str) -> bool:
        """Whether there is a file of this path."""
        return path in self.files

    def begins(self, stem: str) -> bool:
        """Whether there is a folder of this path, or a file once the end of its name is left out:
        asked before many endings are tried.
        """
        return stem in self._stems

    def first(self, paths: Iterable[str]) -> str | None:
        """The first of some paths that is there."""
        return next((path for path in paths if path in self.files), None)

    def files_in(self, folder: str) -> list[str]:
        """Files right in a folder, sorted."""
        return self._in_folder.get(folder, [])

    def ending_with(self, name: str) -> str | None:
        """The file whose path ends with a whole name: of several the one closest to the top, then
        the first by name.
        """
        return self._ending.get(name)

    def above(self, path: str) -> Iterator[str]:
        """The folder of a path, the one around it, and so on; last the topmost, which is empty."""
        folder = folder_of(path)
        for _ in range(DEEPEST):
            yield folder
            if not folder:
                return
            folder = folder_of(folder)


def _stems(path: str) -> Iterator[str]:
    folder, _, name = path.rpartition("/")
    yield below(folder, name.partition(".")[0] or name)
    for _ in range(DEEPEST):
        if not folder:
            return
        yield folder
        folder = folder_of(folder)


def _suffixes(path: str) -> Iterator[str]:
    parts = path.split("/")
    for start in range(max(0, len(parts) - DEEPEST), len(parts)):
        yield "/".join(parts[start:])
