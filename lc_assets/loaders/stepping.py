"""What every loader here shares: a position that is one number, iterating from it, saving and
loading it.

Here: the position. Not here: what a step's batch is (`loaders.grid`, `loaders.windows`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray
from lc_assets.loaders.prefetch import ahead


class Batch(NamedTuple):
    """One step's data: (row, token) arrays of equal shape, uint16 (uint32 for vocabularies of
    65,500 ids and more).

    Attributes:
        text: the model's inputs: ``targets`` moved right by one.
        targets: what is to be predicted: the data.
    """

    text: TokenArray
    targets: TokenArray


Step = TypeVar("Step", bound=tuple[Any, ...])
"""What a loader gives at a step."""


class SteppedLoader(ABC, Generic[Step]):
    """Batches by step and in order.

    ``loader[step]`` has no memory: the step is enough. ``for batch in loader`` goes on from the
    loader's position, which `state_dict` saves, and puts it back to 0 when it has run out.

    Attributes:
        step: the position: the step that comes next.
        prefetch: batches that are read ahead while one is used, when iterating.
        threads: how many are read at once.
    """

    def __init__(self, *, prefetch: int, threads: int) -> None:
        ahead(
            self.__getitem__, (), n_ahead=prefetch, threads=threads
        )  # refuses what cannot be meant
        self.step = 0
        self.prefetch, self.threads = prefetch, threads

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, step: int) -> Step: ...

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Say what a position is a position in: data set, shape, order; plain values, equal for all
        ranks.
        """

    def __iter__(self) -> Iterator[Step]:
        while self.step < len(self):
            for at, batch in enumerate(self._from_here(), self.step + 1):
                self.step = at
                yield batch
                if self.step != at:  # a state was loaded meanwhile: go on from there
                    break
        self.step = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the position and what it is a position in; plain values, fit for any checkpoint
        and any number of ranks.
        """
        return {"step": self.step, **self.identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader over the same data set and of the same shape stood.

        Raises:
            BadInput: when the state is of another data set or shape, or its step does not exist;
                says which.
        """
        self.require_state(state)
        self.step = state["step"]

    def require_state(self, state: Mapping[str, Any]) -> None:
        """Refuse a state that is not one of this loader's.

        Raises:
            BadInput: when it is of another data set or shape, or its step does not exist; says
                which.
        """
        ours = self.identity()
        for name in sorted({*ours, *state} - {"step"}):
            if state.get(name) != ours.get(name):
                said = f"its {name} is {state.get(name)!r}, this loader's is {ours.get(name)!r}"
                raise BadInput(f"the state is of another data set or shape: {said}")
        step = state.get("step")
        if not isinstance(step, int) or not 0 <= step <= len(self):
            raise BadInput(f"the state's step is {step!r}; wanted 0 to {len(self):,}")

    def _from_here(self) -> Iterator[Step]:
        return ahead(
            self.__getitem__,
            range(self.step, len(self)),
            n_ahead=self.prefetch,
            threads=self.threads,
        )
