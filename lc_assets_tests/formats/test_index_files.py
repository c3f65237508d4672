"""Arrays on disk: what is written is read back, and a damaged file is named."""

import numpy as np
import pytest

from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.megatron.gpt_index import index_path, read_gpt_index, write_gpt_index
from lc_assets.mixing.gpt_index import build_gpt_index


@pytest.fixture
def index():
    return build_gpt_index(
        np.array([5, 0, 9, 30], np.int32), sequence_length=4, seed=1234, n_samples=25
    )


def test_an_index_comes_back_with_its_dtypes(tmp_path, index):
    """The three arrays keep values, shapes and dtypes: Megatron looks at all of them."""
    write_gpt_index(tmp_path / "train", index)
    found = read_gpt_index(tmp_path / "train")
    for name in ("document_index", "sample_index", "shuffle_index"):
        mine, theirs = getattr(found, name), getattr(index, name)
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


def test_a_missing_array_is_named(tmp_path, index):
    """An index of two files is not an index."""
    write_gpt_index(tmp_path / "train", index)
    index_path(tmp_path / "train", "sample_index").unlink()
    with pytest.raises(CorruptFile, match="train_sample_index.npy: is missing"):
        read_gpt_index(tmp_path / "train")


def test_arrays_of_two_indices_do_not_pass_for_one(tmp_path, index):
    """A shuffle of another length gives itself away."""
    write_gpt_index(tmp_path / "train", index)
    write_npy(index_path(tmp_path / "train", "shuffle_index"), np.arange(3))
    with pytest.raises(CorruptFile, match="3 samples need 4 × 2"):
        read_gpt_index(tmp_path / "train")


@pytest.mark.parametrize(
    "spoil",
    [lambda content: content[:-1], lambda content: b"", lambda content: b"PK\x03\x04" + content],
)
def test_a_cut_or_foreign_file_is_named(tmp_path, spoil):
    """Half an array is not a shorter array."""
    write_npy(tmp_path / "a.npy", np.arange(100))
    (tmp_path / "a.npy").write_bytes(spoil((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(CorruptFile, match="a.npy: not a whole .npy file"):
        read_npy(tmp_path / "a.npy")


def test_pickled_objects_are_refused(tmp_path):
    """An array of Python objects would run code when read."""
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(CorruptFile, match="not a whole .npy file"):
        read_npy(tmp_path / "a.npy")
