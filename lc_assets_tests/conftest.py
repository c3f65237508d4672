"""Fixtures that several packages share; those of session scope must not be written to."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lc_assets.stages.reports import data_set_card
from lc_assets_tests.builders import TinyLake, tiny_lake
from lc_assets_tests.withdrawing import WithdrawingLake, withdrawing_lake

# Tests start over a hundred interpreters, and without bytecode each would compile the package anew.
# Numba keeps its machine code in the same folders.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A build flushes each file several times, which takes a disk most of the time of a test.
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes its folders there, private to this user
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())

# No check depends on the machine's speed, and every run draws the same examples. New and many more
# ones are drawn with LC_HYPOTHESIS=campaign.
settings.register_profile(
    "default",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "campaign", settings.get_profile("default"), max_examples=1000, derandomize=False
)
settings.load_profile(os.environ.get("LC_HYPOTHESIS", "default"))


collect_ignore = ["maxtext_peer.py"]
"""Imports MaxText, which has an environment of its own."""


def pytest_configure(config: pytest.Config) -> None:
    """Collect garbage as seldom as commands do: it took an eighth of a small build. Give temporary
    files of examples and of processes a folder that is removed at the end; other users, whom some
    tests become, may pass through it.
    """
    gc.set_threshold(400_000)
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="lc-", dir=os.environ["PYTEST_DEBUG_TEMPROOT"])
        Path(folder).chmod(0o711)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        # -100 is the priority of the removal of multiprocessing's own folder in it
        Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run the whole suite in one process more than there are processors, since tests wait a fifth of
    their time, and in up to four, two gigabytes each; run a part of it, benchmarks, and whatever
    prints (``-s``) in this process.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    alone = _wants_benchmarks(config) or config.option.capture == "no"
    return min((os.cpu_count() or 1) + 1, 4) if whole and not alone else 0


def pytest_collection_finish() -> None:
    """Exempt everything imported so far, a million objects, from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the benchmarks where the markers leave them out."""
    here = collection_path == Path(__file__).parent / "benchmarks"
    return True if here and not _wants_benchmarks(config) else None


def _wants_benchmarks(config: pytest.Config) -> bool:
    chosen = config.option.markexpr
    return not chosen or "benchmark" in chosen.replace("not benchmark", "")


class DrawnOnce:
    """`lc_assets.stages.reports.drawing`, with a plot of the same numbers drawn once a process: a
    sixth of a tiny lake's time.
    """

    def __init__(self, drawing: Any) -> None:
        self._drawing, self._plots = drawing, dict[str, bytes]()

    def __getattr__(self, kind: str) -> Callable[..., bytes]:
        def draw(*numbers: Any, **more: Any) -> bytes:
            of = repr((kind, numbers, more))
            if of not in self._plots:
                self._plots[of] = getattr(self._drawing, kind)(*numbers, **more)
            return self._plots[of]

        return draw


@pytest.fixture(scope="session", autouse=True)
def _cards_are_drawn_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(data_set_card, "drawing", DrawnOnce(data_set_card.drawing))
        yield


@pytest.fixture(scope="session")
def published_lake(tmp_path_factory) -> TinyLake:
    """A tiny lake with the whole chain built; read only: a test copies what it changes."""
    return tiny_lake(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="session")
def lake_with_copies(tmp_path_factory) -> WithdrawingLake:
    """A small lake with near duplicates across its snapshots and an empty list of withdrawals; read
    only: copy it to change it.
    """
    return withdrawing_lake(tmp_path_factory.mktemp("copies"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data beside the checkout; skips the test where there is none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "shared" / "data" / "MANIFEST.md").is_file():
            return folder / "shared" / "data"
    pytest.skip("no folder shared/data beside the checkout")
