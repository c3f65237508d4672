"""A house that is lived in for half an hour: snapshots come, settings change, documents are withdrawn, loaders train, runs die.

``LC_SOAK_SECONDS`` says for how long (1,800). Memory, file handles and threads of this one process are printed all the while, and
must be flat once it is warm: the last third of the time needs no more than the second.
"""

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.randomness import rng_for
from lc_assets.stages.building import Workshop
from lc_assets.stages.planning import plan
from lc_assets.stages.pruning import carry_out, plan_pruning
from lc_assets_tests.builders import TAGS, build_all, recipe_file, tiny_upstream, tiny_workshop
from lc_assets_tests.dying import Dying
from lc_assets_tests.withdrawing import OLD, id_of, with_list

SECONDS = float(os.environ.get("LC_SOAK_SECONDS", "1800"))
SNAPSHOTS = ("2023-06", "2023-14", "2023-23", "2023-40")
LINES = 20
"""Of the table of what was measured."""
ROOM = 1.03
"""The allocator's own ups and downs."""
MOST_ROUNDS_WARMING = 5


def measured() -> tuple[float, int, int]:
    """Resident memory in MB, open files and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208


@dataclass(slots=True)
class House:
    """A lake and what happens to it, chosen by ``rng``."""

    workshop: Workshop
    dying: Dying
    rng: np.random.Generator
    n_snapshots: int = 1
    withdrawn: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def snapshots(self) -> tuple[str, ...]:
        return SNAPSHOTS[: self.n_snapshots]

    def live(self) -> None:
        """One thing happens, then everything is built and must stand."""
        happening: Callable[[], None] = self.rng.choice([self.a_snapshot, self.settings, self.a_withdrawal, self.a_kill, self.pruning])
        happening()
        self.done[happening.__name__] += 1
        self.build()
        self.train()

    def build(self) -> None:
        build_all(self.workshop, self.snapshots)
        assert {made.status for made in plan(self.workshop.lake, self.workshop.recipe, self.snapshots)} == {"current"}

    def a_snapshot(self) -> None:
        """One more; after the last, a new lake is begun."""
        self.n_snapshots += 1
        if self.n_snapshots > len(SNAPSHOTS):
            shutil.rmtree(self.workshop.lake.root)
            self.n_snapshots, self.withdrawn = 1, []
            self._write_list()

    def settings(self) -> None:
        filtering = msgspec.structs.replace(self.workshop.recipe.filtering, min_words=int(self.rng.integers(40, 60)))
        recipe = msgspec.structs.replace(self.workshop.recipe, filtering=filtering)
        self.workshop = replace(self.workshop, recipe=recipe)

    def a_withdrawal(self) -> None:
        tag = TAGS[int(self.rng.integers(len(TAGS)))]
        self.withdrawn.append(id_of(OLD, int(self.rng.integers(4)), tag))
        self._write_list()

    def _write_list(self) -> None:
        entries = [f"document,{name},asked for,2026-03-01" for name in sorted(set(self.withdrawn))]
        Path(self.workshop.recipe.withdrawals.lists[0]).write_text("\n".join(["kind,value,reason,date", *entries, ""]))

    def a_kill(self) -> None:
        """A run in another process dies at some call; what it left is there when the next one comes."""
        self.settings()
        recipe_file(self.workshop.lake.root.parent / "dying.toml", self.workshop.recipe)
        stage = str(self.rng.choice(["filtered", "keys", "signatures"]))
        self.done["killed"] += self.dying.run(stage=stage, key=SNAPSHOTS[0], kill_at=int(self.rng.integers(1, 200))).killed

    def pruning(self) -> None:
        carry_out(self.workshop.lake, plan_pruning(self.workshop.lake))

    def train(self) -> None:
        """Some steps, a restart, and the rest: as one pass gives them."""
        loader, resumed = (GridLoader(open_rows(self.workshop.lake.root), batch_rows=2, context_tokens=32, prefetch=n) for n in (2, 0))
        stop = int(self.rng.integers(1, len(loader)))
        for _ in zip(range(stop), loader, strict=False):
            pass
        resumed.load_state_dict(loader.state_dict())
        rest = [batch.targets for batch in resumed]
        assert all(np.array_equal(batch, loader[loader.step + number].targets) for number, batch in enumerate(rest))
        self.done["steps trained"] += stop + len(rest)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_memory_and_files_stay_flat(tmp_path):
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=SNAPSHOTS)
    workshop = with_list(tiny_workshop(tmp_path, upstream=upstream, mixes={}), tmp_path)
    began, curve = time.monotonic(), []
    with Dying.over(workshop) as dying:
        house = House(workshop, dying, rng_for("soak", seed=64, key="house"))
        house.build()
        while time.monotonic() - began < SECONDS:
            house.live()
            curve.append((time.monotonic() - began, *measured()))
    print(f"\n{len(curve)} rounds: {dict(house.done)}\n  seconds      MB  files  threads")
    for seconds, megabytes, n_files, n_threads in curve[:: max(1, len(curve) // LINES)]:
        print(f"{seconds:9.0f}{megabytes:8.1f}{n_files:7d}{n_threads:9d}")
    third = len(curve) // 3
    assert third >= MOST_ROUNDS_WARMING, "too short to tell: give it more LC_SOAK_SECONDS"
    for column, what in ((1, "MB"), (2, "files"), (3, "threads")):
        second, last = (max(line[column] for line in part) for part in (curve[third : 2 * third], curve[2 * third :]))
        print(f"most {what} in the second and the last third: {second:.1f}, {last:.1f}")
        assert last <= second * ROOM, what
