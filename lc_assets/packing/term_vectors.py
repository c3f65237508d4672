"""Pages as vectors of their telling terms: TF-IDF of hashed words, cut to the heaviest, as whole
numbers.

A term that stands ``c`` times in a page, and in ``d`` of ``n`` pages, weighs ``(1 + ln c) · ln(n /
d)``. Terms of one page alone say nothing of another, and are left out. Of the rest the heaviest
count, `MOST_TERMS` of them, and their weights are brought to length `UNIT` and rounded. So a
similarity is a sum of products of whole numbers: the same in every order of adding and on every
machine, and `UNIT` squared is the same page.

Here: counts to vectors. Not here: words to terms (`lc_assets.text.term_counts`), neighbours
    (`lc_assets.packing.similarity`).
Source: TF-IDF with logarithmic counts and cosine, Salton and Buckley 1988; the heaviest terms alone
    are ours: they bound memory
(6 bytes each, twice) and work.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Int16, Int32, Int64

from lc_assets.errors import BadInput

TERM_BITS: Final = 20
"""Bits of a term's number: a million terms; two words that share one are one word."""
UNIT: Final = 1 << 14
"""Length of every vector."""
MOST_TERMS: Final = 64
_SCALE: Final = 1 << 10
"""Logarithms are whole numbers of so many parts, so that no library's last bit decides."""
_MOST_COUNTED: Final = 1 << 12
"""A term that occurs more often in a page weighs no more."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TermCounts:
    """How often which terms occur in which pages.

    Attributes:
        begins: ``(pages + 1,)`` int64: where a page's terms begin.
        terms: int32 below ``2**TERM_BITS``, ascending within a page, without repeats.
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
            terms=np.concatenate([np.zeros(0, np.int32), *(terms for terms, _ in found)]),
            counts=np.concatenate([np.zeros(0, np.int32), *(counts for _, counts in found)]),
        )

    def pages_with(self) -> Int64[np.ndarray, " term"]:
        """In how many pages each term occurs, by the term's number; these add up over parts of a
        corpus.
        """
        return np.bincount(self.terms, minlength=1 << TERM_BITS).astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TermVectors:
    """Pages as vectors.

    Attributes:
        begins: ``(pages + 1,)`` int64: where a page's terms begin.
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
            begins=np.concatenate(
                [
                    np.zeros(1, np.int64),
                    np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]), dtype=np.int64),
                ]
            ),
            terms=np.concatenate([np.zeros(0, np.int32), *(part.terms for part in found)]),
            weights=np.concatenate([np.zeros(0, np.int16), *(part.weights for part in found)]),
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
        counts: of these pages.
        pages_with: in how many pages of the whole corpus each term occurs.
        n_pages: of the whole corpus.
        most_terms: terms that count, of a page.

    >>> pages = [np.array(terms, np.int32) for terms in ([1, 2], [1, 3], [4])]
    >>> counts = TermCounts.of((terms, np.ones_like(terms)) for terms in pages)
    >>> vectors = term_vectors(counts, counts.pages_with(), len(counts))
    >>> vectors.begins.tolist(), vectors.terms.tolist(), vectors.weights.tolist()
    ([0, 1, 2, 2], [1, 1], [16384, 16384])

    Raises:
        BadInput: when no term is to count.
    """
    if most_terms < 1:
        raise BadInput(f"at least 1 term of a page must count, got {most_terms}")
    sizes = pages_with[counts.terms]
    often = _OFTEN[np.minimum(counts.counts, _MOST_COUNTED)]
    values = np.where(sizes > 1, often * _logarithms(sizes, n_pages), 0)
    parts = [
        _vector(counts.terms[begin:end], values[begin:end], most_terms)
        for begin, end in zip(counts.begins[:-1].tolist(), counts.begins[1:].tolist(), strict=True)
    ]
    return TermVectors(
        begins=np.cumsum([0, *(len(terms) for terms, _ in parts)], dtype=np.int64),
        terms=np.concatenate([np.zeros(0, np.int32), *(terms for terms, _ in parts)]),
        weights=np.concatenate([np.zeros(0, np.int16), *(weights for _, weights in parts)]),
    )


def _vector(
    terms: Int32[np.ndarray, " entry"], values: Int64[np.ndarray, " entry"], most_terms: int
) -> tuple[Int32[np.ndarray, " term"], Int16[np.ndarray, " term"]]:
    if len(terms) > most_terms:
        # No two keys are equal, so which terms are the heaviest is no sorting's choice: of equal
        # ones the smaller number.
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
    """Of the corpus over each size, by `math.log`: NumPy's own differs between processors in the
    last bit.
    """
    of_size = np.zeros(int(sizes.max(initial=0)) + 1, np.int64)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        of_size[size] = round(_SCALE * math.log(n_pages / size))
    found: Int64[np.ndarray, " entry"] = of_size[sizes]
    return found


_OFTEN: Final = np.array(
    [0, *(round(_SCALE * (1 + math.log(count))) for count in range(1, _MOST_COUNTED + 1))], np.int64
)
