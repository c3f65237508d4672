"""The planner: what is out of date, and why. It compares receipts with inputs, settings and code; nothing else.

It asks neither Dagster nor a clock, so the command line, CI, sensors and tests get one answer, and losing
Dagster's database loses history, not correctness. It builds nothing and writes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from lc_assets.errors import CorruptFile, LcError, NotPublished
from lc_assets.stages.building import Stage
from lc_assets.stages.catalogue import CHAIN
from lc_assets.stages.recipe import Recipe
from lc_assets.storage.lake import GLOBAL, LakeFolder, Published

Status = Literal["current", "missing", "stale", "waiting"]
"""``waiting``: something upstream has to be built first, so it is not yet known whether this changes."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner says of one partition.

    Attributes:
        stage: the stage's name.
        key: the partition.
        status: whether it must be built.
        reasons: why, in words; empty when current.
        seconds: how long the last build took, when there was one.
    """

    stage: str
    key: str
    status: Status
    reasons: tuple[str, ...] = ()
    seconds: float | None = None

    @property
    def name(self) -> str:
        """``filtered/2023-06``."""
        return f"{self.stage}/{self.key}"


def plan(lake: LakeFolder, recipe: Recipe, snapshots: Sequence[str], *, upstream_digests: Mapping[str, str] | None = None) -> list[Plan]:
    """Plan every partition of the chain, upstream first.

    Args:
        lake: what is published.
        recipe: the settings that should hold.
        snapshots: the snapshots that should be there.
        upstream_digests: digest of each snapshot's files upstream, when someone has looked
            (`lc_assets.stages.raw.look_at_snapshot`); otherwise a published manifest is taken to be true.
    """
    planner = _Planner(lake, recipe, upstream_digests or {})
    made: list[Plan] = []
    for step in CHAIN:
        made += [planner.plan_one(step.stage, key, made) for key in keys_of(step.stage, recipe, snapshots)]
    return made


def keys_of(stage: Stage, recipe: Recipe, snapshots: Iterable[str]) -> list[str]:
    """The partitions that a stage should have; none when the recipe does not want it."""
    if not stage.wanted(recipe):
        return []
    if stage.partitioned_by == "snapshot":
        return list(snapshots)
    return sorted(recipe.mixes) if stage.partitioned_by == "mix" else [GLOBAL]


@dataclass(frozen=True, slots=True)
class _Planner:
    lake: LakeFolder
    recipe: Recipe
    upstream_digests: Mapping[str, str]
    resolved: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def plan_one(self, stage: Stage, key: str, made: Sequence[Plan]) -> Plan:
        try:
            current = self.lake.place(stage.name, key).current()
        except LcError as error:
            return Plan(stage=stage.name, key=key, status="stale", reasons=(f"what is published cannot be read: {error}",))
        seconds = current.receipt.measured.get("seconds") if current else None
        try:
            status, reasons = self._verdict(stage, key, current, made)
        except (CorruptFile, NotPublished) as error:
            status, reasons = "waiting", [f"an input cannot be read: {error}"]
        return Plan(stage=stage.name, key=key, status=status, reasons=tuple(reasons), seconds=seconds)

    def _verdict(self, stage: Stage, key: str, current: Published | None, made: Sequence[Plan]) -> tuple[Status, list[str]]:
        feeding = (other for other in made if stage.is_fed_by(self.recipe, key, other.stage, other.key))
        waiting_for = [other.name for other in feeding if other.status != "current"]
        if waiting_for:
            return "waiting", [f"after {_shortened(waiting_for)}"]
        if current is None:
            return "missing", ["never built"]
        reasons = self._differences(stage, key, current)
        return ("stale", reasons) if reasons else ("current", [])

    def _differences(self, stage: Stage, key: str, current: Published) -> list[str]:
        made_of = current.receipt.fingerprint
        read = {name: published.digest for name, published in stage.inputs(self.lake, self.recipe, key).items()}
        foreign = {name: digest for name, digest in made_of.inputs.items() if "/" not in name}
        if "upstream" in foreign and key in self.upstream_digests:
            foreign["upstream"] = self.upstream_digests[key]
        return made_of.differences(stage.fingerprint(self._params(stage, key), key, read | foreign))

    def _params(self, stage: Stage, key: str) -> dict[str, Any]:
        """Settings of a partition, resolved once for all snapshots: only mixes have their own, and some settings name files to be read."""
        place = (stage.name, key if stage.partitioned_by == "mix" else "")
        if place not in self.resolved:
            self.resolved[place] = stage.resolved(self.recipe, key)
        return self.resolved[place]


def _shortened(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
