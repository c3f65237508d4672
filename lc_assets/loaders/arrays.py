"""Rows of an array, read through a cache; and of several arrays in the global order, as if they
were one.

The unit of decoding is a *band*: adjacent chunks that together contain the requested tokens of
some rows (64 in a token grid). A band is one array (row, token), so a row of the global order is
one copy, for any number of chunks in its context: 65,536 tokens would otherwise be 64 look-ups and
64 copies.

The global order's files: `lc_assets.formats.arrays.order`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import google_crc32c
import numpy as np

from lc_assets.arrays import Int64s, UInt16s
from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.formats.arrays.chunks import (
    ALL,
    ChunkedArray,
    TokenArray,
    fill,
    n_chunks,
    rectangle_of,
)
from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.loaders.cache import ChunkCache


class RowSource(Protocol):
    """Interface of a data set for loaders: rows of one length, numbered from 0, and an identity by
    which a saved position is matched to them.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        ...

    @property
    def vocab_size(self) -> int:
        """Every id is below it."""
        ...

    def read(self, rows: slice, tokens: slice) -> TokenArray:
        """Read a rectangle as a new (row, token) array."""
        ...

    @property
    def identity(self) -> str:
        """Equal for two sources only if both have the same rows in the same order."""
        ...


class ZarrRows:
    """Rows of one array, a token grid or the flat layout, read through a cache.

    Attributes:
        reader: the array, read without the cache.
        chunk_shape: rows × tokens of a chunk.
        path: the array's folder; a name if its files are elsewhere.
        where: path or URL of the folder.
        n_rows: number of rows.
        row_tokens: tokens of a row.
        vocab_size: every id is below it.
        dtype: dtype of the ids.
        tokenizer: name of the tokenizer; empty if the array does not state it.
        eot: id of end of text; None if the array does not state it.
        align_tokens: documents begin at multiples of it.
        cache: the cache.
    """

    def __init__(self, reader: ChunkedArray, cache: ChunkCache) -> None:
        """Read with ``reader`` through ``cache``, which several arrays may share.

        Raises:
            BadInput: if the cache cannot hold one chunk.
        """
        self.reader, self.cache = reader, cache
        # Not the path: two readers of one path may have found two versions there.
        self._name = object()
        self.path, self.where = reader.path, reader.where
        self.n_rows, self.row_tokens = reader.n_rows, reader.row_tokens
        self.vocab_size, self.dtype = reader.vocab_size, reader.dtype
        self.tokenizer, self.eot = reader.tokenizer, reader.eot
        self.align_tokens = reader.align_tokens
        self._down, self._across = self.chunk_shape = reader.chunk_shape
        self._chunk_bytes = self._down * self._across * reader.dtype.itemsize
        cache.require_room(self._chunk_bytes)

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the metadata and of the first and last chunk.

        It distinguishes data, shapes and orders, but is no protection against forgery, as the
        receipt's digest is.
        """
        hasher = hashlib.sha256(self.reader.metadata)
        down, across = n_chunks((self.n_rows, self.row_tokens), self.reader.chunk_shape)
        for row, column in [(0, 0), (down - 1, across - 1)] if down else []:
            chunk = self.band(row, range(column, column + 1))
            inside = chunk[
                : self.n_rows - row * self._down, : self.row_tokens - column * self._across
            ]
            hasher.update(np.ascontiguousarray(inside).data)
        return hasher.hexdigest()

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array.

        Raises:
            BadInput: if it is not inside the array.
            CorruptFile: if a chunk is missing or damaged.
            NotPublished: if the array was withdrawn.
        """
        return rectangle_of(self, rows, tokens)

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """Fill ``out``, (row, token), from row ``top`` and token ``left`` on; the rectangle must be
        inside the array. Raises: as `read`.
        """
        (row, begin), (first, inside) = divmod(top, self._down), divmod(left, self._across)
        end, stop = begin + len(out), inside + out.shape[1]
        if end <= self._down and stop <= self._across:  # rows of the order come one by one
            out[...] = self.band(row, range(first, first + 1))[begin:end, inside:stop]
            return
        fill(out, top, left, self.chunk_shape, self.chunks)

    def chunks(self, row: int, columns: range) -> Iterator[TokenArray]:
        """One band, or its chunks if the cache cannot hold it."""
        if len(columns) * self._chunk_bytes <= self.cache.max_bytes:
            yield self.band(row, columns)
        else:
            yield from (self.band(row, range(column, column + 1)) for column in columns)

    def band_bytes(self, context_tokens: int) -> int:
        """Maximum size of the band that ``context_tokens`` tokens of a row need."""
        inside = self._across % context_tokens == 0 or context_tokens % self._across == 0
        return (-(-context_tokens // self._across) + (not inside)) * self._chunk_bytes

    def make_room(
        self, batch_rows: int, context_tokens: int, *, n_ahead: int = 0, n_places: int = 1
    ) -> None:
        """Enlarge the cache so that a walk decodes each chunk once per column.

        Args:
            batch_rows: rows of a batch.
            context_tokens: tokens of its rows.
            n_ahead: batches that are read ahead of the one in use.
            n_places: number of such batches, in different parts of the rows, that are read at once.
        """
        aligned = self._down % batch_rows == 0 or batch_rows % self._down == 0
        bands = -(-(n_ahead + 1) * batch_rows // self._down) + (n_ahead > 0 or not aligned)
        self.cache.fit(n_places * bands * self.band_bytes(context_tokens))

    def band(self, row: int, columns: range) -> TokenArray:
        """Adjacent chunks, joined: (row, token). Shared: do not change it."""

        def read() -> TokenArray:
            if len(columns) == 1:
                (chunk,) = self.reader.chunks(row, columns)
                return chunk
            joined = np.empty((self._down, len(columns) * self._across), self.dtype)
            self.reader.read_into(joined, row * self._down, columns.start * self._across)
            return joined

        key = self._name, columns.start, columns.stop, row
        return self.cache.get(key, len(columns) * self._chunk_bytes, read)


class InterleavedRows:
    """Rows of several arrays, all read through one cache: row ``p`` is the one at position ``p`` of
    the order.

    Attributes:
        order: the order.
        sources: its arrays, one per entry of ``order.sources``, opened at the order's split.
        n_rows: positions of the order.
        row_tokens: tokens of a row.
        vocab_size: every id is below it.
        dtype: dtype of the ids.
        eot: id of end of text, if the arrays state it; all arrays of an order have one tokenizer.
    """

    def __init__(self, order: GlobalOrder, sources: Sequence[ZarrRows]) -> None:
        """Combine an order with its arrays.

        Raises:
            Mismatch: if the arrays are not those of the order: another number, width, vocabulary or
                row count.
        """
        if len(sources) != len(order.sources):
            raise Mismatch(
                f"the order is over {len(order.sources):,} sources, got {len(sources):,}"
            )
        for named, rows in zip(order.sources, sources, strict=True):
            expected = (named.rows(order.split), order.row_tokens, order.vocab_size)
            found = (rows.n_rows, rows.row_tokens, rows.vocab_size)
            if found != expected:
                raise Mismatch(
                    f"{named.snapshot}: {order.split} rows, row_tokens and vocab_size are {found}, "
                    f"the order was made for {expected}"
                )
        self.order, self.sources = order, tuple(sources)
        self.n_rows, self.row_tokens = len(order), order.row_tokens
        self.vocab_size, self.dtype = order.vocab_size, grid_dtype(order.vocab_size)
        self.eot = sources[0].eot if sources else None
        self._caches = {id(rows.cache): rows.cache for rows in sources}
        self._source_rows = np.array([rows.n_rows for rows in sources], np.int64)
        # Plain views: slicing a memmap object itself costs several times as much.
        self._source, self._row = np.asarray(order.source), np.asarray(order.row)

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the sources' versions and digests and of the order's checksums: it identifies
        the rows and their sequence. The order itself, 40 MB for LongCrawl64's rows, enters by its
        CRC-32C, which takes 5 ms where SHA-256 takes 60: a resumed run waits for it. Not proof
        against forgery; the receipt's digest is.
        """
        checksums = [
            google_crc32c.value(part.tobytes()) for part in (self.order.source, self.order.row)
        ]
        return hashlib.sha256(
            repr((self.order.split, self.order.sources, len(self.order), checksums)).encode()
        ).hexdigest()

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array.

        Raises:
            BadInput: if it is not inside the order.
            CorruptFile: if the order names a row that its source does not have, or a chunk is
                missing or damaged.
        """
        return rectangle_of(self, rows, tokens)

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """See `ZarrRows.read_into`. Row by row, because nearly always each has another source."""
        source, row = self._looked_up(range(top, top + len(out)))
        for at, (number, below) in enumerate(zip(source.tolist(), row.tolist(), strict=True)):
            self.sources[number].read_into(out[at : at + 1], below, left)

    def place(self, position: int) -> tuple[ZarrRows, int]:
        """The array and the row in it at a position.

        Raises:
            BadInput: if there is no such position.
            CorruptFile: if the order names a row that its source does not have.
        """
        if not 0 <= position < self.n_rows:
            raise BadInput(
                f"no position {position:,}: the {self.order.split} order has {self.n_rows:,}"
            )
        source, row = self._looked_up(range(position, position + 1))
        return self.sources[source[0]], int(row[0])

    def _looked_up(self, positions: range) -> tuple[UInt16s, Int64s]:
        source = self._source[positions.start : positions.stop]
        row = self._row[positions.start : positions.stop].astype(np.int64)
        beyond = row >= self._source_rows[source]
        if beyond.any():
            at = int(beyond.argmax())
            raise CorruptFile(
                f"the {self.order.split} order names row {row[at]:,} of "
                f"{self.order.sources[source[at]].snapshot} at position"
                f" {positions.start + at:,}; that grid has {self._source_rows[source[at]]:,} rows"
            )
        return source, row

    def make_room(
        self, batch_rows: int, context_tokens: int, *, n_ahead: int = 0, n_places: int = 1
    ) -> None:
        """See `ZarrRows.make_room`: a band of every source, and a few that are being replaced."""
        bands = [rows.band_bytes(context_tokens) for rows in self.sources if rows.n_rows]
        spare = min(len(bands), -(-(n_ahead + 1) * n_places * batch_rows // 64) + 1) * max(
            bands, default=0
        )
        for cache in self._caches.values():
            cache.fit(n_places * sum(bands) + spare)
