"""Pools: how many runs that need something scarce may be under way at a time; the instance sets the
limits (``dagster.yaml``).

Names only. A stage brings its own processes (``LC_WORKERS``), of which Dagster knows nothing: so by
default one run whose steps have workers is let out of the queue at a time, and beside it one that
only looks upstream. Steps that work alone for a moment (a list, an order, a mix, the card) are in
no pool.
"""

from typing import Final

UPSTREAM: Final = "upstream"
"""Steps that ask a server about many files, and compute next to nothing."""

WORKERS: Final = "workers"
"""Steps that use all of ``LC_WORKERS``."""
