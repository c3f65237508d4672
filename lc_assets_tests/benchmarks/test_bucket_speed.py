"""A lake in a bucket against one in a folder: rows read by range, and the whole demo. Run with ``-s`` to see the figures.

The bucket is an emulator in a process of its own on this machine, so the network costs next to nothing and the emulator,
which is Python and answers one request at a time, costs much: a floor, not what a real bucket gives.
"""

import multiprocessing
import shutil
import time

import numpy as np
import pytest

from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.storage.bucket import Bucket
from lc_assets.storage.digests import file_facts
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.bucket_server import BucketServer
from lc_assets_tests.grid_builders import write_grid

pytest.importorskip("gcsfs")
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:InitResourceContext.dagster_run is deprecated"
)

N_ROWS, ROW_TOKENS = 512, 65_536
SHAPES = ((8, 65_536), (64, 4096))
FLOOR = 0.02
"""Of the speed on the local disk; half of what is usual on two busy cores."""


def _serve(connection):
    with BucketServer() as running:
        connection.send(running.url)
        connection.recv()
        connection.send(dict(running.requests))


@pytest.fixture
def emulator(monkeypatch):
    """The emulator in a process of its own; calling it ends it and gives the requests it has seen."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,))
    process.start()
    for name, value in {
        "STORAGE_EMULATOR_HOST": ours.recv(),
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "GOOGLE_CLOUD_PROJECT": "test",
    }.items():
        monkeypatch.setenv(name, value)

    def end():
        if process.is_alive():
            ours.send(None)
            end.requests = ours.recv()
            process.join()
        return end.requests

    yield end
    end()


def megabytes_a_second(rows, batch_rows, context_tokens):
    """MB of ids per second by the clock, over one column of a walk, with the sum of what came."""
    loader = GridLoader(rows, batch_rows=batch_rows, context_tokens=context_tokens)
    n_steps = min(len(loader), loader.walk.row_blocks)
    begun, total = time.monotonic(), 0
    for step in range(n_steps):
        total += int(loader[step].targets.astype(np.int64).sum())
    return n_steps * batch_rows * context_tokens * 2e-6 / (time.monotonic() - begun), total


def test_rows_come_by_range_at_a_part_of_the_disks_speed(emulator, tmp_path):
    """The same tokens; megabytes a second by the clock, and requests."""
    _, made = token_rows(N_ROWS, ROW_TOKENS)
    grid = write_grid(tmp_path / "train.zarr", made)
    Bucket("gs://crawl/rows").upload(grid, [fact.path for fact in file_facts(grid)], "train.zarr")
    for shape in SHAPES:
        disk, total = megabytes_a_second(open_rows(grid), *shape)
        bucket, again = megabytes_a_second(open_rows("gs://crawl/rows/train.zarr"), *shape)
        print(f"\nrows of {shape[0]} × {shape[1]:,}: bucket {bucket:,.0f} MB/s, disk {disk:,.0f}: {bucket / disk:.2f} ×, by the clock")
        assert total == again
        assert bucket > FLOOR * disk
    print(f"requests: {emulator()}")


@pytest.mark.slow
def test_the_whole_demo_in_a_bucket(emulator, tmp_path, monkeypatch, capsys):
    """`lc demo` twice over one sample: into a folder, and into a bucket; the same digests, seconds and requests of both."""
    from typer.testing import CliRunner

    from lc_assets.cli.main import app

    monkeypatch.setenv("LC_CACHE", str(tmp_path / "copies"))
    seconds, digests = {}, {}
    for name, lake in (("first", []), ("folder", []), ("bucket", ["--lake", "gs://crawl/demo"])):
        if name != "first":  # which writes the sample and compiles what is compiled
            shutil.rmtree(tmp_path / "demo" / "lake", ignore_errors=True)
        begun = time.monotonic()
        said = CliRunner().invoke(app, ["demo", "--dir", str(tmp_path / "demo"), "--workers", "1", *lake], catch_exceptions=False)
        seconds[name] = time.monotonic() - begun
        assert said.exit_code == 0
        digests[name] = said.output.split("What stands published")[1].split("All in")[0].split()
    only = {name: [word for word in words if len(word) == 12] for name, words in digests.items()}
    with capsys.disabled():
        print(f"\nthe demo: folder {seconds['folder']:.0f} s, bucket {seconds['bucket']:.0f} s by the clock; requests {emulator()}")
    assert only["folder"] == only["bucket"]
