"""Asking the planner from Dagster: once a tick, however many assets and partitions ask.

The recipe is read anew each time, as a run would read it; a changed file, rule or tokenizer counts
from the next tick on. Only snapshots whose manifest is published are planned for: a snapshot is
begun by its sensor or by a person, and then goes on by itself.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from lc_assets.build.recipe import Recipe
from lc_assets.lake.lake import Lake
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.planning import Plan, Run, plan, runs_of


@dataclass(slots=True)
class Asker:
    """Asks for one code location.

    Attributes:
        lake: opens the lake.
        recipe: reads the recipe.
        snapshots: the partitions that there are.
        requested: names of the partitions that the condition asks for in this tick.
    """

    lake: Callable[[], Lake]
    recipe: Callable[[], Recipe]
    snapshots: Collection[str]
    requested: set[str] = field(default_factory=set)
    _answer: tuple[datetime, list[Run]] | None = field(default=None, repr=False)

    def runs(self) -> list[Run]:
        """What can be built now, but for what nobody has begun and what an audit has refused.

        Raises:
            LcError: when the recipe or what it names cannot be read.
        """
        lake = self.lake()
        begun = [key for key in lake.keys(raw.STAGE.name) if key in self.snapshots]
        return runs_of(plan(lake, self.recipe(), begun)) if begun else []

    def wanted(self, stage: str, moment: datetime) -> dict[str, tuple[Plan, Run]]:
        """Partitions of a stage that can be built now, with the runs that they go in; asked once a
        moment.

        Args:
            stage: the stage's name.
            moment: the tick.
        """
        if self._answer is None or self._answer[0] != moment:
            self._answer = (moment, self.runs())
            self.requested.clear()
        return {
            run.key: (made, run)
            for run in self._answer[1]
            for made in run.plans
            if made.stage == stage
        }
