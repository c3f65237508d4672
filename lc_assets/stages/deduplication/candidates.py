"""Candidates: documents that share a band. One task takes one slice of one band's keys, so memory
is what one asks for.

A *bucket* is the documents that share a band. Its first 16 members (`settings.CENTRES`) are paired
with all others, so a bucket of up to 17 gives all its pairs, and a greater one 16 per member. A
greater one is then divided by the first row of the next band (two documents of similarity J agree
there with probability J, strangers seldom), and its parts are paired in the same way; the parts
that are still too great once more, up to `LEVELS` times.

What that promises. Which pairs are made depends on bands and on the documents' order alone, on no
threshold and on no comparison, and only on what came *before* a document. So a new corpus adds
pairs and changes none; evidence serves every threshold. A pair whose only shared buckets are
greater than 17 may be missed: when neither is among the first, with probability at most 1 - J at
one level, and it takes more than 16 of one part to need a second. Nobody is removed for a pair that
was missed. The cost is at most 16 x (1 + `LEVELS`) comparisons per member of a bucket.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.execution.exchange import BucketWriter, by_range
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.index import PLACE_BITS, read_bands, read_rows
from lc_assets.text.duplicates.clusters import Numbers, are_among, star_pairs

LEVELS = 3
MEMBER_BYTES = 96
"""What a slice takes per document: keys, numbers, their order, and copies of them while they are
sorted.
"""
PAIRS_AT_ONCE = 1 << 20
PIECE_MEMBERS = 1 << 18
"""New documents of a slice that are sorted at once: some megabytes, which a processor's cache
holds. When all of a slice were, 30 million documents took 1.6 times as long each as 3 million; so,
1.1 times.
"""
LEAST_OF_A_FILE = 64
"""Members of each file in a piece, on average: each costs ten microseconds a piece, however few
they are.
"""
MOST_MAPPED = 1 << 14
"""Files whose bands are mapped, two arrays each, while a slice is paired."""

Keys = NDArray[np.uint64]
Places = NDArray[np.uint32]

CANDIDATES = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("band", pa.uint8())])


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTask:
    """A slice of a band.

    Attributes:
        bands: folder of the bands of every file, by number from 0.
        first_new: number of the first file whose documents are new; pairs of two older ones are
            left out.
        repeats: sorted numbers of documents that repeat an earlier text; they are no candidates.
        band: which band.
        slice: which slice of its keys, of ``slices``.
        slices: how many there are.
        centres: see the module.
        bounds: of the exchange's buckets, by the number of a pair's first document
            (`lc_assets.stages.deduplication.meeting`).
        out: the pairs to publish, by bucket.
    """

    bands: tuple[Path, ...]
    first_new: int
    repeats: Path
    band: int
    slice: int
    slices: int
    centres: int
    bounds: tuple[int, ...]
    out: Path

    def __str__(self) -> str:
        return f"band {self.band}, slice {self.slice} of {self.slices}"


def slices_for(n_signed: int, memory: int) -> int:
    """How many slices a band must be cut into.

    >>> slices_for(0, 1 << 30), slices_for(20_000_000, 2 << 30)
    (1, 1)
    """
    return max(1, -(-n_signed * MEMBER_BYTES // memory))


def pair_slice(task: SliceTask) -> Counts:
    """Publish the candidate pairs of one slice of one band, and count buckets, members and
    pairs.
    """
    counted = Counter({"buckets": 0, "buckets of more than all pairs": 0, "pairs met": 0})
    waiting = list[pa.Table]()
    with publish(task.out) as draft, BucketWriter(draft, CANDIDATES) as writer:
        for members, starts in _pieces(task):
            for left, right in _pairs(task, members, starts):
                new = right >> PLACE_BITS >= task.first_new
                waiting.append(
                    pa.table(
                        [left[new], right[new], np.full(int(new.sum()), task.band, np.uint8)],
                        schema=CANDIDATES,
                    )
                )
                counted["pairs met"] += waiting[-1].num_rows
                if sum(table.num_rows for table in waiting) >= PAIRS_AT_ONCE:
                    _send(writer, waiting, task.bounds)
            counted["buckets"] += len(starts) - 1
            counted["buckets of more than all pairs"] += int(
                (np.diff(starts) > task.centres + 1).sum()
            )
        _send(writer, waiting, task.bounds)
    return Counts(extra=dict(counted))


def _send(writer: BucketWriter, waiting: list[pa.Table], bounds: tuple[int, ...]) -> None:
    """Send what waits, many pairs at once: those of one piece are few for each of many buckets."""
    table = pa.concat_tables([CANDIDATES.empty_table(), *waiting])
    writer.send(table, by_range(table["a"].to_numpy(), bounds))
    waiting.clear()


def _pieces(task: SliceTask) -> Iterator[tuple[Numbers, Numbers]]:
    """Members of the buckets of two or more whose last is new, a piece of the slice at a time; and
    where each bucket begins.

    A piece is a range of keys, so no bucket lies in two; it is sorted where the cache holds it,
    however long the slice is.
    """
    width = -(-(1 << 64) // task.slices)
    low, high = task.slice * width, min((task.slice + 1) * width, 1 << 64)
    repeats, first_new = read_npy(task.repeats), task.first_new << PLACE_BITS
    files = [
        _mapped_or_copied(
            read_bands(path).within(task.band, low, high if high < 1 << 64 else None), task
        )
        for path in task.bands
    ]
    n_pieces = -(
        -sum(len(keys) for keys, _ in files[task.first_new :])
        // max(PIECE_MEMBERS, LEAST_OF_A_FILE * len(files))
    )
    bounds = [low + (high - low) * number // n_pieces for number in range(1, n_pieces)]
    ends = [
        (0, *np.searchsorted(keys, np.array(bounds, np.uint64)).tolist(), len(keys))
        for keys, _ in files
    ]
    for piece in range(n_pieces):
        parts = [
            (keys[at[piece] : at[piece + 1]], whose[at[piece] : at[piece + 1]])
            for (keys, whose), at in zip(files, ends, strict=True)
        ]
        yield _new_buckets(*_members(task, parts, repeats), first_new)


def _mapped_or_copied(found: tuple[Keys, Places], task: SliceTask) -> tuple[Keys, Places]:
    """A file's keys and places; of very many files a copy, for a process may map 65,530 stretches
    of memory.
    """
    return found if len(task.bands) <= MOST_MAPPED else (np.array(found[0]), np.array(found[1]))


def _members(
    task: SliceTask, parts: Sequence[tuple[Keys, Places]], repeats: Numbers
) -> tuple[Keys, Numbers]:
    """Keys under which something new stands, ascending, and whose they are; ``parts`` are each
    file's keys and places.
    """
    asked = (
        np.sort(np.concatenate([keys for keys, _ in parts[task.first_new :]]))
        if task.first_new
        else None
    )
    every, whose = list[Keys](), list[Numbers]()
    for number, (keys, places) in enumerate(parts):
        wanted = (
            slice(None) if asked is None or number >= task.first_new else are_among(keys, asked)
        )
        numbers = places[wanted].astype(np.int64) | (number << PLACE_BITS)
        once = ~_among(numbers, repeats)
        every.append(keys[wanted][once])
        whose.append(numbers[once])
    keys, members = np.concatenate(every), np.concatenate(whose)
    order = np.argsort(keys)
    return keys[order], members[order]


def _among(numbers: Numbers, ascending: Numbers) -> NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(numbers), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == numbers
    return found


def _buckets(keys: Keys) -> Numbers:
    """Where each run of equal keys begins, and the end."""
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return (
        np.concatenate([[0], changes, [len(keys)]]).astype(np.int64)
        if len(keys)
        else np.zeros(1, np.int64)
    )


def _new_buckets(keys: Keys, members: Numbers, first_new: int) -> tuple[Numbers, Numbers]:
    """Buckets of two or more whose last member is new, the others taken out; members ascend in
    each. Keys ascend.
    """
    sizes = np.diff(_buckets(keys))
    members, sizes = members[np.repeat(sizes > 1, sizes)], sizes[sizes > 1]
    members = members[np.lexsort([members, np.repeat(np.arange(len(sizes)), sizes)])]
    new = members[np.cumsum(sizes) - 1] >= first_new
    return members[np.repeat(new, sizes)], np.concatenate([[0], np.cumsum(sizes[new])]).astype(
        np.int64
    )


def _pairs(task: SliceTask, members: Numbers, starts: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    sizes = np.diff(starts)
    great = sizes > task.centres + 1
    small, ends = (
        members[np.repeat(~great, sizes)],
        np.concatenate([[0], np.cumsum(sizes[~great])]).astype(np.int64),
    )
    made = np.cumsum(np.diff(ends) * task.centres) // PAIRS_AT_ONCE
    for block in np.split(np.arange(len(made)), np.flatnonzero(np.diff(made)) + 1):
        if len(block):
            begin, end = ends[block[0]], ends[block[-1] + 1]
            yield star_pairs(small[begin:end], ends[block[0] : block[-1] + 2] - begin, task.centres)
    for bucket in np.flatnonzero(great).tolist():
        yield from _star(members[starts[bucket] : starts[bucket + 1]], task.centres)
        yield from _divided(task, members[starts[bucket] : starts[bucket + 1]])


def _star(bucket: Numbers, centres: int) -> Iterator[tuple[Numbers, Numbers]]:
    """The pairs of one great bucket, some of its members at a time; those among the centres
    once.
    """
    step = max(1, PAIRS_AT_ONCE // centres)
    for at in range(centres, len(bucket), step):
        part = np.concatenate([bucket[:centres], bucket[at : at + step]])
        left, right = star_pairs(part, np.array([0, len(part)]), centres)
        known = centres * (centres - 1) // 2 if at > centres else 0
        yield left[known:], right[known:]


def _divided(task: SliceTask, bucket: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Pairs within the parts of a great bucket, by the first rows of the bands after it."""
    rows = _rows_of(task, bucket)
    levels = min(LEVELS, rows.shape[1] - 1)
    place = np.arange(len(bucket))
    for level in range(1, levels + 1):
        columns = [(task.band + step) % rows.shape[1] for step in range(1, level + 1)]
        order = place[np.lexsort([place, *(rows[place, column] for column in columns)])]
        ordered = rows[order][:, columns]
        changes = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
        starts = np.concatenate([[0], changes, [len(order)]]).astype(np.int64)
        great = np.repeat(np.diff(starts) > task.centres + 1, np.diff(starts))
        small = np.diff(starts)[np.diff(starts) <= task.centres + 1]
        yield star_pairs(
            bucket[order][~great],
            np.concatenate([[0], np.cumsum(small)]).astype(np.int64),
            task.centres,
        )
        for part in np.flatnonzero(np.diff(starts) > task.centres + 1).tolist():
            yield from _star(bucket[order[starts[part] : starts[part + 1]]], task.centres)
        place = np.sort(order[great])
        if not len(place):
            return


def _rows_of(task: SliceTask, bucket: Numbers) -> NDArray[np.uint16]:
    files = bucket >> PLACE_BITS
    return np.concatenate(
        [
            _rows_at(task.bands[number], bucket[files == number] & ((1 << PLACE_BITS) - 1))
            for number in np.unique(files).tolist()
        ]
    )


def _rows_at(path: Path, places: Numbers) -> NDArray[np.uint16]:
    rows = read_rows(path)
    if places.max() >= len(rows):
        raise CorruptFile(
            f"{path}: {len(rows):,} documents; its places lead to document {int(places.max()):,}"
        )
    return rows[places]
