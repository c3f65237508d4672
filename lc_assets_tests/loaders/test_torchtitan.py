"""Rows in torchtitan: the same tokens with any number of ranks, whatever number went before; what
packed rows must not learn is ignored.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.loaders import torchtitan as titan
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets_tests.grid_builders import ids, write_grid

N_ROWS, ROW = 48, 16


@pytest.fixture
def torch():
    pytest.importorskip("torch")
    pytest.importorskip("torchtitan", reason="torchtitan is not installed")
    import torch

    return torch


@pytest.fixture
def folder(tmp_path):
    """48 rows of 16 ids."""
    write_grid(tmp_path / "train.zarr", ids(N_ROWS, ROW))
    return tmp_path


@pytest.fixture
def packed(folder):
    """The same as packed rows, of one, two or three spans."""
    stops = [[16], [5, 16], [3, 9], [4, 5, 12]] * 12
    row = np.repeat(np.arange(N_ROWS), [len(ends) for ends in stops])
    PackedSpans.of(row, np.concatenate(stops), np.arange(len(row)), n_rows=N_ROWS).write(
        folder, "train"
    )
    return folder


def loader(folder, rank=0, n_ranks=1, local=2, seq_len=ROW):
    """As torchtitan's trainer builds it."""
    return titan.RowLoader.Config(dataset_path=str(folder)).build(
        dp_world_size=n_ranks,
        dp_rank=rank,
        tokenizer=None,
        seq_len=seq_len,
        local_batch_size=local,
        snapshot_every_n_steps=None,
    )


def rows_of(batches):
    return [row for _, labels in batches for row in labels.tolist()]


@pytest.mark.parametrize("n_ranks", [1, 2, 8])
def test_ranks_share_all_rows(torch, folder, n_ranks):
    from torchtitan.components.dataloader import BaseDataLoader

    assert isinstance(loader(folder), BaseDataLoader)
    seen = [row for rank in range(n_ranks) for row in rows_of(loader(folder, rank, n_ranks))]
    assert sorted(seen) == sorted(ids(N_ROWS, ROW).tolist())


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize(("local", "n_ranks"), [(2, 8), (1, 4), (4, 1)])
def test_a_checkpoint_goes_on_with_another_number_of_ranks(torch, folder, tmp_path, local, n_ranks):
    """Two ranks take four batches of two rows; the state is written and read as torchtitan does."""
    import torch.distributed.checkpoint as dcp

    ranks = [loader(folder, rank, 2) for rank in range(2)]
    begun = [rows_of(next(batches) for _ in range(4)) for batches in map(iter, ranks)]
    states = [one.state_dict() for one in ranks]
    assert states[0] == states[1]
    dcp.save({"dataloader": states[0]}, checkpoint_id=tmp_path / "step-4", no_dist=True)
    rest = []
    for rank in range(n_ranks):
        one = loader(folder, rank, n_ranks, local)
        state = {"dataloader": one.state_dict()}
        dcp.load(state, checkpoint_id=tmp_path / "step-4", no_dist=True)
        one.load_state_dict(state["dataloader"])
        rest += rows_of(one)
    assert sorted([*begun[0], *begun[1], *rest]) == sorted(ids(N_ROWS, ROW).tolist())


def test_inputs_are_labels_shifted_and_positions_count(torch, folder):
    first, labels = next(iter(loader(folder, seq_len=8)))
    assert (first["input"][:, 1:] == labels[:, :-1]).all()
    assert first["positions"].tolist() == [list(range(8))] * 2
    assert {first["input"].dtype, labels.dtype, first["positions"].dtype} == {torch.int64}


def test_packed_rows_restart_positions_and_ignore_padding(torch, packed):
    batches = PackedLoader(open_packed(packed), batch_rows=2)
    for (found, labels), batch in zip(loader(packed), batches, strict=True):
        assert (found["input"].numpy() == batch.text).all()
        assert (found["positions"].numpy() == batch.positions).all()
        assert (
            labels.numpy() == np.where(batch.mask, batch.targets.astype(int), titan.IGNORED)
        ).all()


def test_states_of_others_are_refused(torch, folder, tmp_path):
    one, parts = loader(folder), loader(folder, seq_len=8)
    one.load_state_dict({})
    for state in ({**one.state_dict(), "rows": 3}, {"rows": 4}, parts.state_dict()):
        with pytest.raises(BadInput, match="state is"):
            one.load_state_dict(state)
    with pytest.raises(BadInput, match="batch_rows"):
        loader(folder, seq_len=8, local=4).load_state_dict(parts.state_dict() | {"rows": 8})
    with pytest.raises(BadInput, match="dataset_path"):
        titan.RowLoader(
            titan.RowLoader.Config(), dp_world_size=1, dp_rank=0, seq_len=8, local_batch_size=1
        )


def test_what_torchtitan_itself_lacks_is_named(tmp_path):
    package = tmp_path / "torchtitan"
    package.mkdir()
    (package / "__init__.py").write_text("import something_missing")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ran = subprocess.run(
        [sys.executable, "-c", f"import {titan.__name__}"],
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
        capture_output=True,
        text=True,
    )
    assert "No module named 'something_missing'" in ran.stderr
