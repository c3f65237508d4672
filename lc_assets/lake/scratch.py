"""Workings: what a stage remembers of a version while it builds it, so that a rerun does not begin
again.

One JSON file per finished task, under ``.workings`` in the version's folder, written when the
task's outputs are published. It belongs to no digest and is removed once the version has its
receipt.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lc_assets.counts import Counts
from lc_assets.lake.receipts import SCRATCH, decode_json, encode_json
from lc_assets.publishing import publish_bytes


class OutputTask(Protocol):
    """A task that says which folder it writes into and what its output is called."""

    @property
    def folder(self) -> Path:
        """The version's folder."""
        ...

    @property
    def name(self) -> str:
        """A name of its own within the folder, safe as a file's name."""
        ...


Work = TypeVar("Work", bound=OutputTask)


def once(function: Callable[[Work], Counts]) -> Callable[[Work], Counts]:
    """Make a shard function remember its counts: a task that was finished before is not done
    again.
    """

    @functools.wraps(function)
    def remembering(task: Work) -> Counts:
        memo = _memo(task)
        if memo.is_file():
            return decode_json(memo, Counts)
        counts = function(task)
        publish_bytes(memo, encode_json(counts))
        return counts

    return remembering


def is_remembered(task: Any) -> bool:
    """Whether a task was finished before, as `once` has it; one that has no name or folder never
    was.
    """
    return hasattr(task, "folder") and hasattr(task, "name") and _memo(task).is_file()


def _memo(task: OutputTask) -> Path:
    return task.folder / SCRATCH / f"{task.name}.json"
