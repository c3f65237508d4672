"""Evidence: from bands to pairs that are known to be alike. The only step that reads texts a second time."""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from lc_assets.formats.npy import npy_bytes, read_npy
from lc_assets.publishing import publish_bytes
from lc_assets.stages.deduplication.asking import Search
from lc_assets.stages.deduplication.candidates import SliceTask, pair_slice, slices_for
from lc_assets.stages.deduplication.deciding import PAIRS_FILE, repeated_texts
from lc_assets.stages.deduplication.index import PLACE_BITS, Index
from lc_assets.stages.deduplication.queries import Queries, parquet, queries
from lc_assets.stages.deduplication.settings import NEAR, PAIRS
from lc_assets.stages.deduplication.verification import (
    DISTINCT,
    PAIRS_OF_A_TASK,
    ShinglesTask,
    VerifyTask,
    gather_shingles,
    verify,
)
from lc_assets.tally import Tally
from lc_assets.text.duplicates import Numbers


def publish_evidence(search: Search, index: Index, *, first_new: int = 0, old_pairs: Path | None = None) -> Tally:
    """Publish the pairs of an index as ``pairs.parquet`` of the search's output; return what was met and compared.

    Args:
        search: where to write and work, and by what means.
        index: facts and bands of all files.
        first_new: number of the first new file: pairs of two older documents are not looked for.
        old_pairs: the table of those, to be taken over.
    """
    if NEAR not in search.decision.by:
        with queries(search.work / "duckdb", search.means.memory // 2) as asked:
            _publish_pairs(search, asked, index, [], old_pairs)
        return Tally()
    counted = _candidates(search, index, first_new)
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        wanted = _distinct(search, asked)
    counted += _verified(search, index, wanted)
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        _publish_pairs(search, asked, index, sorted((search.work / "verified").glob("*.parquet")), old_pairs)
    return counted


def _candidates(search: Search, index: Index, first_new: int) -> Tally:
    repeats = search.work / "repeats.npy"
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        repeated_texts(asked, index.fact_paths)
        again = [np.asarray(batch.column(0)) for batch in asked.batches("SELECT number FROM texts WHERE number <> first ORDER BY 1")]
    publish_bytes(repeats, npy_bytes(np.concatenate([np.empty(0, np.int64), *again])))
    n_documents = sum(file.n_documents for file in index.files.values())
    slices = slices_for(n_documents, search.means.memory // (2 * search.workers))
    tasks = [
        SliceTask(
            folders=tuple(index.folder_of(number) for number in sorted(index.files)),
            first_new=first_new,
            repeats=repeats,
            band=band,
            slice=number,
            slices=slices,
            centres=index.scheme.centres,
            out=search.work / "met" / f"{band:02d}-{number:05d}.parquet",
        )
        for band in range(search.signing.bands)
        for number in range(slices)
    ]
    return Tally.total(tally for _, tally in search.engine.run(pair_slice, tasks, what="match bands"))


def _distinct(search: Search, asked: Queries) -> Path:
    """Publish each candidate once, with the bands that it shares; and the numbers of all documents in them."""
    met = parquet(sorted((search.work / "met").glob("*.parquet")))
    query = f"SELECT a, b, bit_or(1::UBIGINT << band) AS bands FROM {met} GROUP BY a, b ORDER BY a, b"
    path = search.work / "candidates.parquet"
    with pq.ParquetWriter(path, DISTINCT, compression="zstd") as writer:
        for batch in asked.batches(query):
            writer.write_batch(batch.cast(DISTINCT), row_group_size=PAIRS_OF_A_TASK)
    shutil.rmtree(search.work / "met")
    documents = f"SELECT a FROM {parquet([path])} UNION SELECT b FROM {parquet([path])} ORDER BY 1"
    numbers = [np.asarray(batch.column(0)) for batch in asked.batches(documents)]
    wanted = search.work / "wanted.npy"
    publish_bytes(wanted, npy_bytes(np.concatenate([np.empty(0, np.int64), *numbers])))
    return wanted


def _verified(search: Search, index: Index, wanted: Path) -> Tally:
    compared: Numbers = np.unique(read_npy(wanted) >> PLACE_BITS)
    shingles = search.work / "shingles"
    gathering = [
        ShinglesTask(
            file=index.files[number], wanted=wanted, words=index.scheme.shingle_words, folder=shingles, text_field=search.text_field
        )
        for number in compared.tolist()
    ]
    counted = Tally.total(tally for _, tally in search.engine.run(gather_shingles, gathering, what="read candidates"))
    candidates = search.work / "candidates.parquet"
    comparing = [
        VerifyTask(
            candidates=candidates,
            block=block,
            shingles=shingles,
            floor=index.scheme.floor,
            out=search.work / "verified" / f"{block:07d}.parquet",
        )
        for block in range(pq.read_metadata(candidates).num_row_groups)
    ]
    counted += Tally.total(tally for _, tally in search.engine.run(verify, comparing, what="compare"))
    shutil.rmtree(shingles, ignore_errors=True)
    return counted


def _publish_pairs(search: Search, asked: Queries, index: Index, verified: list[Path], old_pairs: Path | None) -> None:
    columns = ", ".join(PAIRS.names)
    parts = [f"SELECT {columns} FROM {parquet([old_pairs])}"] if old_pairs else []
    if verified:
        parts.append(f"""
            SELECT l.id AS a, r.id AS b, v.a AS a_number, v.b AS b_number, v.bands, v.similarity, true AS verified
            FROM {parquet(verified)} v JOIN facts l ON l.number = v.a JOIN facts r ON r.number = v.b""")
    if not parts:
        parts = ["SELECT '' AS a, '' AS b, 0 AS a_number, 0 AS b_number, 0 AS bands, 0.0 AS similarity, true AS verified WHERE false"]
    asked.do(f"CREATE OR REPLACE VIEW facts AS SELECT number, id FROM {parquet(index.fact_paths)}")
    asked.publish(f"{' UNION ALL '.join(parts)} ORDER BY a_number, b_number", search.out / PAIRS_FILE, PAIRS)
