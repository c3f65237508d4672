"""The instance's settings as they are shipped, loaded by the installed Dagster; that pools bound a
backfill: `test_daemon.py`.
"""

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.config import PoolGranularity

from lc_assets.builds.stage import (
    UPSTREAM,
    WORKERS,
)
from lc_assets.stages.catalogue import STAGES

ROOT = Path(__file__).parents[2]
IN_NO_POOL = {
    "withdrawn_documents",
    "snapshot_withdrawals",
    "row_lineage",
    "longcrawl",
    "blended_mix",
    "data_set_card",
}
"""Stages that hand no task to ``LC_WORKERS``."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    shutil.copy(ROOT / "dagster.yaml", home)
    with dg.DagsterInstance.from_config(str(home)) as opened:
        yield opened


def test_pools_bound_whole_runs_and_one_has_room(instance):
    found = instance.get_concurrency_config().pool_config
    assert found.pool_granularity == PoolGranularity.RUN
    assert found.default_pool_limit == 1
    assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 2


def test_lost_runs_are_noticed_and_tried_again_and_failures_are_not(instance):
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 2
    assert not instance.run_retries_retry_on_asset_or_op_failure
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 3 * 86_400


def test_every_stage_that_has_workers_is_in_their_pool():
    pools = {stage.name: stage.pool for stage in STAGES}
    assert {name for name, pool in pools.items() if pool is None} == IN_NO_POOL
    assert {name for name, pool in pools.items() if pool == UPSTREAM} == {"raw_snapshot"}
    assert set(pools.values()) == {None, UPSTREAM, WORKERS}
