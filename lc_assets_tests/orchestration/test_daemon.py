"""The real daemon over a tiny upstream: what changed is built exactly once, in order, by as few
runs as can be; pools bound a backfill.

``pytest -s -m slow lc_assets_tests/orchestration/test_daemon.py``: ten minutes, most of them the
daemon's own pauses.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import dagster as dg
import msgspec
import pytest

from lc_assets.builds.stage import (
    UPSTREAM,
    WORKERS,
)
from lc_assets.formats.lists.withdrawal_lists import Withdrawal, line_of
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets_tests.builders import SNAPSHOTS, tiny_upstream
from lc_assets_tests.orchestration.real_daemon import TAGS, Deployment, Since

OLD, NEW = SNAPSHOTS
FOUR = ("2023-06", "2022-49", "2022-40", "2022-33")
OF_ALL = {
    "withdrawn_documents/all",
    "longcrawl/all",
    "longcrawl_flat/all",
    "blended_mix/by-tokens",
    "data_set_card/all",
}
OF_ONE = (
    "filtered_documents",
    "document_keys",
    "document_signatures",
    "signature_index",
    "near_duplicate_pairs",
    "heldout_pairs",
    "contaminated_documents",
    "snapshot_withdrawals",
    "removed_documents",
    "token_documents",
    "token_grid",
    "row_lineage",
    "megatron_rows",
)
BEHIND_A_LIST = (
    "snapshot_withdrawals",
    "removed_documents",
    "token_documents",
    "token_grid",
    "row_lineage",
    "megatron_rows",
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def deploy(tmp_path) -> Iterator[Callable[..., Deployment]]:
    made: list[Deployment] = []

    def make(snapshots: Sequence[str], **settings) -> Deployment:
        made.append(Deployment(tmp_path, snapshots, **settings))
        return made[-1]

    yield make
    for deployment in made:
        deployment.stop()


def of(snapshot: str, stages: Sequence[str] = OF_ONE) -> set[str]:
    return {f"{stage}/{snapshot}" for stage in stages}


def assert_in_order(since: Since) -> None:
    """Whatever was built stood after everything that it reads and that was built too."""
    at = {one.name: one.number for one in since.built()}
    for name, number in at.items():
        stage, key = name.split("/")
        for other, number_of_other in at.items():
            upstream, upstream_key = other.split("/")
            if stage_named(stage).is_fed_by(since.deployment.recipe, key, upstream, upstream_key):
                assert number_of_other < number, (other, name)


def versions(deployment: Deployment, snapshot: str) -> dict[str, str]:
    return {stage: deployment.lake.partition(stage, snapshot).require().version for stage in OF_ONE}


def documents_of(deployment: Deployment, snapshot: str) -> set[str]:
    return set(
        rows_table(deployment.lake.partition("token_grid", snapshot).require())["id"].to_pylist()
    )


def test_what_changes_is_built_once_by_itself(deploy):
    """A first snapshot; a second one appears; nothing; a threshold; a withdrawn document; nothing
    again.
    """
    deployment = deploy([OLD], automation=True)
    said = []

    def settle(what: str, snapshots: Sequence[str]) -> Since:
        since = settle.since
        seconds = deployment.wait(lambda: not deployment.behind(snapshots))
        said.append(f"{what}: {seconds:.0f} s, {since.costs()}")
        assert set(since.counts().values()) == {1}, since.counts()
        assert_in_order(since)
        settle.since = Since(deployment)
        return since

    settle.since = Since(deployment)
    deployment.start()
    assert set(settle("from nothing", [OLD]).counts()) == {f"raw_snapshot/{OLD}"} | of(OLD) | OF_ALL

    before = versions(deployment, OLD)
    tiny_upstream(deployment.upstream, snapshots=[NEW], tags=TAGS)
    added = settle("one snapshot added", SNAPSHOTS)
    assert set(added.counts()) >= {f"raw_snapshot/{NEW}"} | of(NEW) | OF_ALL
    assert versions(deployment, OLD) == before

    time.sleep(70)  # two ticks of each sensor
    settled = settle.since
    assert settled.n_runs() == 0

    deployment.change_recipe(
        filtered_documents=msgspec.structs.replace(
            deployment.recipe.filtered_documents, min_words=100
        )
    )
    assert set(settle("one threshold changed", SNAPSHOTS).counts()) == of(OLD) | of(NEW) | OF_ALL

    before, held = versions(deployment, OLD), documents_of(deployment, NEW)
    out = min(held)
    entry = Withdrawal(kind="document", value=out, reason="asked for", date="2026-03-01")
    with deployment.withdrawn.open("a") as lines:
        lines.write(f"{line_of(entry)}\n")
    taken_out = settle("one document withdrawn", SNAPSHOTS)
    assert set(taken_out.counts()) >= of(NEW, BEHIND_A_LIST) | OF_ALL
    after = versions(deployment, OLD)
    assert {stage for stage in OF_ONE if after[stage] != before[stage]} == {"snapshot_withdrawals"}
    assert documents_of(deployment, NEW) == held - {out}

    time.sleep(70)
    assert settle.since.n_runs() == 0
    assert {run.status for run in deployment.runs()} == {dg.DagsterRunStatus.SUCCESS}
    said.append(f"nothing changed, 70 s: {settle.since.costs()}")
    print("\n" + "\n".join(said))


def most_at_once(deployment: Deployment, names: set[str]) -> int:
    """The most runs that were under way at a time, by when the history has them started and
    ended.
    """
    with deployment.instance() as instance:
        records = [
            record for record in instance.get_run_records() if record.dagster_run.run_id in names
        ]
    steps = sorted(
        [(record.start_time, 1) for record in records]
        + [(record.end_time, -1) for record in records]
    )
    under_way = [sum(change for _, change in steps[: at + 1]) for at in range(len(steps))]
    return max(under_way)


def test_a_backfill_waits_for_its_pools(deploy):
    """Room for four runs: snapshots one at a time while the pools have room for one, which is the
    default; two when for two.

    Dagster 1.13 makes a pool of the default size when it first lets a run out that needs it, and
    that once it lets out whatever waits: so one snapshot goes before.
    """
    deployment = deploy(FOUR, automation=False, max_concurrent_runs="4")
    deployment.start()
    assert [backfilled(deployment, FOUR[:1])[0], backfilled(deployment, FOUR)[0]] == [1, 1]
    for pool in (UPSTREAM, WORKERS):
        deployment.command("dagster", "instance", "concurrency", "set", pool, "2")
    assert backfilled(deployment, FOUR)[0] == 2


def backfilled(deployment: Deployment, snapshots: Sequence[str]) -> tuple[int, float]:
    """Backfill snapshots' documents; returns the most runs that were under way at once, and the
    seconds that it took.
    """
    before = {run.run_id for run in deployment.runs()}
    words = (
        "-m",
        "lc_assets.definitions",
        "-j",
        "snapshot_documents",
        "--noprompt",
        "--partitions",
        ",".join(snapshots),
    )
    deployment.command("dagster", "job", "backfill", *words)
    seconds = deployment.wait(lambda: len(deployment.runs()) == len(before) + len(snapshots))
    ours = [run for run in deployment.runs() if run.run_id not in before]
    assert {run.status for run in ours} == {dg.DagsterRunStatus.SUCCESS}
    most = most_at_once(deployment, {run.run_id for run in ours})
    print(f"\n{len(snapshots)} snapshots backfilled: {seconds:.0f} s, at most {most} at once")
    return most, seconds
