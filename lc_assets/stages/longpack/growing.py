"""How documents grew: lengths before and after packing, out of tables of spans.

Lengths are those of the texts, without anchor lines and line ends: what is packed is what was
there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.build.tables import read_all
from lc_assets.counts import Counts
from lc_assets.packing.lengths import PAPER, Growth, bucket_counts, growth
from lc_assets.stages.links.link_tables import SPANS

MEASURES: Final = ("hit rate", "mean of ratios", "ratio of sums", "median ratio")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lengths:
    """Tokens of the documents of a packing, each array in no particular order.

    Attributes:
        roots: of each packed document's root.
        packed: of each packed document; in the order of ``roots``.
        pages: of each page in any of them, once.
        n_roots: roots that were tried.
    """

    roots: NDArray[np.int64]
    packed: NDArray[np.int64]
    pages: NDArray[np.int64]
    n_roots: int

    @property
    def growth(self) -> Growth:
        """How roots grew."""
        return growth(self.roots, self.packed, n_roots=self.n_roots)

    @property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Share of all tokens by group of lengths, of the pages alone and of the packed
        documents.
        """
        pairs = zip(bucket_counts(self.pages), bucket_counts(self.packed), strict=True)
        return {before.name: (before.share, after.share) for before, after in pairs}


def lengths_of(spans: Sequence[Path], *, n_roots: int) -> Lengths:
    """The lengths that tables of spans tell."""
    table = read_all(spans, SPANS, ["id", "role", "child_id", "n_tokens"])
    roots = table.filter(pc.equal(table["role"], "root")).select(["id", "n_tokens"])
    packed = table.group_by("id").aggregate([("n_tokens", "sum")])
    both = roots.join(packed, "id")
    pages = table.group_by("child_id").aggregate([("n_tokens", "max")])
    numbers = (both["n_tokens"], both["n_tokens_sum"], pages["n_tokens_max"])
    before, after, alone = (np.asarray(column, np.int64) for column in numbers)
    return Lengths(roots=before, packed=after, pages=alone, n_roots=n_roots)


def roots_tried(counts: Counts) -> int:
    """Roots that had a turn, of what `lc_assets.stages.longpack.claiming.claim_links` counted:
    those that no other one holds.
    """
    return counts.extra.get("roots", 0) - counts.extra.get("roots that another one holds", 0)


def beside_the_paper(found: Growth) -> list[tuple[str, float, float | None]]:
    """Each measure with our value and the paper's, which gives no median."""
    ours = (found.hit_rate, found.mean_of_ratios, found.ratio_of_sums, found.median_ratio)
    theirs = (PAPER.hit_rate, PAPER.mean_of_ratios, PAPER.ratio_of_sums, None)
    return list(zip(MEASURES, ours, theirs, strict=True))
