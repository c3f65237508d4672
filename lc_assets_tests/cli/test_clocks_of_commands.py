"""Commands under a clock that is ten years ahead or behind write the same files, and what was built
by the right clock is current by a wrong one.
"""

import os
import shutil
import subprocess
import sys

import pytest

from lc_assets_tests.cli.command_world import OVER_FILES, files_to_read, tree, words_of
from lc_assets_tests.kill_points import kill_points

TEN_YEARS = 10 * 365 * 24 * 3600
SAMPLE = ("megatron cache",)
NAMES = [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.slow) for n in OVER_FILES]
SHIFTED = """
import ctypes, sys, time
ctypes.CDLL(None).kill_points_arm(
    b"/nowhere", ctypes.c_long(0), b"", b"", ctypes.c_long(0), ctypes.c_long(0),
    ctypes.c_long(int(sys.argv[1])),
)
print(time.time(), file=sys.stderr)
from lc_assets.cli.app import app
app(sys.argv[2:], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def library():
    return kill_points()


@pytest.fixture
def shifted(library, tmp_path):
    """Run a command under a clock that is some seconds ahead; return what it printed."""
    files_to_read(tmp_path)

    def run(seconds, *words):
        ended = subprocess.run(
            [sys.executable, "-c", SHIFTED, str(seconds), *words],
            cwd=tmp_path,
            env=os.environ | {"LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout, float(ended.stderr.splitlines()[0])

    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_same_files_by_any_clock(name, shifted, tmp_path):
    out = tmp_path / "out"
    found, clocks = [], []
    for seconds in (0, TEN_YEARS, -TEN_YEARS):
        _, clock = shifted(seconds, *words_of(name, out))
        found.append(tree(out))
        clocks.append(clock)
        if not seconds and (out / "recipe.toml").is_file():
            for wrong in (TEN_YEARS, -TEN_YEARS):
                said, _ = shifted(wrong, "plan", "--lake", str(out))
                assert " 0 out of date" in said
        shutil.rmtree(out)
    assert clocks[1] - clocks[0] > TEN_YEARS - 3600 > 3600 > clocks[2] - clocks[0]
    assert found[0] == found[1] == found[2] != {}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [TEN_YEARS, -TEN_YEARS])
def test_a_release_and_a_prune_by_a_wrong_clock(seconds, shifted, tmp_path):
    """Nothing that is published or pinned is deleted, whatever the clock; each command finds what
    the others wrote.
    """
    lake = tmp_path / "lake"
    shifted(0, *words_of("build", lake))
    before = tree(lake)
    shifted(seconds, "release", str(lake), "v1")
    shifted(-seconds, "prune", str(lake))
    shifted(seconds, "verify", str(lake))
    shifted(-seconds, "rebuild", "--lake", str(lake), "--workers", "1")
    after = tree(lake)
    assert {name: after.get(name) for name in before} == before
    assert {name for name in after.keys() - before.keys() if name.endswith(".json")} == {
        "releases/v1.json"
    }
