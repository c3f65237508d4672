"""A key index on disk: from 64-bit keys to lines of a table, by binary search in two mapped arrays.

===================  ===============================================================================
file                 array
===================  ===============================================================================
``{name}_key.npy``   uint64, ascending; a key may occur several times
``{name}_place.npy`` uint32, one per key: a line of the table, from 0; ascending within one key
===================  ===============================================================================

Keys are hashes and evenly distributed: the position of one is known to within a few hundred, and a
look-up reads 8 KiB of the first file, whatever its length, and of the second only when it finds the
key. What the keys are made of: `lc_assets.text.links.addresses`.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.npy import npy_bytes, read_npy, write_npy

HEADER_BYTES: Final = 128
"""Of a ``.npy`` file of version 1.0 of one dimension."""
KEY_BYTES: Final = 8
STRETCH: Final = 1024
"""Keys that are read at first: among 400,000 keys, the expected position is off by at most 300 two
times in three.
"""


def write_key_index(prefix: Path, keys: NDArray[np.uint64], places: NDArray[np.uint32]) -> None:
    """Write an index whose keys ascend."""
    write_npy(_path(prefix, "key"), keys)
    write_npy(_path(prefix, "place"), places)


@dataclass(frozen=True, slots=True)
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
        path = _path(self.prefix, "key")
        try:
            with path.open("rb", buffering=0) as stream:
                n_keys = _count(stream, path)
                first, behind = _span_of(stream, n_keys, key)
        except OSError as error:
            raise CorruptFile(f"{path}: cannot be read: {error}") from error
        found: list[int] = self._places(n_keys)[first:behind].tolist() if first < behind else []
        return found

    def places_of_all(
        self, wanted: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places of many keys at once: index into ``wanted``, and place; both int64, of one length,
        in the order of ``wanted``.

        Raises:
            CorruptFile: when the index is missing or damaged.
        """
        keys = self.keys()
        first, behind = (
            np.searchsorted(keys, wanted, "left"),
            np.searchsorted(keys, wanted, "right"),
        )
        counts = behind - first
        if (counts < 0).any():
            raise CorruptFile(
                f"{_path(self.prefix, 'key')}: keys do not ascend; make the index again"
            )
        which = np.repeat(np.arange(len(wanted), dtype=np.int64), counts)
        if not len(which):
            return which, which
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, self._places(len(keys))[np.repeat(first, counts) + within].astype(np.int64)

    def keys(self) -> NDArray[np.uint64]:
        """All keys, mapped, uint64.

        Raises:
            CorruptFile: when the file is missing, or holds something else.
        """
        return np.asarray(read_npy(_path(self.prefix, "key"), row_of=np.dtype("<u8")))

    def _places(self, n_keys: int) -> NDArray[np.uint32]:
        places = np.asarray(read_npy(_path(self.prefix, "place"), row_of=np.dtype("<u4")))
        if len(places) != n_keys:
            raise CorruptFile(
                f"{_path(self.prefix, 'place')}: {len(places):,} places for {n_keys:,} keys"
            )
        return places

    def pairs(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """All keys and all places.

        Raises:
            CorruptFile: when a file is missing or damaged.
        """
        keys = self.keys()
        return keys, self._places(len(keys))

    def holds(self, keys: NDArray[np.uint64], places: NDArray[np.uint32]) -> bool:
        """Whether the index is of these keys and places, and no others.

        Raises:
            CorruptFile: when a file is missing or damaged.
        """
        ours, at = self.pairs()
        return np.array_equal(ours, keys) and np.array_equal(at, places)


def _count(stream: BinaryIO, path: Path) -> int:
    """Number of keys in a file, by its size; its header must state the same."""
    n_keys, rest = divmod(os.fstat(stream.fileno()).st_size - HEADER_BYTES, KEY_BYTES)
    if rest or n_keys < 0 or os.pread(stream.fileno(), HEADER_BYTES, 0) != _header(n_keys):
        raise CorruptFile(
            f"{path}: not the keys of an index: wanted a whole .npy file of one dimension of uint64"
        )
    return n_keys


@functools.lru_cache(maxsize=1024)
def _header(n_keys: int) -> bytes:
    header = npy_bytes(np.empty(0, "<u8"))[:HEADER_BYTES]
    wanted = header.replace(b"(0,)", f"({n_keys},)".encode())
    return wanted.rstrip()[: HEADER_BYTES - 1].ljust(HEADER_BYTES - 1) + b"\n"


def _span_of(stream: BinaryIO, n_keys: int, key: int) -> tuple[int, int]:
    """First position of a key, and the position after its last; the same twice when there is
    none.
    """
    first = _first_at_least(stream, n_keys, key)
    if first == n_keys or int(_keys_at(stream, first, first + 1)[0]) != key:
        return first, first
    return first, _first_at_least(stream, n_keys, key + 1, near=first)


def _first_at_least(stream: BinaryIO, n_keys: int, key: int, *, near: int | None = None) -> int:
    """The first position whose key is not below ``key``: searched from its expected position, in
    stretches that double.
    """
    if key >> 64:
        return n_keys
    length, low, high = STRETCH, 0, n_keys
    begin = (key * n_keys >> 64) - length // 2 if near is None else near
    while low < high:  # keys before `low` are smaller, keys from `high` on are not
        begin = max(low, min(begin, high - 1))
        end = min(begin + length, high)
        part = _keys_at(stream, begin, end)
        length *= 2
        if part[-1] < key:
            low = begin = end
        elif part[0] >= key:
            high, begin = begin, begin - length
        else:
            return begin + int(np.searchsorted(part, np.uint64(key)))
    return low


def _keys_at(stream: BinaryIO, begin: int, end: int) -> NDArray[np.uint64]:
    content = os.pread(stream.fileno(), (end - begin) * KEY_BYTES, HEADER_BYTES + begin * KEY_BYTES)
    return np.frombuffer(content, "<u8")


def _path(prefix: Path, part: str) -> Path:
    return prefix.with_name(f"{prefix.name}_{part}.npy")
