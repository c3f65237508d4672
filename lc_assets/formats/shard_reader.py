"""Reading inner chunks of the shards of one array: indexes are kept, frames are decompressed where
they are wanted.

Here: which bytes of which file an inner chunk is, checked. Not here: a shard's bytes
    (`formats.shard`), which
inner chunks are wanted (`formats.grid`), keeping decoded ones (`loaders.cache`).

A shard's index is read once and kept, because a walk down an array reads each of a shard's inner
chunks for itself and would read and check the index 32 times.
"""

import threading
from collections import OrderedDict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import CorruptFile
from lc_assets.formats.chunks import TokenArray
from lc_assets.formats.files import Files, Piece, require_published
from lc_assets.formats.shard import ShardShape, decode_inner, parse_index, require_place
from lc_assets.formats.zarr_json import METADATA

KEPT_INDEX_BYTES: Final = 2**18
"""Indexes kept per array: a walk down needs the one it is in; eight of 32 KB, or 256 of a kilobyte.
"""

Inner = tuple[int, int]
"""Row and column of an inner chunk within the whole array."""


class ShardReader:
    """Decodes inner chunks of one array.

    May be used by several threads; sent to another process, it arrives without indexes.
    """

    def __init__(
        self, files: Files, shape: ShardShape, array_shape: tuple[int, int], vocab_size: int
    ) -> None:
        """Read from ``files``, whose shards ``c/{i}/{j}`` are of ``shape``, an array with ids below
        ``vocab_size``.
        """
        self._files, self._shape, self._array_shape, self._vocab_size = (
            files,
            shape,
            array_shape,
            vocab_size,
        )
        self._indexes: OrderedDict[str, tuple[NDArray[np.uint64], int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(
        self,
    ) -> tuple[type["ShardReader"], tuple[Files, ShardShape, tuple[int, int], int]]:
        return ShardReader, (self._files, self._shape, self._array_shape, self._vocab_size)

    def read(self, row: int, columns: range, out: TokenArray) -> None:
        """Decode inner chunks that lie beside each other; all their bytes are asked for at once.

        Args:
            row: of the inner chunks, in the whole array.
            columns: of the inner chunks.
            out: receives them: (chunk, row, token), C-contiguous.

        Raises:
            CorruptFile: when one is missing, damaged, or holds an id outside the vocabulary; names
                it.
            NotPublished: when the whole array is gone.
        """
        try:
            frames = self._files_read([self._piece((row, column)) for column in columns])
            for column, frame, chunk in zip(columns, frames, out, strict=True):
                self._decode((row, column), frame, chunk)
        except CorruptFile as error:
            with self._lock:
                self._indexes.clear()  # a shard that was mended is found again at the next call
            require_published(self._files, METADATA, error)
            raise

    def _decode(self, inner: Inner, frame: bytes, out: TokenArray) -> None:
        decode_inner(frame, self._shape, lambda: self._where(inner), out)
        n_rows, n_tokens = (
            whole - at * size
            for whole, at, size in zip(self._array_shape, inner, self._shape.inner, strict=True)
        )
        largest = int(out[:n_rows, :n_tokens].max())
        if largest >= self._vocab_size:
            raise CorruptFile(
                f"{self._where(inner)} holds id {largest:,}: the vocabulary has "
                f"{self._vocab_size:,} ids"
            )

    def _where(self, inner: Inner) -> str:
        path, at = self._place(inner)
        return f"{self._files.where(path)}: inner chunk {at}"

    def _place(self, inner: Inner) -> tuple[str, Inner]:
        down, across = self._shape.grid
        (shard_row, row), (shard_column, column) = divmod(inner[0], down), divmod(inner[1], across)
        return f"c/{shard_row}/{shard_column}", (row, column)

    def _piece(self, inner: Inner) -> Piece:
        path, (row, column) = self._place(inner)
        index, n_bytes = self._indexes.get(path) or self._index(path)
        offset, size = index[row, column].tolist()
        require_place(offset, size, n_bytes, self._shape, lambda: self._where(inner))
        return Piece(path, offset, offset + size)

    def _index(self, path: str) -> tuple[NDArray[np.uint64], int]:
        where = self._files.where(path)
        try:
            n_bytes = self._files.n_bytes(path)
        except FileNotFoundError as error:
            raise _lost(where) from error
        (content,) = self._files_read(
            [Piece(path, max(n_bytes - self._shape.index_bytes, 0), n_bytes)]
        )
        found = parse_index(content, self._shape, where), n_bytes
        with self._lock:
            self._indexes[path] = found
            if len(self._indexes) > max(KEPT_INDEX_BYTES // self._shape.index_bytes, 4):
                self._indexes.popitem(last=False)
        return found

    def _files_read(self, pieces: list[Piece]) -> list[bytes]:
        try:
            return self._files.read(pieces)
        except FileNotFoundError as error:
            raise _lost(
                ", ".join(sorted({self._files.where(piece.path) for piece in pieces})[:2])
            ) from error


def _lost(where: str) -> CorruptFile:
    return CorruptFile(
        f"{where}: the shard is missing: its rows were never written, or were lost; write its "
        "band again"
    )
