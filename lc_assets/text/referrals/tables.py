"""Densities of referrals, and the paper's for comparison.

A density is what was counted divided by the document's **tokens**; concepts are counted **per
document**. A figure of several documents is the mean of theirs. The paper groups by tokens of
GPT-like vocabularies and says "K"; here K is 1,024.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), tables 4, 5 and 6:
50,000 documents of RefinedWeb, and the documents that LongPack made of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.referrals.referrals import ReferralCounts

KINDS: Final = ("pairs", "neighbours", "concepts")

_Table = dict[str, tuple[float, float, float, float]]


@dataclass(slots=True)
class Sums:
    """Sums of the figures of some documents, to be added up in an order that does not change.

    Attributes:
        n_documents: how many.
        n_tokens: of all of them.
        figures: by kind, sums of densities (of concepts: of counts): within one sentence, then by
            bucket.
    """

    n_documents: int = 0
    n_tokens: int = 0
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, counts: ReferralCounts, n_tokens: int) -> None:
        """Add a document.

        Raises:
            BadInput: when it has no tokens.
        """
        if n_tokens < 1:
            raise BadInput("a document without tokens has no density")
        self.n_documents += 1
        self.n_tokens += n_tokens
        for kind in KINDS:
            per = 1 if kind == "concepts" else n_tokens
            new = [count / per for count in getattr(counts, kind)]
            old = self.figures.get(kind, [0.0] * len(new))
            self.figures[kind] = [one + other for one, other in zip(old, new, strict=True)]

    def means(self) -> dict[str, list[float]]:
        """By kind: within one sentence, then by bucket; empty when there is no document."""
        return {
            kind: [figure / self.n_documents for figure in figures]
            for kind, figures in self.figures.items()
        }


PAPER: Final[Mapping[str, Mapping[str, _Table]]] = {
    "pairs": {
        "RefinedWeb": {
            "0-4K": (0.57, 0.41, 0.02, 0),
            "4K-8K": (1.15, 2.03, 0.79, 5.08e-3),
            "8K-16K": (1.72, 3.98, 4.93, 0.25),
            "16K-32K": (1.70, 4.35, 10.72, 4.66),
            "32K-64K": (1.62, 4.26, 12.57, 10.73),
        },
        "Packed": {
            "0-4K": (0.54, 0.33, 8.23e-3, 0),
            "4K-8K": (0.97, 1.48, 0.41, 1.50e-4),
            "8K-16K": (1.25, 2.59, 2.76, 0.04),
            "16K-32K": (1.13, 2.60, 5.82, 1.51),
            "32K-64K": (1.31, 3.37, 11.52, 27.65),
        },
    },
    "neighbours": {
        "RefinedWeb": {
            "0-4K": (0.10, 7.61e-3, 8.61e-5, 0),
            "4K-8K": (0.15, 0.02, 2.30e-3, 1.84e-6),
            "8K-16K": (0.18, 0.03, 8.63e-3, 9.12e-5),
            "16K-32K": (0.17, 0.03, 1.29e-2, 1.20e-3),
            "32K-64K": (0.17, 0.03, 1.54e-2, 6.16e-3),
        },
        "Packed": {
            "0-4K": (0.11, 7.24e-3, 5.21e-5, 0),
            "4K-8K": (0.14, 0.02, 1.93e-3, 2.25e-7),
            "8K-16K": (0.16, 0.03, 7.85e-3, 3.72e-5),
            "16K-32K": (0.15, 0.03, 1.24e-2, 1.02e-3),
            "32K-64K": (0.17, 0.03, 1.56e-2, 6.52e-3),
        },
    },
    "concepts": {
        "RefinedWeb": {
            "0-4K": (49.8, 20.9, 0.8, 0),
            "4K-8K": (151.9, 115.0, 44.9, 0.07),
            "8K-16K": (248.9, 198.9, 169.2, 8.6),
            "16K-32K": (324.0, 253.8, 272.0, 121.4),
            "32K-64K": (518.7, 370.8, 413.7, 409.1),
        },
        "Packed": {
            "0-4K": (57.2, 22.0, 0.57, 0),
            "4K-8K": (164.2, 116.9, 40.7, 0.009),
            "8K-16K": (266.4, 201.5, 164.6, 4.3),
            "16K-32K": (345.3, 257.7, 273.0, 107.3),
            "32K-64K": (554.1, 391.7, 437.6, 447.5),
        },
    },
}
"""Tables 4, 5 and 6 by kind, set and group of lengths, for the distances ``[0, 32)``, ``[32,
128)``, ``[128, 512)``, ``[512, ∞)``. The sets are natural documents, and LongPack's.
"""


def paper_figures(
    kind: str, paper_set: str, group: str, *, edges: Sequence[int]
) -> tuple[float, ...] | None:
    """What the paper prints of a group; None where it prints nothing, or by other buckets.

    >>> paper_figures("pairs", "Packed", "32K-64K", edges=(32, 128, 512))
    (1.31, 3.37, 11.52, 27.65)
    >>> paper_figures("pairs", "Packed", "64K-128K", edges=(32, 128, 512))
    """
    return PAPER[kind][paper_set].get(group) if tuple(edges) == (32, 128, 512) else None
