"""Counting what a stage saw, so that nothing is lost in silence.

A `Tally` that does not add up cannot be made: ``seen`` equals ``kept`` plus everything dropped, by
reason.
"""

from collections.abc import Iterable, Mapping

import msgspec

from lc_assets.errors import Mismatch


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What went in, what came out, and why the rest did not.

    Attributes:
        seen: items that arrived.
        kept: items that went on.
        dropped: items that did not, counted once each by their first reason.
        complaints: how often each reason was found; an item with three reasons counts in three of
            them.
        also: further sums (tokens, bytes, shards, ...) that add up over shards.
    """

    seen: int = 0
    kept: int = 0
    dropped: dict[str, int] = {}
    complaints: dict[str, int] = {}
    also: dict[str, int] = {}

    def __post_init__(self) -> None:
        accounted = self.kept + sum(self.dropped.values())
        if accounted != self.seen:
            raise Mismatch(
                f"saw {self.seen:,} items but can account for {accounted:,}: kept {self.kept:,}, "
                f"dropped {self.dropped}"
            )

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            seen=self.seen + other.seen,
            kept=self.kept + other.kept,
            dropped=_sum(self.dropped, other.dropped),
            complaints=_sum(self.complaints, other.complaints),
            also=_sum(self.also, other.also),
        )

    @classmethod
    def total(cls, tallies: Iterable["Tally"]) -> "Tally":
        """Add tallies up; none at all is an empty tally.

        >>> Tally.total([Tally(seen=2, kept=1, dropped={"short": 1}), Tally(seen=1, kept=1)])
        Tally(seen=3, kept=2, dropped={'short': 1}, complaints={}, also={})
        """
        return sum(tallies, start=Tally())


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}
