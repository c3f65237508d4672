"""A file is absent or whole, whatever stops its writer."""

import os
import subprocess
import sys

import pytest

from lc_assets.formats.whole_files import DRAFT_PREFIX, write_whole
from lc_assets.storage import publishing


def test_a_failed_write_leaves_what_stood_there(tmp_path, monkeypatch):
    """When the disk refuses, the old content stands and no draft stays."""
    write_whole(tmp_path / "a", b"old")

    def refuse(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_a_killed_writer_leaves_nothing_that_reads_as_whole(tmp_path):
    """A process that dies while its bytes go to the disk leaves a draft; storage knows it by its name and removes it."""
    code = (
        "import os, pathlib, sys; from lc_assets.formats.whole_files import write_whole;"
        "os.fsync = lambda _: os.kill(os.getpid(), 9); write_whole(pathlib.Path(sys.argv[1]), b'x' * 1000)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "c" / "0")], check=False)
    assert ended.returncode == -9
    assert not (tmp_path / "c" / "0").exists()
    assert publishing.remove_drafts(tmp_path) == 1


def test_drafts_are_named_as_storage_names_them():
    assert DRAFT_PREFIX == publishing.DRAFT_PREFIX
