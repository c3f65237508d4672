"""A power failure after a kill: writes that were not flushed by fsync are lost, completely or in
part.

The model, file by file and folder by folder, from the log of `lc_assets_tests.kill_points`:

* bytes written to a file after its last fsync are gone, or gone in part, or are zeros;
* names made, moved or removed in a folder after its last fsync are taken back, from some moment on:
  a journal keeps the order within a folder, while one folder loses all, another nothing; with a
  folder's own name all that lies in it goes.

This is harsher than ext4, XFS or btrfs with their usual settings, where an fsync of a new file also
keeps the names above it.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(slots=True)
class File:
    """The durable part of a file."""

    sure_bytes: int = 0
    is_sure: bool = False


@dataclass(slots=True)
class Named:
    """A call that changed a folder's names: its letter, and the paths that it was about."""

    what: str
    paths: list[str]

    @property
    def folder(self) -> str:
        """Whose names it changed."""
        # Thousands of them.
        return os.path.dirname(self.paths[1] if self.what in "RL" else self.paths[0])  # noqa: PTH120


def cut_power(log: Path, *, rng: np.random.Generator) -> tuple[int, int]:
    """Undo writes that were not durable; return how many files lost bytes and how many names were
    lost.
    """
    files, names = _replayed(log)
    n_files = sum(
        _lose_bytes(Path(path), file, rng) for path, file in files.items() if not file.is_sure
    )
    lost = _lost_names(names, rng)
    for call in lost:
        _undo(call)
    return n_files, len(lost)


def _replayed(log: Path) -> tuple[dict[str, File], list[tuple[Named, bool]]]:
    """Files by their last names, and every change of names with whether it is sure."""
    files: dict[str, File] = {}
    unsure: dict[str, list[int]] = {}
    names: list[tuple[Named, bool]] = []
    for line in log.read_text().splitlines():
        what, *paths = line.split("\t")
        if what == "S":
            _made_sure(paths, files, unsure, names)
        elif what == "W":
            files.setdefault(paths[0], File(sure_bytes=_size(paths[0]))).is_sure = False
        elif what != "K":  # a lock that was asked for
            call = Named(what, paths)
            unsure.setdefault(call.folder, []).append(len(names))
            names.append((call, False))
            _follow(call, files)
    return files, names


def _made_sure(
    paths: list[str],
    files: dict[str, File],
    unsure: dict[str, list[int]],
    names: list[tuple[Named, bool]],
) -> None:
    if paths[0] in files:
        files[paths[0]] = File(sure_bytes=int(paths[1]), is_sure=True)
    for number in unsure.pop(paths[0], []):
        names[number] = (names[number][0], True)


def _follow(call: Named, files: dict[str, File]) -> None:
    if call.what == "C":
        files[call.paths[0]] = File()
    elif call.what == "U":
        files.pop(call.paths[0], None)
    elif call.what == "L" and call.paths[0] in files:
        files[call.paths[1]] = files[call.paths[0]]
    elif call.what == "R":
        for path in [
            path for path in files if path == call.paths[0] or path.startswith(f"{call.paths[0]}/")
        ]:
            files[call.paths[1] + path.removeprefix(call.paths[0])] = files.pop(path)


def _lose_bytes(path: Path, file: File, rng: np.random.Generator) -> bool:
    n_bytes = _size(str(path))
    if not path.is_file() or n_bytes <= file.sure_bytes:
        return False
    kept = int(rng.choice([file.sure_bytes, rng.integers(file.sure_bytes, n_bytes)]))
    os.truncate(path, kept)
    if rng.random() < 1 / 3:
        os.truncate(path, n_bytes)  # the size was noted, the bytes were not: zeros
    return True


def _lost_names(names: list[tuple[Named, bool]], rng: np.random.Generator) -> list[Named]:
    """The calls that are lost, the last one first."""
    of_folder: dict[str, list[int]] = {}
    for number, (call, is_sure) in enumerate(names):
        if not is_sure:
            of_folder.setdefault(call.folder, []).append(number)
    first = {
        folder: int(rng.choice([0, len(numbers), rng.integers(len(numbers) + 1)]))
        for folder, numbers in of_folder.items()
    }
    lost = [number for folder, numbers in of_folder.items() for number in numbers[first[folder] :]]
    return [names[number][0] for number in sorted(lost, reverse=True)]


def _undo(call: Named) -> None:
    one, two, kept = [Path(path) if path else None for path in [*call.paths, "", ""][:3]]
    assert one is not None
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
        match call.what:
            case "C":
                one.unlink()
            case "M":
                shutil.rmtree(one)
            case "D":
                one.mkdir()
            case "U" if two is not None:
                one.hardlink_to(two)
            case "L" | "R" if two is not None:
                _undo_move(call.what, one, two, kept)


def _undo_move(what: str, one: Path, two: Path, kept: Path | None) -> None:
    if what == "R" and two.exists():
        two.rename(one)
    elif what == "L":
        two.unlink()
    if kept is not None:
        two.hardlink_to(kept)


def _size(path: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_size  # noqa: PTH116 - as above
    return 0


def letters(log: Path) -> Iterator[str]:
    """What kinds of calls a log holds, one by one."""
    yield from (line[0] for line in log.read_text().splitlines())
