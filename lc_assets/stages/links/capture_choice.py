"""Which capture is a document's page: joins documents and captures by page key in DuckDB, within
bounded memory.

Among several captures of a page (status 200 and HTML), the first rule that distinguishes them
decides:

1. the capture that the text came from: in the archive of the text's own batch (``cc_segment``);
2. a capture with the document's digest;
3. the capture nearest in time to the document's download;
4. the newest;
5. the smallest by archive and offset.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.formats.archives.paths import Kind
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.links.link_tables import HTML_INDEX
from lc_assets.stages.links.page_captures import DOCUMENTS, hashes_of, tables_in, wanted_file

NO_CAPTURE: Final = "no capture"
NO_PAGE: Final = "no capture with status 200 and HTML"
WANTED: Final = pa.schema(
    {
        "surt": "string",
    }
)

_SECONDS: Final = "epoch(try_strptime({}, '%Y%m%d%H%M%S'))"
_FAR: Final = 1 << 40
"""Seconds between two times of which one is not known."""


def note_what_is_wanted(asked: Queries, folder: Path, kind: Kind) -> None:
    """Publish, into a version's workings, what is looked for in files of a kind."""
    tables = tables_in(folder, "documents")
    column = "page_key" if kind in {"warc", "wat"} else "surt"
    keys = f"SELECT DISTINCT {column} FROM {parquet(tables)} WHERE {column} <> ''"
    path = wanted_file(folder, kind)
    if kind == "cdxj":
        asked.publish(f"{keys} ORDER BY {column}", path, WANTED)
        return
    hashes = [hashes_of(batch.column(0).to_pylist()) for batch in asked.batches(keys)]
    write_npy(path, np.unique(np.concatenate([np.empty(0, np.uint64), *hashes])))


def choose(asked: Queries, folder: Path) -> dict[str, int]:
    """Choose a capture for each document that has one; return the number of documents without one,
    by reason.
    """
    documents, captures = (parquet(tables_in(folder, what)) for what in ("documents", "captures"))
    apart = f"coalesce(abs({_SECONDS.format('c.timestamp')} - {_SECONDS.format('d.date')}), {_FAR})"
    columns = ", ".join(f"d.{name}" for name in DOCUMENTS.names if name != "digest")
    asked.do(f"""CREATE OR REPLACE TABLE chosen AS
        SELECT {columns}, c.* EXCLUDE (page_key, archive, is_page) FROM {documents} d JOIN {captures} c USING (page_key) WHERE c.is_page
        QUALIFY row_number() OVER (
            PARTITION BY d.shard, d.position
            ORDER BY (c.archive = d.archive) DESC, (c.digest = d.digest) DESC, {apart}, c.timestamp DESC, c.filename, c."offset", c.length
        ) = 1""")
    n_without = asked.number(
        f"SELECT count(*) FROM {documents} ANTI JOIN {captures} USING (page_key)"
    )
    n_documents = asked.number(f"SELECT count(*) FROM {documents}")
    n_chosen = asked.number("SELECT count(*) FROM chosen")
    found = {NO_CAPTURE: n_without, NO_PAGE: n_documents - n_without - n_chosen}
    return {reason: count for reason, count in found.items() if count}


def publish_chosen(asked: Queries, paths: Sequence[Path]) -> None:
    """Publish a table of `HTML_INDEX` per shard, in the order of its documents, to the path of its
    number; an empty one, too.
    """
    columns = ", ".join(f'"{name}"' for name in HTML_INDEX.names)
    batches = asked.batches(f"SELECT shard, {columns} FROM chosen ORDER BY shard, position")
    parts = itertools.groupby(_parts(batches), key=lambda part: part[0])
    number, of_shard = next(parts, (len(paths), iter(())))
    for place, path in enumerate(paths):
        with (
            publish(path) as draft,
            pq.ParquetWriter(draft, HTML_INDEX, compression="zstd") as writer,
        ):
            if place == number:
                for _, part in of_shard:
                    writer.write_batch(part.cast(HTML_INDEX))
                number, of_shard = next(parts, (len(paths), iter(())))


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stretches of lines of one shard, with its number."""
    for batch in batches:
        shards = np.asarray(batch.column("shard"))
        ends = [*(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
        for start, stop in itertools.pairwise([0, *ends]):
            yield int(shards[start]), batch.slice(start, stop - start).drop_columns(["shard"])
