"""Packed documents, and pages that are in none, as lines of JSON.

::

    {"id": …, "url": …, "n_tokens": …, "text": …,
     "spans": [{"role": "child", "depth": 1, "child_id": …, "url": …, "keys": …, "cluster": …,
     "start": 0, "stop": 120, "n_tokens": …}, …]}

``start`` and ``stop`` count characters; spans touch, and together are the whole text. ``n_tokens``
are of the texts alone.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.build.tables import read_lines
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import npy_bytes, read_npy
from lc_assets.formats.gzipping import gzipped
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.links.link_tables import SPANS
from lc_assets.stages.longpack.gathering import packed_documents_of
from lc_assets.stages.longpack.placing import by_file
from lc_assets.stages.longpack.writing import numbered_rows

JSON_SUFFIX: Final = ".jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesTask:
    """One file of packed documents, with its spans beside it, to be written as lines of JSON."""

    documents: Path
    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestTask:
    """One file of pages, to be written as lines of JSON but for those on the lines that ``taken``
    holds.
    """

    documents: Path
    taken: Path
    path: Path

    def __str__(self) -> str:
        return str(self.path)


def lines_tasks(packed: Sequence[Path], out: Path) -> list[LinesTask]:
    """A task for every file of packed documents that holds any."""
    return [
        LinesTask(documents=path, path=out / _json_name(path))
        for path in packed
        if pq.read_metadata(path).num_rows
    ]


def rest_tasks(
    asked: Queries, spans: Sequence[Path], documents: Sequence[Path], work: Path, out: Path
) -> list[RestTask]:
    """A task for every file of pages; which of them are in packed documents is written down in
    ``work``.
    """
    query = f"""SELECT row_of_all >> 32 AS file, row_of_all & {2**32 - 1} AS line FROM {numbered_rows(asked, documents)}
        SEMI JOIN (SELECT child_id AS id FROM {parquet(list(spans))}) USING (id) ORDER BY row_of_all"""
    paths = [work / f"{number:05d}.npy" for number in range(len(documents))]
    for number, found in by_file(asked, query, ("line",), len(documents)):
        publish_bytes(paths[number], npy_bytes(found))
    return [
        RestTask(documents=path, taken=taken, path=out / _json_name(path))
        for path, taken in zip(documents, paths, strict=True)
    ]


def join_spans(spans: Sequence[Path], out: Path) -> None:
    """Publish tables of spans as one."""
    with publish(out) as draft, pq.ParquetWriter(draft, SPANS, compression="zstd") as writer:
        for path in spans:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    writer.write_batch(batch)


def _json_name(path: Path) -> str:
    return path.name.replace(DOCUMENTS_SUFFIX, JSON_SUFFIX)


def write_lines(task: LinesTask) -> Counts:
    """Write packed documents with their spans."""
    n_docs = 0
    with publish(task.path) as draft, gzipped(draft) as out:
        for document, spans in packed_documents_of(task.documents):
            n_tokens = sum(span["n_tokens"] for span in spans)
            parts = [
                {name: value for name, value in span.items() if name not in ("id", "part")}
                for span in spans
            ]
            line = {
                "id": document["id"],
                "url": document["url"],
                "n_tokens": n_tokens,
                "text": document["raw_content"],
                "spans": parts,
            }
            out.write(msgspec.json.encode(line) + b"\n")
            n_docs += 1
    return Counts(seen=n_docs, kept=n_docs)


def write_rest(task: RestTask) -> Counts:
    """Write pages that are in no packed document."""
    taken = set(read_npy(task.taken)[0].tolist())
    n_docs = 0
    with publish(task.path) as draft, gzipped(draft) as out:
        for number, document in enumerate(
            read_lines(task.documents, ["id", "url", "raw_content"], batch_lines=16)
        ):
            if number not in taken:
                line = {
                    "id": document["id"],
                    "url": document["url"],
                    "text": document["raw_content"],
                }
                out.write(msgspec.json.encode(line) + b"\n")
                n_docs += 1
    return Counts(seen=n_docs, kept=n_docs)
