"""Executors: run a stage's tasks under limits; and the loop that all executors share.

A task is small (paths and settings), its result is small (counts), and repeating it is harmless,
because it publishes complete files under names that the task determines. So an executor may lose a
worker at any time, and no data passes through it.

A `WorkerPool` is a set of processes on this machine or on a cluster. It knows the task of each
worker, so the loss of a worker is attributed to its task. A task that loses too many workers is an
error that names it, and documents that kill workers are skipped
(`lc_assets.execution.containment`). The number of submitted tasks is bounded, so neither memory nor
a queue grows with the number of tasks.
"""

import errno
import faulthandler
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from lc_assets.errors import BadInput, LcError, Mismatch, WorkerDied
from lc_assets.records import record

Task = TypeVar("Task")
Result = TypeVar("Result")
Handle = TypeVar("Handle")
Skips = Mapping[int, str]
"""Why documents of a task are skipped, by their numbers; without a reason a document, and those
that were processed together with it, are processed one by one.
"""

MEBIBYTE = 1 << 20
LONGEST_PAUSE = 60.0
TRANSIENT = frozenset(
    {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EAGAIN, errno.EREMOTEIO}
)
"""Transient errors of shared disks; a full disk and a read-only folder are not among them."""


class Executor(Protocol):
    """Runs a function over many tasks."""

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """Yield each task with its result, in the order in which they finish; they start in the
        order given.

        Args:
            function: a module-level function without effects other than the files its task names.
            tasks: its arguments, one per call.
            what: short description for the progress display; shows none when empty.

        Raises:
            WorkerDied: when one task lost too many workers; names it.
            Exception: any error of ``function``, at once; all other tasks are abandoned.
        """
        ...


@record
class TaskPolicy:
    """Limits of a task, and what happens when it fails.

    Attributes:
        deaths: workers that one task may lose before the run ends.
        departures: machines that it may lose; rented ones may be withdrawn.
        tries: attempts at a task that fails by a transient error of a disk or a network.
        pause: seconds before the second attempt, doubled before each further one.
        seconds: limit for a task; its worker is then killed, which counts as a death; 0 is no
            limit. With one worker, tasks run in this process, which is not killed.
        result_bytes: limit for a result; results are counts and paths.
        document_seconds: limit for one document in a contained function; 0 is no limit.
        memory_bytes: limit for a worker in a contained function; 0 is no limit.
        skipped: documents of one task that are skipped for exceeding these before the run ends; 0
            ends it at the first.
    """

    deaths: int = 2
    departures: int = 10
    tries: int = 3
    pause: float = 1.0
    seconds: float = 0.0
    result_bytes: int = 64 * MEBIBYTE
    document_seconds: float = 0.0
    memory_bytes: int = 0
    skipped: int = 10

    def __post_init__(self) -> None:
        limits = self.seconds, self.pause, self.document_seconds, self.memory_bytes, self.skipped
        if min(self.deaths, self.departures, self.tries) < 1 or min(limits) < 0:
            raise BadInput(
                "deaths, departures and tries must be at least 1, times, sizes and skipped not "
                f"negative: {self}"
            )

    @property
    def contains(self) -> bool:
        """Whether contained functions have limits."""
        return bool(self.document_seconds or self.memory_bytes)


DEFAULT_POLICY = TaskPolicy()
CONTAINING_POLICY = TaskPolicy(document_seconds=60.0, memory_bytes=4 << 30)
"""Policy of runs over untrusted documents; an ordinary page takes milliseconds and megabytes."""


class Done(NamedTuple):
    """A task is finished."""

    result: Any


class Lost(NamedTuple):
    """A worker was lost, and its task with it.

    Attributes:
        why: the known reason, such as "was killed".
        departed: whether its whole machine was lost.
        document: number of the document it was processing; -1 when it was between documents.
        limit: which limit that document exceeded; "" when the worker died for another reason.
        last: number of the last of the documents that were processed together with that one; -1 for
            none.
    """

    why: str
    departed: bool = False
    document: int = -1
    limit: str = ""
    last: int = -1


OUT_OF_MEMORY = Lost("ran out of memory")


def ended_after(seconds: float, policy: TaskPolicy, *, otherwise: Lost) -> Lost:
    """A worker that ended after so many seconds of a task: by the time limit, or ``otherwise``."""
    if policy.seconds and seconds >= policy.seconds:
        return otherwise._replace(
            why=f"was ended after {policy.seconds:g} s, the log has its stack"
        )
    return otherwise


class WorkerPool(Protocol[Handle]):
    """Workers of one run."""

    def capacity(self) -> int:
        """How many tasks may be submitted at a time; may change as workers join and leave."""
        ...

    def submit(self, function: Callable[[Task], Any], task: Task, skips: Skips) -> Handle:
        """Start a task, now or as soon as a worker is free."""
        ...

    def wait(self, handles: Collection[Handle]) -> Iterable[tuple[Handle, Done | Lost]]:
        """Wait until at least one task has ended; return how each of those ended; raises what a
        task raised.
        """
        ...


