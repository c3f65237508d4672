"""Packed rows on a device: each id crosses once, as it is stored, and each span once; the rest is
made there.

Here: targets and spans to inputs, positions and masks, in torch. Not here: what they mean
    (`lc_assets.packing.spans`), data sets
for a ``DataLoader`` (`loaders.torch`, which takes packed rows too). Torch is optional.
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
    """Yield packed batches as tensors on a device, those that come next being copied while one is
    used.

    To a GPU, from pinned memory, on a stream of its own.

    Args:
        batches: a `PackedLoader`, or what iterates like one; give it ``prefetch=`` so that
            decoding, too, happens meanwhile.
        device: what ``torch.device`` takes.
        n_ahead: batches on their way beside the one in use; plays no part on a CPU.

    Yields:
        text, targets: (row, token) int64. mask: bool. positions: int64. documents: int32.
        cu_seqlens: (span + 1) int32.
        max_seqlen: a number. All as `PackedBatch` has them.

    Raises:
        BadInput: when torch is not installed.
    """
    require_torch()
    place = torch.device(device)
    if place.type != "cuda":
        return (
            _told([torch.from_numpy(values).to(place) for values in _stored(batch)], batch)
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
    return _told(copies, batch)


def _stored(batch: PackedBatch) -> tuple[Any, Any, Any]:
    """What crosses: ids in two or four bytes, as a signed type, because PyTorch's unsigned ones can
    be stored and little more.
    """
    targets = np.ascontiguousarray(batch.targets)
    return targets.view(f"i{targets.dtype.itemsize}"), batch.lengths, batch.owners


def _told(copies: Sequence[Any], batch: PackedBatch) -> dict[str, Any]:
    """What `PackedBatch` computes, computed where the tensors are; nothing waits for the device."""
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
