"""Runs of Dagster whose shards are done on a cluster of Ray: what one sees of them, and that they
end with their run.

Needs ``lc_assets[ray]``: ``pytest -m network
lc_assets_tests/orchestration/test_runs_on_a_cluster.py``.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import msgspec
import pytest

from lc_assets_tests.builders import recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.execution.clusters import cluster, environment
from lc_assets_tests.execution.work import chores

pytest.importorskip("ray")
pytestmark = [pytest.mark.network, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

RUN = """
import sys
from pathlib import Path
import dagster as dg
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets_tests.execution.work import chores, do_chore

folder, executor, *kinds = Path(sys.argv[1]), sys.argv[2], *sys.argv[3:]

@dg.asset
def shards(context: dg.AssetExecutionContext, build_context: BuildContextResource) -> None:
    with build_context.open(context.log) as opened:
        for _ in opened.executor.run(do_chore, chores(folder, *kinds), what="shards of a test"):
            pass

if __name__ == "__main__":
    with dg.DagsterInstance.ephemeral() as instance:
        resource = BuildContextResource(lake=str(folder / "lake"), upstream=str(folder), executor=executor)
        dg.materialize([shards], instance=instance, resources={"build_context": resource})
"""


@pytest.fixture(scope="module")
def address():
    with cluster() as nodes:
        nodes.start_head()
        nodes.start_worker()
        nodes.start_worker()
        yield f"ray:{nodes.address}"


@contextlib.contextmanager
def started(folder: Path, address: str, *kinds: str) -> Iterator[subprocess.Popen[str]]:
    """A run that ends with the block, if not before."""
    script = folder / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(folder), address, *kinds]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(DAGSTER_DISABLE_TELEMETRY="1")
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def test_remote_tasks_end_with_a_run_that_is_terminated(address, tmp_path):
    """Both workers of the cluster are in the middle of a task that never returns; seconds later
    neither is.
    """
    hanging = chores(tmp_path, "hang", "hang")
    with started(tmp_path, address, "hang", "hang", "double") as run:
        deadline = time.monotonic() + 120
        while not all(chore.begun for chore in hanging) and time.monotonic() < deadline:
            time.sleep(0.1)
        workers = [int(path.suffix[1:]) for path in tmp_path.glob("hang*.begun.*")]
        assert len(workers) == 2
        run.send_signal(signal.SIGINT)  # as Dagster's launchers do
        begun = time.monotonic()
        said = run.communicate(timeout=90)[1]
    assert run.returncode != 0
    assert "DagsterExecutionInterruptedError" in said
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() - begun < 60
        time.sleep(0.1)
    assert [chore.begun for chore in chores(tmp_path, "hang", "hang", "double")] == [1, 1, 0]


def test_what_remote_tasks_say_and_how_they_fail_is_in_the_run(address, tmp_path):
    """Progress with its rate, lines that a task writes there, and the sentence of the one that
    fails.
    """
    with started(tmp_path, address, *["while"] * 150, "say", *["while"] * 30, "fail") as run:
        said = run.communicate(timeout=200)[1]
    assert "shards of a test" in said
    assert "tasks/s" in said
    assert "say-150 says so" in said
    assert "fail-181 is no good" in said


def test_shards_done_on_a_cluster_are_timed_in_the_run(address, tmp_path):
    """A job of the chain: every partition materialized, and a line for every shard with its fate
    and its seconds.
    """
    from lc_assets.definitions import build_defs

    recipe = recipe_file(tmp_path / "recipe.toml", tiny_recipe(tmp_path))
    defs = build_defs(
        lake=str(tmp_path / "lake"),
        upstream=str(tiny_upstream(tmp_path / "upstream")),
        recipe=str(recipe),
        executor=address,
    )
    instance = dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "home"))
    ended = defs.resolve_job_def("snapshot").execute_in_process(
        partition_key="2023-06", instance=instance, raise_on_error=False
    )
    assert ended.success, [event.message for event in ended.all_events if event.is_failure]
    (log,) = (tmp_path / "home").rglob("shards.jsonl")
    lines = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    filtered = [line for line in lines if line["stage"] == "filtered_documents"]
    assert len(filtered) == 3
    assert {line["outcome"] for line in filtered} == {"computed"}
    assert all(line["seconds"] > 0 for line in filtered)
