"""Taking the time: CPU seconds of this process, all its threads together, the best of a few
rounds.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Final, TypeVar

Found = TypeVar("Found")

ROUNDS = 3

BUSY: Final = "PYTEST_XDIST_WORKER" in os.environ
"""Whether other tests run beside this one. They take its caches and half its processor, so ratios
are held to their floors only when a benchmark is run by itself; what both sides return is compared
always.
"""


def cpu_seconds(work: Callable[[int], Found], rounds: int = ROUNDS) -> tuple[float, Found]:
    """Fewest CPU seconds of a few calls, and what the last one returned; ``work`` is told the
    number of its round.
    """
    seconds = []
    for number in range(rounds):
        begun = time.process_time()
        found = work(number)
        seconds.append(time.process_time() - begun)
    return min(seconds), found


def median_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """CPU seconds of a call, the median of a few, where both sides of a ratio are to be what is
    usual, not what is best.
    """
    seconds = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def say(what: str, amount: float, unit: str, ours: float, **others: float) -> None:
    """Print one line: our rate, and the rate of each other with how many times ours it is."""
    said = [
        f"{name.replace('_', ' ')} {amount / seconds:,.1f} ({seconds / ours:.1f} ×)"
        for name, seconds in others.items()
    ]
    print(f"\n{what}: {amount / ours:,.1f} {unit} per CPU-second; {', '.join(said)}")
