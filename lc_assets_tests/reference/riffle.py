"""The riffle as a merge of sorted lists, one element at a time."""

import heapq
from collections.abc import Sequence

import numpy as np


def slow_riffle(priorities_by_source: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Return (source, row) in the order of (priority, source, row)."""
    keyed = (
        [(int(key), source, row) for row, key in enumerate(keys)]
        for source, keys in enumerate(priorities_by_source)
    )
    return [(source, row) for _, source, row in heapq.merge(*keyed)]
