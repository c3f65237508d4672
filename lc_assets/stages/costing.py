"""What a build would read and take, before anybody starts it: shards, files, bytes, and seconds as
past builds took them.

Shards to do are counted exactly, by their fingerprints (`lc_assets.build.sharding`). Seconds are
an estimate: what past builds of the stage in this lake took a byte, by the clock and with the
workers they had, and the audit as the last one took it. Where no build has been measured, or what
is to be read is not known yet, nothing is said.

Here: estimates. Not here: what is out of date (`lc_assets.stages.planning`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from lc_assets.build.recipe import Recipe
from lc_assets.build.sharding import Shards, shards_of
from lc_assets.build.stage import Stage
from lc_assets.errors import LcError
from lc_assets.lake.lake import Lake, memoized
from lc_assets.lake.receipts import Fingerprint
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import Plan


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What building one partition would read and take; None where that is not known.

    Attributes:
        name: the partition, such as ``filtered_documents/2023-06``.
        shards: how many would be done, where the stage goes by shards.
        reused: how many would be reused from an older version.
        files: how many would be read for that, in the lake or upstream.
        bytes_read: their size.
        seconds: an estimate, audit included.
        at_most: whether that is what the last build took, because it has to be seen what there is
            to do.
    """

    name: str
    shards: int | None = None
    reused: int | None = None
    files: int | None = None
    bytes_read: int | None = None
    seconds: float | None = None
    at_most: bool = False


class Rate(msgspec.Struct, frozen=True):
    """What a stage took in the past: seconds a byte read, and seconds of an audit a byte written;
    None when nobody measured.
    """

    per_byte_read: float | None
    audit_per_byte_read: float | None


def costs_of(lake: Lake, recipe: Recipe, plans: Iterable[Plan]) -> list[Cost]:
    """What it would cost to build what is out of date, one by one.

    Args:
        lake: what is published.
        recipe: the settings that should hold.
        plans: what the planner said; those that are current cost nothing and are left out.
    """
    coster = _Coster(lake, recipe)
    return [coster.cost(made) for made in plans if made.status != "current"]


def rate_of(measured: Sequence[dict[str, float]]) -> Rate:
    """The rates of a stage, from what its builds measured; a build that read nothing says nothing.

    >>> rate_of([{"seconds": 3.0, "bytes_read": 100.0, "audit_seconds": 1.0, "shards_reused": 0.0}, {"seconds": 1.0}])
    Rate(per_byte_read=0.03, audit_per_byte_read=0.01)
    >>> rate_of([])
    Rate(per_byte_read=None, audit_per_byte_read=None)
    """
    known = [found for found in measured if found.get("bytes_read") and "seconds" in found]
    whole = [found for found in known if not found.get("shards_reused")]
    return Rate(_ratio(known, "seconds"), _ratio(whole, "audit_seconds"))


def _ratio(measured: Sequence[dict[str, float]], name: str) -> float | None:
    n_bytes = sum(found["bytes_read"] for found in measured)
    return sum(found.get(name, 0.0) for found in measured) / n_bytes if n_bytes else None


@dataclass(frozen=True, slots=True)
class _Coster:
    lake: Lake
    recipe: Recipe
    rates: dict[str, Rate] = field(default_factory=dict)
    sizes: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def cost(self, made: Plan) -> Cost:
        stage = stage_named(made.stage)
        try:
            known = made.target is not None and bool(stage.upstream)
            return (
                self._known(stage, made)
                if known
                else Cost(name=made.name, seconds=made.seconds, at_most=made.seconds is not None)
            )
        except (
            LcError
        ):  # what would be read cannot be read: the planner has said so, and here nothing is known
            return Cost(name=made.name)

    def _known(self, stage: Stage, made: Plan) -> Cost:
        inputs = stage.inputs(self.lake, self.recipe, made.key)
        if stage.sharding is None:
            sizes = [self._size(published) for published in inputs.values()]
            n_files, n_bytes = sum(n for n, _ in sizes), sum(size for _, size in sizes)
            return Cost(
                name=made.name,
                files=n_files,
                bytes_read=n_bytes,
                seconds=self._seconds(stage, n_bytes, made),
            )
        shards = shards_of(
            stage.sharding,
            self._fingerprint(stage, made.key, inputs),
            inputs,
            self.lake.partition(stage.name, made.key),
        )
        n_bytes = shards.n_bytes(shards.to_do)
        return Cost(
            name=made.name,
            shards=len(shards.to_do),
            reused=len(shards.older),
            files=_n_files(shards),
            bytes_read=n_bytes,
            seconds=self._seconds(stage, n_bytes, made),
        )

    def _fingerprint(self, stage: Stage, key: str, inputs: dict[str, Published]) -> Fingerprint:
        digests = {name: published.digest for name, published in inputs.items()}
        return stage.fingerprint(stage.resolved(self.recipe, key), key, digests)

    def _size(self, published: Published) -> tuple[int, int]:
        """Files and bytes of a version; receipts are read once, and there may be thousands of files
        in each.
        """
        if published.home not in self.sizes:
            self.sizes[published.home] = (len(published.receipt.files), published.receipt.n_bytes)
        return self.sizes[published.home]

    def _seconds(self, stage: Stage, n_bytes: int, made: Plan) -> float | None:
        rate = self._rate(stage)
        if rate.per_byte_read is None:
            return None
        audit = self._last_audit(made)
        return rate.per_byte_read * n_bytes + (
            audit if audit is not None else (rate.audit_per_byte_read or 0.0) * n_bytes
        )

    def _last_audit(self, made: Plan) -> float | None:
        partition = self.lake.partition(made.stage, made.key)
        try:
            current = partition.current_summary()
        except LcError:
            return None
        return current.receipt.measured.get("audit_seconds") if current else None

    def _rate(self, stage: Stage) -> Rate:
        if stage.name not in self.rates:
            standing = memoized(self.lake)
            self.rates[stage.name] = rate_of(list(_measured(standing, stage.name)))
        return self.rates[stage.name]


def _measured(lake: Lake, stage: str) -> Iterable[dict[str, float]]:
    for key in lake.keys(stage):
        try:
            current = lake.partition(stage, key).current()
        except LcError:
            continue  # a damaged version is planned, and measured nothing that one could go by
        if current is not None:
            yield current.receipt.measured


def _n_files(shards: Shards) -> int:
    return sum(bool(read.identity) for name in shards.to_do for read in shards.reads[name])
