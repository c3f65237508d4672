"""Evidence: from bands to pairs that are known to be alike. The only step that reads texts a second
time.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.counts import Counts
from lc_assets.formats.npy import npy_bytes, read_npy
from lc_assets.publishing import finished, publish, publish_bytes
from lc_assets.stages.deduplication.asking import Search
from lc_assets.stages.deduplication.candidates import SliceTask, pair_slice, slices_for
from lc_assets.stages.deduplication.deciding import PAIRS_FILE, repeated_texts
from lc_assets.stages.deduplication.facts_reading import facts_of
from lc_assets.stages.deduplication.index import PLACE_BITS, Index, IndexedFile
from lc_assets.stages.deduplication.meeting import MeetTask, bounds_of, meet
from lc_assets.stages.deduplication.queries import Queries, parquet, queries
from lc_assets.stages.deduplication.settings import LEAST_MEMORY, NEAR, PAIRS, Scheme
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


Finder = Callable[[int, Numbers], IndexedFile]
"""Says where a file of an index lies whose documents at some places, ascending, are to be compared.
"""


def publish_evidence(
    search: Search, index: Index, *, first_new: int = 0, old_pairs: Path | None = None
) -> Counts:
    """Publish the pairs of an index as ``pairs.parquet`` of the search's output; return what was
    met and compared.

    Args:
        search: where to write and work, and by what means.
        index: facts and bands of all files.
        first_new: number of the first new file: pairs of two older documents are not looked for.
        old_pairs: the table of those, to be taken over.
    """
    if NEAR not in search.decision.by:
        with queries(search.work / "duckdb", search.means.memory // 2) as asked:
            _publish_pairs(search, asked, index, [], old_pairs)
        return Counts()
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        repeated_texts(asked, index.fact_paths)
        again = asked.numbers("SELECT number FROM texts WHERE number <> first ORDER BY 1")
    files = index.files
    banded = Banded(
        scheme=index.scheme,
        bands=tuple(index.band_paths),
        documents=tuple(files[number].n_documents for number in sorted(files)),
        first_new=first_new,
    )
    verified, counted = compared_pairs(
        search, banded, lambda number, _: files[number], repeats=again
    )
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        _publish_pairs(search, asked, index, verified, old_pairs)
    return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """Files whose documents are cut into bands, by number from 0.

    Attributes:
        scheme: by which evidence is made.
        bands: folder of each file's bands.
        documents: of each file.
        first_new: number of the first new file: pairs of two older documents are not looked for.
    """

    scheme: Scheme
    bands: tuple[Path, ...]
    documents: tuple[int, ...]
    first_new: int = 0


def compared_pairs(
    search: Search, banded: Banded, find: Finder, *, repeats: Numbers = _NOBODY
) -> tuple[list[Path], Counts]:
    """Tables of the pairs that share a band and are alike at least to the floor, in order; and what
    was met and compared.

    Args:
        search: where to work, and by what means.
        banded: the bands of all files.
        find: where texts lie.
        repeats: ascending numbers of documents that repeat an earlier text; they are no candidates.
    """
    bounds = bounds_of(banded.documents)
    counted = _candidates(search, banded, bounds, repeats)
    candidates = _met(search, n_buckets=len(bounds) + 1)
    counted += _verified(search, banded.scheme, candidates, find)
    return finished((search.work / "verified").glob("*.parquet")), counted


def _candidates(
    search: Search, banded: Banded, bounds: tuple[int, ...], repeats: Numbers
) -> Counts:
    publish_bytes(search.work / "repeats.npy", npy_bytes(repeats))
    slices = slices_for(sum(banded.documents), search.means.memory // (2 * search.workers))
    tasks = [
        SliceTask(
            bands=banded.bands,
            first_new=banded.first_new,
            repeats=search.work / "repeats.npy",
            band=band,
            slice=number,
            slices=slices,
            centres=banded.scheme.centres,
            bounds=bounds,
            out=search.work / "met" / f"{band:02d}-{number:05d}.parquet",
        )
        for band in range(search.signing.bands)
        for number in range(slices)
    ]
    return Counts.total(
        counts for _, counts in search.executor.run(pair_slice, tasks, what="match bands")
    )


def _met(search: Search, *, n_buckets: int) -> list[MeetTask]:
    met = tuple(finished((search.work / "met").glob("*.parquet")))
    folder, memory = (
        search.work / "candidates",
        max(LEAST_MEMORY, search.means.memory // (2 * search.workers)),
    )
    tasks = [
        MeetTask(met=met, bucket=bucket, folder=folder, memory=memory)
        for bucket in range(n_buckets)
    ]
    for _ in search.executor.run(meet, tasks, what="bring candidates together"):
        pass
    shutil.rmtree(search.work / "met")
    return tasks


def _verified(
    search: Search, scheme: Scheme, candidates: Sequence[MeetTask], find: Finder
) -> Counts:
    wanted = tuple(task.numbers for task in candidates)
    compared = sorted(
        {number for path in wanted for number in np.unique(read_npy(path) >> PLACE_BITS).tolist()}
    )
    shingles = search.work / "shingles"
    gathering = [
        ShinglesTask(
            file=find(number, wanted_places(wanted, number)),
            number=number,
            wanted=wanted,
            words=scheme.shingle_words,
            folder=shingles,
            text_field=search.text_field,
        )
        for number in compared
    ]
    counted = Counts.total(
        counts
        for _, counts in search.executor.run(gather_shingles, gathering, what="read candidates")
    )
    comparing = [
        VerifyTask(
            candidates=task.pairs,
            block=block,
            shingles=shingles,
            floor=scheme.floor,
            out=search.work / "verified" / f"{task.bucket:05d}-{block:05d}.parquet",
        )
        for task in candidates
        for block in range(pq.read_metadata(task.pairs).num_row_groups)
    ]
    counted += Counts.total(
        counts for _, counts in search.executor.run(verify, comparing, what="compare")
    )
    shutil.rmtree(shingles, ignore_errors=True)
    return counted


def _publish_pairs(
    search: Search, asked: Queries, index: Index, verified: list[Path], old_pairs: Path | None
) -> None:
    columns = ", ".join(PAIRS.names)
    parts = [f"SELECT {columns} FROM {parquet([old_pairs])}"] if old_pairs else []
    if verified:
        name_documents(
            asked,
            verified,
            search.work / "names.parquet",
            lambda numbers: facts_of(index.fact_paths, numbers, NAMES.names),
        )
        parts.append("""
            SELECT l.id AS a, r.id AS b, v.a AS a_number, v.b AS b_number, v.bands, v.similarity, true AS verified
            FROM verified v JOIN names l ON l.number = v.a JOIN names r ON r.number = v.b""")
    if not parts:
        parts = [
            (
                "SELECT '' AS a, '' AS b, 0 AS a_number, 0 AS b_number, 0 AS bands, 0.0 AS "
                "similarity, true AS verified WHERE false"
            )
        ]
    asked.publish(
        f"{' UNION ALL '.join(parts)} ORDER BY a_number, b_number", search.out / PAIRS_FILE, PAIRS
    )


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
