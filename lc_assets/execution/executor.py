"""What a stage may ask of whatever runs its work, and the terms on which a task is done. One
method; all else is built on it.

A task is small (paths and settings), its result is small (counts), and doing it twice is harmless,
because it publishes whole files under names that the task determines. So an executor may lose a
worker at any time, and nothing that is data crosses it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from lc_assets.errors import BadInput

Task = TypeVar("Task")
Result = TypeVar("Result")

MEGABYTE: Final = 1 << 20


class Executor(Protocol):
    """What a stage may ask of whatever runs its work."""

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, what: str
    ) -> Iterator[tuple[Task, Result]]:
        """Yield each task with its result, in any order, as they are done; they are begun in the
        order given.

        Args:
            function: a module-level function; pure but for the files that its task names.
            tasks: what to call it with, one at a time.
            what: says in a few words what is being done, for people who watch.

        Raises:
            WorkerDied: when one task cost too many workers their lives; names it.
            Exception: whatever ``function`` raised, as soon as it is known; tasks in hand and not
                begun are given up.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPolicy:
    """On which terms a task is done.

    Attributes:
        deaths: how many workers one task may cost before it is named and the run ends.
        departures: as well, how many machines; they go away by themselves, where they are rented by
            the minute.
        tries: how often a task is begun that fails by a fault of a disk or a network that may pass
            (`attempts.may_pass`).
        pause: seconds before the second try; twice as long before each further one.
        seconds: how long a task may take before its worker is ended, which counts as a death; 0 is
            for ever. Where there is one worker, tasks run in the very process that asks, which is
            not ended.
        result_bytes: the most that a result may have; results are counts and paths.
    """

    deaths: int = 2
    departures: int = 10
    tries: int = 3
    pause: float = 1.0
    seconds: float = 0.0
    result_bytes: int = 64 * MEGABYTE

    def __post_init__(self) -> None:
        if min(self.deaths, self.departures, self.tries) < 1 or self.seconds < 0 or self.pause < 0:
            raise BadInput(
                "deaths, departures and tries must be at least 1, seconds and pause not below 0: "
                f"{self}"
            )


DEFAULT_POLICY: Final = TaskPolicy()
"""What holds where nothing else is said."""
