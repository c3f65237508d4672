"""Several grids read in the global order, as if they were one array. Here: which row is at which
position, and reading rectangles. Not here: the order's files (`formats.order`), caches
(`lc_assets.loaders`).
"""

import hashlib
import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.formats.arrays.chunks import ALL, TokenArray, span
from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.arrays.order import GlobalOrder, OrderSource


class Rows(Protocol):
    """Rows of tokens, all of one length, numbered from 0."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        ...

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        ...

    def read(self, rows: slice, tokens: slice) -> TokenArray:
        """Read a rectangle as a new (row, token) array."""
        ...


class RowOrigin(NamedTuple):
    """Where a row came from: a row of one version of one snapshot's grid."""

    snapshot: str
    version: str
    row: int


class RiffledReader:
    """Rows of several arrays in the global order: row ``p`` is the one at position ``p`` of the
    order.

    Attributes:
        order: the order.
        sources: the arrays it is over.
    """

    def __init__(self, order: GlobalOrder, sources: Sequence[Rows]) -> None:
        """Join an order and the arrays it is over.

        Args:
            order: one split's.
            sources: one per entry of ``order.sources``, opened at that split.

        Raises:
            Mismatch: when the arrays are not those of the order: another number, width, vocabulary
                or row count.
        """
        if len(sources) != len(order.sources):
            raise Mismatch(
                f"the order is over {len(order.sources):,} sources, got {len(sources):,}"
            )
        for named, rows in zip(order.sources, sources, strict=True):
            _require_same(named, rows, order)
        self.order = order
        self.sources = tuple(sources)
        self._source_rows = np.array([rows.n_rows for rows in sources], np.int64)
        # Plain views: slicing a memmap object itself costs several times as much.
        self._source, self._row = np.asarray(order.source), np.asarray(order.row)
        self._dtype = grid_dtype(order.vocab_size)

    @property
    def n_rows(self) -> int:
        """Positions of the order."""
        return len(self.order)

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        return self.order.row_tokens

    @property
    def vocab_size(self) -> int:
        """Ids are below it."""
        return self.order.vocab_size

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
        """Read a rectangle as a new (row, token) array: one read per run of consecutive rows of one
        source.

        In a riffle the rows of one source are consecutive, so that is one read per source.

        Raises:
            BadInput: when it reaches outside the order.
            CorruptFile: when the order names a row that its source does not have, or a chunk is
                missing or damaged.
        """
        positions, token_span = (
            span(rows, self.n_rows, "rows"),
            span(tokens, self.row_tokens, "tokens"),
        )
        source, row = self._looked_up(positions)
        rectangle = np.empty((len(positions), len(token_span)), self._dtype)
        columns = slice(token_span.start, token_span.stop)
        by_source = np.argsort(source, kind="stable")
        for begin, end in _runs(source[by_source], row[by_source]):
            run = by_source[begin:end]
            first = int(row[run[0]])
            rectangle[run] = self.sources[source[run[0]]].read(
                slice(first, first + end - begin), columns
            )
        return rectangle

    def origin(self, position: int) -> RowOrigin:
        """Return the row, and its grid, at a position.

        Raises:
            BadInput: when there is no such position.
            CorruptFile: when the order names a row that its source does not have.
        """
        if not 0 <= position < self.n_rows:
            raise BadInput(
                f"no position {position:,}: the {self.order.split} order has {self.n_rows:,}"
            )
        source, row = self._looked_up(range(position, position + 1))
        named = self.order.sources[source[0]]
        return RowOrigin(named.snapshot, named.version, int(row[0]))

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


def _runs(source: NDArray[np.uint16], row: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Begin and end of each run of one source whose rows follow each other; both arrays are sorted
    by source.

    >>> _runs(np.array([0, 0, 2, 2, 2], np.uint16), np.array([5, 6, 1, 2, 4]))
    [(0, 2), (2, 4), (4, 5)]
    """
    follows = (source[1:] == source[:-1]) & (row[1:] == row[:-1] + 1)
    edges = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(source)]
    return list(itertools.pairwise(edges)) if len(source) else []


def _require_same(named: OrderSource, rows: Rows, order: GlobalOrder) -> None:
    wanted = (named.rows(order.split), order.row_tokens, order.vocab_size)
    found = (rows.n_rows, rows.row_tokens, rows.vocab_size)
    if found != wanted:
        raise Mismatch(
            f"{named.snapshot}: {order.split} rows, row_tokens and vocab_size are {found}, the "
            f"order was made for {wanted}"
        )
