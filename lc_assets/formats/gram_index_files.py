"""An index of n-grams as files: one ``.npy`` per array, mapped by every worker, so it is in memory
once. ``index.json`` holds the rest and is written last; without it there is no index. See
docs/contamination.md.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, CorruptFile, NotPublished
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.publishing import publish_bytes
from lc_assets.text.contamination.grams import GramIndex, GramSettings

INDEX = "index.json"
_OFFSETS = (
    "item_words",
    "item_grams",
    "lengths",
    "gram_words",
    "posting_ends",
    "vocabulary_ends",
    "buckets",
)
DTYPES: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(_OFFSETS, np.dtype("<i8")),
    **dict.fromkeys(("items", "positions", "words"), np.dtype("<i4")),
    **dict.fromkeys(("keys", "bits"), np.dtype("<u8")),
    "gram_lengths": np.dtype("u1"),
    "vocabulary": np.dtype("<u4"),
}
"""File of each array."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    settings: GramSettings
    key_bits: int
    arrays: dict[str, int]
    item_ids: tuple[str, ...]


def write_index(folder: Path, index: GramIndex) -> None:
    """Publish an index in ``folder``."""
    for name, array in index.arrays.items():
        write_npy(folder / f"{name}.npy", array)
    lengths = {name: len(array) for name, array in index.arrays.items()}
    head = _Head(
        settings=index.settings, key_bits=index.key_bits, arrays=lengths, item_ids=index.item_ids
    )
    publish_bytes(folder / INDEX, msgspec.json.encode(head))


def open_index(folder: Path) -> GramIndex:
    """Map an index.

    Raises:
        NotPublished: when there is none.
        CorruptFile: when a file is missing or its length is not the stated one.
    """
    if not (folder / INDEX).is_file():
        raise NotPublished(f"{folder}: holds no {INDEX}; build the index again")
    try:
        head = msgspec.json.decode((folder / INDEX).read_bytes(), type=_Head)
    except UNDECODABLE as error:
        raise CorruptFile(f"{folder}: not a readable index: {error}; build it again") from error
    try:
        # Copied when written to, which nothing does: a read-only array would be another type to
        # numba, compiled separately.
        arrays = {
            name: np.asarray(read_npy(folder / f"{name}.npy", mode="c", row_of=dtype))
            for name, dtype in DTYPES.items()
        }
    except CorruptFile as error:
        raise CorruptFile(f"{error}; build the index again") from error
    lengths = {name: len(array) for name, array in arrays.items()}
    if lengths != head.arrays:
        raise CorruptFile(
            f"{folder}: arrays of lengths {lengths}, {INDEX} has {head.arrays}; build the index "
            "again"
        )
    return GramIndex(
        settings=head.settings, key_bits=head.key_bits, item_ids=head.item_ids, **arrays
    )
