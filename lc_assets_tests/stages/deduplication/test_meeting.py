"""What meets in several bands is one pair, in whatever files its documents are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.execution.exchange import BucketWriter
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.stages.deduplication.candidates import (
    CANDIDATES,
    PairsTask,
    merge_pairs,
)
from lc_assets.stages.deduplication.index import PLACE_BITS

FILES = (5, 0, 7)


def numbers():
    return [
        file << PLACE_BITS | place
        for file, n_documents in enumerate(FILES)
        for place in range(n_documents)
    ]


def test_pairs_are_those_of_one_table(tmp_path):
    """Three files of pairs, met in some bands: joined and in order over all files as a dictionary
    has them.
    """
    rng = np.random.default_rng(7)
    named = np.array(numbers())
    wanted, met = {}, []
    for file in range(3):
        sides = np.sort(rng.choice(len(named), (40, 2)), axis=1)
        left, right = named[sides[:, 0]], named[sides[:, 1]]
        bands = rng.integers(0, 18, 40).astype(np.uint8)
        for pair in zip(left.tolist(), right.tolist(), bands.tolist(), strict=True):
            wanted[pair[:2]] = wanted.get(pair[:2], 0) | 1 << pair[2]
        met.append(tmp_path / "made" / f"{file}.parquet")
        met[-1].parent.mkdir(exist_ok=True)
        with BucketWriter(met[-1], CANDIDATES) as writer:
            writer.send(
                pa.table([left, right, bands], schema=CANDIDATES),
                (left >> PLACE_BITS).astype(np.int32),
            )
    tasks = [PairsTask(work=tmp_path, number=n, floor=0.5) for n in range(len(FILES))]
    for task in tasks:
        merge_pairs(task)
    found = [
        tuple(line.values())
        for task in tasks
        for line in pq.read_table(task.path("candidates")).to_pylist()
    ]
    assert found == [(*pair, bands) for pair, bands in sorted(wanted.items())]
    for task in tasks:
        table = pq.read_table(task.path("candidates"))
        assert read_npy(task.path("candidates", ".npy")).tolist() == sorted(
            {*table["a"].to_pylist(), *table["b"].to_pylist()}
        )
