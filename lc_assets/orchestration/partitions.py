"""Which partitions of one asset are behind which of another."""

from collections.abc import Callable, Sequence

import dagster as dg


def read_by(names: Sequence[str], reads: Callable[[str, str], bool]) -> dg.StaticPartitionMapping:
    """Which snapshots are behind which, as a stage declares it: ``reads(snapshot, upstream
    snapshot)``.
    """
    return dg.StaticPartitionMapping(
        {upstream: [name for name in names if reads(name, upstream)] for upstream in names}
    )
