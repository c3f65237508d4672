"""Pages as TF-IDF vectors of hashed words, reduced to the heaviest terms, as integers.

A term that occurs ``c`` times in a page, and in ``d`` of ``n`` pages, weighs ``(1 + ln c) · ln(n /
d)``. Terms of only one page are ignored, since they compare it to no other. Of the rest, the
`MOST_TERMS` heaviest are kept, and their weights scaled to a vector of length `UNIT` and rounded. A
similarity is then a sum of products of integers: the same in any order of summation and on any
machine, and `UNIT` squared means the same page.

Words to terms: `lc_assets.text.duplicates.shingles`.
Source: TF-IDF with logarithmic counts and cosine, Salton and Buckley 1988. Keeping only the
    heaviest terms is ours: it bounds memory (6 bytes each, twice) and work.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Int16, Int32, Int64

from lc_assets.errors import BadInput

TERM_BITS: Final = 20
"""Bits of a term's number: a million terms; words with the same number are one term."""
UNIT: Final = 1 << 14
"""Length of every vector."""
MOST_TERMS: Final = 64
_SCALE: Final = 1 << 10
"""Logarithms are integers in this unit, so that no library's last bit matters."""
_MOST_COUNTED: Final = 1 << 12
"""Further occurrences of a term in a page add no weight."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TermCounts:
    """Counts of terms in pages.

    Attributes:
        begins: ``(pages + 1,)`` int64: where each page's terms begin.
        terms: int32 below ``2**TERM_BITS``, ascending within a page, unique.
        counts: int32, at least 1.
    """

    begins: Int64[np.ndarray, " boundary"]
    terms: Int32[np.ndarray, " entry"]
    counts: Int32[np.ndarray, " entry"]

    def __len__(self) -> int:
        return len(self.begins) - 1

    @classmethod
    def of(
        cls, pages: Iterable[tuple[Int32[np.ndarray, " term"], Int32[np.ndarray, " term"]]]
    ) -> Self:
        """Put the terms and counts of some pages together."""
        found = list(pages)
        return cls(
            begins=np.cumsum([0, *(len(terms) for terms, _ in found)], dtype=np.int64),
            terms=_joined((terms for terms, _ in found), np.int32),
            counts=_joined((counts for _, counts in found), np.int32),
        )

    def pages_with(self) -> Int64[np.ndarray, " term"]:
        """Number of pages with each term; add these up over parts of a corpus."""
        return np.bincount(self.terms, minlength=1 << TERM_BITS).astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TermVectors:
    """Pages as vectors.

    Attributes:
        begins: ``(pages + 1,)`` int64: where each page's terms begin.
        terms: int32, ascending within a page.
        weights: int16, 1 to `UNIT`.
    """

    begins: Int64[np.ndarray, " boundary"]
    terms: Int32[np.ndarray, " entry"]
    weights: Int16[np.ndarray, " entry"]

    def __len__(self) -> int:
        return len(self.begins) - 1

    @classmethod
    def joined(cls, parts: Iterable["TermVectors"]) -> Self:
        """The pages of all parts, one after the other."""
        found = list(parts)
        lengths = [np.diff(part.begins) for part in found]
        return cls(
            begins=np.cumsum(_joined(lengths, np.int64, 1), dtype=np.int64),
            terms=_joined((part.terms for part in found), np.int32),
            weights=_joined((part.weights for part in found), np.int16),
        )

    def pages(self, order: Int64[np.ndarray, " page"]) -> "TermVectors":
        """The same pages in another order."""
        lengths = np.diff(self.begins)[order]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(begins[-1]) + np.repeat(self.begins[:-1][order] - begins[:-1], lengths)
        return TermVectors(begins=begins, terms=self.terms[entries], weights=self.weights[entries])


def term_vectors(
    counts: TermCounts,
    pages_with: Int64[np.ndarray, " term"],
    n_pages: int,
    *,
    most_terms: int = MOST_TERMS,
) -> TermVectors:
    """Vectors of some pages of a corpus.

    Args:
        counts: terms of these pages.
        pages_with: number of pages of the whole corpus with each term.
        n_pages: pages of the whole corpus.
        most_terms: terms to keep per page.

    >>> pages = [np.array(terms, np.int32) for terms in ([1, 2], [1, 3], [4])]
    >>> counts = TermCounts.of((terms, np.ones_like(terms)) for terms in pages)
    >>> vectors = term_vectors(counts, counts.pages_with(), len(counts))
    >>> vectors.begins.tolist(), vectors.terms.tolist(), vectors.weights.tolist()
    ([0, 1, 2, 2], [1, 1], [16384, 16384])

    Raises:
        BadInput: if ``most_terms`` is below 1.
    """
    if most_terms < 1:
        raise BadInput(f"most_terms must be at least 1, got {most_terms}")
    sizes = pages_with[counts.terms]
    often = _OFTEN[np.minimum(counts.counts, _MOST_COUNTED)]
    values = np.where(sizes > 1, often * _logarithms(sizes, n_pages), 0)
    parts = [
        _vector(counts.terms[begin:end], values[begin:end], most_terms)
        for begin, end in zip(counts.begins[:-1].tolist(), counts.begins[1:].tolist(), strict=True)
    ]
    return TermVectors(
        begins=np.cumsum([0, *(len(terms) for terms, _ in parts)], dtype=np.int64),
        terms=_joined((terms for terms, _ in parts), np.int32),
        weights=_joined((weights for _, weights in parts), np.int16),
    )


def _joined(parts: Iterable[np.ndarray], dtype: type[np.integer[Any]], n_zeros: int = 0) -> Any:
    """Concatenate parts, of which there may be none, after some zeros."""
    return np.concatenate([np.zeros(n_zeros, dtype), *parts])


def _vector(
    terms: Int32[np.ndarray, " entry"], values: Int64[np.ndarray, " entry"], most_terms: int
) -> tuple[Int32[np.ndarray, " term"], Int16[np.ndarray, " term"]]:
    if len(terms) > most_terms:
        # Keys are unique, so the result does not depend on the sort: the smaller number wins ties.
        keys = (values << TERM_BITS) - terms
        chosen = np.sort(np.argpartition(keys, len(keys) - most_terms)[len(keys) - most_terms :])
        terms, values = terms[chosen], values[chosen]
    length = math.sqrt(int((values * values).sum()))
    weights = (
        np.rint(values * (UNIT / length)).astype(np.int16)
        if length
        else np.zeros(len(values), np.int16)
    )
    return terms[weights > 0], weights[weights > 0]


def _logarithms(sizes: Int64[np.ndarray, " entry"], n_pages: int) -> Int64[np.ndarray, " entry"]:
    """Logarithm of the corpus over each size, by `math.log`: NumPy's differs between processors in
    the last bit.
    """
    of_size = np.zeros(int(sizes.max(initial=0)) + 1, np.int64)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        of_size[size] = round(_SCALE * math.log(n_pages / size))
    found: Int64[np.ndarray, " entry"] = of_size[sizes]
    return found


_OFTEN: Final = np.array(
    [0, *(round(_SCALE * (1 + math.log(count))) for count in range(1, _MOST_COUNTED + 1))], np.int64
)
