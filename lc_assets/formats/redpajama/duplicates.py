"""Duplicates of one shard: ``duplicates/{tag}.duplicates.parquet``.

========  ======  ==========================================================
column    type    content
========  ======  ==========================================================
shard_id  string  ``2023-06/0000/en_head.json.gz``
doc_id    string  ``2023-06/0000/en_head.json.gz/17``
digest    string  SHA-1 of the WET record in base32, without ``sha1:``
========  ======  ==========================================================

One row per document whose digest was seen before, in this snapshot or a newer one; the first
occurrence has none.
Source: ``app/src/bloomfilter.py`` of togethercomputer/RedPajama-Data.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.opening import guarded
from lc_assets.formats.redpajama.documents import line_reader
from lc_assets.vocabulary import Shard

COLUMNS: Final = ("shard_id", "doc_id", "digest")
BATCH_ROWS: Final = 65_536


def read_duplicates(source: BinaryIO | Path, *, shard: Shard, where: str) -> frozenset[int]:
    """Read which 0-based lines of a shard's documents file are duplicates.

    Raises:
        CorruptFile: when the file is no Parquet, is damaged, has other columns, or names a document
            of another shard.
    """
    line_of = line_reader(shard)
    with (
        library_errors_as_corrupt_file(where),
        guarded(source, where=where, rows_at_once=BATCH_ROWS) as file,
    ):
        _check_columns(file.file.schema_arrow, where)
        batches = file.batches(BATCH_ROWS, ["doc_id"])
        return frozenset(
            line_of(doc_id or "", where)
            for batch in batches
            for doc_id in batch["doc_id"].to_pylist()
        )


def write_duplicates(path: Path, shard: Shard, rows: Iterable[tuple[int, str]]) -> None:
    """Write a shard's duplicates into an existing folder: ``(line, digest)`` for each; a leading
    ``sha1:`` is left out.
    """
    rows = list(rows)
    columns = (
        [f"{shard.tag}.json.gz"] * len(rows),
        [shard.document_id(line) for line, _ in rows],
        [digest.removeprefix("sha1:") for _, digest in rows],
    )
    arrays = [pa.array(column, pa.string()) for column in columns]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(COLUMNS)), path, compression="snappy")


def _check_columns(schema: pa.Schema, where: str) -> None:
    strings = (pa.string(), pa.large_string())
    if tuple(schema.names) != COLUMNS or any(field.type not in strings for field in schema):
        found = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise CorruptFile(
            f"{where}: columns are ({found[:200]}), wanted strings named {', '.join(COLUMNS)}"
        )
