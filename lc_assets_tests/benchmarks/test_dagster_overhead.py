"""What Dagster adds to a partition: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_dagster_overhead.py``, two minutes.

One tiny snapshot's documents, six stages and their checks, four ways: by the verbs; in this
process, with a history in memory and in SQLite; as ``dagster asset materialize``; as a run that the
daemon launches. The work is the same and next to nothing.
"""

import resource
import shutil
import time
from pathlib import Path

import dagster as dg
import pytest

from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.definitions import ASSET_OF, build_defs
from lc_assets.orchestration.automation import instance_at
from lc_assets.stages.catalogue import stage_named
from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_context, tiny_upstream
from lc_assets_tests.orchestration.real_daemon import Deployment

STAGES = (
    "raw_snapshot",
    "filtered_documents",
    "document_keys",
    "document_signatures",
    "signature_index",
    "near_duplicate_pairs",
    "heldout_pairs",
    "contaminated_documents",
)
OLD, NEW = SNAPSHOTS
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"))


def test_what_dagster_adds_to_a_partition(upstream, tmp_path):
    """CPU seconds per partition and stage, and where they go."""
    found = {"the verbs": by_verbs(upstream, tmp_path / "verbs")}
    for name, in_memory in (("in this process, history in memory", True), ("… in SQLite", False)):
        found[name], n_events = in_process(upstream, tmp_path / str(in_memory), in_memory=in_memory)
        assert found[name][1] == found["the verbs"][1]
    deployment = Deployment(tmp_path, [OLD, NEW], automation=False)
    deployment.command("dagster", "instance", "info")
    found["`dagster asset materialize`"] = as_process(deployment)
    found["a run that the daemon launches"], found["… once its process has begun"] = launched(
        deployment
    )
    print("\n| how | CPU-s a stage | wall s a stage | wall s a run |\n|---|---|---|---|")
    for name, (cpu, _, wall) in found.items():
        print(
            f"| {name} | {'' if cpu is None else f'{cpu / len(STAGES):.2f}'} | "
            f"{wall / len(STAGES):.2f} | {wall:.1f} |"
        )
    in_memory, in_sqlite = (
        found[name][0] for name in ("in this process, history in memory", "… in SQLite")
    )
    print(
        f"{n_events} events a run: {1000 * (in_sqlite - in_memory) / n_events:.1f} ms CPU each in "
        "SQLite"
    )
    assert in_sqlite > found["the verbs"][0]


def by_verbs(upstream: Path, folder: Path) -> tuple[float, str, float]:
    """CPU seconds, version of the last stage and seconds of one snapshot by the verbs; the other
    one warms up.
    """
    context = tiny_context(folder, upstream=upstream, packed_rows=PackingSettings())
    for snapshot in (OLD, NEW):
        cpu, wall = time.process_time(), time.perf_counter()
        for stage in STAGES:
            version = stage_named(stage).build(context, snapshot).published.version
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu, version, wall


def in_process(
    upstream: Path, folder: Path, *, in_memory: bool
) -> tuple[tuple[float, str, float], int]:
    """The same by ``execute_in_process``, with the number of events."""
    context = tiny_context(folder, upstream=upstream, packed_rows=PackingSettings())
    recipe = recipe_file(folder / "recipe.toml", context.recipe)
    job = build_defs(
        lake=context.lake.url, upstream=str(upstream), recipe=str(recipe)
    ).resolve_job_def("snapshot_documents")
    home = folder / "home"
    home.mkdir()
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", home)
    with (
        dg.DagsterInstance.ephemeral(tempdir=str(home))
        if in_memory
        else instance_at(home) as instance
    ):
        for snapshot in (OLD, NEW):
            cpu, wall = time.process_time(), time.perf_counter()
            ended = job.execute_in_process(
                run_config=QUIET, partition_key=snapshot, instance=instance
            )
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        n_events = len(instance.all_logs(ended.run_id))
    version = context.lake.partition(STAGES[-1], NEW).require().version
    return (cpu, version, wall), n_events


def as_process(deployment: Deployment) -> tuple[float, str, float]:
    """The same by ``dagster asset materialize``: CPU seconds of the process and its children."""
    names = ",".join(ASSET_OF[stage].to_user_string() for stage in STAGES)
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    deployment.command(
        "dagster",
        "asset",
        "materialize",
        "-m",
        "lc_assets.definitions",
        "--select",
        names,
        "--partition",
        OLD,
    )
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, deployment.lake.partition(STAGES[-1], OLD).require().version, wall


def launched(deployment: Deployment) -> tuple[tuple[None, str, float], tuple[None, str, float]]:
    """The same by the daemon: seconds from when the queue lets the run out to its end, and from
    when its process has begun.
    """
    deployment.start()
    try:
        words = (
            "-m",
            "lc_assets.definitions",
            "-j",
            "snapshot_documents",
            "--noprompt",
            "--partitions",
            NEW,
        )
        deployment.command("dagster", "job", "backfill", *words)
        deployment.wait(lambda: len(deployment.runs()) == 2)
        with deployment.instance() as instance:
            (run,) = instance.get_runs(dg.RunsFilter(tags={"dagster/partition": NEW}))
            stats = instance.get_run_stats(run.run_id)
    finally:
        deployment.stop()
    assert run.is_success
    version = deployment.lake.partition(STAGES[-1], NEW).require().version
    return (None, version, stats.end_time - stats.launch_time), (
        None,
        version,
        stats.end_time - stats.start_time,
    )
