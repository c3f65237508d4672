"""Containment: a document that takes too much time or memory, or crashes its worker, is skipped.

A parser of untrusted bytes may loop, allocate or crash inside C, where nothing in its process can
stop it. So a function that is marked `contained` runs in worker processes (`TaskPolicy` has the
limits), and states which document it is processing in a few bytes of memory, shared with the
process that waits for it::

    @contained
    def read_shard(task):
        for number, page in enumerate(pages_of(task)):
            with processing(number) as skipped:
                links = None if skipped else links_of(page)
            dropped.update([skipped] if skipped else [])

That process looks at all its workers ten times a second. It kills one that is over a limit and runs
the task again with that document skipped, ``skipped`` being the reason to count. Numbers must mean
the same documents in each attempt, and what is imported or compiled at its first use should be used
once before the first document. Between documents nothing is attributed: time that passes there
(waiting for a network, writing a file) is limited by ``TaskPolicy.seconds`` alone. Where a worker
is lost at short documents that it processes together (`at_documents`), the next processes each
alone.

Memory is the anonymous resident memory of the worker, as Linux reports it (elsewhere it is not
limited). An address space limit (``RLIMIT_AS``) would be exact, but it counts what is mapped, not
what is used: Arrow, LLVM and mapped token files take tens of gigabytes of addresses, and a library
in which an allocation fails may continue with damaged data. What is allocated within a tenth of a
second can exceed the limit; workers are therefore also the kernel's first choice when the machine
runs out of memory (``oom_score_adj``), and a worker that it kills is handled in the same way.
"""

import contextlib
import ctypes
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, TypeVar

from lc_assets.execution.executor import Skips, TaskPolicy, run_task
from lc_assets.memory import anonymous_bytes

Function = TypeVar("Function", bound=Callable[..., Any])

WATCH_SECONDS = 0.1
"""How often workers are checked: 20 µs each."""

_NO_DOCUMENT = -1
_CONTAINED = "_is_contained"
_SKIPPING = "_is_skipping"


class _Here:
    """State of this process as a worker: the cell for its current document, and documents to
    skip.
    """

    __slots__ = ("cell", "skips")

    def __init__(self) -> None:
        self.cell = _numbers_of((ctypes.c_longlong * 3)(_NO_DOCUMENT, 0, _NO_DOCUMENT))
        self.skips: Skips = {}


def _numbers_of(cell: Any) -> memoryview:
    return memoryview(cell).cast("B").cast("q")  # twice as fast to write to as the array


_HERE = _Here()


def at_document(number: int, last: int = _NO_DOCUMENT) -> str:
    """State that a document is being processed from here on, without limits, so that the loss of
    the worker is attributed to it; or to one of those up to the ``last``. Return the reason to skip
    it, or "".
    """
    _HERE.cell[2] = last
    _HERE.cell[0] = number
    return _HERE.skips.get(number, "") if _HERE.skips else ""


def skipped_of(numbers: range) -> dict[int, str]:
    """Which of some documents are to be skipped, and why."""
    return {number: why for number, why in _HERE.skips.items() if why and number in numbers}


def at_documents(numbers: Sequence[int]) -> Iterator[slice]:
    """State that documents are being processed together, all that are yielded: one after the other
    where a worker was lost at them before.
    """
    step = 1 if numbers[0] in _HERE.skips else len(numbers)
    for start in range(0, len(numbers), step):
        some = numbers[start : start + step]
        at_document(some[0], some[-1])
        yield slice(start, start + step)


@contextlib.contextmanager
def unattributed() -> Iterator[None]:
    """Attribute the loss of the worker to no document within the block."""
    number, last = _HERE.cell[0], _HERE.cell[2]
    at_document(_NO_DOCUMENT)
    try:
        yield
    finally:
        at_document(number, last)


# A class: takes half the time of a generator's context manager.
class processing:  # noqa: N801
    """State that a document is being processed; yields the reason to skip it, or "".

    Costs 0.4 µs.

    >>> with processing(0) as skipped:
    ...     skipped
    ''
    """

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> str:
        return at_document(self._number)

    def __exit__(self, *_: object) -> None:
        _HERE.cell[0] = _NO_DOCUMENT


def contained(function: Function) -> Function:
    """Mark a task's function as one that states its documents with `processing`."""
    setattr(function, _CONTAINED, True)
    return function


def skipping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without limits whose documents are skipped when they have killed workers: it asks
    `at_document`.
    """
    found = functools.partial(function)
    setattr(found, _SKIPPING, True)
    return found


def is_contained(function: Any) -> bool:
    """Whether a function, or one that it was partially applied to, is marked."""
    return _is_marked(function, _CONTAINED)


def may_skip(function: Any) -> bool:
    """Whether a function, or one that it was partially applied to, can skip documents."""
    return _is_marked(function, _SKIPPING) or _is_marked(function, _CONTAINED)


def _is_marked(function: Any, mark: str) -> bool:
    parts = (function.func, *function.args) if isinstance(function, functools.partial) else ()
    return getattr(function, mark, False) or any(_is_marked(part, mark) for part in parts)


def run_skipping(skips: Skips, function: Any, task: Any, policy: TaskPolicy) -> Any:
    """In a worker: run a task with some of its documents skipped."""
    _HERE.skips = skips
    at_document(_NO_DOCUMENT)
    try:
        return run_task(function, task, policy)
    finally:
        _HERE.skips = {}
        at_document(_NO_DOCUMENT)


def new_cell(context: BaseContext) -> Any:
    """Shared memory for the document of one worker, its process id, and the last of the documents
    that it processes together.
    """
    return context.RawArray(ctypes.c_longlong, [_NO_DOCUMENT, 0, _NO_DOCUMENT])


def enter_worker(cell: Any) -> None:
    """In a new worker: use its cell, and make it the kernel's first choice when memory runs out."""
    _HERE.cell = _numbers_of(cell)
    cell[1] = os.getpid()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


@dataclass(slots=True)
class Watched:
    """A worker at work, seen from the process that waits for it.

    Attributes:
        cell: the worker's shared memory.
        policy: its limits.
        limit: the limit that it exceeded; "" when none.
        document: number of the last document that was seen, -1 between documents.
        since: when that was first seen, in monotonic seconds.
    """

    cell: Any
    policy: TaskPolicy
    limit: str = ""
    document: int = _NO_DOCUMENT
    since: float = field(default_factory=time.monotonic)

    @property
    def process(self) -> int:
        """The worker's process id; 0 before it runs."""
        return int(self.cell[1])

    @property
    def document_now(self) -> int:
        """Number of the document that it is processing, -1 between documents."""
        return int(self.cell[0])

    @property
    def last_now(self) -> int:
        """Number of the last of the documents that it processes together."""
        return int(self.cell[2])

    def check(self) -> str:
        """The limit that the worker exceeds, "" when none."""
        now, document = time.monotonic(), self.document_now
        if document != self.document:
            self.document, self.since = document, now
        seconds, n_bytes = self.policy.document_seconds, self.policy.memory_bytes
        if seconds and document != _NO_DOCUMENT and now - self.since > seconds:
            self.limit = f"took more than {seconds:g} s"
        elif n_bytes and self.process and anonymous_bytes(self.process) > n_bytes:
            self.limit = f"needed more than {n_bytes:,} bytes"
        return self.limit
