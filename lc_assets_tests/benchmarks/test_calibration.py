"""How well `lc plan --calibrate` foresees a run: ``LC_MB=250 pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_calibration.py``.

The snapshot of `test_serial_part`, calibrated by builds of two and four of its eight shards, then
built, all by the same two workers, by the clock: the machine must be as busy throughout.
"""

import time

import pytest

from lc_assets.builds.building import WORKERS_IMPORT
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages import calibrating
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.costing import costs_of
from lc_assets.stages.planning import keys_of, plan
from lc_assets_tests.benchmarks.test_serial_part import (
    SHARDS,
    SNAPSHOT,
    context_of,
    upstream,  # noqa: F401
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

WORKERS = 2
MOST_TIMES = 1.5
SECONDS = 0.0
"""For calibration: no more than the least."""


def test_a_run_takes_what_was_foreseen(upstream, tmp_path):  # noqa: F811
    executor = LocalExecutor(workers=WORKERS, preload=WORKERS_IMPORT)
    context = context_of(tmp_path / "lake", upstream, SHARDS, executor)
    begun = time.perf_counter()
    found = calibrating.calibrate(context, [SNAPSHOT], at_once=WORKERS, seconds=SECONDS)
    calibrated = time.perf_counter() - begun
    costs = found.filled(
        costs_of(context.lake, context.recipe, plan(context.lake, context.recipe, [SNAPSHOT]))
    )
    foreseen = {cost.name: cost.seconds or 0.0 for cost in costs}
    took = {}
    for stage in STAGES:
        for key in keys_of(stage, context.recipe, [SNAPSHOT]):
            begun = time.perf_counter()
            stage.build(context, key)
            took[f"{stage.name}/{key}"] = time.perf_counter() - begun
    print(f"\ncalibrated in {calibrated:.1f} s by {found.n_shards} of {SHARDS} shards")
    for name, seconds in took.items():
        print(f"{name:40s} foreseen {foreseen[name]:6.2f} s, took {seconds:6.2f} s")
    whole = sum(took.values()) - took[f"raw_snapshot/{SNAPSHOT}"]
    print(f"together foreseen {sum(foreseen.values()):.1f} s, took {whole:.1f} s")
    assert whole / MOST_TIMES < sum(foreseen.values()) < whole * MOST_TIMES
