"""Progress of long work on a terminal or in a log: count, rate and time left, by tqdm."""

import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from lc_assets.counts import Counts

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


def in_log(
    say: Callable[[str], object], *, drawn: Watch = silent, every_seconds: float | None = None
) -> Watch:
    """Make a watch that logs a line every few seconds, such as ``filter 2023-06:  42%|… 21/50
    [00:05<00:07, 4.2 tasks/s, 9,310 documents, 1,862/s]``.

    There is no line without work or before the first task is finished, and at most one in
    `LOG_EVERY_SECONDS`, except the last one, which has the total time.

    Args:
        say: logs a line.
        drawn: another watch that the items pass through.
        every_seconds: instead of `LOG_EVERY_SECONDS`.
    """

    def watch(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
        from tqdm import tqdm

        if not what:
            yield from items
            return
        begun, n_documents = time.monotonic(), 0
        bar = tqdm(
            drawn(items, total=total, what=what),
            total=total,
            desc=what,
            unit=" tasks",
            mininterval=LOG_EVERY_SECONDS if every_seconds is None else every_seconds,
            file=_Lines(say),
            ascii=True,
            ncols=120,
        )
        for item in bar:
            if n := _documents_of(item):
                n_documents += n
                rate = n_documents / max(time.monotonic() - begun, 1e-9)
                bar.set_postfix_str(f"{n_documents:,} documents, {rate:,.0f}/s", refresh=False)
            yield item

    return watch


def _documents_of(item: object) -> int:
    """Documents that a finished task has seen, where its result counts them."""
    result = item[-1] if isinstance(item, tuple) else item
    counts = getattr(result, "counts", None)
    return counts.seen if isinstance(counts, Counts) else 0


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
