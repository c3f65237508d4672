"""How much longer documents become by packing: the paper's figures.

Two statistics go by the name of growth, and differ by a factor: the mean of the documents' ratios,
which a few short pages with long children drive, and the ratio of the sums of tokens. Both are
given, and the median. All are over roots that hold something. Not here: how tokens spread over
lengths (`lc_assets.packing.length_buckets`).
Source: LongPack (ICLR 2025), section 5.2.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int64

from lc_assets.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What packing did to the lengths of roots.

    Attributes:
        n_roots: roots that were tried.
        n_packed: roots that hold something.
        hit_rate: their share.
        mean_of_ratios: mean over documents of tokens after by tokens before.
        ratio_of_sums: tokens of packed documents by tokens of their roots.
        median_ratio: median over documents of tokens after by tokens before.
    """

    n_roots: int
    n_packed: int
    hit_rate: float
    mean_of_ratios: float
    ratio_of_sums: float
    median_ratio: float


PAPER: Final = Growth(
    n_roots=5_000_000,
    n_packed=585_000,
    hit_rate=0.117,
    mean_of_ratios=32.7,
    ratio_of_sums=13.0,
    median_ratio=float("nan"),
)
"""As the paper has it, over roots of RefinedWeb; it gives no median."""


def growth(
    before: Int64[np.ndarray, " document"], after: Int64[np.ndarray, " document"], *, n_roots: int
) -> Growth:
    """How roots grew.

    Args:
        before: tokens of each root that holds something; one of none counts as one.
        after: tokens of its packed document.
        n_roots: roots that were tried, these among them.

    >>> found = growth(np.array([10, 100]), np.array([510, 300]), n_roots=8)
    >>> found.hit_rate, found.mean_of_ratios, round(found.ratio_of_sums, 2), found.median_ratio
    (0.25, 27.0, 7.36, 27.0)

    Raises:
        BadInput: when there are more packed documents than roots, or not as many before as after.
    """
    if len(before) != len(after) or len(before) > n_roots:
        raise BadInput(
            f"{len(before):,} documents before, {len(after):,} after, of {n_roots:,} roots: "
            "wanted as many before as after"
        )
    if not len(before):
        return Growth(
            n_roots=n_roots,
            n_packed=0,
            hit_rate=0.0,
            mean_of_ratios=0.0,
            ratio_of_sums=0.0,
            median_ratio=0.0,
        )
    whole = np.maximum(before, 1)
    ratios = after / whole
    return Growth(
        n_roots=n_roots,
        n_packed=len(before),
        hit_rate=len(before) / n_roots,
        mean_of_ratios=float(ratios.mean()),
        ratio_of_sums=float(after.sum() / whole.sum()),
        median_ratio=float(np.median(ratios)),
    )
