"""Checks of many shards, by workers: in one process they would limit the speed of a snapshot,
however many workers there are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from lc_assets.builds.stage import CheckInput

Item = TypeVar("Item")
Found = TypeVar("Found")

MOST_BATCH = 16
"""Items of a task, which costs the main process 0.1 ms."""


def by_workers(
    check_input: CheckInput, function: Callable[[Item], Found], items: Sequence[Item]
) -> list[Found]:
    """What a module's function finds in each item, in their order; workers call it."""
    n_items = max(1, min(MOST_BATCH, len(items) // MOST_BATCH))
    batches = [items[start : start + n_items] for start in range(0, len(items), n_items)]
    done = check_input.executor.run(partial(_each, function), batches, what="")
    found = {id(batch): results for batch, results in done}
    return [result for batch in batches for result in found[id(batch)]]


def _each(function: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    return [function(item) for item in items]
