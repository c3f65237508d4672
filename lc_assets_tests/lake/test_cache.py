"""Copies within a bound: the least recently used go, what is in use stays, in whichever process;
what went comes again.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from lc_assets.errors import BadInput
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.cache import VersionCache, parse_byte_bound
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import build
from lc_assets_tests.lake.test_buckets import _two_files, context_at, lines_stage

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

KEYS = ("2023-06", "2023-14", "2023-23")
BYTES = 2
"""Of one version: two files of one byte."""


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as running:
        yield running


@pytest.fixture(scope="module")
def built(server, tmp_path_factory):
    """Three versions of two bytes each, in the bucket."""
    lake = open_lake(
        "gs://crawl/lake", environment={"LC_CACHE": str(tmp_path_factory.mktemp("built"))}
    )
    return [build(context_at(lake), lines_stage(), key, _two_files).published for key in KEYS]


@pytest.fixture
def lake_of(built, tmp_path):
    """A machine without copies, whose room is bounded; what was used long ago may go."""

    def opened(most_bytes):
        return open_lake(
            "gs://crawl/lake",
            environment={"LC_CACHE": str(tmp_path), "LC_CACHE_BYTES": str(most_bytes)},
        )

    return opened


def used_long_ago(lake, *keys):
    """The versions were used hours ago, the first of them first."""
    for number, key in enumerate(keys):
        mark = lake.cache._mark(lake.partition("lines", key).require().home)
        os.utime(mark, (10**9 + number, 10**9 + number))


def here(lake):
    return [key for key in KEYS if list(lake.partition("lines", key).folder.glob("*/*.txt"))]


def test_the_least_recently_used_goes_and_comes_again(lake_of, server):
    lake = lake_of(2 * BYTES)
    for key in KEYS[:2]:
        assert lake.partition("lines", key).require().folder
    used_long_ago(lake, KEYS[1], KEYS[0])
    assert lake.partition("lines", KEYS[2]).require().folder
    assert here(lake) == [KEYS[0], KEYS[2]]
    before = server.requests.copy()
    used_long_ago(lake, KEYS[0])
    again = lake.partition("lines", KEYS[1]).require()
    assert [path.read_text() for path in sorted(again.folder.glob("*.txt"))] == ["a", "b"]
    assert here(lake) == [KEYS[1], KEYS[2]]
    assert (server.requests - before)["read"] >= BYTES
    assert again.damage() == []


def test_what_is_asked_for_again_is_used_again(lake_of):
    """Also when nothing has to be fetched."""
    lake = lake_of(2 * BYTES)
    for key in KEYS[:2]:
        assert lake.partition("lines", key).require().folder
    used_long_ago(lake, *KEYS[:2])
    assert lake.partition("lines", KEYS[0]).require().folder
    assert lake.partition("lines", KEYS[2]).require().folder
    assert here(lake) == [KEYS[0], KEYS[2]]


def test_what_is_in_use_stays_though_the_bound_is_passed(lake_of):
    lake = lake_of(0)
    held = lake.partition("lines", KEYS[0]).require()
    home = held.folder
    used_long_ago(lake, KEYS[0])
    assert lake.partition("lines", KEYS[1]).require().folder
    assert here(lake) == list(KEYS[:2])
    assert (home / "a.txt").read_text() == "a"
    del held
    used_long_ago(lake, *KEYS[:2])
    assert lake.cache.make_room(0) == 2 * BYTES
    assert here(lake) == []


def test_what_was_asked_for_just_now_stays(lake_of):
    """For whoever has kept a path and nothing else."""
    lake = lake_of(0)
    for key in KEYS:
        assert lake.partition("lines", key).require().folder
    assert lake.cache.make_room(0) == 0
    assert here(lake) == list(KEYS)
    assert VersionCache(lake.cache.root, 0, at_least_seconds=0).make_room(0) == len(KEYS) * BYTES


def test_what_another_process_uses_stays_until_that_ends(lake_of):
    """However it ends."""
    lake = lake_of(0)
    home = lake.partition("lines", KEYS[0]).require().folder
    program = f"""
        import sys
        from pathlib import Path
        from lc_assets.lake.cache import VersionCache
        lease = VersionCache(Path({str(lake.cache.root)!r})).lease(Path({str(home)!r}))
        print("taken", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "taken\n"
        used_long_ago(lake, KEYS[0])
        assert lake.cache.make_room(0) == 0
        other.kill()
    assert lake.cache.make_room(0) == BYTES
    assert not home.exists()


def test_what_a_build_publishes_is_a_copy_too(server, tmp_path):
    """Counted once it has gone up; what had been there goes for it, what was written just now does
    not.
    """
    lake = open_lake(
        "gs://crawl/other", environment={"LC_CACHE": str(tmp_path), "LC_CACHE_BYTES": str(BYTES)}
    )
    for key in KEYS[:2]:
        build(context_at(lake), lines_stage(), key, _two_files)
        used_long_ago(lake, *([key] if key == KEYS[0] else []))
    assert here(lake) == [KEYS[1]]
    assert {copy.n_bytes for copy in lake.cache.copies()} == {BYTES}
    assert build(context_at(lake), lines_stage(), KEYS[0], None).reused


def test_a_version_that_is_gone_from_the_bucket_is_not_taken_for_finished(server, tmp_path):
    """Where some of its copies are left, and another machine has removed it."""
    one, two = (
        open_lake("gs://crawl/third", environment={"LC_CACHE": str(tmp_path / name)})
        for name in ("one", "two")
    )
    first = build(context_at(one), lines_stage(), KEYS[0], _two_files).published
    assert two.partition("lines", KEYS[0]).require().only("a.txt")
    build(context_at(one), lines_stage(code_version="2"), KEYS[0], _two_files)
    one.partition("lines", KEYS[0]).remove(first.version)
    assert two.partition("lines", KEYS[0]).finished(first.version) is None
    assert not build(context_at(two), lines_stage(), KEYS[0], _two_files).reused


@pytest.mark.parametrize("words", ["much", "-1", "nan", "inf"])
def test_a_bound_that_is_no_number_of_bytes_is_refused(words):
    with pytest.raises(BadInput, match="LC_CACHE_BYTES"):
        parse_byte_bound(words)


def test_without_a_bound_half_of_the_disk_is_taken(tmp_path):
    assert 0 < VersionCache(tmp_path)._bound() < 2**60
    assert parse_byte_bound("1e9") == 10**9
