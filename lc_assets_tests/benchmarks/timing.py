"""Measure CPU seconds of this process, all its threads together, the best of a few rounds."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

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


def say(what: str, amount: float, unit: str, ours: float, **others: float) -> None:
    """Print our rate, each other rate, and how many times faster we are."""
    rates = [
        f"{name.replace('_', ' ')} {amount / seconds:,.1f} ({seconds / ours:.1f} ×)"
        for name, seconds in others.items()
    ]
    print(f"\n{what}: {amount / ours:,.1f} {unit} per CPU-second; {', '.join(rates)}")
