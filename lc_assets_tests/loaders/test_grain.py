"""Rows for Grain: the loaders' tokens and spans, shared by any number of ranks, and resumed by
another number.
"""

import numpy as np
import pytest

import lc_assets
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.loaders.contracts import NumberedRows
from lc_assets.loaders.data_sets import DataSet
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PackedLoader, PackedRows
from lc_assets.loaders.random_access import RowRecords
from lc_assets.loaders.stepping import ahead
from lc_assets_tests.grid_builders import write_grid


@pytest.fixture
def grain():
    return pytest.importorskip("grain.python", reason="grain is not installed")


@pytest.fixture
def packed():
    """48 rows of 16 tokens: one, two or three spans, some with padding."""
    stops = [[16], [5, 16], [3, 9], [4, 5, 12]] * 12
    row = np.repeat(np.arange(48), [len(ends) for ends in stops])
    stop = np.concatenate(stops)
    return DataSet(NumberedRows(48, 16), PackedSpans.of(row, stop, np.arange(len(row)), n_rows=48))


def test_records_are_the_batches_of_one_row():
    rows = NumberedRows(6, 8)
    records = RowRecords(DataSet(rows), context_tokens=4)
    loader = GridLoader(rows, batch_rows=1, context_tokens=4)
    assert len(records) == len(loader) == 12
    for step in range(12):
        record, batch = records[np.int64(step)], loader[step]
        assert record["inputs"].tolist() == batch.text[0].tolist()
        assert record["targets"].tolist() == batch.targets[0].tolist()
        assert {values.dtype for values in record.values()} == {np.dtype(np.int32)}
    with pytest.raises(IndexError):
        records[12]


@pytest.mark.parametrize("n_ranks", [1, 2, 4])
def test_records_of_batches_are_the_ranks_batches(packed, n_ranks):
    """Of rows and of packed rows; each row's segments are those of it alone."""
    single = RowRecords(packed, context_tokens=8)
    for rank in range(n_ranks):
        how = {"batch_rows": 4, "context_tokens": 8, "rank": rank, "n_ranks": n_ranks}
        records, loader = RowRecords(packed, **how), packed.loader(**how)
        plain = RowRecords(DataSet(packed.rows), **how)
        assert len(records) == len(loader) == 24
        for step in range(len(loader)):
            record, column = records[step], step // 12 * 48
            assert (record["inputs"] == loader[step].text).all()
            assert (record["targets"] == plain[step]["targets"]).all()
            rows = [single[column + row] for row in loader.rows_of(step)]
            for name, values in record.items():
                assert values.dtype == np.int32
                assert values.flags.c_contiguous
                assert values.tolist() == [row[name].tolist() for row in rows]


def test_a_state_of_batches_is_that_of_any_number_of_ranks(grain, packed):
    """Four ranks go on from the state of two, whose batches were four."""

    def readers(n_ranks):
        shares = [{"rank": rank, "n_ranks": n_ranks} for rank in range(n_ranks)]
        sources = [RowRecords(packed, batch_rows=4, **share) for share in shares]
        return [iter(grain.MapDataset.source(one).to_iter_dataset()) for one in sources]

    two = readers(2)
    seen = [row for _ in range(4) for rank in two for row in next(rank)["targets"].tolist()]
    four = readers(4)
    for rank in four:
        rank.set_state(two[0].get_state())
    seen += [row for rank in four for found in rank for row in found["targets"].tolist()]
    assert sorted(seen) == sorted(packed.rows.read(slice(0, 48), slice(0, 16)).tolist())


@pytest.mark.parametrize("reads", ["Grain", "any program"])
def test_threads_that_read_batches_decode_a_chunk_once(request, tmp_path, reads):
    """As MaxText's iterator does; with room for one row of chunks they decoded three times."""
    rows = np.random.default_rng(0).integers(0, 50_257, (512, 64)).astype(np.uint16)
    data = lc_assets.open(write_grid(tmp_path / "train.zarr", rows, inner_tokens=8))
    records = RowRecords(data, context_tokens=8)
    assert data.rows.cache.max_bytes <= 4 * 64 * (1 + 8) * 2
    if reads == "Grain":
        grain = request.getfixturevalue("grain")
        read = grain.ReadOptions(num_threads=16, prefetch_buffer_size=16)
        batches = grain.MapDataset.source(records).batch(8).to_iter_dataset(read)
        assert sum(len(found["targets"]) for found in batches) == 512 * 8
    else:
        found = ahead(records.__getitem__, range(len(records)), n_ahead=16, threads=16)
        assert len(list(found)) == 512 * 8
    assert data.rows.cache.misses == 8 * 8


def test_spans_of_packed_rows_are_segments(packed):
    records = RowRecords(packed)
    record = records[3]
    assert record["inputs_segmentation"].tolist() == [1] * 4 + [2] + [3] * 7 + [0] * 4
    assert record["inputs_position"].tolist() == [*range(4), 0, *range(7), *range(4)]
    learned = record["targets_segmentation"]
    assert learned.tolist() == [0, 1, 1, 1, 0, 0, *[3] * 6, 0, 0, 0, 0]
    loader = PackedLoader(PackedRows(packed.rows, packed.spans), batch_rows=1)
    for step in range(len(loader)):
        record, batch = records[step], loader[step]
        assert ((record["targets_segmentation"] > 0) == batch.mask[0]).all()
        assert ((record["inputs_segmentation"] > 0) == (batch.documents[0] >= 0)).all()
        assert (record["targets"] == batch.targets[0]).all()
        assert (record["inputs"] == batch.text[0]).all()


@pytest.mark.parametrize("n_ranks", [1, 2, 8])
def test_grains_loader_shares_all_records(grain, packed, n_ranks):
    """Batches of Grain's own `DataLoader`; the ranks' rows together are each row once."""
    records = RowRecords(packed)
    seen = []
    for rank in range(n_ranks):
        sampler = grain.IndexSampler(
            num_records=len(records),
            shard_options=grain.ShardOptions(rank, n_ranks, drop_remainder=True),
            shuffle=False,
            num_epochs=1,
        )
        batch = grain.Batch(batch_size=2, drop_remainder=True)
        loader = grain.DataLoader(
            data_source=records, sampler=sampler, operations=[batch], worker_count=0
        )
        seen += [row for found in loader for row in found["targets"].tolist()]
    assert sorted(seen) == sorted(records[step]["targets"].tolist() for step in range(48))


def test_another_number_of_ranks_goes_on(grain, packed):
    """Two ranks take three batches of two each; eight go on, and no row is missed or repeated."""
    records = RowRecords(packed)

    def batches(first, rank, n_ranks):
        data = grain.MapDataset.source(records).slice(slice(first + rank, None, n_ranks))
        return list(data.batch(2, drop_remainder=True))

    begun = [found for rank in range(2) for found in batches(0, rank, 2)[:3]]
    rest = [found for rank in range(8) for found in batches(12, rank, 8)]
    seen = [row for found in begun + rest for row in found["targets"].tolist()]
    assert len(seen) == 12 + 32  # 36 are left, and 32 of them make whole batches of eight ranks
    assert len({tuple(row) for row in seen}) == len(seen)
