"""Roots: which pages other pages are packed before, and who comes first when several want the same
page.

A page's *rank* is the keyed hash of its page key: it depends on the page and the seed alone, so
roots are the same in any order, on any number of machines, and a page more or less changes nobody
else's rank. Not here: what roots take (`lc_assets.packing.turns`), page keys
(`lc_assets.text.page_keys`).
Source: LongPack (ICLR 2025), section 4, samples roots without saying how, and keeps a page in the
    "first" of several.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Bool, UInt64

from lc_assets.errors import BadInput
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64

_PURPOSE: Final = "longpack root"


def roots_drawn_by(seed: int) -> dict[str, str]:
    """What `root_ranks` draws, for receipts."""
    return {"roots": f"{KEYED_ALGORITHM}, seed {seed}, purpose {_PURPOSE!r}, key page key"}


def root_ranks(page_keys: Iterable[str], seed: int) -> UInt64[np.ndarray, " page"]:
    """Rank of every page, uniform on 64 bits; the smallest comes first.

    >>> root_ranks(["example.org/a", "example.org/b"], seed=64)
    array([2915196421650632722,  614795327093774056], dtype=uint64)
    """
    return keyed_u64(_PURPOSE, seed=seed, keys=page_keys)


def are_roots(ranks: UInt64[np.ndarray, " page"], share: float) -> Bool[np.ndarray, " page"]:
    """Say of each rank whether its page is a root: as a number below 1, it is below ``share``.

    A larger share has all the roots of a smaller one.

    >>> are_roots(np.array([0, 2**62, 2**63], np.uint64), 0.5)
    array([ True,  True, False])

    Raises:
        BadInput: when the share is not between 0 and 1.
    """
    if not 0 <= share <= 1:
        raise BadInput(f"the share of roots lies between 0 and 1, got {share}")
    if share == 1:
        return np.ones(len(ranks), np.bool_)
    return ranks < np.uint64(int(share * 2**64))