def work_through(
    pool: WorkerPool[Handle],
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    policy: TaskPolicy,
    *,
    may_skip: bool = False,
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as they finish; ``may_skip``: whether the function can skip
    documents.

    Raises:
        WorkerDied: when one task lost ``policy.deaths`` workers or ``policy.departures`` machines,
            or more than ``policy.skipped`` of its documents exceeded a limit.
        Exception: what a task raised.
    """
    left = deque(range(len(tasks)))
    losses: dict[int, _Losses] = {}
    in_hand: dict[Handle, int] = {}
    while left or in_hand:
        while left and len(in_hand) < pool.capacity():
            number = left.popleft()
            skips = losses[number].skips if number in losses else {}
            in_hand[pool.submit(function, tasks[number], skips)] = number
        for handle, outcome in pool.wait(in_hand.keys()):
            number = in_hand.pop(handle)
            if isinstance(outcome, Done):
                losses.pop(number, None)
                yield tasks[number], outcome.result
                continue
            lost = losses.setdefault(number, _Losses(tasks[number], may_skip=may_skip))
            lost.add(outcome, policy)
            left.appendleft(number)


class _Losses:
    """Workers that one task has lost so far, and which of its documents are skipped."""

    def __init__(self, task: Any, *, may_skip: bool) -> None:
        self.task, self._may_skip = task, may_skip
        self.skips: dict[int, str] = {}
        self._deaths = self._departures = self._n_skipped = 0
        self._suspects: list[tuple[int, int]] = []

    def add(self, lost: Lost, policy: TaskPolicy) -> None:
        """Record a loss; ``skips`` then has the documents to skip in the next attempt.

        Raises:
            WorkerDied: when there is no next attempt.
        """
        if lost.departed:
            self._departures += 1
            self._require(self._departures < policy.departures, self._departures, "machines", lost)
            return
        self._deaths += 1
        is_alone = lost.last <= lost.document
        self._suspects.append((lost.document, max(lost.document, lost.last)))
        # A loss without a known reason is attributed to a document when it happens there again.
        n_losses = sum(first <= lost.document <= last for first, last in self._suspects)
        repeated = is_alone and n_losses >= policy.deaths
        is_known = lost.document >= 0 and not self.skips.get(lost.document)
        if self._may_skip and is_known and (lost.limit or repeated):
            self._skip(lost, policy)
            self._deaths = 0
        self._require(self._deaths < policy.deaths, self._deaths, "workers", lost)
        if not is_alone:
            self.skips.setdefault(lost.document, "")

    def _skip(self, lost: Lost, policy: TaskPolicy) -> None:
        reason = lost.limit or "killed its worker"
        if self._n_skipped >= policy.skipped:
            before = f", after {self._n_skipped:,} others" if self._n_skipped else ""
            raise WorkerDied(
                f"{self.task}: document {lost.document:,} {reason}{before}; at most "
                f"{policy.skipped:,} per task may be skipped for that. Remove these documents, or "
                "raise the limit. What is done stays done"
            )
        self.skips[lost.document] = f"skipped: {reason}"
        self._n_skipped += 1

    def _require(self, holds: bool, number: int, what: str, lost: Lost) -> None:
        if not holds:
            where = f" at document {lost.document:,}" if lost.document >= 0 else ""
            if lost.last > lost.document:
                where = f" at one of documents {lost.document:,} to {lost.last:,}"
            raise WorkerDied(
                f"{self.task} cost {number} {what}{where}: the last {lost.why}. What is done stays "
                "done"
            )


def run_task(function: Callable[[Task], Result], task: Task, policy: TaskPolicy) -> Result:
    """Run one task in a worker that may be killed.

    Raises:
        Mismatch: when the result is larger than allowed.
        Exception: what ``function`` raises in the last attempt.
    """
    # The timer is a thread of its own in C that needs no lock of Python's, so it also ends a loop
    # in a library.
    if policy.seconds:
        faulthandler.dump_traceback_later(
            policy.seconds, exit=True, file=sys.__stderr__ or sys.stderr
        )
    try:
        result = with_retries(function, task, policy)
    finally:
        faulthandler.cancel_dump_traceback_later()
    from multiprocessing.reduction import ForkingPickler

    n_bytes = len(ForkingPickler.dumps(result))  # as it is sent to the other process
    if n_bytes > policy.result_bytes:
        raise Mismatch(
            f"{task}: its result has {n_bytes / MEBIBYTE:,.1f} MiB, at most "
            f"{policy.result_bytes / MEBIBYTE:,.1f} are allowed: write files and return their paths"
        )
    return result


def with_retries(function: Callable[[Task], Result], task: Task, policy: TaskPolicy) -> Result:
    """Run one task, and again after a pause while it fails by transient errors."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(policy.tries),
        wait=wait_exponential(policy.pause, max=LONGEST_PAUSE),
        reraise=True,
    )
    return retrying(function, task)


def is_transient(error: BaseException) -> bool:
    """Whether another attempt may succeed.

    >>> is_transient(OSError(errno.ESTALE, "stale")), is_transient(OSError(errno.ENOSPC, "full"))
    (True, False)
    """
    return (
        isinstance(error, OSError) and not isinstance(error, LcError) and error.errno in TRANSIENT
    )
