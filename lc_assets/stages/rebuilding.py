"""Rebuilding what is out of date, and nothing else: ask the planner, build what can be built, ask
again, until nothing is left.

A partition that fails is left alone, and so is what waits for it; everything else is built, and the
failures are told at the end. The planner is asked anew after each round, so what came out as it was
makes nothing behind it be built.

Here: the loop. Not here: how one run is done (`lc_assets.cli.lakes.rebuild`: by the verbs, or through
    Dagster).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lc_assets.errors import LcError, Mismatch
from lc_assets.stages.planning import Plan, Run, runs_of


class PartitionFailed(LcError):
    """One partition could not be built; the others of its run before it were."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"{name}: {words}")
        self.name = name


@dataclass(slots=True)
class Rebuilt:
    """What became of a rebuild.

    Attributes:
        done: partitions that were built, or found finished, in their order.
        failed: what those said that could not be built, by name.
        left: partitions that wait for them, or for something that cannot be read.
    """

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[Plan] = field(default_factory=list)


def rebuild(
    ask: Callable[[], Sequence[Plan]], build: Callable[[Run], None], *, stop_at_once: bool = False
) -> Rebuilt:
    """Build what is out of date.

    Args:
        ask: asks the planner.
        build: builds the partitions of one run, in their order.
        stop_at_once: whether to let the first failure out instead of going on with the rest.

    Raises:
        PartitionFailed: when one failed and nothing else is to be tried.
    """
    made = Rebuilt()
    built: dict[str, str | None] = {}
    while True:
        plans = [found for found in ask() if found.status != "current"]
        tried = [_known_to_fail(found, built, made) for found in plans]
        runs = runs_of(
            [found for found, failed in zip(plans, tried, strict=True) if not failed], rejected=True
        )
        if not runs:
            made.left = [found for found in plans if found.name not in made.failed]
            return made
        for run in runs:
            built |= {found.name: found.target for found in run.plans if not found.waits_for}
            try:
                build(run)
                made.done += [found.name for found in run.plans]
            except PartitionFailed as error:
                if stop_at_once:
                    raise
                made.failed[error.name] = str(error)
                names = [found.name for found in run.plans]
                made.done += names[: names.index(error.name)] if error.name in names else []


def _known_to_fail(plan: Plan, built: dict[str, str | None], made: Rebuilt) -> bool:
    """Whether a partition has failed, or is out of date still although this very version of it was
    built.
    """
    if (
        plan.name in built
        and not plan.waits_for
        and plan.target == built[plan.name]
        and plan.name not in made.failed
    ):
        error = Mismatch(
            f"{plan.name} is out of date after it was built: {'; '.join(plan.reasons)}"
        )
        made.failed[plan.name] = str(error)
    return plan.name in made.failed
