"""Rows of arrays, read through a cache of decoded bands: one array, or several riffled into a
global order.

Here: what is decoded at once, and copying batches out of it. Not here: opening a data set by its
    path
(`loaders.rows`), which rectangle comes when (`loaders.grid`), the chunks' bytes
(`lc_assets.formats`).

What is decoded at once is a *band*: the chunks that lie beside each other and together hold the
wanted tokens of some rows (64 in a token grid). A band is one array (chunk, row, token), so a batch
is one copy per band, however many chunks its context spans: chunk by chunk, a row of 65,536 tokens
would be 64 look-ups and 64 copies.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lc_assets.formats.chunks import ALL, TokenArray, copy_out, n_chunks, span
from lc_assets.formats.grid import GridReader
from lc_assets.formats.order import GlobalOrder
from lc_assets.formats.riffled import RiffledReader, Rows
from lc_assets.loaders.cache import ChunkCache


class RowSource(Rows, Protocol):
    """All that a loader asks for: rows, and a name for the data by which a saved position finds it
    again.
    """

    @property
    def identity(self) -> str:
        """Names the data: equal for two sources only when both hold the same rows in the same
        order.
        """
        ...


@runtime_checkable
class CachedRows(Protocol):
    """Rows that are copied straight into a batch, out of a cache that grows with what is asked of
    it.

    Not a `RowSource` by inheritance: to ask whether rows are these would make their identity, which
    reads chunks.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        ...

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """Read a rectangle that lies in the rows into an array that says how large it is."""
        ...

    def make_room(
        self, batch_rows: int, context_tokens: int, *, n_ahead: int = 0, n_places: int = 1
    ) -> None:
        """Let the cache hold what batches of this shape need."""
        ...


