"""What is measured on a lake of a made-up scale, each part in a process of its own; prints one line
of JSON.

As a program: ``python -m … PART PERCENT FOLDER``. Parts that build something leave it in the
folder, for those that come after it in `PARTS`. Seconds are those of the work, without start,
imports, and the making up of names that a service would list; ``peak_mb`` is of the whole process,
``start_mb`` what it had before the work. Here: parts. Not here: what is made up
(`lc_assets_tests.benchmarks.scaled_lake`), exponents (`test_scale`).
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lc_assets.lake.versions import VersionFiles
from lc_assets_tests.benchmarks import scale_asking as asking, scale_building as building
from lc_assets_tests.benchmarks.scaled_lake import MAKING_UP, Bench, Measured, Scale
from lc_assets_tests.memory import peak_mb

PARTS: dict[str, Callable[[Bench], Measured]] = {
    "manifests": building.manifests,
    "manifests_read": building.manifests_read,
    "documents": building.documents,
    "document_keys": building.keys,
    "signature_index": building.bands_of_a_snapshot,
    "near_duplicate_pairs": building.near_pairs_of_a_snapshot,
    "removed_documents": building.removals,
    "rows": building.rows,
    "row_index": building.row_index,
    "order": building.order,
    "rest": building.rest,
    "plan_current": asking.plan_current,
    "plan_stale": asking.plan_stale,
    "checks_raw": asking.checks_of("raw_snapshot"),
    "checks_filtered": asking.checks_of("filtered_documents", only=True),
    "checks_grid": asking.checks_of_row_tables,
    "checks_lineage": asking.checks_of("row_lineage"),
    "checks_longcrawl": asking.checks_of("longcrawl"),
    "look_ups": asking.look_ups,
    "tick_upstream": asking.tick_upstream,
    "tick_out_of_date": asking.tick_out_of_date,
}
"""In the order in which they build on one another."""


def main(part: str, percent: str, folder: str) -> None:
    """Do one part and print what it took."""
    os.fsync = lambda _: (
        None
    )  # how long a disk takes is not what grows, and depends on who else writes to it
    VersionFiles.lost = lambda _self, _home: []  # most files are only promised by receipts
    work = PARTS[part](Bench(Scale(float(percent) / 100), Path(folder)))
    start_mb, begun, cpu = peak_mb(), time.perf_counter(), time.process_time()
    n_items = work()
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu - MAKING_UP[0]
    print(
        json.dumps(
            {
                "items": n_items,
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "start_mb": start_mb,
                "peak_mb": peak_mb(),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
