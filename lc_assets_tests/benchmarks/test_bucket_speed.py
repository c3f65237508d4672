"""A lake in a bucket against one in a folder: rows read by range, and the whole demo. Run with
``-s`` to see the figures.

The bucket is an emulator in a process of its own on this machine, so the network costs next to
nothing and the emulator, which is Python and answers one request at a time, costs much: a floor,
not what a real bucket gives.
"""

import multiprocessing
import shutil
import time

import numpy as np
import pytest

from lc_assets.lake.bucket import Bucket
from lc_assets.lake.receipts import version_files
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.bucket_server import BucketServer
from lc_assets_tests.grid_builders import write_grid

pytest.importorskip("gcsfs")
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:InitResourceContext.dagster_run is deprecated",
)

N_ROWS, ROW_TOKENS = 512, 65_536
SHAPES = ((8, 65_536), (64, 4096))
FLOOR = 0.02
"""Of the speed on the local disk; half of what is usual on two busy cores."""
MOST_REQUESTS, MOST_LISTINGS = 2.0, 4
"""For a batch, and for all of a walk."""


def _serve(connection):
    """Answer each message with the requests since the last one; the message None ends it."""
    with BucketServer() as running:
        connection.send(running.url)
        asked = True
        while asked is not None:
            asked = connection.recv()
            connection.send(dict(running.requests))
            running.requests.clear()


@pytest.fixture
def emulator(monkeypatch):
    """The emulator in a process of its own; calling it gives the requests it has seen since the
    last call.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,))
    process.start()
    for name, value in {
        "STORAGE_EMULATOR_HOST": ours.recv(),
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "GOOGLE_CLOUD_PROJECT": "test",
    }.items():
        monkeypatch.setenv(name, value)

    def counted(message="and"):
        ours.send(message)
        return ours.recv()

    yield counted
    counted(None)
    process.join()


def rows_a_second(rows, batch_rows, context_tokens):
    """Whole rows' worth of ids per second by the clock, over one column of a walk; how many
    batches, and the sum of what came.
    """
    loader = GridLoader(rows, batch_rows=batch_rows, context_tokens=context_tokens)
    n_steps = min(len(loader), loader.row_blocks)
    begun, total = time.monotonic(), 0
    for step in range(n_steps):
        total += int(loader[step].targets.astype(np.int64).sum())
    return (
        n_steps * batch_rows * context_tokens / ROW_TOKENS / (time.monotonic() - begun),
        n_steps,
        total,
    )


def test_rows_come_by_range_at_a_part_of_the_disks_speed(emulator, tmp_path):
    """The same tokens; rows a second by the clock, the fraction of the disk's, and requests for a
    batch, of which none is a listing.
    """
    _, made = token_rows(N_ROWS, ROW_TOKENS)
    grid = write_grid(tmp_path / "train.zarr", made)
    Bucket("gs://crawl/rows").upload(
        grid, [fact.path for fact in version_files(grid)], "train.zarr"
    )
    for shape in SHAPES:
        disk, _, total = rows_a_second(open_rows(grid), *shape)
        emulator()
        remote = open_rows("gs://crawl/rows/train.zarr")
        opening = emulator()
        bucket, n_steps, again = rows_a_second(remote, *shape)
        asked = emulator()
        per_batch = sum(asked.values()) / n_steps
        print(
            f"\nbatches of {shape[0]} × {shape[1]:,}: {bucket:,.0f} rows/s out of the bucket, "
            f"{disk:,.0f} from the disk: "
            f"{bucket / disk:.2f} ×, {bucket * ROW_TOKENS * 2e-6:,.0f} MB/s of ids, by the clock; "
            f"{per_batch:.2f} requests a batch ({asked}), {sum(opening.values())} to open"
        )
        assert total == again
        assert bucket > FLOOR * disk
        assert asked.get("list", 0) + opening.get("list", 0) <= MOST_LISTINGS
        assert per_batch <= MOST_REQUESTS


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_the_whole_demo_in_a_bucket(emulator, tmp_path, monkeypatch, capsys):
    """`lc demo` twice over one sample: into a folder, and into a bucket; the same digests, seconds
    and requests of both.
    """
    from typer.testing import CliRunner

    from lc_assets.cli.app import app

    monkeypatch.setenv("LC_CACHE", str(tmp_path / "copies"))
    seconds, digests, requests = {}, {}, {}
    for name, lake in (("first", []), ("folder", []), ("bucket", ["--lake", "gs://crawl/demo"])):
        if name != "first":  # which writes the sample and compiles what is compiled
            shutil.rmtree(tmp_path / "demo" / "lake", ignore_errors=True)
        emulator()
        begun = time.monotonic()
        said = CliRunner().invoke(
            app,
            ["demo", "--dir", str(tmp_path / "demo"), "--workers", "1", *lake],
            catch_exceptions=False,
        )
        seconds[name], requests[name] = time.monotonic() - begun, emulator()
        assert said.exit_code == 0
        shown = CliRunner().invoke(app, ["show", *(lake[1:] or [str(tmp_path / "demo" / "lake")])])
        digests[name] = shown.output.split("published partitions")[1].split()
    only = {name: [word for word in words if len(word) == 12] for name, words in digests.items()}
    with capsys.disabled():
        ratio = seconds["bucket"] / seconds["folder"]
        print(
            f"\nthe demo: folder {seconds['folder']:.1f} s, bucket {seconds['bucket']:.1f} s by "
            f"the clock: {ratio:.2f} ×"
        )
        print(f"{sum(requests['bucket'].values()):,} requests: {requests['bucket']}")
    assert not requests["folder"]
    assert only["folder"] == only["bucket"]
