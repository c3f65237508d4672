"""From bands to verified pairs: candidates, and the exact Jaccard index of each from its texts.

Shingles of the documents that are in a candidate are written one after the other, a file of numbers
per file of the index, and mapped into memory; a task compares a block of candidates. So memory is
that of one document and one block, and the disk holds eight bytes per shingle (somewhat more than
the text) until it is done.
"""

import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.build.tables import read_lines
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.arrays.npy import npy_bytes, read_npy
from lc_assets.publishing import finished, publish, publish_bytes
from lc_assets.stages.deduplication.candidates import (
    BLOCK_PAIRS,
    PAIRS,
    BandsTask,
    RangeTask,
    bounds_of,
    merge_pairs,
    pair_bands,
)
from lc_assets.stages.deduplication.index import BANDS, PLACE_BITS, PLACES
from lc_assets.text.duplicates.clusters import Numbers, Sets, Similarities, similarities
from lc_assets.text.duplicates.keys import shingle_hashes

TASK_KEYS = 1 << 21
"""Least number of keys per task."""
VERIFIED = pa.schema([*PAIRS, ("similarity", pa.float64())])

Part = tuple[Path, int, int]
"""A table of documents, the place of its first, and their number."""
Finder = Callable[[int, Numbers], tuple[Part, ...]]
"""The tables that hold some documents of a file, by ascending index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShinglesTask:
    """Shingles of the documents of one file that are in a candidate.

    Attributes:
        parts: the tables that hold them.
        number: of the file.
        wanted: files of ascending numbers of documents in candidates.
        folder: of the shingles.
    """

    parts: tuple[Part, ...]
    number: int
    wanted: tuple[Path, ...]
    folder: Path

    def __str__(self) -> str:
        return str(self.parts[0][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTask:
    """A row group of candidates to be compared; ``shingles`` is the folder of `ShinglesTask`."""

    candidates: Path
    block: int
    shingles: Path
    floor: float
    out: Path

    def __str__(self) -> str:
        return f"{self.candidates.name}, block {self.block}"


def compared_pairs(
    work: Path,
    executor: Executor,
    files: dict[Path, int],
    find: Finder,
    *,
    first_new: int,
    floor: float,
) -> tuple[list[Path], Counts]:
    """Find the pairs that share a band and have at least a Jaccard index.

    Args:
        work: folder for scratch.
        executor: runs the tasks.
        files: number of documents by folder of the bands of a file, in the files' order.
        find: locates texts.
        first_new: number of the first new file: pairs of two older documents are skipped.
        floor: least Jaccard index.

    Returns:
        Tables of `VERIFIED`, in order; and counts of candidates, documents and characters.
    """
    bounds = bounds_of(list(files.values()))
    together = max(1, TASK_KEYS // max(1, sum(files.values())))
    bands = [
        BandsTask(
            files=tuple(files),
            first_new=first_new,
            bands=tuple(range(first, min(first + together, BANDS))),
            bounds=bounds,
            out=work / "made" / f"{first:02d}.parquet",
        )
        for first in range(0, BANDS, together)
    ]
    list(executor.run(pair_bands, bands, what="match bands"))
    made = tuple(finished((work / "made").glob("*.parquet")))
    ranges = [
        RangeTask(made=made, number=number, folder=work / "candidates")
        for number in range(len(bounds) + 1)
    ]
    list(executor.run(merge_pairs, ranges, what="merge candidates"))
    shutil.rmtree(work / "made")
    counted = _verified(work, executor, ranges, find, floor)
    return finished((work / "verified").glob("*.parquet")), counted


def _verified(
    work: Path, executor: Executor, ranges: list[RangeTask], find: Finder, floor: float
) -> Counts:
    wanted = tuple(task.documents for task in ranges)
    numbers = {int(n) for path in wanted for n in np.unique(read_npy(path) >> PLACE_BITS)}
    gathering = [
        ShinglesTask(
            parts=find(number, wanted_places(wanted, number)),
            number=number,
            wanted=wanted,
            folder=work / "shingles",
        )
        for number in sorted(numbers)
    ]
    read = executor.run(gather_shingles, gathering, what="read candidates")
    counted = Counts.total(counts for _, counts in read)
    blocks = [
        VerifyTask(
            candidates=task.pairs,
            block=block,
            shingles=work / "shingles",
            floor=floor,
            out=work / "verified" / f"{task.number:05d}-{block:05d}.parquet",
        )
        for task in ranges
        for block in range(-(-pq.read_metadata(task.pairs).num_rows // BLOCK_PAIRS))
    ]
    compared = executor.run(verify, blocks, what="compare")
    counted += Counts.total(counts for _, counts in compared)
    shutil.rmtree(work / "shingles", ignore_errors=True)
    return counted


def gather_shingles(task: ShinglesTask) -> Counts:
    """Publish the shingles of one file's candidates."""
    wanted = wanted_places(task.wanted, task.number)
    starts, n_chars = array("q", [0]), 0
    values, lengths, places = _paths(task.folder, task.number)
    with publish(values) as draft, draft.open("wb") as stream:
        for text in _texts(task, wanted):
            shingles = shingle_hashes(text)
            stream.write(shingles.tobytes())
            starts.append(starts[-1] + len(shingles))
            n_chars += len(text)
    publish_bytes(lengths, npy_bytes(np.array(starts, np.int64)))
    publish_bytes(places, npy_bytes(wanted))
    return Counts(extra={"documents compared": len(wanted), "characters compared": n_chars})


