"""Pieces of documents in rows: what every way of packing gives, and what it is measured by.

A *piece* is tokens ``start`` to ``stop`` (exclusive) of one document. A row holds pieces one behind
the other from its first token on; what they leave free at its end is padding. All of it is columns:
32 bytes a piece, however many documents there are.

Here: the values, cutting documents evenly, counting. Not here: which piece goes into which row
    (`lc_assets.packing.bestfit`,
`lc_assets.packing.concat`, `lc_assets.packing.segments`), what a model is told of a row
(`lc_assets.packing.spans`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Bool, Int64, Integer

from lc_assets.errors import BadInput
from lc_assets.packing.spans import attention_cost

MOST_ROW_TOKENS: Final = 2**24
"""Longest row: best fit keeps 18 bytes for every length up to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of documents, as columns of one length.

    Attributes:
        document: number of the document, from 0.
        start: its first token.
        stop: the token behind its last.
    """

    document: Int64[np.ndarray, " piece"]
    start: Int64[np.ndarray, " piece"]
    stop: Int64[np.ndarray, " piece"]

    def __len__(self) -> int:
        return len(self.document)

    @property
    def lengths(self) -> Int64[np.ndarray, " piece"]:
        """Tokens of each piece."""
        return np.asarray(self.stop - self.start)

    @property
    def n_tokens(self) -> int:
        """Tokens of all pieces together."""
        return int(self.lengths.sum())

    def take(self, order: Integer[np.ndarray, " piece"]) -> "Pieces":
        """The pieces at some places."""
        return Pieces(self.document[order], self.start[order], self.stop[order])


@dataclass(frozen=True, eq=False, kw_only=True)
class Packing:
    """Pieces in rows: the rows in order, the pieces of a row in the order that they stand in it.

    Attributes:
        row_tokens: length of a row.
        n_rows: how many rows there are; none is empty.
        row: number of each piece's row, never falling.
        pieces: the pieces.
    """

    row_tokens: int
    n_rows: int
    row: Int64[np.ndarray, " piece"]
    pieces: Pieces

    @classmethod
    def of(
        cls, pieces: Pieces, row: Int64[np.ndarray, " piece"], *, row_tokens: int, n_rows: int
    ) -> Self:
        """Put pieces into the rows that were chosen for them; within a row they keep their
        order.
        """
        order = np.argsort(row, kind="stable")
        return cls(row_tokens=row_tokens, n_rows=n_rows, row=row[order], pieces=pieces.take(order))

    @cached_property
    def first(self) -> Int64[np.ndarray, " boundary"]:
        """First piece of each row, then the number of pieces."""
        return np.searchsorted(self.row, np.arange(self.n_rows + 1)).astype(np.int64)

    @cached_property
    def places(self) -> Int64[np.ndarray, " piece"]:
        """Where in its row each piece begins, in tokens."""
        begins = np.cumsum(self.pieces.lengths) - self.pieces.lengths
        return np.asarray(begins - np.repeat(begins[self.first[:-1]], np.diff(self.first)))

    @cached_property
    def used(self) -> Int64[np.ndarray, " row"]:
        """Tokens of each row that are no padding."""
        ends = np.concatenate([[0], np.cumsum(self.pieces.lengths)])
        return np.diff(ends[self.first])

    @property
    def padding(self) -> int:
        """Tokens of padding in all rows together."""
        return self.n_rows * self.row_tokens - self.pieces.n_tokens

    def of_documents(self, order: Integer[np.ndarray, " place"]) -> "Packing":
        """The same packing, of documents that were packed in an order: ``order`` says which
        document stood at a place.
        """
        pieces = Pieces(
            order[self.pieces.document].astype(np.int64), self.pieces.start, self.pieces.stop
        )
        return Packing(row_tokens=self.row_tokens, n_rows=self.n_rows, row=self.row, pieces=pieces)

    def in_row_order(self, order: Integer[np.ndarray, " row"]) -> "Packing":
        """The same rows in another order: ``order`` names every row once."""
        place = np.empty(self.n_rows, np.int64)
        place[order] = np.arange(self.n_rows)
        return Packing.of(
            self.pieces, place[self.row], row_tokens=self.row_tokens, n_rows=self.n_rows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Where all tokens are. ``tokens`` + ``repeated`` = ``in_rows`` + ``left_over``; ``in_rows`` +
    ``padding`` fill the rows.

    Attributes:
        documents: that came in.
        taken: those of them that are in a row.
        tokens: of them.
        repeated: tokens that are in rows once more than once, each time counted.
        left_over: tokens of documents that are in no row.
        in_rows: tokens in rows.
        padding: what rows are filled up with.
        rows: how many.
        row_tokens: length of each.
        pieces: in them.
        cut: documents that are not whole in one row.
        cut_needlessly: those of them that are no longer than a row.
        attention: sum of the squares of the pieces' lengths: what attention costs that stays within
            a piece.
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
        """Share of the rows' tokens that is padding; 0 without rows."""
        return self.padding / max(self.rows * self.row_tokens, 1)

    @property
    def cut_share(self) -> float:
        """Share of the documents that are cut though a row would hold them."""
        return self.cut_needlessly / max(self.documents, 1)

    @property
    def attention_share(self) -> float:
        """What attention within pieces costs, of what it costs over whole rows."""
        return self.attention / max(self.rows * self.row_tokens**2, 1)


