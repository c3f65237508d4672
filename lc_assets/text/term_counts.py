"""Which words a page holds, and how often, as numbers of 20 bits: what pages are compared by.

Here: words to numbers. Not here: what they weigh (`lc_assets.packing.term_vectors`).
"""

from typing import Final

import numpy as np
from jaxtyping import Int32

from lc_assets.text.shingles import grams_of

TERM_BITS: Final = 20


def term_counts(text: str) -> tuple[Int32[np.ndarray, " term"], Int32[np.ndarray, " term"]]:
    """The normalized words of a text as terms, and how often each occurs.

    Returns:
        Terms: int32 below ``2**TERM_BITS``, ascending, without repeats: the last bits of
            `lc_assets.text.shingles`' hash of one
        word, the same everywhere. Counts: int32, one per term.

    >>> terms, counts = term_counts("To be, or not to be")
    >>> len(terms), sorted(counts.tolist())
    (4, [1, 1, 2, 2])
    """
    hashes = np.sort((grams_of(text, 1)[0] & np.uint64((1 << TERM_BITS) - 1)).astype(np.int32))
    is_new = np.ones(len(hashes), np.bool_)
    is_new[1:] = hashes[1:] != hashes[:-1]
    begins = np.flatnonzero(is_new)
    return hashes[begins], np.diff(begins, append=len(hashes)).astype(np.int32)
