"""Partitions: crawl snapshots, and mixes by name. Names only.

The lists here are the defaults; `lc_assets.definitions.build_defs` puts a user's own in their
place.
"""

from collections.abc import Callable, Sequence

import dagster as dg

from lc_assets.stages.recipe import Recipe
from lc_assets.stages.snapshots import known_snapshots

SNAPSHOTS = dg.StaticPartitionsDefinition(list(known_snapshots()))
"""What a person re-runs. Shards, languages and buckets are loops inside a partition, not
partitions.
"""

MIXES = dg.StaticPartitionsDefinition(sorted(Recipe().blended_mix))
"""Blends, by their names in the recipe."""

ALL_SNAPSHOTS = dg.AllPartitionMapping()
"""What stands behind the global order and the mixes: every snapshot that is published."""


def read_by(names: Sequence[str], reads: Callable[[str, str], bool]) -> dg.StaticPartitionMapping:
    """Which snapshots stand behind which, as a stage has it: ``reads(snapshot, upstream
    snapshot)``.
    """
    return dg.StaticPartitionMapping(
        {upstream: [name for name in names if reads(name, upstream)] for upstream in names}
    )
