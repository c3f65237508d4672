"""What `signature_index` published of a snapshot, for those who ask: which files, who stands at a
place, where a text lies.

::

    signature_index/{snapshot}/{version}/
      bands.json                 signature scheme, number and width of bands, documents of each file
      bands/00000/               keys, places and first rows (`lc_assets.stages.deduplication.index`)
      documents/00000.parquet    id, digest and date of each document, by place
      shards/00000.parquet       the shards that file 0 is of, in their order: name, size, documents, place of the first

A *file* holds the bands of many shards (`lc_assets.stages.deduplication.signature_index.TOGETHER`),
so a snapshot has few; a document's place is its number in its file. Nothing here reads a table of
filtered documents, nor lists a folder. Not here: making them
(`lc_assets.stages.deduplication.signature_index`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.tables import opened_table, read_table
from lc_assets.errors import UNDECODABLE, CorruptFile, NotPublished
from lc_assets.lake.versions import Published
from lc_assets.text.duplicates.clusters import Numbers
from lc_assets.vocabulary import parse_document_id

MANIFEST: Final = "bands.json"
BANDED: Final = pa.schema(
    [("id", pa.string()), ("digest", pa.string()), ("date_download", pa.string())]
)
"""A document of a file of bands, by place."""
BANDED_SHARDS: Final = pa.schema(
    [
        ("shard", pa.string()),
        ("n_bytes", pa.int64()),
        ("n_documents", pa.int64()),
        ("first", pa.int64()),
    ]
)
"""A shard of a file of bands: its table of documents' size, its documents, and the place of the
first in the file.
"""


class BandsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the bands of a snapshot are.

    Attributes:
        signature: label of the scheme that signed; empty where there is no signature.
        bands: how many.
        rows: numbers of a band.
        documents: of each file, by its number.
    """

    signature: str
    bands: int
    rows: int
    documents: tuple[int, ...]


def read_bands_manifest(folder: Path) -> BandsManifest:
    """What the bands in a version's folder are.

    Raises:
        CorruptFile: when it is missing or not readable.
    """
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=BandsManifest)
    except (FileNotFoundError, *UNDECODABLE) as error:
        raise CorruptFile(f"{path}: not a readable manifest of bands: {error}") from error


def bands_of(inputs: Mapping[str, Published], snapshot: str) -> Published:
    """The bands among the inputs of who reads them.

    Raises:
        NotPublished: when there are none of this snapshot.
    """
    if (bands := inputs.get(f"signature_index/{snapshot}")) is None:
        raise NotPublished(
            f"signature_index/{snapshot} has not been published, filtered_documents/{snapshot} "
            "has: "
            "materialize it first"
        )
    return bands


def documents_path(folder: Path, number: int) -> Path:
    """Where the documents of a file are named."""
    return folder / "documents" / f"{number:05d}.parquet"


def shards_path(folder: Path, number: int) -> Path:
    """Where the shards of a file are named."""
    return folder / "shards" / f"{number:05d}.parquet"


def shards_at(folder: Path, number: int, places: Numbers) -> pa.Table:
    """The shards, `BANDED_SHARDS`, that hold some ascending places of a file, in their order.

    Raises:
        CorruptFile: when the file's shards hold no such place.
    """
    shards = read_table(shards_path(folder, number), BANDED_SHARDS.names)
    first = shards["first"].to_numpy()
    lines = np.unique(np.searchsorted(first, places, side="right") - 1)
    n_documents = int(first[-1] + shards["n_documents"][-1].as_py()) if len(first) else 0
    if len(places) and not 0 <= places[0] <= places[-1] < n_documents:
        raise CorruptFile(
            f"{shards_path(folder, number)}: {n_documents:,} documents; asked was place "
            f"{places[-1]:,}"
        )
    return shards.take(pa.array(lines))


def documents_at(
    folder: Path, number: int, places: Numbers, columns: Sequence[str] = BANDED.names
) -> pa.Table:
    """The documents at some ascending places of a file; only row groups that hold one are read.

    Raises:
        CorruptFile: when the table is damaged or has no such place.
    """
    path = documents_path(folder, number)
    with opened_table(path) as file:
        counts = [
            file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)
        ]
        starts = np.cumsum([0, *counts])
        if len(places) and not 0 <= places[0] <= places[-1] < starts[-1]:
            raise CorruptFile(f"{path}: {starts[-1]:,} lines; asked was line {places[-1]:,}")
        of = np.searchsorted(starts, places, side="right") - 1
        groups = np.unique(of)
        table = file.read_row_groups(groups.tolist(), columns=list(columns))
        before = np.concatenate([[0], np.cumsum(np.array(counts, np.int64)[groups])])
        found = table.take(pa.array(places - starts[of] + before[np.searchsorted(groups, of)]))
        found.validate(full=True)
        return found


def documents_named(folder: Path, ids: pa.Array) -> pa.Table:
    """The documents of a snapshot that have some ids, `BANDED`, by place; of others nothing is read
    but their shards' neighbours.

    Raises:
        BadInput: when an id is none.
        CorruptFile: when a table is damaged.
    """
    names = pa.array(
        sorted({parse_document_id(name)[0].name for name in ids.to_pylist()}), pa.string()
    )
    found = [BANDED.empty_table()]
    for number in range(len(read_bands_manifest(folder).documents)):
        shards = read_table(shards_path(folder, number), BANDED_SHARDS.names)
        wanted = shards.filter(pc.is_in(shards["shard"], names))
        starts, counts = wanted["first"].to_numpy(), wanted["n_documents"].to_numpy()
        if counts.sum():
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            table = documents_at(folder, number, np.repeat(starts, counts) + within)
            found.append(table.filter(pc.is_in(table["id"], ids)).cast(BANDED))
    return pa.concat_tables(found)
