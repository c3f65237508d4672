"""Bands and facts of the documents of some shards, as one file of an index.

::

    bands/00003/keys.npy  (bands, m) uint64: keys of the signed documents, each band ascending
                places.npy  (bands, m) uint32: whose they are, as places in the file
                rows.npy    (n, bands) uint16: lowest bits of each document's keys, by place
    facts/00003.parquet   a line per document, where exact duplicates are removed

A document's number is its file's number × 2³² + its place.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.npy import npy_bytes, read_npy
from lc_assets.publishing import publish_bytes
from lc_assets.text.duplicates.keys import ROW_BITS

PLACE_BITS = 32
MOST_BANDS = 64


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """One table of documents of a file of the index: its path, its size when it was indexed, its
    number of documents, the place of the first.
    """

    path: str
    n_bytes: int
    n_documents: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class BandFile:
    """Bands of one file's documents, mapped."""

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]

    def within(
        self, band: int, low: int, high: int | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Keys of a band from ``low`` up to, without, ``high``, ascending; and places of their
        documents; both mapped.
        """
        begin = int(np.searchsorted(self.keys[band], np.uint64(low)))
        end = (
            self.keys.shape[1]
            if high is None
            else int(np.searchsorted(self.keys[band], np.uint64(high)))
        )
        return self.keys[band, begin:end], self.places[band, begin:end]


def facts_path(folder: Path, number: int) -> Path:
    """Where the facts of a file lie."""
    return folder / "facts" / f"{number:05d}.parquet"


def bands_path(folder: Path, number: int) -> Path:
    """Where the bands of a file lie."""
    return folder / "bands" / f"{number:05d}"


def publish_bands(
    folder: Path, number: int, keys: NDArray[np.uint64], signed: NDArray[np.bool_]
) -> None:
    """Publish the bands of a file's documents.

    Args:
        folder: of the index.
        number: of the file.
        keys: ``(n, bands)``, by place.
        signed: ``(n,)``: which documents could be signed; keys of others are not looked at.
    """
    n_bands = keys.shape[1]
    if n_bands > MOST_BANDS:
        raise BadInput(f"{n_bands} bands: at most {MOST_BANDS} can be told apart in the evidence")
    places = np.flatnonzero(signed).astype(np.uint32)
    by_band = np.ascontiguousarray(keys[signed].T)
    order = np.argsort(by_band, axis=1, kind="stable")
    at = bands_path(folder, number)
    publish_bytes(at / "keys.npy", npy_bytes(np.take_along_axis(by_band, order, axis=1)))
    publish_bytes(
        at / "places.npy",
        npy_bytes(places[order] if len(places) else np.zeros(by_band.shape, np.uint32)),
    )
    publish_bytes(
        at / "rows.npy", npy_bytes((keys & np.uint64((1 << ROW_BITS) - 1)).astype(np.uint16))
    )


def read_bands(at: Path) -> BandFile:
    """Map the bands of a file, which lie in ``at``.

    Raises:
        CorruptFile: when they are missing, or are no bands.
    """
    keys, places = read_npy(at / "keys.npy"), read_npy(at / "places.npy")
    if (
        (keys.dtype, places.dtype) != (np.dtype(np.uint64), np.dtype(np.uint32))
        or keys.ndim != 2
        or keys.shape != places.shape
    ):
        raise CorruptFile(
            f"{at}: keys are {keys.dtype} {keys.shape}, places {places.dtype} {places.shape}; "
            "wanted uint64 and uint32 (bands, m)"
        )
    return BandFile(keys, places)


def read_rows(at: Path) -> NDArray[np.uint16]:
    """Map the first rows of a file's bands; ``(n, bands)``.

    Raises:
        CorruptFile: when they are missing, or something else.
    """
    rows: NDArray[np.uint16] = read_npy(at / "rows.npy")
    if rows.dtype != np.dtype(np.uint16) or rows.ndim != 2:
        raise CorruptFile(
            f"{at}: first rows are {rows.dtype} {rows.shape}, wanted uint16 (documents, bands)"
        )
    return rows