class ChunkReader(Rows, Protocol):
    """What `ZarrRows` asks of a format's reader."""

    path: Path
    metadata: bytes

    @property
    def where(self) -> str:
        """Where the array lies: a path, or a URL."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        ...

    @property
    def chunk_shape(self) -> tuple[int, int]:
        """Rows × tokens of a chunk."""
        ...

    def read_chunks(self, row: int, columns: range, out: TokenArray) -> None:
        """Decode chunks that lie beside each other into a (chunk, row, token) array."""
        ...


class ZarrRows:
    """Rows of one array, a token grid or the flat layout, read through a cache of its bands.

    Attributes:
        band_rows: rows of a band: those of a chunk.
        band_tokens: tokens of one of its chunks.
    """

    def __init__(self, reader: ChunkReader, cache: ChunkCache) -> None:
        """Read by ``reader`` through ``cache``, which other arrays may share.

        Raises:
            BadInput: when the cache cannot hold one chunk.
        """
        self._reader = reader
        self._cache = cache
        self._name = (
            object()
        )  # not the path: two readers of one path may have found two versions there
        self.band_rows, self.band_tokens = self._down, self._across = reader.chunk_shape
        self._chunk_bytes = self._down * self._across * reader.dtype.itemsize
        cache.require_room(self._chunk_bytes)

    @property
    def path(self) -> Path:
        """The array's folder."""
        return self._reader.path

    @property
    def where(self) -> str:
        """Where it lies: its folder's path, or a URL."""
        return self._reader.where

    @property
    def tokenizer(self) -> str:
        """Name of what the ids belong to; empty where the array does not say it."""
        return self._reader.tokenizer if isinstance(self._reader, GridReader) else ""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._reader.n_rows

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        return self._reader.row_tokens

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        return self._reader.vocab_size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        return self._reader.dtype

    @property
    def eot(self) -> int | None:
        """Id of end of text, where the array says it."""
        return self._reader.eot if isinstance(self._reader, GridReader) else None

    @property
    def cache(self) -> ChunkCache:
        """The cache it reads through."""
        return self._cache

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the metadata and of the first and last chunk: enough to tell other data,
        shapes and orders apart.

        Not proof against forgery; the receipt's digest is.
        """
        hasher = hashlib.sha256(self._reader.metadata)
        down, across = n_chunks((self.n_rows, self.row_tokens), self._reader.chunk_shape)
        for row, column in [(0, 0), (down - 1, across - 1)] if down else []:
            chunk = self._decoded(row, range(column, column + 1))[0]
            inside = chunk[
                : self.n_rows - row * self._down, : self.row_tokens - column * self._across
            ]
            hasher.update(np.ascontiguousarray(inside).data)
        return hasher.hexdigest()

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array.

        Raises:
            BadInput: when it reaches outside the array.
            CorruptFile: when a chunk is missing or damaged; names array and chunk.
            NotPublished: when the array was withdrawn.
        """
        down, across = span(rows, self.n_rows, "rows"), span(tokens, self.row_tokens, "tokens")
        rectangle = np.empty((len(down), len(across)), self._reader.dtype)
        if rectangle.size:
            self.read_into(rectangle, down.start, across.start)
        return rectangle

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """Read the rectangle whose first row and token are ``top`` and ``left`` into a (row, token)
        array, which says how large it is.

        The caller has made sure that it lies in the array. Raises: as `read` does.
        """
        n_rows, n_tokens = out.shape
        first, inside = divmod(left, self._across)
        last = (left + n_tokens - 1) // self._across + 1
        if (last - first) * self._chunk_bytes > self._cache.max_bytes:
            self._read_by_chunks(out, top, left, range(first, last))
            return
        row, begin = divmod(top, self._down)
        if (
            n_tokens == self._across
            and not (inside or begin or n_rows % self._down)
            and out.flags.c_contiguous
        ):
            self._read_whole(out, row, first)
            return
        if begin + n_rows <= self._down:
            copy_out(self.band(row, first, last), begin, inside, out)
            return
        done = 0
        while done < n_rows:
            row, begin = divmod(top + done, self._down)
            n = min(self._down - begin, n_rows - done)
            copy_out(self.band(row, first, last), begin, inside, out[done : done + n])
            done += n

    def _read_whole(self, out: TokenArray, row: int, column: int) -> None:
        """Whole chunks that lie below each other are decoded where they are wanted: no later batch
        of the walk needs them.
        """
        for number, chunk in enumerate(out.reshape(-1, 1, self._down, self._across), row):
            band = self._cache.kept((self._name, column, column + 1, number))
            if band is None:
                self._reader.read_chunks(number, range(column, column + 1), chunk)
            else:
                chunk[...] = band

    def band_bytes(self, context_tokens: int) -> int:
        """Size of the band that ``context_tokens`` tokens of a row need, at the most."""
        inside = self._across % context_tokens == 0 or context_tokens % self._across == 0
        return (-(-context_tokens // self._across) + (not inside)) * self._chunk_bytes

    def make_room(
        self, batch_rows: int, context_tokens: int, *, n_ahead: int = 0, n_places: int = 1
    ) -> None:
        """Let the cache hold what batches of this shape need, so that a walk decodes each chunk
        once a column.

        Args:
            batch_rows: rows of a batch.
            context_tokens: tokens of its rows.
            n_ahead: how many batches are read ahead of the one that is used.
            n_places: how many such batches, in different parts of the rows, make one.
        """
        aligned = self._down % batch_rows == 0 or batch_rows % self._down == 0
        bands = -(-(n_ahead + 1) * batch_rows // self._down) + (n_ahead > 0 or not aligned)
        self._cache.fit(n_places * bands * self.band_bytes(context_tokens))

    def _read_by_chunks(self, out: TokenArray, top: int, left: int, columns: range) -> None:
        """Where the cache cannot hold a band: chunk by chunk, each of them decoded for every
        batch.
        """
        for column in columns:
            begin, end = (
                max(column * self._across, left),
                min((column + 1) * self._across, left + out.shape[1]),
            )
            self.read_into(out[:, begin - left : end - left], top, begin)

    def band(self, row: int, first: int, last: int) -> TokenArray:
        """Return chunks ``first`` to ``last`` (exclusive) of a row of chunks: (chunk, row, token),
        shared, not to be changed.
        """
        key = (self._name, first, last, row)
        band = self._cache.kept(key)
        if band is None:
            return self._cache.get(
                key, lambda: self._decoded(row, range(first, last)), family=key[:3]
            )
        return band

    def _decoded(self, row: int, columns: range) -> TokenArray:
        band = np.empty((len(columns), self._down, self._across), self._reader.dtype)
        self._reader.read_chunks(row, columns, band)
        return band


class RiffledRows(RiffledReader):
    """Rows of several arrays in the global order, all read through one cache."""

    sources: tuple[ZarrRows, ...]

    def __init__(self, order: GlobalOrder, sources: Sequence[ZarrRows]) -> None:
        """Join an order and the arrays it is over.

        Raises:
            Mismatch: when the arrays are not those the order speaks of.
        """
        super().__init__(order, sources)
        self._across = sources[0].band_tokens if sources else self.row_tokens
        self._caches = {id(rows.cache): rows.cache for rows in sources}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        return self._dtype

    @property
    def eot(self) -> int | None:
        """Id of end of text, where the arrays say it; all of one order are of one tokenizer."""
        return self.sources[0].eot if self.sources else None

    def read(self, rows: slice = ALL, tokens: slice = ALL) -> TokenArray:
        """Read a rectangle as a new (row, token) array.

        Raises:
            BadInput: when it reaches outside the order.
            CorruptFile: when the order names a row that its source does not have, or a chunk is
                missing or damaged.
        """
        positions, across = span(rows, self.n_rows, "rows"), span(tokens, self.row_tokens, "tokens")
        out = np.empty((len(positions), len(across)), self._dtype)
        if out.size:
            self.read_into(out, positions.start, across.start)
        return out

    def read_into(self, out: TokenArray, top: int, left: int) -> None:
        """Read the rectangle whose first row and token are ``top`` and ``left`` into a (row, token)
        array; see `ZarrRows.read_into`.

        Row by row, because each lies in another source, nearly always.
        """
        n_rows, n_tokens = out.shape
        source, row = self._looked_up(range(top, top + n_rows))
        sources, across = self.sources, self._across
        first, inside = divmod(left, across)
        stop = inside + n_tokens
        within_chunk = stop <= across
        for at, (number, below) in enumerate(zip(source.tolist(), row.tolist(), strict=True)):
            rows = sources[number]
            if within_chunk:
                band, begin = divmod(below, rows.band_rows)
                out[at] = rows.band(band, first, first + 1)[0, begin, inside:stop]
            else:
                rows.read_into(out[at : at + 1], below, left)

    def place(self, position: int) -> tuple[ZarrRows, int]:
        """Say which row of which array stands at a position.

        Raises:
            BadInput: when there is no such position.
            CorruptFile: when the order names a row that its source does not have.
        """
        origin = self.origin(position)
        return self.sources[int(self.order.source[position])], origin.row

    def make_room(
        self, batch_rows: int, context_tokens: int, *, n_ahead: int = 0, n_places: int = 1
    ) -> None:
        """Let the cache hold a band of every source, and a few that are being replaced; see
        `ZarrRows.make_room`.
        """
        bands = [rows.band_bytes(context_tokens) for rows in self.sources if rows.n_rows]
        spare = min(len(bands), -(-(n_ahead + 1) * n_places * batch_rows // 64) + 1) * max(
            bands, default=0
        )
        for cache in self._caches.values():
            cache.fit(n_places * sum(bands) + spare)
