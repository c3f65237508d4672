"""Packed rows as PyTorch tensors on a device: each id is copied once, as stored, and each span
once; the rest is computed there.

For a ``DataLoader``, use `loaders.torch`, which accepts packed rows too. Torch is optional.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lc_assets.loaders.packed import PackedBatch
from lc_assets.loaders.torch import N_SENT_AHEAD, require_torch
from lc_assets.packing.spans import PADDING

try:
    import torch
except ModuleNotFoundError:
    torch = None


def packed_to_device(
    batches: Iterable[PackedBatch], device: Any, *, n_ahead: int = N_SENT_AHEAD
) -> Iterator[dict[str, Any]]:
    """Yield packed batches as tensors on a device, and copy the next ones while one is used.

    To a GPU, from pinned memory, on a separate stream.

    Args:
        batches: a `PackedLoader`, or another iterable of its batches; with ``prefetch=``, decoding
            overlaps, too.
        device: as for ``torch.device``.
        n_ahead: batches that are copied ahead of the one in use; ignored on a CPU.

    Yields:
        text, targets: (row, token) int64. mask: bool. positions: int64. documents: int32.
        cu_seqlens: (span + 1) int32.
        max_seqlen: a number. See `PackedBatch`.

    Raises:
        BadInput: if torch is not installed.
    """
    require_torch()
    place = torch.device(device)
    if place.type != "cuda":
        return (
            _columns([torch.from_numpy(values).to(place) for values in _stored(batch)], batch)
            for batch in batches
        )
    return _to_gpu(batches, place, n_ahead)


def _to_gpu(batches: Iterable[PackedBatch], device: Any, n_ahead: int) -> Iterator[dict[str, Any]]:
    stream = torch.cuda.Stream(device)
    sent: deque[tuple[tuple[Any, ...], Any, PackedBatch]] = deque()
    for batch in batches:
        pinned = [torch.from_numpy(values).pin_memory() for values in _stored(batch)]
        with torch.cuda.stream(stream):
            copies = tuple(values.to(device, non_blocking=True) for values in pinned)
            copied = torch.cuda.Event()
            copied.record(stream)
        sent.append((copies, copied, batch))
        if len(sent) > n_ahead:
            yield _arrived(*sent.popleft(), device)
    while sent:
        yield _arrived(*sent.popleft(), device)


def _arrived(
    copies: tuple[Any, ...], copied: Any, batch: PackedBatch, device: Any
) -> dict[str, Any]:
    current = torch.cuda.current_stream(device)
    current.wait_event(copied)
    for values in copies:
        values.record_stream(current)
    return _columns(copies, batch)


def _stored(batch: PackedBatch) -> tuple[Any, Any, Any]:
    """What is copied: ids in two or four bytes, as a signed type (see `loaders.torch`), and
    spans.
    """
    targets = np.ascontiguousarray(batch.targets)
    return targets.view(f"i{targets.dtype.itemsize}"), batch.lengths, batch.owners


def _columns(copies: Sequence[Any], batch: PackedBatch) -> dict[str, Any]:
    """Compute the columns of `PackedBatch` on the device, without waiting for it."""
    stored, lengths, owners = copies
    n_tokens = stored.numel()
    targets = stored.to(torch.int64) & ((1 << 8 * stored.element_size()) - 1)
    edges = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=stored.device)
    edges[1:] = torch.cumsum(lengths, 0)
    starts = edges[:-1].long()
    text = torch.empty_like(targets)
    text[:, 1:] = targets[:, :-1]
    text.view(-1)[starts] = int(batch.text[0, 0])
    span_of = torch.repeat_interleave(
        torch.arange(len(lengths), device=stored.device), lengths.long(), output_size=n_tokens
    )
    documents = owners[span_of]
    mask = documents != PADDING
    mask[starts] = False
    shape = targets.shape
    return {
        "text": text,
        "targets": targets,
        "mask": mask.view(shape),
        "positions": (torch.arange(n_tokens, device=stored.device) - starts[span_of]).view(shape),
        "documents": documents.view(shape),
        "cu_seqlens": edges,
        "max_seqlen": batch.max_seqlen,
    }
