"""The article's loader in a process of its own, as its users run it: nothing of this package is
imported beside it.

As a program: ``python -m … ARRAY OUT BATCH_ROWSxCONTEXT_TOKENS…`` prints million tokens per
CPU-second of each shape, one a line, and leaves the batches of each in ``OUT/{shape}.npy``: (step,
text or targets, row, token).
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from lc_assets_tests.reference.article_loader import ArticleLoader

ROOT = Path(__file__).parents[2]
ROUNDS = 5


def article_speeds(
    array: Path, out: Path, shapes: list[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Million tokens per CPU-second of each shape, the median of a few rounds; the batches lie in
    ``out``.
    """
    program = [
        sys.executable,
        "-m",
        "lc_assets_tests.benchmarks.article_speed",
        str(array),
        str(out),
    ]
    said = subprocess.run(
        [*program, *(f"{down}x{across}" for down, across in shapes)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return dict(zip(shapes, map(float, said.stdout.split()), strict=True))


def steps_of(shape: str) -> int:
    """Few where a step is long."""
    return 3 if int(shape.split("x")[1]) > 2048 else 16


def main(array: str, out: str, *shapes: str) -> None:
    """Take the time of the first steps of each shape."""
    for shape in shapes:
        loader = ArticleLoader(array, *map(int, shape.split("x")))
        seconds = []
        for _ in range(ROUNDS):
            begun = time.process_time()
            batches = [loader[step] for step in range(steps_of(shape))]
            seconds.append(time.process_time() - begun)
        np.save(
            Path(out) / f"{shape}.npy", [[batch["text"], batch["targets"]] for batch in batches[:3]]
        )
        print(sum(batch["targets"].size for batch in batches) / 1e6 / statistics.median(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
