"""A published file is absent or whole."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets import publishing
from lc_assets.errors import NotWritable, StorageFull
from lc_assets.publishing import STAGING_PREFIX, publish, publish_bytes, remove_staging_files


def test_a_failed_write_leaves_the_old_file(tmp_path):
    """An exception while writing changes nothing and leaves no draft."""
    place = tmp_path / "a"
    publish_bytes(place, b"old")
    with pytest.raises(RuntimeError), publish(place) as draft:
        draft.write_bytes(b"ne")
        raise RuntimeError
    assert place.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is used up")],
)
def test_a_full_disk_or_quota_is_said_plainly(tmp_path, number, words):
    """It becomes StorageFull, names the file, and keeps what was there."""
    place = tmp_path / "a"
    publish_bytes(place, b"old")
    with (
        pytest.raises(StorageFull, match=f"{words} while writing .*a"),
        publish(place) as draft,
    ):
        draft.write_bytes(b"x")
        raise OSError(number, os.strerror(number))
    assert place.read_bytes() == b"old"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_what_may_not_be_written_is_said_plainly(tmp_path, number):
    """The file that was refused, the one that was to be written, and where to look."""
    with (
        pytest.raises(
            NotWritable,
            match=r"/some/file: .*, while writing .*/a: nothing was published; look at owner, permissions and mount",
        ),
        publish(tmp_path / "a"),
    ):
        raise OSError(number, "no", "/some/file")


def test_a_folder_that_is_a_file_is_said_plainly(tmp_path):
    """A lake below a file cannot be."""
    (tmp_path / "lake").write_bytes(b"")
    with pytest.raises(NotWritable, match="lake/raw_snapshot: Not a directory"):
        publish_bytes(tmp_path / "lake" / "raw_snapshot" / "a", b"x")


def test_another_os_error_stays_itself(tmp_path):
    """A failing disk is neither full nor forbidden."""
    with pytest.raises(OSError, match="Input/output error") as caught, publish(tmp_path / "a"):
        raise OSError(errno.EIO, "Input/output error")
    assert type(caught.value) is OSError


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_real_full_disk_leaves_the_old_file(tmp_path):
    """On a file system of 256 KiB, a file of 1 MiB is not published and the small one before it
    stays.
    """
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this machine does not allow mounting")
    try:
        publish_bytes(small / "a", b"old")
        with pytest.raises(StorageFull):
            publish_bytes(small / "a", b"x" * (1 << 20))
        assert (small / "a").read_bytes() == b"old"
        assert [path.name for path in small.iterdir()] == ["a"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_names_of_new_folders_are_flushed_before_the_file_stands(tmp_path, monkeypatch):
    """Each new folder's name is kept by the folder above it; what stood already is not flushed
    again.
    """
    flushed = []
    monkeypatch.setattr(
        publishing, "flush", lambda path: flushed.append(path.relative_to(tmp_path).as_posix())
    )
    publish_bytes(tmp_path / "a" / "b" / "c", b"x")
    draft, last = flushed[2:]
    assert (set(flushed[:2]), last) == ({".", "a"}, "a/b")
    assert draft.startswith("a/b/.staging-")
    flushed.clear()
    publish_bytes(tmp_path / "a" / "b" / "d", b"x")
    assert len(flushed) == 2


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from lc_assets.publishing import publish
with publish(Path(sys.argv[1])) as draft:
    draft.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_the_old_file_and_a_draft_that_can_be_removed(tmp_path):
    """SIGKILL between write and rename: readers see the old bytes; the draft is recognisable and
    swept.
    """
    place = tmp_path / "a"
    publish_bytes(place, b"old")
    ended = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING, str(place)],
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert ended.returncode == -signal.SIGKILL
    assert place.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(STAGING_PREFIX)]
    remove_staging_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