def whole(lengths: Integer[np.ndarray, " document"]) -> Pieces:
    """Every document that has a token, as one piece."""
    document = np.flatnonzero(lengths)
    return Pieces(document, np.zeros(len(document), np.int64), lengths[document].astype(np.int64))


def cut_evenly(pieces: Pieces, most: int) -> Pieces:
    """Cut pieces every ``most`` tokens; what is left makes a shorter piece, the last of its own.

    >>> cut = cut_evenly(whole(np.array([3, 8])), 3)
    >>> cut.document.tolist(), cut.start.tolist(), cut.stop.tolist()
    ([0, 1, 1, 1], [0, 0, 3, 6], [3, 3, 6, 8])

    Raises:
        BadInput: when a piece could not hold a token.
    """
    require_tokens(most, "a piece")
    counts = -(-pieces.lengths // most)
    whose, nth = numbered(counts)
    start = pieces.start[whose] + nth * most
    return Pieces(pieces.document[whose], start, np.minimum(start + most, pieces.stop[whose]))


def numbered(
    counts: Int64[np.ndarray, " item"],
) -> tuple[Int64[np.ndarray, " part"], Int64[np.ndarray, " part"]]:
    """For so many parts of each item: whose part each is, and its number among them.

    >>> [part.tolist() for part in numbered(np.array([1, 0, 2]))]
    [[0, 2, 2], [0, 0, 1]]
    """
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)


def balance(packing: Packing, lengths: Integer[np.ndarray, " document"]) -> Balance:
    """Count where the tokens of documents of these lengths are; documents are in rows whole, once
    or several times, or not at all.
    """
    pieces = packing.pieces
    n_documents = len(lengths)
    # Sums of weights are float64, exact up to 2⁵³ tokens of a document.
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
        attention=attention_cost(pieces.lengths),
    )


def cut_documents(
    pieces: Pieces, lengths: Integer[np.ndarray, " document"]
) -> Bool[np.ndarray, " document"]:
    """Which documents have a piece that does not hold all of them."""
    cut = np.zeros(len(lengths), np.bool_)
    cut[pieces.document[pieces.lengths < lengths[pieces.document]]] = True
    return cut


def covered_as_often(
    pieces: Pieces,
    lengths: Integer[np.ndarray, " document"],
    times: Integer[np.ndarray, " document"],
) -> bool:
    """Whether every token of every document is in exactly as many pieces as asked, whatever the
    cuts are.

    How many pieces hold a token is how many begin at it or before, less how many end so. That is
    ``times`` everywhere just when the starts, but ``times`` at the document's beginning, are the
    stops, but ``times`` at its end.

    >>> covered_as_often(cut_evenly(whole(np.array([3, 8])), 3), np.array([3, 8]), np.array([1, 1]))
    True

    Returns:
        False also when a piece is empty or reaches outside its document.
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
    asked = np.repeat(np.arange(len(lengths)), np.where(lengths > 0, times, 0))
    begins = np.sort(
        np.concatenate([base[pieces.document] + pieces.start, base[asked] + lengths[asked]])
    )
    ends = np.sort(np.concatenate([base[pieces.document] + pieces.stop, base[asked]]))
    return np.array_equal(begins, ends)


def require_tokens(n_tokens: int, whose: str, most: int | None = None) -> None:
    """Refuse a length that cannot be meant.

    Raises:
        BadInput: when it is below 1, or above ``most``.
    """
    if n_tokens < 1 or (most is not None and n_tokens > most):
        bound = "at least 1 token" if most is None else f"1 to {most:,} tokens"
        raise BadInput(f"{whose} has {bound}, got {n_tokens:,}")


def require_lengths(lengths: Any) -> Int64[np.ndarray, " document"]:
    """Lengths of documents as int64.

    Raises:
        BadInput: when they are not a row of integers, or one is negative.
    """
    found = np.asarray(lengths)
    if (
        found.ndim != 1
        or (len(found) and found.dtype.kind not in "ui")
        or (len(found) and int(found.min()) < 0)
    ):
        raise BadInput(
            f"lengths of documents are a row of integers, none negative; got {found.dtype} of "
            f"shape {found.shape}"
        )
    return found.astype(np.int64)
