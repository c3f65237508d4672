"""A run that is terminated: its workers end with it, in the middle of their tasks, and Dagster says
that it was interrupted.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets_tests.execution.work import chores
from lc_assets_tests.processes import HANG_SECONDS, wait_until, wait_until_session_ends

RUN = """
import sys
from pathlib import Path
import dagster as dg
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets_tests.execution.work import chores, do_chore

folder = Path(sys.argv[1])

@dg.asset
def endless(context: dg.AssetExecutionContext, build_context: BuildContextResource) -> None:
    with build_context.open(context.log) as opened:
        for _ in opened.executor.run(do_chore, chores(folder, "hang", "hang", "double"), what="hang"):
            pass

if __name__ == "__main__":
    with dg.DagsterInstance.ephemeral() as instance:
        resource = BuildContextResource(lake=str(folder / "lake"), upstream=str(folder), workers=2)
        dg.materialize([endless], instance=instance, resources={"build_context": resource})
"""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them"
)
def test_workers_end_with_a_run_that_is_terminated(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    hanging = chores(tmp_path, "hang", "hang")
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=here_first(),
    ) as run:
        wait_until(lambda: all(chore.begun for chore in hanging), "both tasks hang")
        assert [chore.begun for chore in hanging] == [1, 1]
        run.send_signal(signal.SIGINT)  # as Dagster's launchers do
        said = run.communicate(timeout=HANG_SECONDS)[1]
    assert run.returncode != 0
    assert "DagsterExecutionInterruptedError" in said
    wait_until_session_ends(run.pid)


def here_first() -> dict[str, str]:
    """The environment, with this checkout before any that is installed."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
