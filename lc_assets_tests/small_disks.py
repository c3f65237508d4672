"""Small file systems in memory, made smaller and larger while they are mounted."""

import contextlib
import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = 4096
ROOMY = 64 << 20


class Disk:
    """A small file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, n_bytes: int) -> None:
        """Make the disk so small, or so large, that this much is free."""
        state = os.statvfs(self.folder)
        used = (state.f_blocks - state.f_bfree) * state.f_frsize
        mount("-o", f"remount,size={used + n_bytes}", str(self.folder))

    def be_writable(self, writable: bool) -> None:
        """Allow or forbid writing to all of it."""
        mount("-o", f"remount,{'rw' if writable else 'ro'}", str(self.folder))


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Mount a small disk at a new folder; skip the test where mounting is refused."""
    if os.geteuid():
        pytest.skip("mounting a small file system needs root")
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={ROOMY}", "tmpfs", str(folder))
    (folder / "ballast").write_bytes(bytes(PAGE))  # a tmpfs of size 0 would be one without a limit
    try:
        yield Disk(folder)
    finally:
        gc.collect()  # a failed test's traceback may hold files open
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mount(*arguments: str) -> None:
    """Call mount, or skip the test where that is refused."""
    if subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow mounting")


def doubling() -> Iterator[int]:
    """Bytes of room: none, then 1, 2, 4 … pages."""
    yield 0
    yield from (PAGE << step for step in range(14))
