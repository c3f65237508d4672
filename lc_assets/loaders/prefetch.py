"""Reading ahead on threads: the same answers in the same order, sooner.

Here: asking for the next steps while one is used. Not here: what a step is (`loaders.grid`).

Decompression and file reads release the interpreter's lock, so threads of one process do what
worker processes would, without sending batches between processes. What they decode goes through the
loader's one cache, so nothing is decoded twice.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from lc_assets.errors import BadInput

Step = TypeVar("Step")
Answer = TypeVar("Answer")

THREAD_NAME: Final = "lc-prefetch"


def ahead(
    read: Callable[[Step], Answer], steps: Iterable[Step], *, n_ahead: int, threads: int = 1
) -> Iterator[Answer]:
    """Yield ``read(step)`` for each step in order, with up to ``n_ahead`` later ones being read
    meanwhile.

    An error is raised where its step's answer would be. When the iterator ends, is closed or is let
    go, what has not begun is not begun, and no thread is left behind.

    Args:
        read: makes an answer; called on threads.
        steps: in order; taken as they are needed.
        n_ahead: answers held beside the one in use; 0 reads in the caller's thread.
        threads: how many read at once.

    >>> list(ahead(str, range(4), n_ahead=2))
    ['0', '1', '2', '3']

    Raises:
        BadInput: when ``n_ahead`` is negative or there is no thread.
    """
    if n_ahead < 0 or threads < 1:
        raise BadInput(
            f"cannot read {n_ahead} steps ahead on {threads} threads: wanted 0 or more steps and "
            "at least one thread"
        )
    return map(read, steps) if n_ahead == 0 else _ahead(read, steps, n_ahead, min(threads, n_ahead))


def _ahead(
    read: Callable[[Step], Answer], steps: Iterable[Step], n_ahead: int, threads: int
) -> Iterator[Answer]:
    waiting: deque[Future[Answer]] = deque()
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads, THREAD_NAME))
        stack.callback(pool.shutdown, cancel_futures=True)
        for step in steps:
            waiting.append(pool.submit(read, step))
            if len(waiting) > n_ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
