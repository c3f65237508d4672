"""A lake that one user made, in the hands of another: by its permissions it is read, or written to,
or one line says what is not allowed. Only root can become two users; others skip these tests.
"""

import contextlib
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lc_assets.execution.processes import IDLE_POOL
from lc_assets_tests.cli.command_world import files_to_read, words_of

MAKER, READER, GROUP, OTHER_GROUP = 65_501, 65_502, 65_501, 65_502
READING = (
    ("show", "{lake}"),
    ("verify", "{lake}"),
    ("plan", "--lake", "{lake}"),
    ("trace", "{lake}", "--row", "0"),
    ("batch", "{lake}"),
    ("release", "{lake}"),
    ("diff", "now", "now", "--lake", "{lake}"),
    ("withdraw", "{lake}", "--report"),
)
WRITING = (
    ("release", "{lake}", "v1"),
    ("prune", "{lake}"),
    ("rebuild", "--lake", "{lake}", "--workers", "1", "--recipe", "{folder}/other.toml"),
)


@contextlib.contextmanager
def acting_as(user: int, group: int, umask: int) -> Iterator[None]:
    """Take another user's rights to files, and a umask."""
    IDLE_POOL.clear()  # root's workers and semaphores, which the other user could not remove
    gc.collect()
    before = os.umask(umask)
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        os.umask(before)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that every user can reach and write to, with documents."""
    if os.geteuid():
        pytest.skip("becoming another user needs root")
    found = Path(tempfile.mkdtemp())
    files_to_read(found)
    found.chmod(0o777)
    yield found
    shutil.rmtree(found)


@pytest.fixture
def lake_of(folder, lc, monkeypatch):
    """Make a lake under a umask; its recipe with another setting is ``other.toml``."""
    monkeypatch.chdir(folder)

    def make(umask: int) -> Path:
        lake = folder / f"lake{umask:o}"
        if not lake.exists():
            # What is imported and compiled comes from where the other users may not look.
            assert lc(*words_of("build", folder / "warm")).code == 0
            for words in READING:
                lc(*(word.format(lake=folder / "warm") for word in words))
            recipe = (folder / "warm/recipe.toml").read_text()
            (folder / "other.toml").write_text(recipe.replace("sequence_length = 64", "seed = 5"))
            shutil.rmtree(folder / "warm")
            with acting_as(MAKER, GROUP, umask):
                assert lc(*words_of("build", lake)).code == 0
        return lake

    return make


def run(lc, lake: Path, words: tuple[str, ...], group: int):
    with acting_as(READER, group, 0o022):
        return lc(*(word.format(lake=lake, folder=lake.parent) for word in words))


def assert_refused(said, lake: Path) -> None:
    (line,) = said.err.splitlines()
    assert said.code == 1
    assert str(lake) in line
    assert "Permission denied" in line
    assert "look at owner" in line


@pytest.mark.parametrize("words", [*READING, *WRITING], ids=lambda words: " ".join(words[:2]))
def test_a_lake_that_only_its_maker_may_read(lc, lake_of, words):
    lake = lake_of(0o077)
    assert_refused(run(lc, lake, words, OTHER_GROUP), lake)


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_a_lake_that_others_may_read(lc, lake_of, words):
    lake = lake_of(0o022)
    said = run(lc, lake, words, OTHER_GROUP)
    assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize("words", WRITING, ids=lambda words: words[0])
def test_a_lake_that_others_may_not_write_to(lc, lake_of, words):
    lake = lake_of(0o022)
    before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
    assert_refused(run(lc, lake, words, OTHER_GROUP), lake)
    assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before


def test_a_lake_that_a_group_may_write_to(lc, lake_of):
    """Of one group, both write, whoever made what; then the lake is the first user's as before."""
    lake = lake_of(0o002)
    for words in (*READING, *WRITING):
        assert run(lc, lake, words, GROUP).code == 0
    with acting_as(MAKER, GROUP, 0o002):
        assert lc("verify", lake).code == 0
        assert lc("plan", "--lake", lake).code == 0


@pytest.mark.parametrize("closed", ["texts", "texts/part"])
def test_documents_that_may_not_be_read_are_not_left_out(lc, lake_of, closed):
    """Neither all of them nor those of one folder."""
    folder = lake_of(0o022).parent
    (folder / "texts/part").mkdir(parents=True, exist_ok=True)
    for name in ("texts/a.txt", "texts/part/b.txt"):
        (folder / name).write_text("Some words of a text.")
    words = ("build", "--source", "{folder}/texts", "--lake", "{lake}", "--to", "raw_snapshot")
    (folder / closed).chmod(0o700)
    said = run(lc, folder / "theirs", words, OTHER_GROUP)
    (folder / closed).chmod(0o755)
    assert_refused(said, folder / closed)
