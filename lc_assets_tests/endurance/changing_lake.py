"""A lake under random operations: new snapshots, changed settings, withdrawals, killed runs,
pruning and restarts.

`lc_assets_tests.endurance.test_soak` runs it for half an hour and measures it.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.builds.stage import (
    BuildContext,
    Built,
)
from lc_assets.stages.planning import plan
from lc_assets.stages.releases.pruning import carry_out, plan_pruning
from lc_assets_tests.builders import TAGS, build_all, recipe_file
from lc_assets_tests.endurance.resuming import loader_of, rest_of
from lc_assets_tests.kill_points import KillableRunner
from lc_assets_tests.withdrawing import OLD, id_of

SNAPSHOTS = ("2023-06", "2023-14", "2023-23", "2023-40")


@dataclass(slots=True)
class ChangingLake:
    """A lake and the operations on it, chosen by ``rng``."""

    context: BuildContext
    runner: KillableRunner
    rng: np.random.Generator
    n_snapshots: int = 1
    withdrawn: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Snapshots added so far."""
        return SNAPSHOTS[: self.n_snapshots]

    def step(self) -> None:
        """Carry out one operation, then build everything and train."""
        operations = [
            self.a_snapshot,
            self.settings,
            self.a_withdrawal,
            self.a_kill,
            self.a_kill,
            self.pruning,
            self.a_restart,
        ]
        operation: Callable[[], None] = self.rng.choice(operations)  # type: ignore[arg-type]
        operation()
        self.done[operation.__name__] += 1
        self.build()
        self.train()

    def build(self) -> dict[str, Built]:
        """Build everything; then the planner must call all of it current."""
        built = build_all(self.context, self.snapshots)
        assert {
            made.status for made in plan(self.context.lake, self.context.recipe, self.snapshots)
        } == {"current"}
        return built

    def a_snapshot(self) -> None:
        """Add a snapshot; after the last one, begin a new lake."""
        self.n_snapshots += 1
        if self.n_snapshots > len(SNAPSHOTS):
            shutil.rmtree(self.context.lake.root)
            self.n_snapshots, self.withdrawn = 1, []
            self._write_list()

    def settings(self) -> None:
        """Change a limit of the filter, which makes nearly everything stale."""
        filtering = msgspec.structs.replace(
            self.context.recipe.filtered_documents, min_words=int(self.rng.integers(40, 60))
        )
        self.context = replace(
            self.context,
            recipe=msgspec.structs.replace(self.context.recipe, filtered_documents=filtering),
        )

    def a_withdrawal(self) -> None:
        """Withdraw one document."""
        tag = TAGS[int(self.rng.integers(len(TAGS)))]
        self.withdrawn.append(id_of(OLD, int(self.rng.integers(4)), tag))
        self._write_list()

    def _write_list(self) -> None:
        entries = [f"document,{name},asked for,2026-03-01" for name in sorted(set(self.withdrawn))]
        Path(self.context.recipe.withdrawn_documents.lists[0]).write_text(
            "\n".join(["kind,value,reason,date", *entries, ""])
        )

    def a_kill(self) -> None:
        """Kill a run in another process at a random call, and leave its files for the next run."""
        self.settings()
        recipe_file(self.context.lake.root.parent / "killed.toml", self.context.recipe)
        stage = str(self.rng.choice(["filtered_documents", "document_keys", "document_signatures"]))
        self.done["killed"] += self.runner.run(
            stage=stage, key=SNAPSHOTS[0], kill_at=int(self.rng.integers(1, 200))
        ).killed

    def pruning(self) -> None:
        """Prune what nothing refers to."""
        carry_out(self.context.lake, plan_pruning(self.context.lake))

    def a_restart(self) -> None:
        """Continue in a fresh process: training from this process's state, then building; this
        process must then find everything built.
        """
        loader, stop = loader_of(self.context.lake.root), 2
        for _ in zip(range(stop), loader, strict=False):
            pass
        state = loader.state_dict()
        self.settings()
        said = resumed(self.context, self.snapshots, state)
        loader.load_state_dict(state)
        assert rest_of(loader) == said["rest"]
        assert said["imported"] == []
        assert all(found.reused for found in self.build().values())
        self.runner.restart()

    def train(self) -> None:
        """Train some steps, restart, and train the rest; the batches must be those of one pass."""
        loader, resumed = (loader_of(self.context.lake.root, prefetch=n) for n in (2, 0))
        stop = int(self.rng.integers(1, len(loader)))
        for _ in zip(range(stop), loader, strict=False):
            pass
        resumed.load_state_dict(loader.state_dict())
        rest = [batch.targets for batch in resumed]
        assert all(
            np.array_equal(batch, loader[loader.step + number].targets)
            for number, batch in enumerate(rest)
        )
        self.done["steps trained"] += stop + len(rest)


def resumed(
    context: BuildContext, snapshots: tuple[str, ...], state: dict[str, Any]
) -> dict[str, Any]:
    """Return what a fresh process reports that trains to the end and builds everything: see
    `lc_assets_tests.endurance.resuming`.
    """
    recipe = recipe_file(context.lake.root.parent / "resuming.toml", context.recipe)
    work = {
        "lake": str(context.lake.root),
        "upstream": context.upstream.root,
        "crawl": context.crawl.root if context.crawl else None,
    }
    asked = json.dumps(work | {"recipe": str(recipe), "snapshots": snapshots, "state": state})
    command = [sys.executable, "-m", "lc_assets_tests.endurance.resuming"]
    ended = subprocess.run(
        command,
        check=True,
        input=asked,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    said: dict[str, Any] = json.loads(ended.stdout)
    return said
