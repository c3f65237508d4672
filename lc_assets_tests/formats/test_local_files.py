"""Files of an array on this machine: which of them stays open, and when it is read no more."""

import errno
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lc_assets.formats.arrays.files import LocalFiles, Piece


@pytest.fixture
def folder(tmp_path):
    """Of two files of six bytes."""
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}-file")
    return tmp_path


def read(files, name="a"):
    return files.read([Piece(name, 0, 1), Piece(name, 2, 9)])


def test_a_file_that_was_replaced_is_read_anew(folder):
    """As when its band is written again: by a file that is renamed."""
    files = LocalFiles(folder)
    assert read(files) == [b"a", b"file"]
    (folder / "b").rename(folder / "a")
    assert read(files) == [b"b", b"file"]


def test_a_file_is_not_read_by_another_name(folder):
    """As when a version is withdrawn whose shards another one shares by hard links."""
    os.link(folder / "a", folder / "shared")
    files = LocalFiles(folder)
    assert read(files) == [b"a", b"file"]
    (folder / "a").unlink()
    with pytest.raises(FileNotFoundError):
        read(files)


def test_a_file_that_is_gone_is_missing(folder, monkeypatch):
    """Removed, replaced with its folder by a file, or removed by another machine, which a network's
    file system says in its own way.
    """
    for number in range(3):
        shutil.copytree(folder, at := folder.with_name(f"copy-{number}"))
        files = LocalFiles(at)
        assert read(files) == [b"a", b"file"]
        if number == 2:
            monkeypatch.setattr(os, "pread", stale)
        else:
            shutil.rmtree(at)
        if number == 1:
            at.write_text("no folder")
        with pytest.raises(FileNotFoundError):
            read(files)


def stale(*_):
    raise OSError(errno.ESTALE, "Stale file handle")


def test_only_the_file_that_was_read_last_is_open(folder):
    """And none when the files are not used any more, or were sent to another process."""
    files = LocalFiles(folder)
    for name in "aba":
        read(files, name)
        assert opened_in(folder) == [name]
    # How multiprocessing sends objects.
    copy = pickle.loads(pickle.dumps(files))  # noqa: S301
    del files
    assert opened_in(folder) == []
    assert read(copy, "b") == [b"b", b"file"]


def test_a_file_is_closed_at_the_end_of_the_program(folder, monkeypatch):
    """When modules may be empty already, as where threads of Grain hold a loader."""
    files = LocalFiles(folder)
    read(files)
    monkeypatch.setattr("lc_assets.formats.arrays.files.os", None)
    del files
    assert opened_in(folder) == []


def opened_in(folder):
    """Names of the files below a folder that this process has open."""
    links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [path.name for path in links if path.parent == folder]


def test_threads_share_them(folder):
    """Each replaces the open file that another one may be reading."""
    files = LocalFiles(folder)
    with ThreadPoolExecutor(4) as pool:
        names = ["a", "b"] * 2000
        for name, found in zip(names, pool.map(lambda name: read(files, name), names), strict=True):
            assert found == [name.encode(), b"file"]
