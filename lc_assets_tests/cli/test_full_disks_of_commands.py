"""A disk or a quota that is used up, in every command that writes: said in one line that names the
folder, nothing half published, and the same files as ever once there is room.

The disks are small tmpfs mounts (`lc_assets_tests.small_disks`); a quota is a limit on the size of
a file (``ulimit -f``), which fails in other places than a full disk.
"""

import contextlib
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lc_assets.cli.app import app
from lc_assets_tests.cli.command_world import OVER_FILES, files_to_read, tree, words_of
from lc_assets_tests.small_disks import ROOMY, Disk, doubling, small_disk

SLOW = {"build", "links", "longpack", "minhash", "pack similar"}
COMMANDS = [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in OVER_FILES]
FULL = re.compile(
    r"^\S*:? ?(the disk is full|a file would be larger than is allowed \(ulimit -f\))"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder with the inputs, and what each command writes into a folder with room."""
    folder = tmp_path_factory.mktemp("world")
    files_to_read(folder)
    return folder, dict[str, dict[str, str]]()


@pytest.fixture
def roomy(world, lc, monkeypatch) -> Callable[[str], dict[str, str]]:
    """What a command writes where there is room."""
    folder, written = world
    monkeypatch.chdir(folder)

    def run(name: str) -> dict[str, str]:
        if name not in written:
            out = folder / "out"
            assert lc(*words_of(name, out)).code == 0
            written[name] = tree(out)
            shutil.rmtree(out)
        return written[name]

    return run


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as found:
        yield found


@contextlib.contextmanager
def file_size_limited(n_bytes: int) -> Iterator[None]:
    """Refuse to make a file larger than this, in this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def assert_said(said, folder: Path) -> None:
    """The command ended with 1 and, for each partition that failed, a line naming the folder."""
    lines = said.err.splitlines()
    assert (said.code, bool(lines)) == (1, True), said
    for line in lines:
        assert FULL.match(line), line
        assert f"{folder}" in line
        assert "nothing was published; " in line


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_room_completes_the_command(name, lc, disk, roomy):
    wanted, out = roomy(name), disk.folder / "out"
    n_full = 0
    for n_bytes in doubling():
        disk.leave(n_bytes)
        said = lc(*words_of(name, out))
        if not said.code:
            break
        assert_said(said, disk.folder)
        n_full += 1
    assert n_full >= 1
    assert tree(out) == wanted


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_size_limit_is_one_line_and_room_completes_the_command(name, lc, tmp_path, roomy):
    wanted, out = roomy(name), tmp_path / "out"
    n_full = 0
    for n_bytes in (0, *(256 << step for step in range(20))):
        with file_size_limited(n_bytes):
            said = lc(*words_of(name, out))
        if not said.code:
            break
        assert_said(said, tmp_path)
        n_full += 1
    assert n_full >= 2
    assert tree(out) == wanted


LAKE_COMMANDS = {
    "rebuild": "rebuild --lake {lake} --workers 1",
    "release": "release {lake} v1",
    "withdraw": (
        "withdraw {lake} --domain a.org --reason asked --date 2026-01-01 --list {disk}/list.csv "
        "--withdrawn {disk}/list.csv"
    ),
    "prune": "prune {lake}",
}


@pytest.fixture(scope="module")
def lake(world):
    """A lake with versions that are no longer published."""
    root = world[0] / "lake"
    with contextlib.chdir(world[0]):
        for words in (words_of("build", root), ["rebuild", "--lake", f"{root}", "--workers", "1"]):
            assert CliRunner().invoke(app, words).exit_code == 0
            hold_out(root, 0.3)
    hold_out(root, 0.3)
    return root


def hold_out(lake: Path, fraction: float) -> None:
    """Change a setting of the recipe that is recorded in a lake."""
    path = lake / "recipe.toml"
    path.write_text(
        re.sub(r"heldout_fraction = [\d.]+", f"heldout_fraction = {fraction}", path.read_text())
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", LAKE_COMMANDS)
def test_a_full_disk_while_a_lake_is_changed(name, lc, disk, lake, tmp_path, world, monkeypatch):
    """Until there is room the lake is as before or complete; then it is as elsewhere."""
    monkeypatch.chdir(world[0])
    folders = [tmp_path / "elsewhere", disk.folder]
    for folder in folders:
        shutil.copytree(lake, folder / "lake")
        if name == "rebuild":
            hold_out(folder / "lake", 0.2)
    elsewhere, here = (
        LAKE_COMMANDS[name].format(lake=folder / "lake", disk=folder).split() for folder in folders
    )
    assert lc(*elsewhere).code == 0
    before, n_full = lc("verify", disk.folder / "lake"), 0
    for n_bytes in doubling():
        disk.leave(n_bytes)
        said = lc(*here)
        if not said.code:
            break
        assert_said(said, disk.folder)
        assert lc("verify", disk.folder / "lake").code == before.code == 0
        n_full += 1
    assert n_full >= (name != "prune")
    disk.leave(ROOMY)
    wanted, found = tree(folders[0] / "lake"), tree(disk.folder / "lake")
    assert found == wanted
