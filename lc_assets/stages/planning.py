"""The planner: what is out of date, and why. It compares receipts with inputs, settings and code; nothing else.

It asks neither Dagster nor a clock, so the command line, CI, sensors and tests get one answer, and losing
Dagster's database loses history, not correctness. It builds nothing and writes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from lc_assets.errors import LcError
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
    plans: dict[str, Plan] = {}
    for step in CHAIN:
        for key in keys_of(step.stage, recipe, snapshots):
            made = _plan_one(lake, recipe, step.stage, key, plans, upstream_digests or {})
            plans[made.name] = made
    return list(plans.values())


def keys_of(stage: Stage, recipe: Recipe, snapshots: Iterable[str]) -> list[str]:
    """The partitions that a stage should have."""
    if stage.partitioned_by == "snapshot":
        return list(snapshots)
    return sorted(recipe.mixes) if stage.partitioned_by == "mix" else [GLOBAL]


def _plan_one(
    lake: LakeFolder, recipe: Recipe, stage: Stage, key: str, plans: Mapping[str, Plan], upstream_digests: Mapping[str, str]
) -> Plan:
    try:
        current = lake.place(stage.name, key).current()
    except LcError as error:
        return Plan(stage=stage.name, key=key, status="stale", reasons=(f"what is published cannot be read: {error}",))
    seconds = current.receipt.measured.get("seconds") if current else None
    waiting_for = [made.name for made in plans.values() if made.status != "current" and stage.is_fed_by(recipe, key, made.stage, made.key)]
    if waiting_for:
        return Plan(stage=stage.name, key=key, status="waiting", reasons=(f"after {_shortened(waiting_for)}",), seconds=seconds)
    if current is None:
        return Plan(stage=stage.name, key=key, status="missing", reasons=("never built",))
    reasons = tuple(_differences(lake, recipe, stage, key, current, upstream_digests))
    return Plan(stage=stage.name, key=key, status="stale" if reasons else "current", reasons=reasons, seconds=seconds)


def _differences(
    lake: LakeFolder, recipe: Recipe, stage: Stage, key: str, current: Published, upstream_digests: Mapping[str, str]
) -> list[str]:
    read = {name: published.digest for name, published in stage.inputs(lake, recipe, key).items()}
    foreign = {name: digest for name, digest in current.receipt.fingerprint.inputs.items() if "/" not in name}
    if key in upstream_digests and foreign:
        foreign = {"upstream": upstream_digests[key]}
    return current.receipt.fingerprint.differences(stage.fingerprint(recipe, key, read | foreign))


def _shortened(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
