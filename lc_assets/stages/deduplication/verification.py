"""Verification: the true Jaccard index of every candidate, from its text, before anybody is
removed.

Shingles of the documents that are in a candidate are written beside each other, a file of numbers
per file of the corpus, and mapped into memory; a task takes a block of candidates. So memory is
that of one document and one block, and the disk holds eight bytes a shingle (somewhat more than the
text) until it is done.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.build.tables import read_lines
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.arrays.npy import npy_bytes, read_npy
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.deduplication.index import PLACE_BITS, FilePart
from lc_assets.stages.deduplication.meeting import DISTINCT
from lc_assets.text.duplicates.clusters import Numbers, Sets, similarities
from lc_assets.text.duplicates.shingles import shingle_hashes

VERIFIED = pa.schema([*DISTINCT, ("similarity", pa.float64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShinglesTask:
    """Shingles of the documents of one file that are in a candidate.

    Attributes:
        parts: tables of its documents that hold a wanted one, as they were when they were indexed.
        number: of the file in this search.
        wanted: ascending numbers of documents in candidates, some ``.npy``.
        words: of a shingle.
        folder: where the shingles go.
    """

    parts: tuple[FilePart, ...]
    number: int
    wanted: tuple[Path, ...]
    words: int
    folder: Path

    def __str__(self) -> str:
        return self.parts[0].path


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTask:
    """A block of candidates to be compared; ``shingles`` is the folder of `ShinglesTask`, ``block``
    a row group.
    """

    candidates: Path
    block: int
    shingles: Path
    floor: float
    out: Path

    def __str__(self) -> str:
        return f"block {self.block} of the candidates"


def gather_shingles(task: ShinglesTask) -> Counts:
    """Publish the shingles of one file's candidates.

    Raises:
        Mismatch: when the file is no longer what it was when its facts were gathered.
    """
    wanted = wanted_places(task.wanted, task.number)
    starts, found, n_chars = array("q", [0]), array("q"), 0
    ahead = iter(wanted.tolist())
    next_wanted = next(ahead, -1)
    values, lengths, places = _paths(task.folder, task.number)
    with publish(values) as draft, draft.open("wb") as stream:
        for place, text in _texts(task, wanted):
            if place != next_wanted:
                continue
            next_wanted = next(ahead, -1)
            shingles = shingle_hashes(text, task.words)
            stream.write(shingles.tobytes())
            starts.append(starts[-1] + len(shingles))
            found.append(place)
            n_chars += len(text)
    if next_wanted != -1:
        raise Mismatch(f"{task}: has no document at place {next_wanted} any more; search it anew")
    publish_bytes(lengths, npy_bytes(np.array(starts, np.int64)))
    publish_bytes(places, npy_bytes(np.array(found, np.int64)))
    return Counts(extra={"documents compared": len(found), "characters compared": n_chars})


def _texts(task: ShinglesTask, wanted: Numbers) -> Iterator[tuple[int, str]]:
    """Places and texts of a file's documents, out of the tables that hold a wanted one."""
    for part in task.parts:
        begin, end = np.searchsorted(wanted, [part.first, part.first + part.n_documents])
        if begin < end:
            lines = read_lines(_unchanged(part), ["raw_content"], batch_lines=16)
            yield from (
                (part.first + place, line["raw_content"]) for place, line in enumerate(lines)
            )


def _unchanged(part: FilePart) -> Path:
    path = Path(part.path)
    if not path.is_file() or path.stat().st_size != part.n_bytes:
        raise Mismatch(
            f"{path}: is gone or changed since it was indexed; candidates in it cannot be "
            "compared. Search it anew"
        )
    return path


def verify(task: VerifyTask) -> Counts:
    """Publish the pairs of a block that are alike at least to the floor, and count the others as
    refuted.
    """
    with pq.ParquetFile(task.candidates) as file:
        table = file.read_row_group(task.block)
    left, right = (np.asarray(table[name], dtype=np.int64) for name in ("a", "b"))
    alike = _similarities(task, left, right)
    kept = pa.array(alike >= task.floor)
    found = table.append_column("similarity", pa.array(alike)).filter(kept).cast(VERIFIED)
    with publish(task.out) as draft:
        pq.write_table(found, draft, compression="zstd")
    return Counts(
        extra={
            "candidates": len(left),
            "verified": found.num_rows,
            "refuted": len(left) - found.num_rows,
        }
    )


def _similarities(
    task: VerifyTask, left: Numbers, right: Numbers
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Indices of a block's pairs, the pairs of two files at a time."""
    files = np.stack([left >> PLACE_BITS, right >> PLACE_BITS])
    order = np.lexsort(files[::-1])
    changes = np.flatnonzero((np.diff(files[:, order], axis=1) != 0).any(axis=0)) + 1
    out = np.zeros(len(left), dtype=np.float64)
    stores: dict[int, tuple[Sets, Numbers]] = {}
    for group in np.split(order, changes):
        if not len(group):
            continue
        one, other = files[:, group[0]].tolist()
        for number in {one, other} - stores.keys():
            stores[number] = _store(task.shingles, number)
        ones, others = stores[one], stores[other]
        out[group] = similarities(
            ones[0],
            _at(ones[1], left[group]),
            others[0],
            _at(others[1], right[group]),
            floor=task.floor,
        )
    return out


def _store(folder: Path, number: int) -> tuple[Sets, Numbers]:
    values, starts, places = _paths(folder, number)
    lengths = read_npy(starts)
    content = (
        np.memmap(values, dtype=np.uint64, mode="r") if lengths[-1] else np.empty(0, np.uint64)
    )
    return Sets(np.asarray(content), np.asarray(lengths)), np.asarray(read_npy(places))


def _at(places: Numbers, documents: Numbers) -> Numbers:
    return np.searchsorted(places, documents & ((1 << PLACE_BITS) - 1)).astype(np.int64)


def wanted_places(wanted: Iterable[Path], number: int) -> Numbers:
    """Ascending places of the documents of one file that are wanted, each once; ``wanted`` are
    `ShinglesTask.wanted`.
    """
    return np.unique(np.concatenate([_places(read_npy(path), number) for path in wanted]))


def _places(wanted: Numbers, number: int) -> Numbers:
    begin, end = np.searchsorted(wanted, [number << PLACE_BITS, (number + 1) << PLACE_BITS])
    return wanted[begin:end] & ((1 << PLACE_BITS) - 1)


def _paths(folder: Path, number: int) -> tuple[Path, Path, Path]:
    return (
        folder / f"{number:05d}.values",
        folder / f"{number:05d}.starts.npy",
        folder / f"{number:05d}.places.npy",
    )
