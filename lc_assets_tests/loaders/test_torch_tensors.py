"""Tensors: what PyTorch gets is what the loader gives, shared out without loss or overlap."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.loaders import torch as tensors
from lc_assets.loaders.contracts import NumberedRows
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.sliding import SlidingWindows, WindowPairs
from lc_assets.loaders.stepping import as_arrays
from lc_assets.loaders.windows import WindowLoader
from lc_assets_tests.grid_builders import ids, write_grid


@pytest.fixture
def loader():
    """10 steps of 2 × 3 tokens."""
    return GridLoader(NumberedRows(10, 6), batch_rows=2, context_tokens=3)


@pytest.mark.skipif(tensors.torch is not None, reason="torch is installed")
def test_without_torch_the_classes_say_what_to_install(loader):
    for make in (
        tensors.StepDataset,
        tensors.StepStream,
        lambda loader: tensors.to_device(loader, "cpu"),
    ):
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
    mapped = torch.utils.data.DataLoader(
        tensors.StepDataset(loader), batch_size=None, num_workers=n_workers
    )
    assert firsts(mapped) == everything
    stream = tensors.StepStream(loader, rank=1, n_ranks=3)
    assert len(stream) == 3
    assert (
        firsts(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=n_workers))
        == everything[1::3]
    )


@pytest.mark.parametrize("first_step", [0, 4, 10])
def test_ranks_share_all_steps_from_where_they_resume(torch, loader, first_step):
    streams = [
        tensors.StepStream(loader, rank=rank, n_ranks=3, first_step=first_step) for rank in range(3)
    ]
    shared = range(first_step, 10 - (10 - first_step) % 3)
    assert [len(stream) for stream in streams] == [len(shared) // 3] * 3
    assert sorted(firsts(batch for stream in streams for batch in stream)) == sorted(
        firsts(loader[step]._asdict() for step in shared)
    )


def test_without_a_process_group_there_is_one_rank(torch, loader):
    stream = tensors.StepStream(loader)
    assert (stream.rank, stream.n_ranks, len(stream)) == (0, 1, 10)


def test_ranks_and_steps_that_are_not_there_are_refused(torch, loader):
    with pytest.raises(BadInput, match="there is no rank 2 of 2"):
        tensors.StepStream(loader, rank=2, n_ranks=2)
    with pytest.raises(BadInput, match="first_step must be 0 to 10, got 11"):
        tensors.StepStream(loader, first_step=11)


@pytest.mark.parametrize("n_ranks", [1, 2])
def test_a_stream_is_saved_and_resumed(torch, loader, n_ranks):
    """Nothing twice, nothing skipped; also on another number of ranks, since a state counts the
    steps of all.
    """
    streams = [tensors.StepStream(loader, rank=rank, n_ranks=n_ranks) for rank in range(n_ranks)]
    begun = [
        step
        for parts in zip(*(itertools.islice(stream, 2) for stream in streams), strict=True)
        for step in firsts(parts)
    ]
    state = json.loads(json.dumps(streams[-1].state_dict()))
    assert state["step"] == 2 * n_ranks
    for others in (1, 3):
        resumed = [tensors.StepStream(loader, rank=rank, n_ranks=others) for rank in range(others)]
        for stream in resumed:
            stream.load_state_dict(state)
        left = firsts(batch for stream in resumed for batch in stream)
        whole = range(10 - (10 - state["step"]) % others)
        assert sorted(begun + left) == sorted(firsts(loader[step]._asdict() for step in whole))
    with pytest.raises(BadInput, match="its batch_rows is 2, this loader's is 5"):
        tensors.StepStream(
            GridLoader(NumberedRows(10, 6), batch_rows=5, context_tokens=3)
        ).load_state_dict(state)


def test_a_stream_that_ran_out_begins_again(torch, loader):
    stream = tensors.StepStream(loader, first_step=7)
    assert len(firsts(stream)) == 3
    assert len(firsts(stream)) == 10


def test_one_ranks_loader_is_not_dealt_out_again(torch):
    """Its ranks share every step, whatever torch.distributed reports."""
    ranks = [
        GridLoader(
            NumberedRows(10, 6), batch_rows=2, context_tokens=3, rank=rank, n_ranks=2, prefetch=2
        )
        for rank in range(2)
    ]
    assert [len(tensors.StepStream(loader)) for loader in ranks] == [10, 10]
    both = zip(*(tensors.StepStream(loader) for loader in ranks), strict=True)
    whole = GridLoader(NumberedRows(10, 6), batch_rows=2, context_tokens=3)
    for parts, batch in zip(both, whole, strict=True):
        np.testing.assert_array_equal(
            torch.cat([part["text"] for part in parts]).numpy(), batch.text
        )


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata 0.11 on torch 2.13
@pytest.mark.parametrize("n_workers", [0, 2])
def test_torchdatas_stateful_loader_saves_and_resumes_a_stream(torch, loader, n_workers):
    """Through its own worker processes, too."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return stateful.StatefulDataLoader(
            tensors.StepStream(loader), batch_size=None, num_workers=n_workers
        )

    whole = firsts(make())
    stopped, resumed = make(), make()
    begun = firsts(itertools.islice(stopped, 3))
    resumed.load_state_dict(stopped.state_dict())
    assert begun + firsts(resumed) == whole


