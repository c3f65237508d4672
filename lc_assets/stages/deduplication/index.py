"""The files of a version of `signature_index`: bands, documents and shards of some shards together.

::

    bands.json               signature scheme, number and width of bands, documents of each file
    bands/00003/keys.npy     (bands, m) uint64: keys of the m signed documents, each band ascending
                places.npy   (bands, m) uint32: whose they are, as places in the file
                rows.npy     (n, bands) uint16: lowest bits of each document's keys, by place
    documents/00003.parquet  id, digest and date of each document, by place
    shards/00003.parquet     the shards of the file, in order: name, size, documents, first place
    facts/00003.parquet      a line per document, where exact duplicates are removed

A *file* holds many shards, so a snapshot has few. A document's *place* is its index in its file,
its *number* the file's number × 2³² + its place. See docs/formats/signature-bands.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Array, Booleans, UInt16s, UInt32s, UInt64s
from lc_assets.builds.inputs import made_from, required
from lc_assets.builds.tables import read_table
from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.lake.versions import Published
from lc_assets.stages.documents.document_keys import DOCUMENTS_FILE as KEYED_FILE
from lc_assets.text.duplicates.clusters import Numbers
from lc_assets.text.duplicates.keys import ROW_BITS

BANDS = 18
"""Bands of a signature.

Candidates are compared before a document is removed, so bands may be generous: 18 of 7 rows. The
chance that two documents share one of them, beside RedPajama-V2's bands for the same similarities:

==========  ======  ======  ======  ======  ======
similarity  0.5     0.7     0.8     0.85    0.9
==========  ======  ======  ======  ======  ======
18 × 7      0.13    0.79    0.986   0.999   1.000
14 × 9      0.03    0.44    0.87    0.97    0.999
9 × 13      0.001   0.08    0.40    0.69    0.93
==========  ======  ======  ======  ======  ======
"""
ROWS = 7
"""Numbers of a band."""

PLACE_BITS = 32
PLACES = (1 << PLACE_BITS) - 1
MANIFEST = "bands.json"

BANDED = pa.schema(
    {
        "id": "string",
        "digest": "string",
        "date_download": "string",
    }
)
"""A document, by place."""
BANDED_SHARDS = pa.schema(
    {
        "shard": "string",
        "n_bytes": "int64",
        "n_documents": "int64",
        "first": "int64",
    }
)
"""A shard: the size of its table of documents, their number, and the place of the first."""

Keys = UInt64s
Places = UInt32s


class BandsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a version holds.

    Attributes:
        signature: label of the scheme of the signatures; empty where there is none.
        bands: of a signature.
        rows: numbers of a band.
        documents: of each file, by its number.
    """

    signature: str
    bands: int
    rows: int
    documents: tuple[int, ...]


def read_bands_manifest(folder: Path) -> BandsManifest:
    """The manifest of a version.

    Raises:
        CorruptFile: when it is missing or not readable.
    """
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=BandsManifest)
    except (FileNotFoundError, *UNDECODABLE) as error:
        raise CorruptFile(f"{path}: not a readable manifest of bands: {error}") from error


def index_of(inputs: Mapping[str, Published], snapshot: str) -> Published:
    """The `signature_index` of a snapshot, among a stage's inputs.

    Raises:
        NotPublished: when it is missing.
    """
    return required(inputs, "signature_index", snapshot)


def keyed_tables(inputs: Mapping[str, Published]) -> dict[str, Path]:
    """The tables of `document_keys` of all snapshots whose filtered documents a stage reads, by
    snapshot, oldest first.

    Raises:
        NotPublished: when those of a snapshot are missing.
        Mismatch: when they are of other documents than its current filtered ones.
    """
    return {
        filtered.key: made_from(inputs, "document_keys", filtered).only(KEYED_FILE) / KEYED_FILE
        for _, filtered in sorted(inputs.items())
        if filtered.stage == "filtered_documents"
    }


def numbers_in(keys: Mapping[str, Path], ids: pa.ChunkedArray) -> Numbers:
    """Each document's place in the table of `keyed_tables` that has its id, and the table's number
    × 2³²; ``(n,)`` int64.
    """
    numbers: Numbers = np.empty(len(ids), np.int64)
    for number, path in enumerate(keys.values()):
        places = pc.index_in(ids, read_table(path, ["id"])["id"].cast(ids.type)).cast(pa.int64())
        has = np.asarray(places.is_valid())
        numbers[has] = places.drop_null().to_numpy() | number << PLACE_BITS
    return numbers


