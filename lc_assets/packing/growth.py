"""How much longer documents become by packing: the paper's figures, and how tokens spread over lengths before and after.

Two statistics go by the name of growth, and differ by a factor: the mean of the documents' ratios, which a few short pages with long
children drive, and the ratio of the sums of tokens. Both are given, and the median. All are over roots that hold something.
Source: LongPack (ICLR 2025), section 5.2 and figure 5.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int64

from lc_assets.errors import BadInput
from lc_assets.vocabulary import KIBI

LENGTHS: Final = tuple(KIBI * thousands for thousands in (0, 4, 8, 16, 32, 64, 128))
"""Where the groups of lengths begin, in tokens; each goes up to the next, the last is open."""


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
    n_roots=5_000_000, n_packed=585_000, hit_rate=0.117, mean_of_ratios=32.7, ratio_of_sums=13.0, median_ratio=float("nan")
)
"""As the paper has it, over roots of RefinedWeb; it gives no median."""


def growth(before: Int64[np.ndarray, " document"], after: Int64[np.ndarray, " document"], *, n_roots: int) -> Growth:
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
        raise BadInput(f"{len(before):,} documents before, {len(after):,} after, of {n_roots:,} roots: wanted as many before as after")
    if not len(before):
        return Growth(n_roots=n_roots, n_packed=0, hit_rate=0.0, mean_of_ratios=0.0, ratio_of_sums=0.0, median_ratio=0.0)
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


def length_names(lengths: Sequence[int] = LENGTHS) -> list[str]:
    """Names of the groups of lengths.

    >>> length_names()
    ['0-4K', '4K-8K', '8K-16K', '16K-32K', '32K-64K', '64K-128K', '128K and more']
    """
    ends = [f"{length // KIBI}K" if length else "0" for length in lengths]
    return [*(f"{low}-{high}" for low, high in itertools.pairwise(ends)), f"{ends[-1]} and more"]


def by_length(tokens: Int64[np.ndarray, " document"], lengths: Sequence[int] = LENGTHS) -> list[tuple[int, int]]:
    """Documents and their tokens in each group of lengths.

    >>> by_length(np.array([10, 5_000, 4_096]))[:3]
    [(1, 10), (2, 9096), (0, 0)]
    """
    groups = np.searchsorted(np.asarray(lengths), tokens, side="right") - 1
    n_docs = np.bincount(groups, minlength=len(lengths)).tolist()
    n_tokens = np.bincount(groups, weights=tokens, minlength=len(lengths)).astype(np.int64).tolist()
    return list(zip(n_docs, n_tokens, strict=True))


def token_shares(tokens: Int64[np.ndarray, " document"], lengths: Sequence[int] = LENGTHS) -> dict[str, float]:
    """Share of all tokens in each group of lengths, by the group's name; zeros when there are none.

    >>> token_shares(np.array([1_000, 3_000, 12_000]))["8K-16K"]
    0.75
    """
    counts = [n_tokens for _, n_tokens in by_length(tokens, lengths)]
    whole = max(sum(counts), 1)
    return {name: n_tokens / whole for name, n_tokens in zip(length_names(lengths), counts, strict=True)}
