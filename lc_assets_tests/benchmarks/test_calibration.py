"""How well `lc plan --calibrate` foresees a run: ``LC_MB=250 pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_calibration.py``.

The snapshot of `test_serial_part` calibrates, by builds of two and four of its eight shards. Then a
snapshot that was not seen is foreseen and built: other texts, half as many shards, half as much again
in each. All by the same two workers, by the clock: the machine must be as busy throughout.
"""

import time
from pathlib import Path

import pytest

from lc_assets.builds.building import WORKERS_IMPORT
from lc_assets.execution.local import LocalExecutor
from lc_assets.sources import redpajama_v2
from lc_assets.stages import calibrating
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.costing import costs_of
from lc_assets.stages.planning import keys_of, plan
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.benchmarks.test_serial_part import (
    MEGABYTES,
    SHARDS,
    SNAPSHOT,
    context_of,
    shards_of,
    upstream,  # noqa: F401
    write_shard,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

WORKERS, RAW = 2, "raw_snapshot"
UNSEEN = parse_snapshot("2023-14")
MOST_TIMES = 1.5
SECONDS = 0.0
"""For calibration: no more than the least."""


@pytest.fixture
def unseen(upstream) -> Path:  # noqa: F811
    """The same upstream with another snapshot."""
    shards = [Shard(UNSEEN, shard.name) for shard in shards_of(SHARDS // 2)]
    listing = upstream / redpajama_v2.listing_path(UNSEEN, "en")
    if not listing.exists():
        for shard in shards:
            write_shard(upstream, shard, int(1.5 * MEGABYTES * 1e6 / SHARDS))
        redpajama_v2.write_listing(listing, shards)
    return upstream


def test_a_run_takes_what_was_foreseen(unseen, tmp_path):
    executor = LocalExecutor(workers=WORKERS, preload=WORKERS_IMPORT)
    context = context_of(tmp_path / "lake", unseen, SHARDS, executor)
    begun = time.perf_counter()
    found = calibrating.calibrate(context, [SNAPSHOT, UNSEEN], at_once=WORKERS, seconds=SECONDS)
    calibrated = time.perf_counter() - begun
    stage_named(RAW).build(context, UNSEEN)  # it says how much there is
    costs = found.filled(
        costs_of(context.lake, context.recipe, plan(context.lake, context.recipe, [UNSEEN]))
    )
    foreseen = {cost.name: cost.seconds or 0.0 for cost in costs}
    took = {}
    for stage in STAGES:
        for key in keys_of(stage, context.recipe, [UNSEEN]):
            begun = time.perf_counter()
            stage.build(context, key)
            took[f"{stage.name}/{key}"] = time.perf_counter() - begun
    del took[f"{RAW}/{UNSEEN}"]  # built before
    print(f"\ncalibrated in {calibrated:.1f} s by {found.n_shards[SNAPSHOT]} of {SHARDS} shards")
    for name, seconds in took.items():
        print(f"{name:40s} foreseen {foreseen[name]:6.2f} s, took {seconds:6.2f} s")
    whole = sum(took.values())
    print(f"together foreseen {sum(foreseen.values()):.1f} s, took {whole:.1f} s")
    assert whole / MOST_TIMES < sum(foreseen.values()) < whole * MOST_TIMES
