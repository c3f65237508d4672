"""Checks of many shards, by workers: in one process they would limit the speed of a snapshot,
however many workers there are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from lc_assets.build.stage import CheckInput
from lc_assets.records import frozen

Item = TypeVar("Item")
Found = TypeVar("Found")

MOST_BATCH = 16
"""Items of a task, which costs the main process 0.1 ms."""


@frozen
class CheckTask:
    """Items that a worker checks, from the one of number ``start`` on."""

    start: int
    items: Sequence[Any]

    def __str__(self) -> str:
        return f"check of {self.items[0]} and {len(self.items) - 1:,} more"


def by_workers(
    check_input: CheckInput, function: Callable[[Sequence[Item]], Found], items: Sequence[Item]
) -> list[Found]:
    """What a module's function finds in the items, a few per call, in their order; workers call
    it.
    """
    n_items = max(1, min(MOST_BATCH, len(items) // MOST_BATCH))
    starts = range(0, len(items), n_items)
    tasks = [CheckTask(start, items[start : start + n_items]) for start in starts]
    found = {
        task.start: result
        for task, result in check_input.executor.run(partial(_check, function), tasks, what="")
    }
    return [found[start] for start in starts]


def _check(function: Callable[[Sequence[Any]], Found], task: CheckTask) -> Found:
    return function(task.items)
