"""Batches as PyTorch tensors: map-style data sets, a stream for ranks and workers, batches on a
GPU.

Only this module imports torch, which is optional: without it, these classes can be imported but not
created.

Data sets give whole batches, so pass ``batch_size=None`` to ``torch.utils.data.DataLoader``, or to
torchdata's ``StatefulDataLoader``, which saves and resumes a `StepStream`. Measure before you use
workers: sending a batch between processes costs more than reading it (0 workers: 134–266 M tokens
per CPU-second; 2 workers: 5–21; batches of 32 × 1,024, 2 virtual cores), and each worker decodes
separately. Threads (``prefetch=`` of the loader) avoid both.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.errors import BadInput
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PADDING, PackedBatch, PackedLoader
from lc_assets.loaders.sliding import SlidingWindows, Window, WindowBatches, WindowPairs
from lc_assets.loaders.stepping import Batch, ahead, steps_of
from lc_assets.loaders.windows import WindowLoader

try:
    import torch
    from torch.utils.data import IterableDataset as _IterableDataset, get_worker_info
except ModuleNotFoundError:
    torch = None
    _IterableDataset = object

N_SENT_AHEAD = 2
"""Batches that are copied to a device while one is used."""


class StepDataset:
    """Map-style: ``dataset[step]`` is the loader's batch, ``{"text": …, "targets": …}``, int64.

    For packed rows, also mask, positions, documents, cu_seqlens and max_seqlen; see `PackedBatch`.
    Of `SlidingWindows`, one window: ``{"input_ids", "targets", "mask", "positions", "documents"}``.
    """

    def __init__(self, loader: GridLoader | WindowLoader | PackedLoader | SlidingWindows) -> None:
        """Wrap a loader or windows.

        Raises:
            BadInput: if torch is not installed.
        """
        require_torch()
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, step: int) -> dict[str, Any]:
        return _tensors(self.loader[step])


def _pair(batch: tuple[Int64s, Int64s]) -> tuple[Any, Any]:
    return torch.from_numpy(batch[0]), torch.from_numpy(batch[1])


def sliding_loader(
    windows: SlidingWindows,
    *,
    batch_size: int,
    base_seed: int,
    epoch: int,
    first: int = 0,
    rank: int = 0,
    n_ranks: int = 1,
    workers: int = 0,
    pairs: bool = False,
) -> Any:
    """A ``DataLoader`` over one epoch of windows, or the rest of it; each rank has equally many
    batches.

    Args:
        windows: the windows.
        batch_size: windows of a rank's batch; those that give no whole batch to every rank are left
            out.
        base_seed: the epoch's shuffle has the seed ``base_seed + epoch``.
        epoch: number of the epoch.
        first: windows of the epoch that all ranks together have read: continue there, with any
            number of ranks and workers.
        rank: reads every ``n_ranks``-th window of the rest, from this one on.
        n_ranks: number of ranks.
        workers: processes of the ``DataLoader``; they do not change the order.
        pairs: batches are pairs (inputs, targets) as in the lesson, and faster, instead of
            dictionaries of five tensors.

    Raises:
        BadInput: if torch is not installed, or there is no such rank.
    """
    require_torch()
    if not 0 <= rank < n_ranks:
        raise BadInput(f"there is no rank {rank} of {n_ranks}")
    order = windows.order(base_seed=base_seed, epoch=epoch, first=first)
    shared = order[: len(order) // (n_ranks * batch_size) * n_ranks * batch_size]
    return torch.utils.data.DataLoader(
        WindowPairs(windows) if pairs else WindowBatches(windows),
        batch_sampler=shared[rank::n_ranks].reshape(-1, batch_size),
        num_workers=workers,
        collate_fn=_pair if pairs else _tensors,
        generator=torch.Generator().manual_seed(base_seed + epoch),
    )


class StepStream(_IterableDataset):  # type: ignore[misc]  # torch may be absent, so mypy cannot know this class
    """Iterable: the steps that this rank and worker read, in ascending order.

    A loader of one of several ranks (``GridLoader(…, rank=, n_ranks=)``) gives its part of every
    step here, too: its ranks share batches. With a loader of whole batches, steps are distributed
    instead: every step is read once, by one rank and worker; if ranks do not divide the steps, the
    last ones are left out, so that all ranks have equally many. A ``DataLoader`` over it gives the
    rank's steps in order, for any number of workers.

    Attributes:
        first_step: the position: steps that all ranks together have read.
    """

    def __init__(
        self,
        loader: GridLoader | WindowLoader | PackedLoader,
        *,
        rank: int | None = None,
        n_ranks: int | None = None,
        first_step: int = 0,
    ) -> None:
        """Wrap a loader.

        Args:
            loader: the loader; its own position is ignored.
            rank: rank of this process; None uses ``torch.distributed``, unless the loader itself is
                one rank's.
            n_ranks: number of ranks; None likewise.
            first_step: steps that all ranks together have read before; the number of ranks may
                change.

        Raises:
            BadInput: if torch is not installed, there is no such rank, or ``first_step`` is outside
                the data set.
        """
        require_torch()
        if not 0 <= first_step <= len(loader):
            raise BadInput(f"first_step must be 0 to {len(loader):,}, got {first_step:,}")
        found_rank, found_n_ranks = (0, 1) if loader.n_ranks > 1 else _distributed()
        self.rank = found_rank if rank is None else rank
        self.n_ranks = found_n_ranks if n_ranks is None else n_ranks
        steps_of(0, rank=self.rank, n_ranks=self.n_ranks)
        self.loader = loader
        self.first_step = first_step

    def __iter__(self) -> Iterator[dict[str, Any]]:
        turn = self.n_ranks * _worker()[1]
        read: Callable[[int], Batch | PackedBatch] = self.loader.__getitem__
        for batch in ahead(
            read, self.steps(), n_ahead=self.loader.prefetch, threads=self.loader.threads
        ):
            self.first_step += turn
            yield _tensors(batch)
        self.first_step = 0

    def __len__(self) -> int:
        """Remaining steps of this rank, for all workers together."""
        return max(len(self.loader) - self.first_step, 0) // self.n_ranks

    def steps(self) -> range:
        """Remaining steps of this rank and, in a ``DataLoader``'s worker, of this worker."""
        worker, n_workers = _worker()
        left = len(self) * self.n_ranks
        mine = steps_of(
            left, rank=self.rank, n_ranks=self.n_ranks, worker=worker, n_workers=n_workers
        )
        return range(self.first_step + mine.start, self.first_step + mine.stop, mine.step)

    def state_dict(self) -> dict[str, Any]:
        """The position; without workers, it is valid for any number of ranks that have read the
        same number of steps each.
        """
        return {"step": self.first_step, **self.loader.identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the position of a stream with the same data set and shape.

        Raises:
            BadInput: if the state is of another data set or shape, or its step does not exist.
        """
        step = state.get("step")
        # The last turn of all ranks may extend beyond the end.
        within = min(step, len(self.loader)) if isinstance(step, int) else step
        self.loader.require_state({**state, "step": within})
        self.first_step = int(step)  # type: ignore[arg-type]  # checked above


def to_device(
    batches: Iterable[Batch] | Iterable[PackedBatch], device: Any
) -> Iterator[dict[str, Any]]:
    """Yield batches as tensors on a device, and copy the next ones while one is used.

    Each id is copied once and as stored, in 2 bytes instead of the 16 of two int64 tensors: inputs
    are targets shifted by one, so one tensor (row, token + 1) is copied and widened on the device;
    of packed rows the targets and each span, and the rest is computed there. To a GPU, from pinned
    memory, on a separate stream. The batches must be a loader's: ``text[:, 1:]`` is
    ``targets[:, :-1]``.

    Args:
        batches: a loader, or another iterable of batches; with ``prefetch=``, decoding overlaps,
            too.
        device: as for ``torch.device``.

    Yields:
        ``{"text": …, "targets": …}``, each (row, token), int64, contiguous. For packed rows also
        mask, bool; positions, int64; documents, int32; cu_seqlens, (span + 1) int32; max_seqlen, a
        number. See `PackedBatch`.

    Raises:
        BadInput: if torch is not installed.
    """
    require_torch()
    place = torch.device(device)
    if place.type == "cuda":
        return _to_gpu(batches, place)
    return (
        _computed([torch.from_numpy(values).to(place) for values in _stored(batch)], batch)
        for batch in batches
    )


def _to_gpu(
    batches: Iterable[Batch] | Iterable[PackedBatch], device: Any
) -> Iterator[dict[str, Any]]:
    stream = torch.cuda.Stream(device)
    sent: deque[tuple[list[Any], Any, Batch | PackedBatch]] = deque()
    for batch in batches:
        pinned = [torch.from_numpy(values).pin_memory() for values in _stored(batch)]
        with torch.cuda.stream(stream):
            copies = [values.to(device, non_blocking=True) for values in pinned]
            copied = torch.cuda.Event()
            copied.record(stream)
        sent.append((copies, copied, batch))
        if len(sent) > N_SENT_AHEAD:
            yield _arrived(*sent.popleft(), device)
    while sent:
        yield _arrived(*sent.popleft(), device)


def _arrived(
    copies: list[Any], copied: Any, batch: Batch | PackedBatch, device: Any
) -> dict[str, Any]:
    current = torch.cuda.current_stream(device)
    current.wait_event(copied)
    for values in copies:
        values.record_stream(current)
    return _computed(copies, batch)


def _stored(batch: Batch | PackedBatch) -> list[Any]:
    """The arrays to copy: ids as a signed type, since PyTorch supports few operations on unsigned
    ones; of packed rows the targets and the spans, otherwise the inputs' first column and the
    targets.
    """
    if isinstance(batch, PackedBatch):
        return [_signed(batch.targets), batch.lengths, batch.owners]
    return [_signed(np.concatenate([batch.text[:, :1], batch.targets], axis=1))]


def _signed(ids: Any) -> Any:
    return np.ascontiguousarray(ids).view(f"i{ids.dtype.itemsize}")


def _computed(copies: list[Any], batch: Batch | PackedBatch) -> dict[str, Any]:
    """The parts of a batch, computed asynchronously on the device."""
    stored, *spans = copies
    ids = stored.to(torch.int64)
    if stored.element_size() < ids.element_size():
        ids &= (1 << 8 * stored.element_size()) - 1
    if isinstance(batch, PackedBatch):
        return _packed_columns(ids, spans, batch)
    return {"text": ids[:, :-1].contiguous(), "targets": ids[:, 1:].contiguous()}


def _packed_columns(targets: Any, spans: list[Any], batch: PackedBatch) -> dict[str, Any]:
    lengths, owners = spans
    device, n_tokens, shape = targets.device, targets.numel(), targets.shape
    edges = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=device)
    edges[1:] = torch.cumsum(lengths, 0)
    starts = edges[:-1].long()
    text = torch.empty_like(targets)
    text[:, 1:] = targets[:, :-1]
    text.view(-1)[starts] = int(batch.text[0, 0])
    span_of = torch.repeat_interleave(
        torch.arange(len(lengths), device=device), lengths.long(), output_size=n_tokens
    )
    documents = owners[span_of]
    mask = documents != PADDING
    mask[starts] = False
    return {
        "text": text,
        "targets": targets,
        "mask": mask.view(shape),
        "positions": (torch.arange(n_tokens, device=device) - starts[span_of]).view(shape),
        "documents": documents.view(shape),
        "cu_seqlens": edges,
        "max_seqlen": batch.max_seqlen,
    }


def _tensors(batch: Batch | PackedBatch | Window) -> dict[str, Any]:
    columns: dict[str, Any] = batch.arrays() if isinstance(batch, PackedBatch) else batch._asdict()
    if isinstance(batch, Window):
        columns = {"input_ids": columns.pop("inputs")} | columns
    else:
        columns |= {name: columns[name].astype(np.int64) for name in ("text", "targets")}
    return {
        name: torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }


def _worker() -> tuple[int, int]:
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _distributed() -> tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def require_torch() -> None:
    """Check that torch is installed.

    Raises:
        BadInput: if it is not.
    """
    if torch is None:
        raise BadInput("torch is not installed: pip install 'lc-assets[torch]'")
