"""Estimates of the input size and duration of a build.

Shards to compute are counted exactly, by their fingerprints (`lc_assets.builds.sharding`). Seconds
are an estimate from earlier builds of the stage in this lake: wall-clock seconds per byte read, and
the last duration of the checks. They are None if nothing was measured or the inputs are not yet
known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import msgspec

from lc_assets.builds.inputs import inputs_of
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.sharding import shards_of
from lc_assets.builds.stage import Stage
from lc_assets.errors import LcError
from lc_assets.lake.lake import Lake, memoized
from lc_assets.lake.versions import Published
from lc_assets.records import frozen
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import Plan


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of building one partition; None where unknown.

    Attributes:
        name: the partition, such as ``filtered_documents/2023-06``.
        shards: number of shards to compute, where the stage has shards.
        reused: number of shards that an older version holds.
        files: number of files to read, in the lake or upstream.
        bytes_read: their size.
        seconds: an estimate, checks included.
        at_most: whether ``seconds`` is the duration of the last build, because the work is not
            known yet.
    """

    name: str
    shards: int | None = None
    reused: int | None = None
    files: int | None = None
    bytes_read: int | None = None
    seconds: float | None = None
    at_most: bool = False


class Rate(msgspec.Struct, frozen=True):
    """Seconds of building and of checking per byte read; None when nothing was measured."""

    per_byte_read: float | None
    audit_per_byte_read: float | None


def costs_of(lake: Lake, recipe: Recipe, plans: Iterable[Plan]) -> list[Cost]:
    """The cost of each partition that is out of date.

    Args:
        lake: what is published.
        recipe: the settings to build with.
        plans: the planner's result; current partitions are skipped.
    """
    coster = _Coster(lake, recipe)
    return [coster.cost(made) for made in plans if made.status != "current"]


def rate_of(measured: Sequence[dict[str, float]]) -> Rate:
    """The rates of a stage, from the measurements of its builds.

    >>> whole = {"seconds": 3.0, "bytes_read": 100.0, "audit_seconds": 1.0}
    >>> rate_of([whole, {"seconds": 1.0}])
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


@frozen
class _Coster:
    """Rates and sizes are read once: a receipt may list thousands of files."""

    lake: Lake
    recipe: Recipe
    rates: dict[str, Rate] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def cost(self, made: Plan) -> Cost:
        stage = stage_named(made.stage)
        if made.taken_from:
            return Cost(name=made.name, seconds=0.0)
        if made.target is None or made.waits_for or not stage.upstream:
            return Cost(name=made.name, seconds=made.seconds, at_most=made.seconds is not None)
        try:
            return self._known(stage, made)
        except LcError:  # the plan says already that an input cannot be read
            return Cost(name=made.name)

    def _known(self, stage: Stage, made: Plan) -> Cost:
        inputs = inputs_of(stage, self.lake, self.recipe, made.key)
        if stage.sharding is None:
            sizes = [self._size(published) for published in inputs.values()]
            n_files, n_bytes = sum(n for n, _ in sizes), sum(size for _, size in sizes)
            seconds = self._seconds(stage, n_bytes, made)
            return Cost(name=made.name, files=n_files, bytes_read=n_bytes, seconds=seconds)
        digests = {name: published.digest for name, published in inputs.items()}
        params = stage.resolved(self.recipe, made.key)
        fingerprint = stage.fingerprint(params, made.key, digests)
        partition = self.lake.partition(stage.name, made.key)
        shards = shards_of(stage.sharding, fingerprint, inputs, partition)
        n_bytes = shards.n_bytes(shards.to_do)
        return Cost(
            name=made.name,
            shards=len(shards.to_do),
            reused=len(shards.older),
            files=sum(bool(read.identity) for name in shards.to_do for read in shards.reads[name]),
            bytes_read=n_bytes,
            seconds=self._seconds(stage, n_bytes, made),
        )

    def _size(self, published: Published) -> tuple[int, int]:
        """Number of files and of bytes of a version."""
        found = self.sizes.get(published.digest)
        if found is None:
            found = len(published.receipt.files), published.receipt.n_bytes
            self.sizes[published.digest] = found
        return found

    def _seconds(self, stage: Stage, n_bytes: int, made: Plan) -> float | None:
        if stage.name not in self.rates:
            self.rates[stage.name] = rate_of(list(_measured(memoized(self.lake), stage.name)))
        rate = self.rates[stage.name]
        if rate.per_byte_read is None:
            return None
        try:
            current = self.lake.partition(made.stage, made.key).current_summary()
        except LcError:
            current = None
        last = current.receipt.measured.get("audit_seconds") if current else None
        checks = (rate.audit_per_byte_read or 0.0) * n_bytes if last is None else last
        return rate.per_byte_read * n_bytes + checks


def _measured(lake: Lake, stage: str) -> Iterator[dict[str, float]]:
    for key in lake.keys(stage):
        try:
            current = lake.partition(stage, key).current()
        except LcError:
            continue  # a damaged version; the plan names it
        if current is not None:
            yield current.receipt.measured
