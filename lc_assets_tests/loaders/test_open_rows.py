"""Opening a data set by its path: an array, a published version, a lake; each read through one
bounded cache.
"""

import pickle
import shutil
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.lake.receipts import with_checksum
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.loaders.arrays import InterleavedRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets.loaders.contracts import assert_resume_gives_the_rest, assert_step_is_enough
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.grid_builders import ids, publish, riffle, write_flat, write_grid, write_lake

TRAIN = {"2022-49": ids(70, 48, seed=1), "2023-06": ids(5, 48, seed=2), "mine": ids(0, 48)}
HELDOUT = {"2022-49": ids(2, 48, seed=3), "2023-06": ids(0, 48), "mine": ids(3, 48, seed=4)}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Three snapshots' grids, one without training rows, and the global order over them."""
    return write_lake(tmp_path_factory.mktemp("lake"), TRAIN, HELDOUT)


@pytest.fixture
def own_lake(lake, tmp_path):
    """A copy of the lake that a test may damage."""
    return shutil.copytree(lake, tmp_path / "lake")


def in_order(grids):
    """All rows in the global order, by the obvious loop."""
    arrays = list(grids.values())
    return np.array(
        [
            arrays[source][row]
            for source, row in zip(*riffle([len(array) for array in arrays]), strict=True)
        ]
    )


def test_a_lake_is_its_global_order(lake):
    """The root, the published version's folder and the place that holds it are the same rows."""
    for path in (lake, lake / "longcrawl/all", lake / "longcrawl/all/v7"):
        rows = open_rows(path)
        assert (rows.n_rows, rows.row_tokens, rows.vocab_size) == (75, 48, 50_257)
        np.testing.assert_array_equal(rows.read(), in_order(TRAIN))
        np.testing.assert_array_equal(open_rows(path, "heldout").read(), in_order(HELDOUT))


def test_a_relative_path_is_a_path(lake, monkeypatch):
    monkeypatch.chdir(lake / "longcrawl/all/v7")
    assert open_rows(lake.__class__("."), "heldout").n_rows == 5


@pytest.fixture(scope="module")
def seamed(tmp_path_factory):
    """150 rows of 40 tokens in chunks of 64 × 16: ragged at both edges; and its reader."""
    rows = ids(150, 40)
    path = write_grid(tmp_path_factory.mktemp("seamed") / "a.zarr", rows, inner_tokens=16)
    return rows, open_rows(path)


@given(
    top=st.integers(0, 149), left=st.integers(0, 39), shape=st.tuples(*[st.integers(1, 150)] * 2)
)
def test_a_rectangle_of_rows_is_the_slice_of_all(seamed, top, left, shape):
    """Within a chunk, along its edges and across."""
    rows, source = seamed
    piece = slice(top, min(top + shape[0], 150)), slice(left, min(left + shape[1], 40))
    np.testing.assert_array_equal(source.read(*piece), rows[piece])


def test_one_snapshots_grid_is_opened_by_its_place_version_or_array(lake):
    for path in ("token_grid/2022-49", "token_grid/2022-49/v1", "token_grid/2022-49/v1/train.zarr"):
        np.testing.assert_array_equal(open_rows(lake / path).read(), TRAIN["2022-49"])
    np.testing.assert_array_equal(
        open_rows(lake / "token_grid/2022-49/v1", "heldout").read(), HELDOUT["2022-49"]
    )


def test_a_downloaded_flat_data_set_is_opened_by_its_folder(tmp_path):
    write_flat(tmp_path / "train.zarr", TRAIN["2022-49"])
    np.testing.assert_array_equal(open_rows(tmp_path).read(), TRAIN["2022-49"])


