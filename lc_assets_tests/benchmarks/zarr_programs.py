"""Reading and writing a token grid: our code, tensorstore, zarr-python with and without zarrs.

Run: ``python -m lc_assets_tests.benchmarks.zarr_programs``; zarrs is optional. It also reads after
    a
fork, as the workers of a PyTorch ``DataLoader`` do.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore
import zarr

from lc_assets.formats.arrays.grid import GridReader, create_grid, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets_tests.grid_builders import write_grid, zipf_ids

N_ROWS, ROW_TOKENS = 256, 65_536
PIPELINES = {
    "zarr-python": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr-python with zarrs": "zarrs.ZarrsCodecPipeline",
}
Read = Callable[[slice, slice], Any]


def opened_by_tensorstore(path: Path) -> Any:
    one = {"limit": 1}
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(path)},
        "context": {"data_copy_concurrency": one, "file_io_concurrency": one},
    }
    return tensorstore.open(spec, open=True).result()


def programs(path: Path) -> Iterator[tuple[str, Read]]:
    """Each program with a function that reads a rectangle."""
    yield "own", GridReader(path).read
    by_tensorstore = opened_by_tensorstore(path)
    yield "tensorstore", lambda rows, tokens: by_tensorstore[rows, tokens].read().result()
    for name, pipeline in PIPELINES.items():
        if importlib.util.find_spec(pipeline.partition(".")[0]) is not None:
            zarr.config.set({"codec_pipeline.path": pipeline})
            array = zarr.open_array(path, mode="r")
            yield name, lambda rows, tokens, array=array: array[rows, tokens]


def rectangles(n_rows: int, n_tokens: int, down: int, across: int) -> list[tuple[slice, slice]]:
    return [
        (slice(row, row + n_rows), slice(token, token + n_tokens))
        for row in range(0, down, n_rows)
        for token in range(0, across, n_tokens)
    ]


WALKS = {
    "32 rectangles of 8 × 1,024": rectangles(8, 1024, 8, 32 * 1024),
    "256 inner chunks": rectangles(64, 1024, N_ROWS, ROW_TOKENS),
    "4 bands of 64 × 65,536": rectangles(64, ROW_TOKENS, N_ROWS, ROW_TOKENS),
    "everything at once": rectangles(N_ROWS, ROW_TOKENS, N_ROWS, ROW_TOKENS),
}


def cpu_milliseconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The fewest of a few calls."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return 1000 * min(found)


def after_a_fork(read: Read) -> str:
    """What becomes of a read in a forked process, when its parent has read before."""
    corner = slice(0, 64), slice(0, ROW_TOKENS)
    read(*corner)
    child = os.fork()
    if child == 0:
        read(*corner)
        os._exit(0)
    for _ in range(50):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "works" if status == 0 else f"ends with status {status}"
        time.sleep(0.1)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


def written(folder: Path, rows: np.ndarray, write: Callable[[Path], object]) -> bytes:
    """The shard that a program writes into a new grid."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "a.zarr"
    create_grid(path, GridLayout(*rows.shape, 50_257))
    write(path)
    return (path / "c/0/0").read_bytes()


def main() -> None:
    rows = zipf_ids(N_ROWS, ROW_TOKENS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_grid(folder / "grid.zarr", rows)
        for program, read in programs(path):
            np.testing.assert_array_equal(read(slice(0, 64), slice(0, 2048)), rows[:64, :2048])
            for walk, parts in WALKS.items():
                spent = cpu_milliseconds(lambda read=read, parts=parts: [read(*p) for p in parts])
                print(f"{program:24} {walk:28} {spent:8.2f} ms", flush=True)
            print(f"{program:24} {'after a fork':28} {after_a_fork(read)}", flush=True)
        (band,) = plan_bands(GridLayout(*rows.shape, 50_257))
        writers: dict[str, Callable[[Path], object]] = {
            "own": lambda at: write_band(at, band, rows),
            "tensorstore": lambda at: opened_by_tensorstore(at).write(rows).result(),
            "zarr-python": lambda at: zarr.open_array(at, mode="r+").__setitem__(slice(None), rows),
        }
        zarr.config.set({"codec_pipeline.path": PIPELINES["zarr-python"]})
        ours = written(folder, rows, writers["own"])
        for program, write in writers.items():
            spent = cpu_milliseconds(lambda write=write: written(folder, rows, write), repeats=3)
            same = written(folder, rows, write) == ours
            print(f"{program:24} {'write':28} {spent:8.2f} ms, same bytes: {same}", flush=True)


if __name__ == "__main__":
    main()
