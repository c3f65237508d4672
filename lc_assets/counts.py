"""Counts of what a stage saw, so that nothing is lost unnoticed.

``seen`` equals ``kept`` plus everything dropped, by reason; counts that do not add up cannot be
constructed.
"""

from collections.abc import Iterable, Mapping

import msgspec

from lc_assets.errors import Mismatch


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What went in, what came out, and why the rest did not.

    Attributes:
        seen: items that arrived.
        kept: items that went on.
        dropped: items that did not, each counted once, by its first reason.
        failed_rules: how often each reason applied; an item with three reasons counts three
            times.
        extra: further sums (tokens, bytes, shards, ...) that add up over shards.
    """

    seen: int = 0
    kept: int = 0
    dropped: dict[str, int] = {}
    failed_rules: dict[str, int] = {}
    extra: dict[str, int] = {}

    def __post_init__(self) -> None:
        accounted = self.kept + sum(self.dropped.values())
        if accounted != self.seen:
            raise Mismatch(
                f"saw {self.seen:,} items but can account for {accounted:,}: kept {self.kept:,}, "
                f"dropped {self.dropped}"
            )

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            seen=self.seen + other.seen,
            kept=self.kept + other.kept,
            dropped=_sum(self.dropped, other.dropped),
            failed_rules=_sum(self.failed_rules, other.failed_rules),
            extra=_sum(self.extra, other.extra),
        )

    @classmethod
    def of(
        cls, kept: int, dropped: Mapping[str, int], extra: Mapping[str, int] | None = None
    ) -> "Counts":
        """Counts of items that are dropped for one reason each; unused reasons are omitted.

        >>> Counts.of(3, {"short": 1, "long": 0})
        Counts(seen=4, kept=3, dropped={'short': 1}, failed_rules={'short': 1}, extra={})
        """
        found = {reason: count for reason, count in dropped.items() if count}
        seen = kept + sum(found.values())
        return cls(seen=seen, kept=kept, dropped=found, failed_rules=found, extra=dict(extra or {}))

    @classmethod
    def total(cls, all_counts: Iterable["Counts"]) -> "Counts":
        """The sum of counts; of none, empty counts.

        >>> Counts.total([Counts(seen=2, kept=1, dropped={"short": 1}), Counts(seen=1, kept=1)])
        Counts(seen=3, kept=2, dropped={'short': 1}, failed_rules={}, extra={})
        """
        return sum(all_counts, start=Counts())


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}
