"""Rows of several arrays in the global order, as if they were one array.

The order's files: `lc_assets.formats.arrays.order`.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.formats.arrays.chunks import ALL, TokenArray
from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.loaders.arrays import ZarrRows, rectangle_of


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

    def _looked_up(self, positions: range) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
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
