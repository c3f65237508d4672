"""Common parts of all loaders: a position that is one number, iteration from it, saving and loading
it, reading ahead on threads.

Decompression and file reads release the GIL, so threads of one process are as fast as worker
processes, without sending batches between processes. They share the loader's cache, so no chunk is
decoded twice.
"""

import contextlib
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import numpy as np

from lc_assets.arrays import Array, Integers
from lc_assets.errors import BadInput

THREAD_NAME = "lc-prefetch"

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class Batch(NamedTuple):
    """One step's data: (row, token) arrays of equal shape and of the data set's dtype, which may be
    views of one: change a copy.

    Attributes:
        text: the model's inputs: ``targets`` shifted right by one.
        targets: the data.
    """

    text: Integers
    targets: Integers


Step = TypeVar("Step", bound=tuple[Any, ...])
"""A loader's batch."""


class ShareOptions(TypedDict, total=False):
    """Arguments that every loader has.

    Attributes:
        rank: number of this loader among those that share every batch equally; the state of one
            rank is that of all, and of any other number of ranks.
        n_ranks: number of loaders that share the batches.
        prefetch: batches to read ahead when iterating; 0 by default.
        threads: threads that read them; 1 by default.
    """

    rank: int
    n_ranks: int
    prefetch: int
    threads: int


class SteppedLoader(ABC, Generic[Step]):
    """Batches by step and in order.

    ``loader[step]`` depends on the step alone. ``for batch in loader`` continues from the loader's
    position, which `state_dict` saves, and resets it to 0 at the end.

    Attributes:
        step: the position: the next step.
        rank, n_ranks, prefetch, threads: see `ShareOptions`.
    """

    def __init__(
        self, *, rank: int = 0, n_ranks: int = 1, prefetch: int = 0, threads: int = 1
    ) -> None:
        if not 0 <= rank < n_ranks:
            raise BadInput(f"there is no rank {rank} of {n_ranks}")
        ahead(self.__getitem__, (), n_ahead=prefetch, threads=threads)  # checks the numbers
        self.step = 0
        self.rank, self.n_ranks = rank, n_ranks
        self.prefetch, self.threads = prefetch, threads

    def share_of(self, n: int, what: str) -> int:
        """How many of ``n`` a rank has; ``what`` names them in the message.

        Raises:
            BadInput: if the ranks cannot share them equally.
        """
        if n % self.n_ranks:
            raise BadInput(
                f"{self.n_ranks:,} ranks cannot share {what} equally: use one of {divisors(n)} "
                "ranks"
            )
        return n // self.n_ranks

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, step: int) -> Step: ...

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Data set, shape and order that a position refers to; plain values, equal for all
        ranks.
        """

    def __iter__(self) -> Iterator[Step]:
        while self.step < len(self):
            left = range(self.step, len(self))
            batches = ahead(self.__getitem__, left, n_ahead=self.prefetch, threads=self.threads)
            for at, batch in enumerate(batches, self.step + 1):
                self.step = at
                yield batch
                if self.step != at:  # a state was loaded meanwhile: continue from there
                    break
        self.step = 0

    def state_dict(self) -> dict[str, Any]:
        """The position and the loader's identity; plain values, valid for any number of ranks."""
        return {"step": self.step, **self.identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the position of a loader with the same data set and shape.

        Raises:
            BadInput: as `require_state`.
        """
        self.require_state(state)
        self.step = state["step"]

    def require_state(self, state: Mapping[str, Any]) -> None:
        """Check that a state belongs to this loader.

        Raises:
            BadInput: if it is of another data set or shape, or its step does not exist.
        """
        ours = self.identity()
        for name in sorted({*ours, *state} - {"step"}):
            if state.get(name) != ours.get(name):
                raise BadInput(
                    f"the state is of another data set or shape: its {name} is "
                    f"{state.get(name)!r}, this loader's is {ours.get(name)!r}"
                )
        step = state.get("step")
        if not isinstance(step, int) or not 0 <= step <= len(self):
            raise BadInput(f"the state's step is {step!r}, expected 0 to {len(self):,}")


def as_arrays(
    batches: Iterable[Batch], dtype: type[np.integer[Any]] = np.int32
) -> Iterator[dict[str, Array]]:
    """Yield ``{"text": …, "targets": …}``: contiguous arrays of one dtype, all of one shape.

    For training loops that are not PyTorch's. A compiled step is compiled once, and
    ``jax.device_put`` takes the dictionary as it is, also with a sharding. The arrays are new each
    time, so one may still be copied to a device while the next is made.

    Args:
        batches: a loader, or another iterable of batches.
        dtype: int32 holds every id of vocabularies below 2³¹, and is JAX's default.

    >>> batch = Batch(np.zeros((1, 2), np.uint16), np.ones((1, 2), np.uint16))
    >>> [sorted(arrays) for arrays in as_arrays([batch])]
    [['targets', 'text']]
    """
    for batch in batches:
        yield {name: np.array(values, dtype, order="C") for name, values in batch._asdict().items()}


def ahead(
    read: Callable[[Key], Answer], steps: Iterable[Key], *, n_ahead: int, threads: int = 1
) -> Iterator[Answer]:
    """Yield ``read(step)`` for each step in order, while up to ``n_ahead`` later ones are read.

    An error is raised in place of its step's answer. When the iterator ends, is closed or is
    garbage-collected, pending reads are cancelled and no thread is left.

    Args:
        read: called on threads.
        steps: in order; consumed as they are needed.
        n_ahead: answers held besides the one in use; 0 reads in the caller's thread.
        threads: number of threads.

    >>> list(ahead(str, range(4), n_ahead=2))
    ['0', '1', '2', '3']

    Raises:
        BadInput: if ``n_ahead`` is negative or there is no thread.
    """
    if n_ahead < 0 or threads < 1:
        raise BadInput(
            f"cannot read {n_ahead} steps ahead on {threads} threads: expected at least 0 steps "
            "and 1 thread"
        )
    return map(read, steps) if n_ahead == 0 else _ahead(read, steps, n_ahead, min(threads, n_ahead))


def _ahead(
    read: Callable[[Key], Answer], steps: Iterable[Key], n_ahead: int, threads: int
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


def steps_of(
    n_steps: int, *, rank: int = 0, n_ranks: int = 1, worker: int = 0, n_workers: int = 1
) -> range:
    """Steps that one worker of one rank reads, if whole steps are distributed.

    A rank reads every ``n_ranks``-th step. Its workers take turns, so a reader that takes from its
    workers in turn gets the rank's steps in order, for any number of workers. Ranks differ by at
    most one step. Here a step is one rank's batch, so the global batch grows with the ranks;
    a loader with ``rank=`` and ``n_ranks=`` is the alternative.

    >>> [list(steps_of(5, rank=0, n_ranks=2, worker=worker, n_workers=2)) for worker in (0, 1)]
    [[0, 4], [2]]

    Raises:
        BadInput: if there is no such rank or worker.
    """
    if not (0 <= rank < n_ranks and 0 <= worker < n_workers):
        raise BadInput(f"there is no rank {rank} of {n_ranks} or no worker {worker} of {n_workers}")
    return range(rank + n_ranks * worker, n_steps, n_ranks * n_workers)


def divisors(number: int) -> str:
    """The divisors of a number, for messages.

    >>> divisors(12)
    '1, 2, 3, 4, 6, 12'
    """
    small = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return ", ".join(
        f"{divisor:,}" for divisor in sorted({*small, *(number // divisor for divisor in small)})
    )
