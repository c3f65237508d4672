"""What a loader says to arrays that are not what they should be: each fault has its own sentence,
at the step it belongs to.
"""

import json
import shutil

import numpy as np
import pytest

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.grid_builders import ids, write_flat, write_grid, write_lake


@pytest.fixture
def grid(tmp_path):
    """Two shards of 64 rows: 16 steps of 8 rows."""
    return write_grid(tmp_path / "train.zarr", ids(128, 40), shard_rows=64)


def steps_until(loader, error, message):
    """How many batches come before the error."""
    n_given = 0
    with pytest.raises(error, match=message):
        for _ in loader:
            n_given += 1
    assert loader.step == n_given
    return n_given


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:100], "does not match its checksum"),
        (lambda content: content[:19], "cannot hold a shard's index"),
        (
            lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
            r"inner chunk \(0, 0\): .* do not decompress",
        ),
        (lambda content: b"", "cannot hold a shard's index"),
    ],
    ids=["truncated", "shorter than an index", "flipped", "empty"],
)
def test_a_damaged_chunk_stops_the_stream_at_its_step(grid, damage, message, prefetch):
    """The eight batches before it are correct; after a repair, the stream continues at the same
    step.
    """
    shard, rows = grid / "c/1/0", open_rows(grid).read()
    whole = shard.read_bytes()
    shard.write_bytes(damage(whole))
    loader = GridLoader(open_rows(grid), batch_rows=8, context_tokens=40, prefetch=prefetch)
    assert steps_until(loader, CorruptFile, rf"train.zarr/c/1/0.*{message}") == 8
    shard.write_bytes(whole)
    np.testing.assert_array_equal(np.concatenate([batch.targets for batch in loader]), rows[64:])


@pytest.mark.parametrize("kind", ["grid", "flat"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_withdrawn_version_is_an_error(tmp_path, kind, prefetch):
    """Gone while it is read: not a damaged chunk, and nothing that was decoded before is given for
    it.
    """
    path = tmp_path / "train.zarr"
    write_grid(path, ids(128, 40), shard_rows=128) if kind == "grid" else write_flat(
        path, ids(128, 40), chunk=(64, 40)
    )
    loader = GridLoader(open_rows(path), batch_rows=8, context_tokens=40, prefetch=prefetch)
    batches = iter(loader)
    next(batches)
    shutil.rmtree(path)
    with pytest.raises(
        NotPublished,
        match=r"train.zarr: the array was withdrawn while it was read: open the data set again",
    ):
        for _ in batches:
            pass
    assert loader.step == 8


def changed(path, **fields):
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data_type": "int64"}, 'data_type is "int64", a token grid\'s is "uint16"'),
        ({"data_type": "uint32"}, 'data_type is "uint32"'),
        ({"shape": [128, 80]}, "zarr.json: "),
        ({"shape": [128]}, "not the metadata of a token grid"),
    ],
)
def test_an_array_of_another_dtype_or_width_is_refused(grid, fields, message):
    changed(grid / "zarr.json", **fields)
    with pytest.raises(CorruptFile, match=message):
        open_rows(grid).read()


def test_a_snapshot_of_another_width_is_not_the_orders(tmp_path):
    """A grid that was made anew, wider, under the same receipt: its rows are not those of the
    order.
    """
    train = {"a": ids(8, 32, seed=1), "b": ids(8, 32, seed=2)}
    lake = write_lake(tmp_path, train, {name: ids(1, 32) for name in train})
    for change in (ids(8, 16), ids(9, 32)):
        shutil.rmtree(lake / "token_grid/b/v1/train.zarr")
        write_grid(lake / "token_grid/b/v1/train.zarr", change)
        with pytest.raises(
            Mismatch,
            match="b: train rows, row_tokens and vocab_size are .*, the order was made for",
        ):
            open_rows(lake)


def test_a_cache_below_one_chunk_is_refused_below_one_band_it_works(grid):
    """The message states how much is needed; between the two, chunks are decoded again, and the
    rows are right.
    """
    with pytest.raises(
        BadInput,
        match="a cache of 5,119 bytes cannot hold one chunk of 5,120 bytes: increase cache_bytes",
    ):
        open_rows(grid, cache_bytes=64 * 40 * 2 - 1)
    wide = write_grid(grid.parent / "wide.zarr", ids(16, 6000))
    rows = open_rows(wide, cache_bytes=16 * 2048 * 2)
    np.testing.assert_array_equal(
        rows.read(slice(3, 9), slice(100, 5999)), open_rows(wide).read()[3:9, 100:5999]
    )
    assert rows.cache.n_bytes <= rows.cache.max_bytes
