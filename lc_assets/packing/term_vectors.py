"""Pages as TF-IDF vectors of hashed words, reduced to the heaviest terms, as integers.

A term that occurs ``c`` times in a page, and in ``d`` of ``n`` pages, weighs ``(1 + ln c) · ln(n /
d)``. Terms of only one page are ignored, since they compare it to no other. Of the rest, the
`MOST_TERMS` heaviest are kept, and their weights scaled to a vector of length `UNIT` and rounded. A
similarity is then a sum of products of integers: the same in any order of summation and on any
machine, and `UNIT` squared means the same page.

Words to terms: `lc_assets.text.duplicates.keys`.
Source: TF-IDF with logarithmic counts and cosine, Salton and Buckley 1988. Keeping only the
    heaviest terms is our addition: it bounds memory (6 bytes each, twice) and work.
"""

import math
from dataclasses import dataclass

import numpy as np

from lc_assets.arrays import Array, Int32s, Int64s

TERM_BITS = 20
"""Bits of a term's number: a million terms; words with the same number are one term."""
UNIT = 1 << 14
"""Length of every vector."""
MOST_TERMS = 64
AT_ONCE = 4096
"""Pages whose weights are computed at a time."""
_SCALE = 1 << 10
"""Logarithms are integers in this unit, so that results do not depend on a library's rounding."""
_MOST_COUNTED = 1 << 12
"""Further occurrences of a term in a page add no weight."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PageTerms:
    """The terms of pages.

    Attributes:
        begins: ``(pages + 1,)`` int64: where each page's terms begin.
        terms: int32 below ``2**TERM_BITS``, ascending within a page, unique.
        weights: how often each term occurs, int32; in vectors its weight, int16, 1 to `UNIT`.
    """

    begins: Int64s
    terms: Int32s
    weights: Array

    def __len__(self) -> int:
        return len(self.begins) - 1

    def pages(self, order: Int64s) -> "PageTerms":
        """The same pages in another order."""
        lengths = np.diff(self.begins)[order]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(begins[-1]) + np.repeat(self.begins[:-1][order] - begins[:-1], lengths)
        return PageTerms(begins=begins, terms=self.terms[entries], weights=self.weights[entries])


def term_vectors(counts: PageTerms, *, most_terms: int = MOST_TERMS) -> PageTerms:
    """The vectors of all pages of a corpus, with ``most_terms`` terms each at most.

    >>> terms, begins = np.array([1, 2, 1, 3, 4], np.int32), np.array([0, 2, 4, 5])
    >>> vectors = term_vectors(PageTerms(begins=begins, terms=terms, weights=np.ones_like(terms)))
    >>> vectors.begins.tolist(), vectors.terms.tolist(), vectors.weights.tolist()
    ([0, 1, 2, 2], [1, 1], [16384, 16384])
    """
    rarity = _rarity(np.bincount(counts.terms, minlength=1 << TERM_BITS), len(counts))
    sizes = [np.zeros(1, np.int64)]
    terms, weights = [np.empty(0, np.int32)], [np.empty(0, np.int16)]
    for start in range(0, len(counts), AT_ONCE):
        part = counts.pages(np.arange(start, min(start + AT_ONCE, len(counts))))
        values = _OFTEN[np.minimum(part.weights, _MOST_COUNTED)] * rarity[part.terms]
        page = np.repeat(np.arange(len(part)), np.diff(part.begins))
        order = np.lexsort((part.terms, -values, page))  # by value; the smaller number wins ties
        rank = np.empty(len(page), np.int64)
        rank[order] = np.arange(len(page)) - part.begins[page]
        values[rank >= most_terms] = 0
        squares = np.zeros(len(part), np.int64)
        np.add.at(squares, page, values * values)
        scale = UNIT / np.sqrt(np.maximum(squares, 1))
        scaled = np.rint(values * scale[page]).astype(np.int16)
        kept = scaled > 0
        sizes.append(np.bincount(page[kept], minlength=len(part)))
        terms.append(part.terms[kept])
        weights.append(scaled[kept])
    return PageTerms(
        begins=np.cumsum(np.concatenate(sizes)),
        terms=np.concatenate(terms),
        weights=np.concatenate(weights),
    )


def _rarity(sizes: Int64s, n_pages: int) -> Int64s:
    """Logarithm of the corpus over each term's pages, by `math.log`: NumPy's differs between
    processors in the last bit; 0 for terms of one page or none.
    """
    of_size = np.zeros(int(sizes.max(initial=0)) + 1, np.int64)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        of_size[size] = round(_SCALE * math.log(n_pages / size)) if size > 1 else 0
    return np.asarray(of_size[sizes])


_OFTEN = np.array(
    [0, *(round(_SCALE * (1 + math.log(count))) for count in range(1, _MOST_COUNTED + 1))], np.int64
)
