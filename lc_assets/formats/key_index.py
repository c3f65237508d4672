"""A key index on disk: from 64-bit keys to lines of a table, by binary search in two mapped arrays.

===================  ===============================================================================
file                 array
===================  ===============================================================================
``{name}_key.npy``   uint64, ascending; a key may occur several times
``{name}_place.npy`` uint32, one per key: a line of the table, from 0; ascending within one key
===================  ===============================================================================

Construction of keys: `lc_assets.text.links.addresses`.
"""

from pathlib import Path

import numpy as np

from lc_assets.arrays import Int64s, UInt32s, UInt64s
from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.records import frozen


def write_key_index(prefix: Path, keys: UInt64s, places: UInt32s) -> None:
    """Write an index whose keys ascend."""
    write_npy(_path(prefix, "key"), keys)
    write_npy(_path(prefix, "place"), places)


@frozen
class KeyIndex:
    """An index on disk; its files' names begin with ``prefix``. No file stays open between
    look-ups.
    """

    prefix: Path

    def places(self, key: int) -> list[int]:
        """Places of one key, ascending; none when the index lacks it.

        Raises:
            CorruptFile: when the index is missing or damaged.
        """
        found: list[int] = self.places_of_all(np.array([key], np.uint64))[1].tolist()
        return found

    def places_of_all(self, sought: UInt64s) -> tuple[Int64s, Int64s]:
        """Places of many keys at once: index into ``sought``, and place; both int64, of one length,
        in the order of ``sought``.

        Raises:
            CorruptFile: when the index is missing or damaged.
        """
        keys = self.keys()
        first, behind = (np.searchsorted(keys, sought, side) for side in ("left", "right"))
        counts = behind - first
        if (counts < 0).any():
            raise CorruptFile(
                f"{_path(self.prefix, 'key')}: keys do not ascend; make the index again"
            )
        which = np.repeat(np.arange(len(sought), dtype=np.int64), counts)
        if not len(which):
            return which, which
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, self._places(len(keys))[np.repeat(first, counts) + within].astype(np.int64)

    def keys(self) -> UInt64s:
        """All keys, mapped, uint64.

        Raises:
            CorruptFile: when the file is missing, or has other content.
        """
        return np.asarray(read_npy(_path(self.prefix, "key"), row_of=np.dtype("<u8")))

    def _places(self, n_keys: int) -> UInt32s:
        places = np.asarray(read_npy(_path(self.prefix, "place"), row_of=np.dtype("<u4")))
        if len(places) != n_keys:
            raise CorruptFile(
                f"{_path(self.prefix, 'place')}: {len(places):,} places for {n_keys:,} keys"
            )
        return places

    def holds(self, keys: UInt64s, places: UInt32s, *, every: int = 1) -> bool:
        """Whether the index has these keys and places, and no others of every so many lines.

        Raises:
            CorruptFile: when a file is missing or damaged.
        """
        ours = self.keys()
        theirs = self._places(len(ours))
        if every > 1:
            chosen = theirs % np.uint32(every) == 0
            ours, theirs = ours[chosen], theirs[chosen]
        return np.array_equal(ours, keys) and np.array_equal(theirs, places)


def _path(prefix: Path, part: str) -> Path:
    return prefix.with_name(f"{prefix.name}_{part}.npy")
