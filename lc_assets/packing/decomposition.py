"""Dataset decomposition: cut every document into pieces of 2^k tokens, as its length is in binary.

A piece lies within one document, so there is no padding and no piece crosses a boundary. A document
of 11 tokens gives pieces of 8, 2 and 1; with 4 as the longest, 4, 4, 2 and 1; what is shorter than
the shortest piece is left over. Training then takes batches of one length at a time.

By default the pieces of a document are ordered longest first, so short pieces are always ends of
documents. With keys, a hash draws their order; what is left over is still at the end.

Source: Pouransari et al. 2024, "Dataset decomposition: faster LLM training with variable sequence
    length curriculum". Their pieces have one token more, for the last target; one of 2^k tokens has
    2^k - 1 targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Int8, Int64

from lc_assets.errors import BadInput
from lc_assets.randomness import keyed_u64

PieceColumn: TypeAlias = Int64[np.ndarray, " piece"]

MOST: Final = 30
"""Largest exponent: Megatron stores lengths as int32."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decomposition:
    """Pieces of documents, in the order of the documents, and of the tokens in them.

    Attributes:
        document: int64, shape ``(piece,)``: number of the document.
        start: int64: its first token; it has ``2**exponent`` tokens.
        exponent: int8.
    """

    document: PieceColumn
    start: PieceColumn
    exponent: Int8[np.ndarray, " piece"]

    def of(self, exponent: int) -> tuple[PieceColumn, PieceColumn]:
        """Documents and starts of the pieces of one length."""
        chosen = self.exponent == exponent
        return self.document[chosen], self.start[chosen]

    def n_tokens(self, exponent: int) -> int:
        """Tokens in all pieces of one length."""
        return int((self.exponent == exponent).sum()) << exponent


def decomposed(
    lengths: Int64[np.ndarray, " doc"],
    *,
    shortest: int,
    longest: int,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Decomposition:
    """Cut documents into pieces of 2^k tokens.

    Args:
        lengths: tokens of each document.
        shortest: exponent of the shortest pieces; a shorter rest is left over.
        longest: exponent of the longest pieces; a longer document has several.
        keys: a name of each document, to draw the order of its pieces; None: longest first.
        seed: seed of that draw.

    >>> pieces = decomposed(np.array([11, 3]), shortest=1, longest=2)
    >>> [(int(d), int(s), 2 ** int(k)) for d, s, k in zip(pieces.document, pieces.start, pieces.exponent)]
    [(0, 0, 4), (0, 4, 4), (0, 8, 2), (1, 0, 2)]

    Raises:
        BadInput: if the exponents are out of range, a length is negative or there is not one key
            per document.
    """
    if not 0 <= shortest <= longest <= MOST:
        raise BadInput(
            f"expected exponents with 0 <= shortest <= longest <= {MOST}, got {shortest} and "
            f"{longest}"
        )
    if (lengths < 0).any():
        raise BadInput(
            f"document {int((lengths < 0).argmax()):,} has {int(lengths.min()):,} tokens; "
            "expected at least 0"
        )
    counts = np.stack(
        [
            lengths >> k if k == longest else lengths >> k & 1
            for k in range(longest, shortest - 1, -1)
        ],
        axis=1,
    )
    document = np.repeat(np.arange(len(lengths)), counts.sum(axis=1))
    exponent = np.repeat(
        np.tile(np.arange(longest, shortest - 1, -1, dtype=np.int8), len(lengths)),
        counts.reshape(-1),
    )
    if keys is not None:
        exponent = exponent[_drawn(document, keys, len(lengths), seed)]
    return Decomposition(document=document, start=_starts(document, exponent), exponent=exponent)


def _drawn(document: PieceColumn, keys: Sequence[str], n_docs: int, seed: int) -> PieceColumn:
    """Order the pieces within each document by a hash of its key and their number."""
    if len(keys) != n_docs:
        raise BadInput(f"expected a key for each of {n_docs:,} documents, got {len(keys):,}")
    number = np.arange(len(document)) - np.searchsorted(document, document)
    names = (f"{n}/{keys[doc]}" for doc, n in zip(document.tolist(), number.tolist(), strict=True))
    order: PieceColumn = np.lexsort((keyed_u64("pieces", seed=seed, keys=names), document))
    return order


def _starts(document: PieceColumn, exponent: Int8[np.ndarray, " piece"]) -> PieceColumn:
    before = np.concatenate(
        [[0], np.cumsum(np.left_shift(np.int64(1), exponent.astype(np.int64)))]
    )[:-1]
    starts: PieceColumn = (
        before - before[np.searchsorted(document, document)] if len(document) else before
    )
    return starts
