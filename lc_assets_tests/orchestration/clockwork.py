"""Ticks without a daemon: sensors, the condition and schedules are asked as the daemon asks them,
and what they ask for is run here.

A `Clockwork` is one code location over a tiny upstream, with an instance that lives as long as the
test. Time is handed in. Looks are runs of Dagster, since their history counts; what is behind them
is built by the stages' verbs, in the order of a run and ended by the first failure like one, at a
tenth of the cost: neither the planner nor the condition asks how a partition came to be.
"""

import contextlib
import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.definitions import ASSET_OF, build_defs
from lc_assets.errors import LcError
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.orchestration.automation import KINDS, DagsterPlanner, requests_of
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import Plan, partitioned_by, plan
from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_recipe

STAGE_AT = {key: stage for stage, key in ASSET_OF.items()}
LOOKS = ("raw_snapshot", "html_index")
START = dt.datetime(2030, 1, 1, 1, tzinfo=dt.UTC)


@dataclass
class Asked:
    """One run that was asked for: its partition, its stages in alphabetical order, its key."""

    partition: str | None
    stages: tuple[str, ...]
    key: str | None = None

    def __iter__(self) -> Iterator[Any]:
        yield from (self.partition, self.stages)


@dataclass
class Clockwork:
    """A code location whose ticks are counted."""

    folder: Path
    upstream: Path
    recipe: Recipe | None = None
    own: Path | None = None
    crawl: str = ""
    cursor: Any = None
    sensor_cursors: dict[str, str | None] = field(default_factory=dict)
    ticks: int = 0
    log: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "instance").mkdir()
        self.lake = Lake(self.folder / "lake")
        self.instance = dg.DagsterInstance.ephemeral(tempdir=str(self.folder / "instance"))
        self.recipe = self.recipe or tiny_recipe(self.folder)
        self.defs = self.load()

    def load(self) -> dg.Definitions:
        """Load the code location, as after a start."""
        self.recipe_path = recipe_file(self.folder / "recipe.toml", self.recipe)
        self.defs = build_defs(
            lake=str(self.lake.root),
            upstream=str(self.upstream),
            crawl=self.crawl,
            recipe=str(self.recipe_path),
            snapshots=str(self.own) if self.own else None,
            automation=True,
        )
        self.job = self.defs.resolve_implicit_global_asset_job_def()
        return self.defs

    def change_recipe(self, **changes: Any) -> None:
        """Change the recipe's file under the running code location."""
        self.recipe = msgspec.structs.replace(self.recipe, **changes)
        recipe_file(self.recipe_path, self.recipe)

    def planned(self, snapshots: Sequence[str] = SNAPSHOTS) -> dict[str, Plan]:
        """What is out of date."""
        return {
            made.name: made
            for made in plan(self.lake, self.recipe, snapshots)
            if made.status != "current"
        }

    def run(self, stages: Sequence[str], partition: str | None) -> None:
        """Build some stages of a partition, as a run would."""
        if looks := [stage for stage in LOOKS if stage in stages]:
            self.materialize(looks, partition)
        context = BuildContext(
            lake=self.lake,
            upstream=Upstream(str(self.upstream)),
            recipe=read_recipe(self.recipe_path),
            executor=LocalExecutor(),
        )
        with contextlib.suppress(LcError):
            for step in STAGES:
                if step.name in stages and step.name not in LOOKS:
                    step.build(context, partition or GLOBAL)

    def materialize(
        self, stages: Sequence[str], partition: str | None
    ) -> dg.ExecuteInProcessResult:
        """Materialize some assets of a partition through Dagster."""
        return self.job.execute_in_process(
            asset_selection=[ASSET_OF[stage] for stage in stages],
            partition_key=partition,
            instance=self.instance,
            raise_on_error=False,
        )

    def tick(self, *, run: bool = True) -> list[Asked]:
        """Let the condition be evaluated once, as the daemon does, and run what it asks for;
        returns that.
        """
        self.ticks += 1
        found = dg.evaluate_automation_conditions(
            self.defs,
            self.instance,
            asset_selection=dg.AssetSelection.assets(*ASSET_OF.values()),
            cursor=self.cursor,
            evaluation_time=START + dt.timedelta(seconds=30 * self.ticks),
        )
        self.cursor = found.cursor
        together: dict[str | None, set[str]] = defaultdict(set)
        for stage, key in ASSET_OF.items():
            for partition in found.get_requested_partitions(key):
                together[partition].add(stage)
        asked = [
            Asked(partition, tuple(sorted(stages)))
            for partition, stages in sorted(together.items(), key=lambda item: str(item[0]))
        ]
        self._done(asked, run=run)
        return asked

    def settle(self, most: int = 12) -> list[list[Asked]]:
        """Tick until nothing is asked for."""
        ticks = []
        while len(ticks) < most and (asked := self.tick()):
            ticks.append(asked)
        assert len(ticks) < most, "ticks go on and on"
        return ticks

    def look(self, *, sensor: str = "upstream", run: bool = True) -> tuple[list[Asked], str]:
        """Let a sensor that looks at something tick once, and run what it asks for; returns that,
        and what it said.
        """
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.sensor_cursors.get(sensor), definitions=self.defs
        )
        result = self.defs.resolve_sensor_def(sensor).evaluate_tick(context)
        self.sensor_cursors[sensor] = result.cursor
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        asked = _asked(result.run_requests or [])
        self._done(asked, run=run)
        return asked, result.skip_message or ""

    def night(
        self, hour: dt.datetime = START, name: str = "nightly", *, run: bool = True
    ) -> list[Asked]:
        """Ask what a schedule asks in an hour, and run it; keys that were used before are passed
        over, as Dagster does.
        """
        of_kind = {
            stage: key for stage, key in ASSET_OF.items() if partitioned_by(stage) in KINDS[name]
        }
        planner = DagsterPlanner(
            lake=lambda: self.lake,
            recipe=lambda: read_recipe(self.recipe_path),
            snapshots=SNAPSHOTS,
        )
        used = {asked.key for asked in self.log}
        found = _asked(requests_of(planner, of_kind, self.instance, night=f"{hour:%Y-%m-%d}"))
        asked = [one for one in found if one.key not in used]
        self._done(asked, run=run)
        return asked

    def _done(self, asked: Sequence[Asked], *, run: bool) -> None:
        self.log += asked
        for one in asked if run else ():
            self.run(one.stages, one.partition)


def _asked(requests: Sequence[dg.RunRequest]) -> list[Asked]:
    return [
        Asked(
            request.partition_key,
            tuple(sorted(STAGE_AT[key] for key in request.asset_selection or ())),
            request.run_key,
        )
        for request in requests
    ]
