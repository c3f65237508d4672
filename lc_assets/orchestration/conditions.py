"""An automation condition that asks our planner, and so loses no update.

Dagster's own conditions go by events: what happens while the daemon is off, or between a request
and its run, they miss, and of a changed file that a setting names they know nothing. This one goes
by the state: a partition is asked for while the planner calls it out of date. It is left alone

* while it, or something that it is made of, is being built;
* when this very version of it was asked for before: its run failed, or was stopped by a person, or
  built something else. It is asked for again when anything about it changes, and once a night
  (`lc_assets.orchestration.schedules`);
* when its audit has refused this very version.

What of one partition can be built in a row is asked for in one tick, so it goes into one run.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import msgspec

from lc_assets.lake.lake import GLOBAL
from lc_assets.orchestration.planner import Asker
from lc_assets.stages.planning import Plan, Run


@dataclass(frozen=True, eq=False)
class OutOfDate(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions that the planner calls out of date and that can be built now.

    Attributes:
        asker: asks the planner.
        stage: name of the asset's stage.
    """

    asker: Asker
    stage: str

    @property
    def name(self) -> str:
        """As the UI shows it."""
        return "out_of_date"

    @property
    def description(self) -> str:
        """As the UI shows it."""
        return "The planner calls it out of date, and it can be built now (`lc plan` says why)."

    @property
    def children(self) -> Sequence[dg.AutomationCondition[Any]]:
        """The condition under which it is left alone for now."""
        return [
            dg.AutomationCondition.in_progress() | dg.AutomationCondition.any_deps_in_progress()
        ]

    async def evaluate(  # type: ignore[override] # as Dagster's own do: it awaits what is a coroutine
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        """Ask the planner; see the module."""
        wanted = self.asker.wanted(self.stage, context.evaluation_time)
        asked = decoded(context.cursor)
        # Assets are evaluated upstream first: what a partition waits for has been asked for by now,
        # or is not in this tick.
        in_order = {
            key: found
            for key, found in wanted.items()
            if self.asker.requested.issuperset(found[0].waits_for)
        }
        fresh = {
            key: identity
            for key, (made, run) in in_order.items()
            if asked.get(key) != (identity := identity_of(made, run))
        }
        candidates = _subset(context, fresh)
        busy = await context.for_child_condition(self.children[0], [0], candidates).evaluate_async()
        free = candidates.compute_difference(busy.true_subset)
        requested = {key: fresh[key] for key in _keys(free)}
        self.asker.requested.update(wanted[key][0].name for key in requested)
        remembered = {key: identity for key, identity in asked.items() if key in wanted}
        return dg.AutomationResult(
            context, free, cursor=encoded(remembered | requested), child_results=[busy]
        )


def identity_of(plan: Plan, run: Run) -> str:
    """What is asked for, in a word: the version, or, while that is not known, all that the run is
    to do.
    """
    return plan.target or f"with {run.identity}"


def encoded(asked: Mapping[str, str]) -> str:
    """A cursor: what was asked for last, by partition."""
    return msgspec.json.encode(dict(sorted(asked.items()))).decode()


def decoded(cursor: str | None) -> dict[str, str]:
    """What a cursor says; nothing when there is none, or another condition's."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def _subset(context: dg.AutomationContext[dg.AssetKey], keys: Collection[str]) -> Any:
    """The asset's partitions of these names, those that it has."""
    view, asset, partitions = context.asset_graph_view, context.key, context.partitions_def
    if partitions is None:
        return view.get_full_subset(key=asset) if keys else view.get_empty_subset(key=asset)
    return view.get_subset_from_partition_keys(
        asset, partitions, set(keys) & set(partitions.get_partition_keys())
    )


def _keys(subset: Any) -> list[str]:
    if subset.is_empty:
        return []
    return (
        sorted(subset.expensively_compute_partition_keys()) if subset.is_partitioned else [GLOBAL]
    )