class IndexedFile(NamedTuple):
    """A file of a `signature_index`: its snapshot, its number there, the version's folder, its
    number of documents, and the scheme of their signatures.
    """

    snapshot: str
    number: int
    folder: Path
    n_documents: int
    signature: str


def indexed_files(inputs: Mapping[str, Published], *patterns: str) -> list[IndexedFile]:
    """The files of the `signature_index` of all snapshots whose filtered documents a stage reads,
    oldest first; only files that match a pattern are fetched.

    Raises:
        NotPublished: when a snapshot has filtered documents, but no index.
    """
    found = list[IndexedFile]()
    for name in sorted(inputs):
        stage, _, snapshot = name.partition("/")
        if stage == "filtered_documents":
            folder = index_of(inputs, snapshot).only(MANIFEST, *patterns)
            manifest = read_bands_manifest(folder)
            found += [
                IndexedFile(snapshot, number, folder, n_documents, manifest.signature)
                for number, n_documents in enumerate(manifest.documents)
            ]
    return found


def bands_path(folder: Path, number: int) -> Path:
    """Folder of the bands of a file."""
    return folder / "bands" / f"{number:05d}"


def documents_path(folder: Path, number: int) -> Path:
    """Table of the documents of a file, `BANDED`."""
    return folder / "documents" / f"{number:05d}.parquet"


def shards_path(folder: Path, number: int) -> Path:
    """Table of the shards of a file, `BANDED_SHARDS`."""
    return folder / "shards" / f"{number:05d}.parquet"


def facts_path(folder: Path, number: int) -> Path:
    """Table of the facts of a file (`lc_assets.stages.deduplication.facts`)."""
    return folder / "facts" / f"{number:05d}.parquet"


def sorted_bands(keys: Keys, signed: Booleans) -> dict[str, Array]:
    """The arrays of a file, by name.

    Args:
        keys: ``(n, bands)``, by place.
        signed: ``(n,)``: which documents have a signature; keys of the others are ignored.
    """
    places = np.flatnonzero(signed).astype(np.uint32)
    by_band = np.ascontiguousarray(keys[signed].T)
    order = np.argsort(by_band, axis=1, kind="stable")
    return {
        "keys": np.take_along_axis(by_band, order, axis=1),
        "places": places[order] if len(places) else np.zeros(by_band.shape, np.uint32),
        "rows": (keys & np.uint64((1 << ROW_BITS) - 1)).astype(np.uint16),
    }


def publish_bands(folder: Path, number: int, keys: Keys, signed: Booleans) -> None:
    """Publish the bands of a file, as of `sorted_bands`, in a version's folder."""
    for name, array in sorted_bands(keys, signed).items():
        write_npy(bands_path(folder, number) / f"{name}.npy", array)


def read_bands(at: Path) -> tuple[Keys, Places]:
    """Map the keys and places of a file, ``(bands, m)`` each, which are in ``at``.

    Raises:
        CorruptFile: when they are missing or have another shape or dtype.
    """
    keys, places = _mapped(at / "keys.npy", np.uint64), _mapped(at / "places.npy", np.uint32)
    if keys.shape != places.shape:
        raise CorruptFile(f"{at}: keys are {keys.shape}, places {places.shape}")
    return keys, places


def read_rows(at: Path) -> UInt16s:
    """Map the lowest bits of a file's keys, ``(n, bands)``, which are in ``at``.

    Raises:
        CorruptFile: when they are missing or have another shape or dtype.
    """
    return _mapped(at / "rows.npy", np.uint16)


def _mapped(path: Path, dtype: type[np.generic]) -> Array:
    array = read_npy(path)
    if array.dtype != dtype or array.ndim != 2:
        raise CorruptFile(
            f"{path}: {array.dtype} {array.shape}; expected a matrix of {dtype.__name__}"
        )
    return array


def shards_at(folder: Path, number: int, places: Numbers) -> pa.Table:
    """The shards, `BANDED_SHARDS`, that hold some ascending places of a file, in order.

    Raises:
        CorruptFile: when the file has no such place.
    """
    shards = read_table(shards_path(folder, number), BANDED_SHARDS.names)
    first, counts = shards["first"].to_numpy(), shards["n_documents"].to_numpy()
    if len(places) and not 0 <= places[0] <= places[-1] < counts.sum():
        raise CorruptFile(
            f"{shards_path(folder, number)}: {counts.sum():,} documents, but place "
            f"{places[-1]:,} is needed"
        )
    return shards.take(pa.array(np.unique(np.searchsorted(first, places, side="right") - 1)))
