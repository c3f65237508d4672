"""Measure CPU seconds of this process, all its threads together, the best of a few rounds."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Found = TypeVar("Found")
Name = TypeVar("Name", bound=Hashable)

ROUNDS = 3


def cpu_seconds(work: Callable[[int], Found], rounds: int = ROUNDS) -> tuple[float, Found]:
    """Return the fewest CPU seconds of a few calls and the last result; ``work`` gets the number of
    its round.
    """
    seconds = []
    for number in range(rounds):
        begun = time.process_time()
        found = work(number)
        seconds.append(time.process_time() - begun)
    return min(seconds), found


def median_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the median CPU seconds of a few calls, for ratios of usual rather than best times."""
    seconds = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def by_turns(rounds: int, works: Mapping[Name, Callable[[], object]]) -> dict[Name, float]:
    """Return the fewest CPU seconds of each of several works that are done in turn: what else the
    machine does then meets all of them.
    """
    turns = [
        {name: cpu_seconds(lambda _, work=work: work(), 1)[0] for name, work in works.items()}
        for _ in range(rounds)
    ]
    return {name: min(turn[name] for turn in turns) for name in works}


def say(what: str, amount: float, unit: str, ours: float, **others: float) -> None:
    """Print our rate, each other rate, and how many times faster we are."""
    rates = [
        f"{name.replace('_', ' ')} {amount / seconds:,.1f} ({seconds / ours:.1f} ×)"
        for name, seconds in others.items()
    ]
    print(f"\n{what}: {amount / ours:,.1f} {unit} per CPU-second; {', '.join(rates)}")
