"""The one loop behind every executor: hand out, wait, hand out again what a lost worker had.

A crew is who works: processes of this machine, or of a cluster. It knows which task each worker
has, so a death is the death of that task's worker and of nobody else's; a task that costs too many
is named. Tasks in hand are bounded, so neither memory nor a queue grows with the number of tasks.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from lc_assets.errors import WorkerDied
from lc_assets.execution.executor import Result, Task, TaskPolicy

Handle = TypeVar("Handle")


class Done(NamedTuple):
    """A task is done."""

    result: Any


class Lost(NamedTuple):
    """A worker is gone, and what it worked on with it; ``why`` says what is known, ``departed``
    that its whole machine went away.
    """

    why: str
    departed: bool = False


OUT_OF_MEMORY: Final = Lost("ran out of memory")


def ended(seconds: float, policy: TaskPolicy, *, otherwise: str) -> Lost:
    """A worker that ended after so many seconds of a task: by the limit of time, or for what is
    known otherwise.
    """
    late = policy.seconds and seconds >= policy.seconds
    return Lost(
        f"was ended after {policy.seconds:g} s, where it stood is in the log" if late else otherwise
    )


class WorkerPool(Protocol[Handle]):
    """Workers that were taken on for one run."""

    def capacity(self) -> int:
        """How many tasks may be in hand now; may change while workers come and go."""
        ...

    def submit(self, function: Callable[[Task], Any], task: Task) -> Handle:
        """Begin a task, now or as soon as a worker is free."""
        ...

    def wait(self, handles: Collection[Handle]) -> Iterable[tuple[Handle, Done | Lost]]:
        """Wait until one at least is over, and say how each that is went; raises what a task
        raised.
        """
        ...


def work_through(
    pool: WorkerPool[Handle],
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    policy: TaskPolicy,
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as they are done.

    Raises:
        WorkerDied: when one task cost ``terms.deaths`` workers, or ``terms.departures`` machines.
        Exception: what a task raised.
    """
    left = deque(range(len(tasks)))
    deaths: Counter[int] = Counter()
    departures: Counter[int] = Counter()
    in_hand: dict[Handle, int] = {}
    while left or in_hand:
        while left and len(in_hand) < pool.capacity():
            number = left.popleft()
            in_hand[pool.submit(function, tasks[number])] = number
        for handle, outcome in pool.wait(in_hand.keys()):
            number = in_hand.pop(handle)
            if isinstance(outcome, Done):
                yield tasks[number], outcome.result
                continue
            costs, most = (
                (departures, policy.departures) if outcome.departed else (deaths, policy.deaths)
            )
            costs[number] += 1
            if costs[number] >= most:
                what = "machines" if outcome.departed else "workers"
                raise WorkerDied(
                    f"{tasks[number]} cost {costs[number]} {what}: the last {outcome.why}. What "
                    "is done stays done"
                )
            left.appendleft(number)
