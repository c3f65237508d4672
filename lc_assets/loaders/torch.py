"""Batches as PyTorch tensors: a map-style data set by step, and a stream that ranks and workers share.

Here: int64 tensors and who reads what. Not here: the order of batches (`loaders.grid`). The only module that
imports torch, which is optional: without it these classes can be named but not made.

Both give whole batches, so pass ``batch_size=None`` to ``torch.utils.data.DataLoader``. Measure before using
workers: sending a batch between processes costs more than making one (0 workers: 134–266 M tokens per
CPU-second; 2 workers: 5–21; batches of 32 × 1,024, 2 virtual cores).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.loaders.grid import Batch, GridLoader, steps_of

try:
    import torch
    from torch.utils.data import IterableDataset as _IterableDataset
    from torch.utils.data import get_worker_info
except ModuleNotFoundError:
    torch = None
    _IterableDataset = object


class StepDataset:
    """Map-style: ``dataset[step]`` is the loader's batch of that step, ``{"text": …, "targets": …}`` of int64 tensors."""

    def __init__(self, loader: GridLoader) -> None:
        """Wrap a loader.

        Raises:
            BadInput: when torch is not installed.
        """
        _require_torch()
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, step: int) -> dict[str, Any]:
        return _tensors(self.loader[step])


class StepStream(_IterableDataset):  # type: ignore[misc]  # torch may be absent, so mypy cannot know this class
    """Iterable: the steps that this rank and worker read, in ascending order.

    Over all ranks and workers every step is read once, by one of them. A ``DataLoader`` over it gives the rank's
    steps in order, however many workers it has. Where ranks do not divide the steps, the first ones get one more.
    """

    def __init__(self, loader: GridLoader, *, rank: int | None = None, n_ranks: int | None = None, first_step: int = 0) -> None:
        """Wrap a loader.

        Args:
            loader: whose steps are dealt out; its own position plays no part.
            rank: this process among those that train together; None asks ``torch.distributed``.
            n_ranks: how many there are; None asks ``torch.distributed``.
            first_step: how many steps all ranks together have read before: a stream resumes from it, also with
                another number of ranks.

        Raises:
            BadInput: when torch is not installed, there is no such rank, or ``first_step`` is outside the data set.
        """
        _require_torch()
        if not 0 <= first_step <= len(loader):
            raise BadInput(f"first_step must be 0 to {len(loader):,}, got {first_step:,}")
        found_rank, found_n_ranks = _distributed()
        self.rank = found_rank if rank is None else rank
        self.n_ranks = found_n_ranks if n_ranks is None else n_ranks
        steps_of(0, rank=self.rank, n_ranks=self.n_ranks)
        self.loader = loader
        self.first_step = first_step

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for step in self.steps():
            yield _tensors(self.loader[step])

    def __len__(self) -> int:
        """Steps of this rank, all workers together."""
        return len(steps_of(len(self.loader) - self.first_step, rank=self.rank, n_ranks=self.n_ranks))

    def steps(self) -> list[int]:
        """Steps of this rank and, inside a ``DataLoader``'s worker, of this worker."""
        info = get_worker_info()
        worker, n_workers = (0, 1) if info is None else (info.id, info.num_workers)
        left = len(self.loader) - self.first_step
        mine = steps_of(left, rank=self.rank, n_ranks=self.n_ranks, worker=worker, n_workers=n_workers)
        return [self.first_step + step for step in mine]


def _tensors(batch: Batch) -> dict[str, Any]:
    return {name: torch.from_numpy(values.astype(np.int64)) for name, values in batch._asdict().items()}


def _distributed() -> tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _require_torch() -> None:
    if torch is None:
        raise BadInput("torch is not installed: pip install 'lc-assets[torch]'")