def test_lake_and_flat_copy_hold_the_same_rows(lake, tmp_path):
    """Loaders over the riffled lake and over the flat copy of it give the same batches, so the same
    rows.
    """
    flat = open_rows(write_flat(tmp_path / "train.zarr", in_order(TRAIN), chunk=(8, 16)))
    ours, theirs = (
        GridLoader(rows, batch_rows=4, context_tokens=24) for rows in (open_rows(lake), flat)
    )
    np.testing.assert_equal(list(ours), list(theirs))
    visited = np.concatenate([batch.targets for batch in ours][: ours.row_blocks])
    lost = in_order(TRAIN)[-ours.dropped_rows :, :24]
    every = np.concatenate([array[:, :24] for array in TRAIN.values()])
    assert sorted(map(bytes, [*visited, *lost.astype(np.uint16)])) == sorted(
        map(bytes, every.astype(np.uint16))
    )


def test_a_loader_over_a_lake_keeps_the_contracts(lake):
    def make(*_):
        return GridLoader(open_rows(lake, cache_bytes=64 * 48 * 2), batch_rows=7, context_tokens=16)

    assert_step_is_enough(make(), steps=range(len(make())))
    assert_resume_gives_the_rest(make, stop_after=11)


def test_a_batchs_rows_are_traced_to_their_grids(lake):
    """Positions of a step lead to snapshot, version and row, and the tokens there are the
    batch's.
    """
    rows = open_rows(lake)
    assert isinstance(rows, InterleavedRows)
    loader = GridLoader(rows, batch_rows=10, context_tokens=16)
    for step in (0, 6, 8):
        left = loader.part_of(step)[1]
        for position, found in zip(loader.rows_of(step), loader[step].targets, strict=True):
            array, row = rows.place(position)
            assert array.path.parent.name == "v1"
            np.testing.assert_array_equal(
                found, TRAIN[array.path.parts[-3]][row, left.start : left.stop]
            )


def test_a_walk_decodes_each_chunk_once_a_column(tmp_path):
    """Through a cache of one chunk, 16 batches that lie in 2 inner chunks cost 2 decodings, not
    16.
    """
    path = write_grid(tmp_path / "a.zarr", ids(128, 32))
    cache = ChunkCache(64 * 32 * 2)
    loader = GridLoader(ZarrRows(GridReader(path), cache), batch_rows=8, context_tokens=32)
    list(loader)
    assert (cache.misses, cache.hits) == (2, 14)


@pytest.mark.parametrize("batch_rows", [64, 128])
def test_batches_of_whole_chunks_and_parts_are_the_rows(tmp_path, batch_rows):
    """Also where they reach into ragged chunks."""
    rows = ids(200, 40)
    array = ZarrRows(
        GridReader(write_grid(tmp_path / "a.zarr", rows, inner_tokens=16, shard_tokens=32)),
        ChunkCache(),
    )
    for top, left, width in (
        (0, 16, 16),
        (64, 0, 16),
        (0, 32, 8),
        (64, 32, 8),
        (200 - batch_rows, 0, 16),
        (1, 0, 16),
    ):
        piece = slice(top, top + batch_rows), slice(left, left + width)
        np.testing.assert_array_equal(array.read(*piece), rows[piece])


def test_what_a_reader_got_is_its_own(tmp_path):
    """Changing a batch changes neither the cache nor the next batch."""
    loader = GridLoader(
        open_rows(write_grid(tmp_path / "a.zarr", ids(8, 32))), batch_rows=8, context_tokens=32
    )
    before = loader[0].targets.copy()
    loader[0].targets[:] = 7
    np.testing.assert_array_equal(loader[0].targets, before)


@pytest.mark.parametrize("kind", ["grid", "flat"])
def test_a_cache_below_one_chunk_is_refused(tmp_path, kind):
    """When it is opened, not at the first batch."""
    path = tmp_path / "a.zarr"
    chunk_bytes = {"grid": 10 * 32 * 2, "flat": 4 * 8 * 2}[kind]
    write_grid(path, ids(10, 32)) if kind == "grid" else write_flat(path, ids(10, 32))
    assert open_rows(path, cache_bytes=chunk_bytes).read().shape == (10, 32)
    with pytest.raises(
        BadInput, match=f"a cache of {chunk_bytes - 1} bytes cannot hold one chunk of {chunk_bytes}"
    ):
        open_rows(path, cache_bytes=chunk_bytes - 1)


