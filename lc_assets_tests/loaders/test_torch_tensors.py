"""Tensors: what PyTorch gets is what the loader gives, shared out without loss or overlap."""

import numpy as np
import pytest

from lc_assets.errors import BadInput
from lc_assets.loaders import torch as tensors
from lc_assets.loaders.contracts import NumberedRows
from lc_assets.loaders.grid import GridLoader


@pytest.fixture
def loader():
    """10 steps of 2 × 3 tokens."""
    return GridLoader(NumberedRows(10, 6), batch_rows=2, context_tokens=3)


@pytest.mark.skipif(tensors.torch is not None, reason="torch is installed")
def test_without_torch_the_classes_say_what_to_install(loader):
    for make in (tensors.StepDataset, tensors.StepStream):
        with pytest.raises(BadInput, match=r"pip install 'lc-assets\[torch\]'"):
            make(loader)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def firsts(batches):
    """First target of each batch: names the step it came from."""
    return [int(batch["targets"][0, 0]) for batch in batches]


def test_tensors_are_int64_and_equal_to_the_batch(torch, loader):
    dataset = tensors.StepDataset(loader)
    assert len(dataset) == 10
    for name, tensor in dataset[7].items():
        assert tensor.dtype == torch.int64
        np.testing.assert_array_equal(tensor.numpy(), getattr(loader[7], name))


@pytest.mark.parametrize("n_workers", [0, 1, 2])
def test_a_ranks_steps_come_in_order_for_any_number_of_workers(torch, loader, n_workers):
    """Map-style and stream, through PyTorch's own DataLoader."""
    everything = firsts(batch._asdict() for batch in map(loader.__getitem__, range(10)))
    mapped = torch.utils.data.DataLoader(tensors.StepDataset(loader), batch_size=None, num_workers=n_workers)
    assert firsts(mapped) == everything
    stream = tensors.StepStream(loader, rank=1, n_ranks=3)
    assert len(stream) == 3
    assert firsts(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=n_workers)) == everything[1::3]


@pytest.mark.parametrize("first_step", [0, 4, 10])
def test_ranks_share_all_steps_from_where_they_resume(torch, loader, first_step):
    streams = [tensors.StepStream(loader, rank=rank, n_ranks=3, first_step=first_step) for rank in range(3)]
    assert sorted(firsts(batch for stream in streams for batch in stream)) == sorted(
        firsts(loader[step]._asdict() for step in range(first_step, 10))
    )


def test_without_a_process_group_there_is_one_rank(torch, loader):
    stream = tensors.StepStream(loader)
    assert (stream.rank, stream.n_ranks, len(stream)) == (0, 1, 10)


def test_ranks_and_steps_that_are_not_there_are_refused(torch, loader):
    with pytest.raises(BadInput, match="there is no rank 2 of 2"):
        tensors.StepStream(loader, rank=2, n_ranks=2)
    with pytest.raises(BadInput, match="first_step must be 0 to 10, got 11"):
        tensors.StepStream(loader, first_step=11)