def _texts(task: ShinglesTask, wanted: Numbers) -> Iterator[str]:
    for path, first, n_documents in task.parts:
        begin, end = np.searchsorted(wanted, [first, first + n_documents])
        ours = set((wanted[begin:end] - first).tolist())
        for place, line in enumerate(read_lines(path, ["raw_content"], batch_lines=16)):
            if place in ours:
                yield line["raw_content"]


def verify(task: VerifyTask) -> Counts:
    """Publish the pairs of a block with at least the floor's similarity."""
    with pq.ParquetFile(task.candidates) as file:
        table = file.read_row_group(task.block)
    left, right = (np.asarray(table[name], dtype=np.int64) for name in ("a", "b"))
    found = _similarities(task, left, right)
    kept = pa.array(found >= task.floor)
    verified = table.append_column("similarity", pa.array(found)).filter(kept).cast(VERIFIED)
    with publish(task.out) as draft:
        pq.write_table(verified, draft, compression="zstd")
    return Counts(extra={"candidates": len(left), "verified": verified.num_rows})


def _similarities(task: VerifyTask, left: Numbers, right: Numbers) -> Similarities:
    """Jaccard index of a block's pairs, the pairs of two files at a time."""
    files = np.stack([left >> PLACE_BITS, right >> PLACE_BITS])
    order = np.lexsort(files[::-1])
    changes = np.flatnonzero((np.diff(files[:, order], axis=1) != 0).any(axis=0)) + 1
    out = np.zeros(len(left), dtype=np.float64)
    stores: dict[int, tuple[Sets, Numbers]] = {}
    for group in np.split(order, changes):
        sides = list[tuple[Sets, Numbers]]()
        for number, side in zip(files[:, group[0]].tolist(), (left, right), strict=True):
            if number not in stores:
                stores[number] = _store(task.shingles, number)
            sets, places = stores[number]
            sides.append((sets, np.searchsorted(places, side[group] & PLACES).astype(np.int64)))
        out[group] = similarities(*sides[0], *sides[1], floor=task.floor)
    return out


def _store(folder: Path, number: int) -> tuple[Sets, Numbers]:
    values, starts, places = _paths(folder, number)
    lengths = read_npy(starts)
    content = (
        np.memmap(values, dtype=np.uint64, mode="r") if lengths[-1] else np.empty(0, np.uint64)
    )
    return Sets(np.asarray(content), np.asarray(lengths)), np.asarray(read_npy(places))


def wanted_places(wanted: Iterable[Path], number: int) -> Numbers:
    """Ascending places of the documents of one file in ``wanted``, files of numbers."""
    low, high = number << PLACE_BITS, (number + 1) << PLACE_BITS
    numbers = (read_npy(path) for path in wanted)
    ours = (found[slice(*np.searchsorted(found, [low, high]))] for found in numbers)
    return np.unique(np.concatenate(list(ours))) & PLACES


def _paths(folder: Path, number: int) -> tuple[Path, Path, Path]:
    at = folder / f"{number:05d}.values"
    return at, at.with_suffix(".starts.npy"), at.with_suffix(".places.npy")
