"""Candidate pairs: distinct pairs of documents that share an LSH band, found band by band and
exchanged through files.

A *bucket* is the documents that share a band. Its first 16 members (`CENTRES`) are paired with all
others, so a bucket of up to 17 gives all its pairs, and a larger one 16 per member. A larger one is
then divided by the first row of the next band (two documents of similarity J agree there with
probability J, others seldom), and its parts are paired in the same way, up to `LEVELS` times.

The pairs of a document depend only on bands and on the documents *before* it, not on thresholds or
comparisons. So a new corpus adds pairs and changes none, and the pairs can be used with any
threshold. A pair whose only shared buckets are larger than 17 may be missed: when neither is among
the first, with probability at most 1 - J at one level, and it takes more than 16 of one part to
need a second. Members that are like the same first one are compared later, if that matters
(`lc_assets.stages.deduplication.deciding.decide_all`). The cost is at most 16 × (1 + `LEVELS`)
comparisons per member of a bucket.

`pair_bands` sends the pairs of some bands to the file of their first document
(`lc_assets.execution.exchange`); `merge_pairs` reads those of one file and joins the bands of equal
pairs. Files have similar numbers of documents, so memory does not grow with the corpus, and pairs
ascend from file to file.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets import arrow_compute as pc
from lc_assets.arrays import UInt16s
from lc_assets.errors import CorruptFile
from lc_assets.execution.exchange import BucketWriter, read_bucket
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.publishing import finished, publish
from lc_assets.records import record
from lc_assets.stages.deduplication.index import (
    PLACE_BITS,
    PLACES,
    Keys,
    Places,
    read_bands,
    read_rows,
)
from lc_assets.text.duplicates.clusters import Measure, Numbers, star_pairs

CENTRES = 16
"""Members of a bucket that all its others are paired with."""
LEVELS = 3
"""How often a large bucket is divided."""
PAIRS_AT_ONCE = 1 << 20
PIECE_MEMBERS = 1 << 18
"""New documents of a band that are sorted at once: a few megabytes, which fit into the processor's
cache. Sorting all at once, 30 million documents took 1.6 times as long per document as 3 million;
with this limit, 1.1 times.
"""

CANDIDATES = pa.schema({"a": "int64", "b": "int64", "band": "uint8"})
PAIRS = pa.schema({"a": "int64", "b": "int64", "bands": "uint64"})
"""Bit k of ``bands`` is set when the documents share band k."""


@record
class BandsTask:
    """Some bands of all files.

    Attributes:
        files: folder of the bands of every file, by number.
        first_new: number of the first file whose documents are new; pairs of two older ones are
            left out.
        bands: which bands.
        out: the pairs to publish, by the file of their first document.
    """

    files: tuple[Path, ...]
    first_new: int
    bands: tuple[int, ...]
    out: Path

    def __str__(self) -> str:
        return f"bands {', '.join(map(str, self.bands))}"


@record
class PairsTask:
    """The candidates in the scratch folder ``work`` whose first document is in one file.

    Attributes:
        work: the folder; `BandsTask` published in ``made`` below it.
        number: of the file.
        floor: least similarity of its verified pairs.
        measure: of similarity.
    """

    work: Path
    number: int
    floor: float
    measure: Measure = "jaccard"

    def path(self, folder: str, suffix: str = ".parquet") -> Path:
        """Its file in a folder of ``work``: candidates in ``candidates``, with the ascending
        numbers of the documents in them (``.npy``), and verified pairs in ``verified``.
        """
        return self.work / folder / f"{self.number:05d}{suffix}"

    def __str__(self) -> str:
        return f"candidates of file {self.number}"


def pair_bands(task: BandsTask) -> None:
    """Publish the candidate pairs of some bands."""
    waiting, files = list[pa.Table](), list(map(read_bands, task.files))
    with publish(task.out) as draft, BucketWriter(draft, CANDIDATES) as writer:
        for band in task.bands:
            of_band = [(keys[band], places[band]) for keys, places in files]
            for members, starts in _pieces(of_band, task.first_new):
                for left, right in _pairs(task, band, members, starts):
                    new = right >> PLACE_BITS >= task.first_new
                    bands = np.full(int(new.sum()), band, np.uint8)
                    waiting.append(pa.table([left[new], right[new], bands], schema=CANDIDATES))
                    if sum(table.num_rows for table in waiting) >= PAIRS_AT_ONCE:
                        _send(writer, waiting)
        _send(writer, waiting)


def merge_pairs(task: PairsTask) -> None:
    """Publish the distinct pairs of one file, and the numbers of the documents in them."""
    made = finished((task.work / "made").glob("*.parquet"))
    table = pa.Table.from_batches(read_bucket(made, task.number), CANDIDATES)
    table = table.group_by(CANDIDATES.names, use_threads=False).aggregate([])
    bits = pc.shift_left(pa.scalar(1, pa.uint64()), table["band"].cast(pa.uint64()))
    table = table.append_column("bands", bits).group_by(["a", "b"], use_threads=False)
    pairs = table.aggregate([("bands", "sum")]).rename_columns(PAIRS.names)
    pairs = pairs.sort_by([("a", "ascending"), ("b", "ascending")])
    with publish(task.path("candidates")) as draft:
        pq.write_table(pairs, draft, compression="zstd")
    documents = np.union1d(pairs["a"].to_numpy(), pairs["b"].to_numpy())
    write_npy(task.path("candidates", ".npy"), documents)


def _send(writer: BucketWriter, waiting: list[pa.Table]) -> None:
    """Send many pairs at once: those of one piece are few for each of many files."""
    table = pa.concat_tables([CANDIDATES.empty_table(), *waiting])
    writer.send(table, (table["a"].to_numpy() >> PLACE_BITS).astype(np.int32))
    waiting.clear()


def _pieces(
    files: Sequence[tuple[Keys, Places]], first_new: int
) -> Iterator[tuple[Numbers, Numbers]]:
    """Members of the buckets of two or more whose last is new, ascending in each, a piece of a band
    at a time; and where each bucket begins. ``files`` are each file's keys and places.

    A piece is a range of keys, so no bucket is in two, and small enough to be sorted in the cache.
    """
    n_new = sum(len(keys) for keys, _ in files[first_new:])
    n_pieces = -(-n_new // PIECE_MEMBERS)
    bounds = np.array([(number << 64) // n_pieces for number in range(1, n_pieces)], np.uint64)
    cuts = [np.searchsorted(keys, bounds) for keys, _ in files]
    pieces = [
        zip(np.split(keys, at), np.split(places, at), strict=True)
        for (keys, places), at in zip(files, cuts, strict=True)
    ]
    for parts in zip(*pieces, strict=True) if n_pieces else ():
        yield _buckets(*_members(parts, first_new), first_new << PLACE_BITS)


def _members(parts: Sequence[tuple[Keys, Places]], first_new: int) -> tuple[Keys, Numbers]:
    """Keys that a new document has, ascending, and numbers of the documents; ``parts`` are each
    file's keys and places.
    """
    new = np.sort(np.concatenate([keys for keys, _ in parts[first_new:]]))
    every, whose = list[Keys](), list[Numbers]()
    for file, (keys, places) in enumerate(parts):
        shared = np.ones(len(keys), np.bool_)
        if file < first_new:
            shared = np.append(new, np.uint64(0))[np.searchsorted(new, keys)] == keys
        every.append(keys[shared])
        whose.append(places[shared].astype(np.int64) | (file << PLACE_BITS))
    keys, members = np.concatenate(every), np.concatenate(whose)
    order = np.argsort(keys)
    return keys[order], members[order]


def _buckets(keys: Keys, members: Numbers, first_new: int) -> tuple[Numbers, Numbers]:
    """Buckets of two or more whose last member is new; ``keys`` ascend."""
    sizes = np.diff(_starts(keys))
    members, sizes = members[np.repeat(sizes > 1, sizes)], sizes[sizes > 1]
    members = members[np.lexsort([members, np.repeat(np.arange(len(sizes)), sizes)])]
    new = members[np.cumsum(sizes) - 1] >= first_new
    return members[np.repeat(new, sizes)], _ends(sizes[new])


def _starts(values: NDArray[np.generic]) -> Numbers:
    """Where each run of equal values begins, and the end."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    ends = [len(values)] if len(values) else []
    return np.concatenate([[0], changes, ends]).astype(np.int64)


