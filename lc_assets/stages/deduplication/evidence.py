"""Evidence: from bands to pairs that are known to be alike. The only step that reads texts a second
time.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.arrays.npy import npy_bytes, read_npy
from lc_assets.publishing import finished, publish, publish_bytes
from lc_assets.stages.deduplication.candidates import SliceTask, pair_slice, slices_for
from lc_assets.stages.deduplication.index import PLACE_BITS, FilePart
from lc_assets.stages.deduplication.meeting import MeetTask, bounds_of, meet
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.deduplication.settings import LEAST_MEMORY, Means, Scheme
from lc_assets.stages.deduplication.verification import (
    ShinglesTask,
    VerifyTask,
    gather_shingles,
    verify,
    wanted_places,
)
from lc_assets.text.duplicates.clusters import Numbers

_NOBODY: Final = np.empty(0, np.int64)
NAMES: Final = pa.schema([("number", pa.int64()), ("id", pa.string())])


Finder = Callable[[int, Numbers], tuple[FilePart, ...]]
"""Names the tables of a file's documents at some ascending places, which are to be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """Where and how candidates are compared.

    Attributes:
        work: a folder for scratch.
        executor: runs the tasks.
        means: memory.
        workers: how many tasks the executor runs at once.
    """

    work: Path
    executor: Executor
    means: Means = field(default_factory=Means)
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """Files whose documents are cut into bands, by number from 0.

    Attributes:
        scheme: by which evidence is made.
        n_bands: bands of a signature.
        bands: folder of each file's bands.
        documents: of each file.
        first_new: number of the first new file: pairs of two older documents are not looked for.
    """

    scheme: Scheme
    n_bands: int
    bands: tuple[Path, ...]
    documents: tuple[int, ...]
    first_new: int = 0


def compared_pairs(
    comparing: Comparing, banded: Banded, find: Finder, *, repeats: Numbers = _NOBODY
) -> tuple[list[Path], Counts]:
    """Tables of the pairs that share a band and are alike at least to the floor, in order; and what
    was met and compared.

    Args:
        comparing: where to work, and by what means.
        banded: the bands of all files.
        find: where texts lie.
        repeats: ascending numbers of documents that repeat an earlier text; they are no candidates.
    """
    bounds = bounds_of(banded.documents)
    counted = _candidates(comparing, banded, bounds, repeats)
    candidates = _met(comparing, n_buckets=len(bounds) + 1)
    counted += _verified(comparing, banded.scheme, candidates, find)
    return finished((comparing.work / "verified").glob("*.parquet")), counted


def _candidates(
    comparing: Comparing, banded: Banded, bounds: tuple[int, ...], repeats: Numbers
) -> Counts:
    publish_bytes(comparing.work / "repeats.npy", npy_bytes(repeats))
    slices = slices_for(sum(banded.documents), comparing.means.memory // (2 * comparing.workers))
    tasks = [
        SliceTask(
            bands=banded.bands,
            first_new=banded.first_new,
            repeats=comparing.work / "repeats.npy",
            band=band,
            slice=number,
            slices=slices,
            centres=banded.scheme.centres,
            bounds=bounds,
            out=comparing.work / "met" / f"{band:02d}-{number:05d}.parquet",
        )
        for band in range(banded.n_bands)
        for number in range(slices)
    ]
    return Counts.total(
        counts for _, counts in comparing.executor.run(pair_slice, tasks, what="match bands")
    )


def _met(comparing: Comparing, *, n_buckets: int) -> list[MeetTask]:
    met = tuple(finished((comparing.work / "met").glob("*.parquet")))
    folder, memory = (
        comparing.work / "candidates",
        max(LEAST_MEMORY, comparing.means.memory // (2 * comparing.workers)),
    )
    tasks = [
        MeetTask(met=met, bucket=bucket, folder=folder, memory=memory)
        for bucket in range(n_buckets)
    ]
    for _ in comparing.executor.run(meet, tasks, what="bring candidates together"):
        pass
    shutil.rmtree(comparing.work / "met")
    return tasks


def _verified(
    comparing: Comparing, scheme: Scheme, candidates: Sequence[MeetTask], find: Finder
) -> Counts:
    wanted = tuple(task.numbers for task in candidates)
    compared = sorted(
        {number for path in wanted for number in np.unique(read_npy(path) >> PLACE_BITS).tolist()}
    )
    shingles = comparing.work / "shingles"
    gathering = [
        ShinglesTask(
            parts=find(number, wanted_places(wanted, number)),
            number=number,
            wanted=wanted,
            words=scheme.shingle_words,
            folder=shingles,
        )
        for number in compared
    ]
    counted = Counts.total(
        counts
        for _, counts in comparing.executor.run(gather_shingles, gathering, what="read candidates")
    )
    blocks = [
        VerifyTask(
            candidates=task.pairs,
            block=block,
            shingles=shingles,
            floor=scheme.floor,
            out=comparing.work / "verified" / f"{task.bucket:05d}-{block:05d}.parquet",
        )
        for task in candidates
        for block in range(pq.read_metadata(task.pairs).num_row_groups)
    ]
    counted += Counts.total(
        counts for _, counts in comparing.executor.run(verify, blocks, what="compare")
    )
    shutil.rmtree(shingles, ignore_errors=True)
    return counted


def name_documents(
    asked: Queries, verified: list[Path], path: Path, find: Callable[[Numbers], Iterable[pa.Table]]
) -> None:
    """Make the views ``verified``, of pairs, and ``names``, of the documents in them, `NAMES`.

    Args:
        asked: an open connection.
        verified: tables of pairs.
        path: where the names go.
        find: ids of documents with some ascending numbers, in any number of tables.
    """
    asked.do(f"CREATE OR REPLACE VIEW verified AS SELECT * FROM {parquet(verified)}")
    numbers = asked.numbers("SELECT a FROM verified UNION SELECT b FROM verified ORDER BY 1")
    with publish(path) as draft, pq.ParquetWriter(draft, NAMES) as writer:
        for table in find(numbers):
            writer.write_table(table.select(NAMES.names).cast(NAMES))
    asked.do(f"CREATE OR REPLACE VIEW names AS SELECT * FROM {parquet([path])}")
