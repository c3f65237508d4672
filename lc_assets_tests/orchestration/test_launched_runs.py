"""Runs that Dagster launches end together with their workers, and only they, however they end.

``LC_RUNS=100 pytest -m slow -s lc_assets_tests/orchestration/test_launched_runs.py``: half a minute
for ``dagster dev`` to start, and six CPU-seconds for each run.
"""

import itertools
import os
from collections import Counter

import pytest

from lc_assets_tests.orchestration.launched_runs import AT_ONCE, OUTCOMES, Development

N_RUNS = int(os.environ.get("LC_RUNS", "6"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6000)]


def test_no_process_of_a_launched_run_is_left(tmp_path):
    totals, most = Counter(), Counter()
    seconds = {job: [] for job in OUTCOMES}
    with Development(tmp_path) as development:
        before = development.processes()
        for job in itertools.cycle(OUTCOMES):
            if (n_runs := min(AT_ONCE, N_RUNS - totals.total())) == 0:
                break
            at_once, took = development.run_to_the_end(job, n_runs)
            totals[job] += n_runs
            most[job] = max(most[job], at_once)
            seconds[job].append(took)
        assert development.processes() == before
    print("\nended as | runs | processes before | at most | after | seconds until all are gone")
    for job in OUTCOMES:
        print(
            f"{job} | {totals[job]} | {len(before)} | {len(before) + most[job]} | {len(before)} | "
            f"{sum(seconds[job]) / len(seconds[job]):.1f}, at most {max(seconds[job]):.1f}"
        )
