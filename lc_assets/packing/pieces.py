"""Pieces of documents in rows: the result of every packing method, and what it is measured by.

A *piece* is tokens ``start`` to ``stop`` (exclusive) of one document. A row holds pieces one after
the other from its first token on; what they leave free at its end is padding. Pieces may be aligned
to multiples of some tokens, with padding between them. Everything is stored as columns: 32 bytes
per piece, for any number of documents.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from lc_assets.arrays import Booleans, Int64s, Integers
from lc_assets.errors import BadInput
from lc_assets.records import distinct, record

MOST_ROW_TOKENS = 2**24
"""Longest row: best fit keeps 18 bytes for every length up to this."""


@distinct
class Pieces:
    """Pieces of documents, as columns of one length.

    Attributes:
        document: number of the document, from 0.
        start: its first token.
        stop: the token after its last.
    """

    document: Int64s
    start: Int64s
    stop: Int64s

    def __len__(self) -> int:
        return len(self.document)

    @property
    def lengths(self) -> Int64s:
        """Tokens of each piece."""
        return np.asarray(self.stop - self.start)

    @property
    def n_tokens(self) -> int:
        """Tokens of all pieces together."""
        return int(self.lengths.sum())

    def take(self, order: Integers) -> "Pieces":
        """The pieces at some indices."""
        return Pieces(self.document[order], self.start[order], self.stop[order])


@dataclass(frozen=True, eq=False, kw_only=True)
class Packing:
    """Pieces in rows, ordered by row and by their position in it.

    Attributes:
        row_tokens: length of a row.
        n_rows: number of rows; none is empty.
        row: number of each piece's row, ascending.
        pieces: the pieces.
        align_tokens: every piece begins at a multiple of it, and so it divides a row.
    """

    row_tokens: int
    n_rows: int
    row: Int64s
    pieces: Pieces
    align_tokens: int = 1

    @classmethod
    def of(cls, pieces: Pieces, row: Int64s, *, row_tokens: int, n_rows: int) -> Self:
        """Put pieces into the given rows; within a row they keep their order."""
        order = np.argsort(row, kind="stable")
        return cls(row_tokens=row_tokens, n_rows=n_rows, row=row[order], pieces=pieces.take(order))

    @cached_property
    def first(self) -> Int64s:
        """First piece of each row, then the number of pieces."""
        return np.searchsorted(self.row, np.arange(self.n_rows + 1)).astype(np.int64)

    @property
    def room(self) -> Int64s:
        """Tokens of each piece and of the padding behind it, before the next."""
        return aligned(self.pieces.lengths, self.align_tokens)

    @cached_property
    def places(self) -> Int64s:
        """First token of each piece in its row."""
        begins = np.cumsum(self.room) - self.room
        return np.asarray(begins - np.repeat(begins[self.first[:-1]], np.diff(self.first)))

    @property
    def padding(self) -> int:
        """Tokens of padding in all rows together."""
        return self.n_rows * self.row_tokens - self.pieces.n_tokens

    def of_documents(self, order: Integers) -> "Packing":
        """The same packing with other document numbers: document ``n`` becomes ``order[n]``."""
        pieces = Pieces(
            order[self.pieces.document].astype(np.int64), self.pieces.start, self.pieces.stop
        )
        return replace(self, pieces=pieces)

    def padded(self, lengths: Integers, align_tokens: int) -> "Packing":
        """From a packing of documents whose lengths were `aligned`: what is not theirs is padding.

        >>> even = Packing.of(whole(np.array([4, 8])), np.array([0, 0]), row_tokens=16, n_rows=1)
        >>> packed = even.padded(np.array([3, 6]), 4)
        >>> packed.places.tolist(), packed.pieces.stop.tolist(), packed.padding
        ([0, 4], [3, 6], 7)

        Args:
            lengths: tokens of each document.
            align_tokens: they were rounded up to a multiple of it, and cut at multiples.
        """
        pieces = self.pieces
        stop = np.minimum(pieces.stop, lengths[pieces.document])
        cut = Pieces(pieces.document, pieces.start, stop)
        return replace(self, pieces=cut, align_tokens=align_tokens)

    def in_row_order(self, order: Integers) -> "Packing":
        """The same rows in another order; ``order`` contains every row once."""
        place = np.empty(self.n_rows, np.int64)
        place[order] = np.arange(self.n_rows)
        pieces = np.argsort(place[self.row], kind="stable")
        return replace(self, row=place[self.row][pieces], pieces=self.pieces.take(pieces))


@record
class Balance:
    """Token counts: ``tokens`` + ``repeated`` = ``in_rows`` + ``left_over``, and ``in_rows`` +
    ``padding`` = ``rows`` × ``row_tokens``.

    Attributes:
        documents: number of documents.
        taken: documents that are in a row.
        tokens: tokens of all documents.
        repeated: tokens in rows beyond the first copy of each.
        left_over: tokens in no row.
        in_rows: tokens in rows.
        padding: tokens of padding.
        rows: number of rows.
        row_tokens: length of a row.
        pieces: number of pieces.
        cut: documents that are not whole in one row.
        cut_needlessly: cut documents that are no longer than a row.
        attention: sum of the squares of the pieces' lengths: the cost of attention within pieces.
    """

    documents: int
    taken: int
    tokens: int
    repeated: int
    left_over: int
    in_rows: int
    padding: int
    rows: int
    row_tokens: int
    pieces: int
    cut: int
    cut_needlessly: int
    attention: int

    @property
    def padding_share(self) -> float:
        """Padding as a share of all tokens of rows; 0 without rows."""
        return self.padding / max(self.rows * self.row_tokens, 1)

    @property
    def cut_share(self) -> float:
        """Share of the documents that are cut although a row could hold them."""
        return self.cut_needlessly / max(self.documents, 1)

    @property
    def attention_share(self) -> float:
        """Cost of attention within pieces, as a share of its cost over whole rows."""
        return self.attention / max(self.rows * self.row_tokens**2, 1)


def aligned(tokens: Integers, to: int) -> Int64s:
    """Numbers of tokens, rounded up to multiples of ``to``."""
    return np.asarray(-(-tokens // to) * to)


def whole(lengths: Integers) -> Pieces:
    """One piece per document that is not empty."""
    document = np.flatnonzero(lengths)
    return Pieces(document, np.zeros(len(document), np.int64), lengths[document].astype(np.int64))


def cut_evenly(pieces: Pieces, most: int) -> Pieces:
    """Cut pieces every ``most`` tokens; the last piece of each may be shorter.

    >>> cut = cut_evenly(whole(np.array([3, 8])), 3)
    >>> cut.document.tolist(), cut.start.tolist(), cut.stop.tolist()
    ([0, 1, 1, 1], [0, 0, 3, 6], [3, 3, 6, 8])

    Raises:
        BadInput: if ``most`` is below 1.
    """
    require_tokens(most, "a piece")
    counts = -(-pieces.lengths // most)
    whose, nth = numbered(counts)
    start = pieces.start[whose] + nth * most
    return Pieces(pieces.document[whose], start, np.minimum(start + most, pieces.stop[whose]))


def numbered(
    counts: Int64s,
) -> tuple[Int64s, Int64s]:
    """For ``counts`` parts of each item: the item of each part, and the part's number within it.

    >>> [part.tolist() for part in numbered(np.array([1, 0, 2]))]
    [[0, 2, 2], [0, 0, 1]]
    """
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)


def balance(packing: Packing, lengths: Integers) -> Balance:
    """Count tokens; every document is packed completely, once or several times, or not at all."""
    pieces = packing.pieces
    n_documents = len(lengths)
    # bincount sums in float64: exact up to 2⁵³ tokens of a document.
    in_rows = np.bincount(pieces.document, pieces.lengths, n_documents).astype(np.int64)
    cut = cut_documents(pieces, lengths)
    return Balance(
        documents=n_documents,
        taken=int((in_rows > 0).sum()),
        tokens=int(lengths.sum(dtype=np.int64)),
        repeated=int(np.maximum(in_rows - lengths, 0).sum()),
        left_over=int(np.maximum(lengths - in_rows, 0).sum()),
        in_rows=pieces.n_tokens,
        padding=packing.padding,
        rows=packing.n_rows,
        row_tokens=packing.row_tokens,
        pieces=len(pieces),
        cut=int(cut.sum()),
        cut_needlessly=int((cut & (lengths <= packing.row_tokens)).sum()),
        attention=_sum_of_squares(pieces.lengths),
    )


def cut_documents(pieces: Pieces, lengths: Integers) -> Booleans:
    """Which documents have a piece that is only a part of them."""
    cut = np.zeros(len(lengths), np.bool_)
    cut[pieces.document[pieces.lengths < lengths[pieces.document]]] = True
    return cut


def covered_as_often(
    pieces: Pieces,
    lengths: Integers,
    times: Integers,
) -> bool:
    """Whether every token of every document is in exactly ``times`` pieces, however it is cut.

    The number of pieces that hold a token is the number of starts up to it, minus that of stops. It
    is ``times`` everywhere exactly if the starts, without ``times`` at the document's beginning,
    equal the stops, without ``times`` at its end.

    >>> covered_as_often(cut_evenly(whole(np.array([3, 8])), 3), np.array([3, 8]), np.array([1, 1]))
    True

    Returns:
        False also if a piece is empty or reaches outside its document.
    """
    if not len(pieces):
        return not (lengths * times).any()
    known = (pieces.document >= 0) & (pieces.document < len(lengths))
    if (
        not known.all()
        or (pieces.start < 0).any()
        or (pieces.lengths < 1).any()
        or (pieces.stop > lengths[pieces.document]).any()
    ):
        return False
    base = np.cumsum(lengths, dtype=np.int64) - lengths
    expected = np.repeat(np.arange(len(lengths)), np.where(lengths > 0, times, 0))
    begins = np.sort(
        np.concatenate([base[pieces.document] + pieces.start, base[expected] + lengths[expected]])
    )
    ends = np.sort(np.concatenate([base[pieces.document] + pieces.stop, base[expected]]))
    return np.array_equal(begins, ends)


def require_tokens(n_tokens: int, whose: str, most: int | None = None) -> None:
    """Check a length in tokens.

    Raises:
        BadInput: if it is below 1, or above ``most``.
    """
    if n_tokens < 1 or (most is not None and n_tokens > most):
        bound = "at least 1 token" if most is None else f"1 to {most:,} tokens"
        raise BadInput(f"{whose} must have {bound}, got {n_tokens:,}")


def require_lengths(lengths: Any) -> Int64s:
    """Lengths of documents as int64.

    Raises:
        BadInput: if they are not one-dimensional integers, or one is negative.
    """
    found = np.asarray(lengths)
    if (
        found.ndim != 1
        or (len(found) and found.dtype.kind not in "ui")
        or (len(found) and int(found.min()) < 0)
    ):
        raise BadInput(
            "lengths of documents must be a one-dimensional array of integers, none negative; got "
            f"{found.dtype} of shape {found.shape}"
        )
    return found.astype(np.int64)


def _sum_of_squares(lengths: Int64s) -> int:
    """Exact, also beyond 2⁶³."""
    top = int(lengths.max(initial=0))
    if top**2 * len(lengths) < 2**63:
        return int((lengths**2).sum())
    return sum(length**2 for length in lengths.tolist())
