"""Progress of long work on a terminal or in a log: count, rate and time left, by tqdm."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Item = TypeVar("Item")

NO_RATE_YET = ", ? tasks/s"
"""Text of a line before the first task is finished, or when there is none."""

LOG_EVERY_SECONDS = 5.0
"""A Dagster log line costs about 5 ms of CPU (measured for facts on Dagster 1.13), so one every few
seconds is free.
"""


class Watch(Protocol):
    """Passes items through and shows progress, unless ``what`` is empty."""

    def __call__(self, items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
        """Yield the items unchanged."""
        ...


def silent(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
    """Show nothing."""
    del total, what
    yield from items


def on_terminal(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
    """Draw a bar on standard error when it is a terminal."""
    if not what or not sys.stderr.isatty():
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(items, total=total, desc=what, unit=" tasks", leave=False, file=sys.stderr)


def in_log(say: Callable[[str], object], *, drawn: Watch = silent) -> Watch:
    """Make a watch that logs a line every few seconds, such as ``filter 2023-06:  42%|… 21/50
    [00:05<00:07, 4.2 tasks/s]``.

    There is no line without work or before the first task is finished, and at most one in
    `LOG_EVERY_SECONDS`, except the last one, which has the total time.

    Args:
        say: logs a line.
        drawn: another watch that the items pass through.
    """

    def watch(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
        from tqdm import tqdm

        if not what:
            yield from items
            return
        lines = _Lines(say)
        yield from tqdm(
            drawn(items, total=total, what=what),
            total=total,
            desc=what,
            unit=" tasks",
            mininterval=LOG_EVERY_SECONDS,
            file=lines,
            ascii=True,
            ncols=100,
        )

    return watch


class _Lines(io.StringIO):
    """A text file that passes each line of a progress bar to a function, except those without a
    rate.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        super().__init__()
        self._say = say

    def write(self, text: str) -> int:
        line = text.strip()
        if line and NO_RATE_YET not in line:
            self._say(line)
        return len(text)
