"""Runs that ``dagster dev`` launches into processes of their own, asked for as its UI does."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from lc_assets_tests.processes import processes_of_session, wait_until

ROOT = Path(__file__).parents[2]
OUTCOMES = {"success": "SUCCESS", "failure": "FAILURE", "cancelled": "CANCELED"}
"""Job → how its runs end, when those of ``cancelled`` are cancelled."""

LOCATION = """
from pathlib import Path
import dagster as dg
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets_tests.execution.work import chores, do_chore

HERE = Path(__file__).parent

def asset_of(name, *kinds):
    @dg.asset(name=f"{name}_asset")
    def work(context: dg.AssetExecutionContext, build_context: BuildContextResource) -> None:
        folder = HERE / context.run_id
        folder.mkdir()
        with build_context.open(context.log) as opened:
            list(opened.executor.run(do_chore, chores(folder, *kinds), what=name))

    return work

ASSETS = [
    asset_of("success", "double", "double"),
    asset_of("failure", "double", "fail"),
    asset_of("cancelled", "hang", "hang"),
]
defs = dg.Definitions(
    assets=ASSETS,
    jobs=[dg.define_asset_job(one.key.path[0].removesuffix("_asset"), [one]) for one in ASSETS],
    resources={"build_context": BuildContextResource(lake=str(HERE / "lake"), workers=2)},
    executor=dg.in_process_executor,
)
"""
"""Each run has two workers; those of ``cancelled`` work until they are killed."""


AT_ONCE = 4
AS_MANY = "max_concurrent_runs: 2"
"""How many runs are let out at a time, here and in the settings that this project has."""

LAUNCH = """
mutation($job: String!) {
  launchRun(executionParams: {
    selector: {
      repositoryLocationName: "location.py", repositoryName: "__repository__", jobName: $job
    }
    runConfigData: {}
  }) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
CANCEL = """
mutation($run: String!) {
  terminateRun(runId: $run) { __typename ... on TerminateRunFailure { message } }
}
"""
STATUS = "query($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"


class Development:
    """``dagster dev`` over a code location of the test's: web server, daemon and code server, in a
    session of their own; a context manager.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, home = folder, folder / "home"
        home.mkdir()
        settings = (ROOT / "dagster.yaml").read_text()
        assert AS_MANY in settings
        settings = settings.replace(AS_MANY, f"max_concurrent_runs: {AT_ONCE}")
        (home / "dagster.yaml").write_text(settings)
        (folder / "location.py").write_text(LOCATION)
        self.port = free_port()
        command = ["dagster", "dev", "-f", "location.py", "--host", "127.0.0.1", "--port"]
        with (folder / "dagster.log").open("ab") as log:
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name(command[0]), *command[1:], str(self.port)],
                env=os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": str(ROOT)},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        wait_until(self._answers, "the web server answers")
        before = self.processes()
        self._run("success", 1, before)
        # the code server now has one process more: multiprocessing's tracker of shared memory
        wait_until(lambda: len(self.processes() - before) <= 1, "the first run has ended")
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def processes(self) -> set[str]:
        """The session's processes that have not ended."""
        return set(processes_of_session(self.process.pid))

    def run_to_the_end(self, job: str, n_runs: int) -> tuple[int, float]:
        """Launch runs, at most `AT_ONCE`, cancel those of ``cancelled`` while both workers of each are at
        work, and wait until they, and all their processes, have ended.

        Returns:
            The most processes that there were at a time, and the seconds from the last run's
            recorded end to that of its last process.
        """
        before = self.processes()
        most = self._run(job, n_runs, before)
        since = time.monotonic()
        wait_until(lambda: self.processes() <= before, "the processes of the runs have ended")
        assert self.processes() == before
        return most, time.monotonic() - since

    def _run(self, job: str, n_runs: int, before: set[str]) -> int:
        runs = [self._ask(LAUNCH, job=job)["launchRun"]["run"]["runId"] for _ in range(n_runs)]
        at_work, most = set(runs) if job == "cancelled" else set(), 0

        def have_ended() -> bool:
            nonlocal most
            most = max(most, len(self.processes() - before))
            for run in list(at_work):
                if len(list((self.folder / run).glob("*.begun.*"))) == 2:
                    self._ask(CANCEL, run=run)
                    at_work.remove(run)
            return all(self._status(run) in OUTCOMES.values() for run in runs)

        wait_until(have_ended, f"{job} has ended", every=0.25)
        assert [self._status(run) for run in runs] == [OUTCOMES[job]] * n_runs
        return most

    def _status(self, run: str) -> str:
        return str(self._ask(STATUS, run=run)["runOrError"]["status"])

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "dagster.log").read_text()[-4000:]
        try:
            return bool(self._ask("{ version }"))
        except OSError:
            return False

    def _ask(self, query: str, **variables: str) -> Any:
        return ask(self.port, query, **variables)


def free_port() -> int:
    """A port that no process listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def ask(port: int, query: str, **variables: Any) -> Any:
    """What the web server's GraphQL API answers."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    content = json.dumps({"query": query, "variables": variables})
    with contextlib.closing(asked):
        asked.request("POST", "/graphql", content, {"Content-Type": "application/json"})
        answer = json.load(asked.getresponse())
    assert "errors" not in answer, answer
    return answer["data"]