@pytest.mark.parametrize("vocab_size", [50_257, 100_000])
def test_batches_on_a_device_are_the_loaders(torch, tmp_path, vocab_size):
    """Ids above the signed types' halves, too: they cross as signed numbers of 2 or 4 bytes."""
    rows = ids(8, 16, vocab_size=vocab_size)
    rows[0, :3] = 32_768, vocab_size - 1, 0
    path = write_grid(tmp_path / "a.zarr", rows, vocab_size=vocab_size)
    loader = GridLoader(open_rows(path), batch_rows=4, context_tokens=8, first_token=50_256)
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        found = list(tensors.to_device(loader, device))
        assert len(found) == len(loader)
        for step, batch in enumerate(found):
            for name, tensor in batch.items():
                assert (tensor.dtype, tensor.is_contiguous(), tensor.device.type) == (
                    torch.int64,
                    True,
                    device,
                )
                np.testing.assert_array_equal(tensor.cpu().numpy(), getattr(loader[step], name))


def test_windows_on_a_device_are_the_loaders(torch, tmp_path):
    """Their first inputs differ from row to row."""
    with MegatronWriter.publishing(tmp_path / "a", np.dtype(np.uint16)) as writer:
        writer.add(np.arange(100, dtype=np.uint16))
    loader = WindowLoader(tmp_path / "a", batch_windows=3, context_tokens=9)
    for step, batch in enumerate(tensors.to_device(loader, "cpu")):
        np.testing.assert_array_equal(batch["text"].numpy(), loader[step].text)
        np.testing.assert_array_equal(batch["targets"].numpy(), loader[step].targets)


def test_dictionaries_of_arrays_for_other_loops(loader):
    """One dtype, one shape, contiguous, and the reader's own; no framework is imported for them."""
    found = list(as_arrays(loader))
    assert {
        (name, values.dtype, values.shape, values.flags.c_contiguous)
        for batch in found
        for name, values in batch.items()
    } == {(name, np.dtype(np.int32), (2, 3), True) for name in ("text", "targets")}
    for step, batch in enumerate(found):
        np.testing.assert_array_equal(batch["targets"], loader[step].targets)


def sliding(n=203):
    return SlidingWindows(ids=np.arange(n, dtype=np.uint16), context_tokens=6, stride=4)


