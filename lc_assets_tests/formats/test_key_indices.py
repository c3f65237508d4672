"""Key indices: a look-up finds what a search through all keys finds, and damage is named."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats.key_index import KeyIndex, write_key_index

MOST = 2**64 - 1
KEYS = st.lists(st.integers(0, MOST) | st.integers(0, 5) | st.integers(MOST - 3, MOST), max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keys")


def index_of(folder, keys):
    keys = np.sort(np.array(keys, np.uint64))
    write_key_index(folder / "x", keys, np.arange(len(keys), dtype=np.uint32))
    return KeyIndex(folder / "x"), keys


@given(keys=KEYS, n_even=st.integers(0, 2000), asked=st.integers(0, MOST))
def test_places_are_those_of_a_search_through_all(folder, keys, n_even, asked):
    """However the keys are spread: evenly, on a heap, repeated, none."""
    even = np.random.default_rng(n_even).integers(0, MOST, n_even, dtype=np.uint64).tolist()
    index, standing = index_of(folder, [*keys, *even])
    for key in [asked, 0, MOST, *keys, *even[:3]]:
        assert index.places(key) == np.flatnonzero(standing == np.uint64(key)).tolist()


@given(keys=KEYS, asked=KEYS)
def test_many_keys_at_once_are_each_of_them(folder, keys, asked):
    index, _ = index_of(folder, keys)
    which, places = index.places_of_all(np.array([*asked, *keys], np.uint64))
    wanted = [
        (number, place) for number, key in enumerate([*asked, *keys]) for place in index.places(key)
    ]
    assert list(zip(which.tolist(), places.tolist(), strict=True)) == wanted


def test_a_long_run_of_one_key_is_found_whole(folder):
    """A domain of a hundred thousand pages."""
    index, _ = index_of(folder, [7] * 5 + [MOST // 3] * 100_000 + [MOST] * 2)
    assert index.places(MOST // 3) == list(range(5, 100_005))
    assert index.places(MOST) == [100_005, 100_006]


@pytest.mark.parametrize("part", ["key", "place"])
@pytest.mark.parametrize("fault", ["gone", "cut", "other"])
def test_damage_is_named(folder, part, fault):
    index, _ = index_of(folder, range(1000))
    path = folder / f"x_{part}.npy"
    if fault == "gone":
        path.unlink()
    elif fault == "cut":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        np.save(path, np.zeros(1000, np.float32))
    with pytest.raises(CorruptFile, match=f"x_{part}.npy"):
        index.places(0)
    with pytest.raises(CorruptFile, match=f"x_{part}.npy"):
        index.places_of_all(np.array([0], np.uint64))


def test_arrays_of_two_lengths_are_damage(folder):
    index, _ = index_of(folder, range(10))
    np.save(folder / "x_place.npy", np.zeros(9, np.uint32))
    with pytest.raises(CorruptFile, match="9 places for 10 keys"):
        index.places(0)
