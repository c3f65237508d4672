"""The one loop behind every engine: hand out, wait, hand out again what a lost worker had.

A crew is who works: processes of this machine, or of a cluster. It knows which task each worker
has, so a death is the death of that task's worker and of nobody else's; a task that costs too many
is named. Tasks in hand are bounded, so neither memory nor a queue grows with the number of tasks.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from lc_assets.engines.engine import Result, Task, Terms
from lc_assets.errors import WorkerDied

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


def ended(seconds: float, terms: Terms, *, otherwise: str) -> Lost:
    """A worker that ended after so many seconds of a task: by the limit of time, or for what is
    known otherwise.
    """
    late = terms.seconds and seconds >= terms.seconds
    return Lost(
        f"was ended after {terms.seconds:g} s, where it stood is in the log" if late else otherwise
    )


class Crew(Protocol[Handle]):
    """Workers that were taken on for one run."""

    def places(self) -> int:
        """How many tasks may be in hand now; may change while workers come and go."""
        ...

    def hand_out(self, function: Callable[[Task], Any], task: Task) -> Handle:
        """Begin a task, now or as soon as a worker is free."""
        ...

    def wait(self, handles: Collection[Handle]) -> Iterable[tuple[Handle, Done | Lost]]:
        """Wait until one at least is over, and say how each that is went; raises what a task
        raised.
        """
        ...


def work_through(
    crew: Crew[Handle], function: Callable[[Task], Result], tasks: Sequence[Task], terms: Terms
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
        while left and len(in_hand) < crew.places():
            number = left.popleft()
            in_hand[crew.hand_out(function, tasks[number])] = number
        for handle, outcome in crew.wait(in_hand.keys()):
            number = in_hand.pop(handle)
            if isinstance(outcome, Done):
                yield tasks[number], outcome.result
                continue
            costs, most = (
                (departures, terms.departures) if outcome.departed else (deaths, terms.deaths)
            )
            costs[number] += 1
            if costs[number] >= most:
                what = "machines" if outcome.departed else "workers"
                raise WorkerDied(
                    f"{tasks[number]} cost {costs[number]} {what}: the last {outcome.why}. What "
                    "is done stays done"
                )
            left.appendleft(number)