def test_damage_is_reported_through_the_loader(own_lake):
    (own_lake / "token_grid/2022-49/v1/train.zarr/c/0/0").unlink()
    with pytest.raises(CorruptFile, match=r"2022-49/v1/train\.zarr/c/0/0: the shard is missing"):
        list(GridLoader(open_rows(own_lake), batch_rows=5, context_tokens=16))


def test_a_grid_that_is_not_the_orders_is_refused(own_lake):
    """Its receipt has another digest than the order was made for: rows would be other rows."""
    home = own_lake / "token_grid/2023-06/v1"
    other = msgspec.structs.replace(Published.at(home).receipt, digest="0" * 64)
    write_receipt(home, with_checksum(other))
    with pytest.raises(Mismatch, match="the global order was made for"):
        open_rows(own_lake)


def test_a_removed_grid_is_an_error(own_lake):
    shutil.rmtree(own_lake / "token_grid/2023-06")
    with pytest.raises(NotPublished, match="2023-06/v1"):
        open_rows(own_lake)


def test_paths_without_data_say_what_was_looked_for(own_lake, tmp_path):
    with pytest.raises(
        BadInput, match=r"found none of train\.zarr, sources\.json, zarr\.json, \.zarray"
    ):
        open_rows(tmp_path)
    with pytest.raises(BadInput, match="no split is called 'test'"):
        open_rows(own_lake, "test")
    with pytest.raises(NotPublished, match="no token grid here"):
        ZarrRows(GridReader(tmp_path), ChunkCache())
    (own_lake / "longcrawl/all/current.json").unlink()
    with pytest.raises(NotPublished, match="longcrawl/all is not published"):
        open_rows(own_lake)


def test_identity_goes_with_the_data_not_with_the_path(own_lake, lake):
    """A data set that was moved resumes; another split, another shape, another order does not."""
    assert open_rows(lake).identity == open_rows(own_lake).identity
    paths = ["", "token_grid/2022-49", "token_grid/2023-06"]
    assert (
        len(
            {
                open_rows(lake / path, split).identity
                for path in paths
                for split in ("train", "heldout")
            }
        )
        == 6
    )


def test_identity_tells_a_rewritten_array(tmp_path):
    """Same shape, other rows."""
    one, other = (write_grid(tmp_path / f"{seed}.zarr", ids(8, 32, seed=seed)) for seed in (1, 2))
    assert open_rows(one).identity != open_rows(other).identity


def test_a_new_version_of_the_order_does_not_move_an_open_reader(own_lake):
    """What is open stays as it is while another version is published."""
    rows = open_rows(own_lake)
    shutil.copytree(own_lake / "longcrawl/all/v7", own_lake / "longcrawl/all/v8")
    np.save(own_lake / "longcrawl/all/v8/train_row.npy", np.zeros(75, np.uint32))
    publish(own_lake, "longcrawl", "all", "v8")
    np.testing.assert_array_equal(rows.read(), in_order(TRAIN))


def test_a_loader_can_be_sent_to_another_process(lake):
    """As data loaders with worker processes do: the copy reads the same, and its cache starts
    empty.
    """
    loader = GridLoader(open_rows(lake), batch_rows=4, context_tokens=24)
    before = loader[3]
    # How multiprocessing sends objects; nothing stored is read so.
    copy = pickle.loads(pickle.dumps(loader))  # noqa: S301
    np.testing.assert_equal(copy[3], before)
    assert copy.state_dict() == loader.state_dict()


@pytest.mark.parametrize("module", ["grid", "rows", "contracts"])
def test_a_training_node_needs_neither_dagster_nor_torch(module):
    """Nor zarr: chunks are decoded here."""
    code = (
        f"import sys, lc_assets.loaders.{module} as _; print(sorted({{'dagster', 'torch', "
        f"'zarr', 'pyarrow'}} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
        == "[]\n"
    )