def _ends(sizes: Numbers) -> Numbers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _pairs(
    task: BandsTask, band: int, members: Numbers, starts: Numbers, level: int = 0
) -> Iterator[tuple[Numbers, Numbers]]:
    """Pairs of some buckets, and of the parts of those that are too large for all pairs."""
    sizes = np.diff(starts)
    large = sizes > CENTRES + 1
    yield star_pairs(members[np.repeat(~large, sizes)], _ends(sizes[~large]), CENTRES)
    for bucket in np.flatnonzero(large).tolist():
        part = members[starts[bucket] : starts[bucket + 1]]
        yield from _star(part)
        if level < LEVELS and (rows := _rows_of(task, band + level + 1, band, part)) is not None:
            order = np.argsort(rows, kind="stable")
            yield from _pairs(task, band, part[order], _starts(rows[order]), level + 1)


def _star(bucket: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """The pairs of one large bucket, some of its members at a time; those among the centres
    once.
    """
    step = max(1, PAIRS_AT_ONCE // CENTRES)
    for at in range(CENTRES, len(bucket), step):
        part = np.concatenate([bucket[:CENTRES], bucket[at : at + step]])
        left, right = star_pairs(part, np.array([0, len(part)]), CENTRES)
        known = CENTRES * (CENTRES - 1) // 2 if at > CENTRES else 0
        yield left[known:], right[known:]


def _rows_of(task: BandsTask, column: int, band: int, members: Numbers) -> UInt16s | None:
    """The first rows of another band, of ascending documents; None when ``column`` comes round to
    ``band``.
    """
    found = list[UInt16s]()
    files = members >> PLACE_BITS
    for file in np.unique(files).tolist():
        rows, places = read_rows(task.files[file]), members[files == file] & PLACES
        if places.max() >= len(rows):
            raise CorruptFile(
                f"{task.files[file]}: {len(rows):,} documents, but place {int(places.max()):,} is "
                "needed"
            )
        if column - band >= rows.shape[1]:
            return None
        found.append(rows[places, column % rows.shape[1]])
    return np.concatenate(found)
