"""A code location with a home, an upstream and a lake of its own, and the real ``dagster-daemon``
over it, in processes of their own.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import msgspec

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.definitions import ASSET_OF
from lc_assets.formats.lists.withdrawal_lists import COLUMNS
from lc_assets.lake.lake import Lake
from lc_assets.orchestration.automation import KINDS
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import deduplication, recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.processes import cpu_seconds_of_session

ROOT = Path(__file__).parents[2]
TAGS = ("0000/en_head", "0001/en_head")


@dataclass(frozen=True)
class Built:
    """A materialization in Dagster's history: number of its event, partition, run."""

    number: int
    name: str
    run: str


class Deployment:
    """The processes are started and ended by the test."""

    def __init__(
        self, folder: Path, snapshots: Sequence[str], *, automation: bool, **instance: str
    ) -> None:
        self.folder, self.home, self.lake = folder, folder / "home", Lake(folder / "lake")
        self.home.mkdir()
        settings = (ROOT / "dagster.yaml").read_text()
        for name, value in instance.items():
            before = next(
                line for line in settings.splitlines() if line.strip().startswith(f"{name}:")
            )
            settings = settings.replace(before, f"{before.partition(':')[0]}: {value}")
        (self.home / "dagster.yaml").write_text(settings)
        self.upstream = tiny_upstream(folder / "upstream", snapshots=snapshots, tags=TAGS)
        self.withdrawn = folder / "withdrawn.csv"
        self.withdrawn.write_text(f"{','.join(COLUMNS)}\n")
        self.recipe: Recipe = tiny_recipe(
            folder,
            blended_mix={"by-tokens": MixSettings()},
            **deduplication(near=False),
            packed_rows=PackingSettings(),
            withdrawn_documents=WithdrawalSettings(lists=(str(self.withdrawn),)),
        )
        self.recipe_path = recipe_file(folder / "recipe.toml", self.recipe)
        settings_of_ours = {
            "DAGSTER_HOME": self.home,
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "LC_AUTOMATION": "on" if automation else "off",
            "LC_LOOK_EVERY": "30",
            "LC_ROOT": self.lake.root,
            "LC_UPSTREAM": self.upstream,
            "LC_RECIPE": self.recipe_path,
            "LC_WORKERS": "1",
            "PYTHONPATH": ROOT,
        }
        self.environment = os.environ | {
            name: str(value) for name, value in settings_of_ours.items()
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *program: str) -> None:
        """Start the daemon, or another program of Dagster's; it starts the code server. Schedules are
        off, so that nothing depends on the time of day.
        """
        self.command("dagster", "instance", "info")  # the first use of a home must be alone
        if self.environment["LC_AUTOMATION"] == "on":
            for schedule in KINDS:
                self.command("dagster", "schedule", "stop", schedule, "-m", "lc_assets.definitions")
        with (self.folder / "daemon.log").open("ab") as log:
            name, *arguments = program or ("dagster-daemon", "run")
            command = [_script(name), *arguments, "-m", "lc_assets.definitions"]
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def cpu_seconds(self) -> float:
        """The processor time of what `start` has started, until now."""
        return cpu_seconds_of_session(self.process.pid) if self.process else 0.0

    def command(self, name: str, *arguments: str) -> str:
        """Run a command of Dagster's to its end."""
        ended = subprocess.run(
            [_script(name), *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stderr[-4000:]
        return ended.stdout

    def stop(self) -> None:
        """End the daemon, and what it started: its code server ends by itself within half a minute,
        too late for a test.
        """
        if self.process is None:
            return
        process, self.process = self.process, None
        process.terminate()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def change_recipe(self, **changes: object) -> None:
        """Change the recipe's file under the running daemon."""
        self.recipe = msgspec.structs.replace(self.recipe, **changes)
        recipe_file(self.recipe_path, self.recipe)

    def behind(self, snapshots: Sequence[str]) -> list[str]:
        """What is out of date."""
        return [
            made.name
            for made in plan(self.lake, self.recipe, snapshots)
            if made.status != "current"
        ]

    def wait(self, ended: Callable[[], bool], most_seconds: float = 420) -> float:
        """Until something holds and no run is under way; returns the seconds."""
        started = time.monotonic()
        while not ended() or any(not run.is_finished for run in self.runs()):
            assert time.monotonic() - started < most_seconds, (
                self.folder / "daemon.log"
            ).read_text()[-4000:]
            time.sleep(2)
        return time.monotonic() - started

    def runs(self) -> Sequence[dg.DagsterRun]:
        """All runs of the history."""
        with self.instance() as instance:
            return instance.get_runs()

    def instance(self) -> dg.DagsterInstance:
        """The instance, as a second process opens it; to be closed."""
        return dg.DagsterInstance.from_config(str(self.home))

    def built(self) -> list[Built]:
        """Every materialization, in the order of the history."""
        found = []
        with self.instance() as instance:
            for stage, asset in ASSET_OF.items():
                for record in instance.fetch_materializations(asset, limit=1000).records:
                    partition = record.partition_key or "all"
                    found.append(Built(record.storage_id, f"{stage}/{partition}", record.run_id))
        return sorted(found, key=lambda one: one.number)


class Since:
    """What has been built since this was made."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.built_before = deployment, len(deployment.built())
        self.runs_before = {run.run_id for run in deployment.runs()}
        self.cpu_seconds_before = deployment.cpu_seconds()

    def built(self) -> list[Built]:
        """The materializations."""
        return self.deployment.built()[self.built_before :]

    def counts(self) -> Counter[str]:
        """How often each partition was materialized."""
        return Counter(one.name for one in self.built())

    def n_runs(self) -> int:
        """How many runs there were, whatever became of them."""
        return len(self.deployment.runs()) - len(self.runs_before)

    def costs(self) -> str:
        """Runs, steps that succeeded, materializations, and the processor time of all processes,
        those of the daemon and of the code server among them.
        """
        with self.deployment.instance() as instance:
            stats = [
                instance.get_run_stats(run.run_id)
                for run in instance.get_runs()
                if run.run_id not in self.runs_before
            ]
        return (
            f"{len(stats)} runs, {sum(one.steps_succeeded for one in stats)} steps, "
            f"{len(self.built())} materializations, "
            f"{self.deployment.cpu_seconds() - self.cpu_seconds_before:.0f} CPU-s"
        )


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))