def numbers_of(loader):
    """Numbers of the windows that a loader gives, batch by batch."""
    return [(batch["input_ids"][:, 0] // 4).tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sliding_loader_gives_an_epoch_in_its_seeded_order(torch, workers):
    """As int64 tensors, one further each, whatever the workers."""
    windows = sliding()
    loader = tensors.sliding_loader(windows, batch_size=8, base_seed=3, epoch=1, workers=workers)
    wanted = windows.order(base_seed=3, epoch=1).tolist()
    assert list(itertools.chain(*numbers_of(loader))) == wanted[: len(wanted) // 8 * 8]
    batch = next(iter(loader))
    assert batch["input_ids"].dtype == batch["targets"].dtype == torch.int64
    assert batch["targets"].tolist() == (batch["input_ids"] + 1).tolist()
    assert batch["mask"].all()


@given(
    n=st.integers(10, 200), batch_size=st.integers(1, 5), n_ranks=st.integers(1, 5), data=st.data()
)
def test_ranks_of_a_sliding_loader_have_equally_many_batches(n, batch_size, n_ranks, data):
    """Otherwise the first waits for the others at the end of the epoch, for ever."""
    pytest.importorskip("torch")
    windows = SlidingWindows(ids=np.arange(4 * n), context_tokens=8, stride=4)
    first = data.draw(st.integers(0, len(windows)))
    settings = {"batch_size": batch_size, "base_seed": 0, "epoch": 0, "first": first}
    ranks = [
        numbers_of(tensors.sliding_loader(windows, **settings, rank=rank, n_ranks=n_ranks))
        for rank in range(n_ranks)
    ]
    expected = (len(windows) - first) // (batch_size * n_ranks)
    assert [len(batches) for batches in ranks] == [expected] * n_ranks
    served = [number for batches in ranks for batch in batches for number in batch]
    assert len(set(served)) == len(served) == expected * batch_size * n_ranks


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["list", "tensor", "array"])
def test_pairs_are_those_of_the_lesson(torch, kind, workers):
    """Inputs and targets, for `for inputs, targets in loader`, of ids of any kind."""
    ids = torch.arange(100).to(torch.int32)
    given_ids = {"list": ids.tolist(), "tensor": ids, "array": ids.numpy().astype(np.uint16)}[kind]
    windows = SlidingWindows(ids=given_ids, context_tokens=8, stride=3)
    settings = {"batch_size": 4, "base_seed": 3, "epoch": 1, "workers": workers}
    found = list(tensors.sliding_loader(windows, **settings, pairs=True))
    wanted = list(tensors.sliding_loader(windows, **settings))
    assert len(found) == len(wanted) == 7
    for (inputs, targets), batch in zip(found, wanted, strict=True):
        assert torch.equal(inputs, batch["input_ids"])
        assert torch.equal(targets, batch["targets"])
        assert inputs.is_contiguous()
        assert targets.is_contiguous()
    dataset = WindowPairs(windows)
    assert [values.tolist() for values in dataset[-1]] == [[*range(90, 98)], [*range(91, 99)]]


def test_pairs_of_a_padded_window(torch):
    windows = SlidingWindows(ids=[1, 2, 3, 4], context_tokens=3, stride=2, pad=0)
    assert [values.tolist() for values in windows.pairs([0, 1])] == [
        [[1, 2, 3], [3, 4, 0]],
        [[2, 3, 4], [4, 0, 0]],
    ]
    for number in (2, -3):
        with pytest.raises(IndexError, match="there are 2"):
            windows.pairs([number])


def test_a_sliding_loader_goes_on_with_other_ranks(torch):
    """Two ranks had 16 windows; four go on, and together every window of the epoch comes once."""
    windows = sliding()
    settings = {"batch_size": 2, "base_seed": 3, "epoch": 0}
    had = [
        number
        for rank in range(2)
        for batch in numbers_of(tensors.sliding_loader(windows, **settings, rank=rank, n_ranks=2))[
            :4
        ]
        for number in batch
    ]
    rest = [
        number
        for rank in range(4)
        for batch in numbers_of(
            tensors.sliding_loader(windows, **settings, first=16, rank=rank, n_ranks=4)
        )
        for number in batch
    ]
    assert not set(had) & set(rest)
    assert len(set(had) | set(rest)) == len(had) + len(rest) >= len(windows) - 7
    with pytest.raises(BadInput, match="no rank 4 of 4"):
        tensors.sliding_loader(windows, **settings, rank=4, n_ranks=4)
