"""The global order: three files, and the rows of several grids as if they were one."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.order import GlobalOrder, OrderSource, write_order, write_sources
from lc_assets.loaders.arrays import InterleavedRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache
from lc_assets_tests.grid_builders import ids, riffle, write_grid


def source_of(snapshot, train_rows, heldout_rows=0):
    return OrderSource(
        snapshot=snapshot,
        version="abc123",
        digest="d" * 64,
        train_rows=train_rows,
        heldout_rows=heldout_rows,
    )


@pytest.fixture
def folder(tmp_path):
    """An order over three grids of 4, 0 and 3 training rows and 1, 2, 0 heldout ones."""
    counts = {"train": [4, 0, 3], "heldout": [1, 2, 0]}
    sources = [
        source_of(f"2023-0{number}", *rows)
        for number, rows in enumerate(zip(*counts.values(), strict=True))
    ]
    write_sources(tmp_path, sources, row_tokens=6, vocab_size=50_257)
    for split, rows in counts.items():
        write_order(tmp_path, split, *riffle(rows))
    return tmp_path


def test_what_is_written_is_read(folder):
    order = GlobalOrder.open(folder, "train")
    source, row = riffle([4, 0, 3])
    np.testing.assert_array_equal(order.source, source)
    np.testing.assert_array_equal(order.row, row)
    assert (len(order), order.row_tokens, order.vocab_size, order.split) == (7, 6, 50_257, "train")
    assert [
        (each.snapshot, each.rows("train"), each.rows("heldout")) for each in order.sources
    ] == [
        ("2023-00", 4, 1),
        ("2023-01", 0, 2),
        ("2023-02", 3, 0),
    ]
    assert len(GlobalOrder.open(folder, "heldout")) == 3


def test_the_files_are_plain_numpy_and_json(folder):
    """Anybody reads them with two library calls, without pickle."""
    assert np.load(folder / "train_source.npy", allow_pickle=False).dtype == np.dtype("<u2")
    assert np.load(folder / "train_row.npy", allow_pickle=False).dtype == np.dtype("<u4")
    document = json.loads((folder / "sources.json").read_text())
    assert {key: document[key] for key in ("row_tokens", "vocab_size")} == {
        "row_tokens": 6,
        "vocab_size": 50_257,
    }
    assert document["sources"][2] == {
        "snapshot": "2023-02",
        "version": "abc123",
        "digest": "d" * 64,
        "train_rows": 3,
        "heldout_rows": 0,
    }


def test_an_order_is_mapped_not_read(folder):
    assert isinstance(GlobalOrder.open(folder, "train").row, np.memmap)


def test_an_empty_order_is_an_order(tmp_path):
    write_sources(tmp_path, [], row_tokens=6, vocab_size=50_257)
    write_order(tmp_path, "train", *riffle([]))
    order = GlobalOrder.open(tmp_path, "train")
    order.require_riffle()
    assert InterleavedRows(order, []).read().shape == (0, 6)


@pytest.mark.parametrize("name", ["sources.json", "train_source.npy", "train_row.npy"])
def test_a_missing_file_is_said(folder, name):
    (folder / name).unlink()
    with pytest.raises(NotPublished, match=name):
        GlobalOrder.open(folder, "train")


@pytest.mark.parametrize("name", ["sources.json", "train_source.npy", "train_row.npy"])
@pytest.mark.parametrize("keep", [0, 5, 60, -1])
def test_a_truncated_file_is_damage(folder, name, keep):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.rstrip()[:keep])
    with pytest.raises(CorruptFile, match=name):
        GlobalOrder.open(folder, "train")


def test_arrays_that_disagree_are_damage(folder):
    """Another length, another dtype, a source that does not exist: each is said with its file."""
    np.save(folder / "train_row.npy", np.zeros(6, np.uint32))
    with pytest.raises(CorruptFile, match=r"has 7 positions, train_row\.npy has 6"):
        GlobalOrder.open(folder, "train")
    np.save(folder / "train_row.npy", np.zeros(7, np.int64))
    with pytest.raises(
        CorruptFile, match=r"int64 of shape \(7,\), expected a one-dimensional array of uint32"
    ):
        GlobalOrder.open(folder, "train")
    write_order(folder, "train", np.full(7, 3, np.uint16), np.zeros(7, np.uint32))
    with pytest.raises(CorruptFile, match=r"names source 3, sources\.json has 3"):
        GlobalOrder.open(folder, "train")


def test_pickles_are_not_opened(folder):
    """An object array would run code when loaded: it is refused as damage."""
    np.save(folder / "train_row.npy", np.array([{}] * 7, object), allow_pickle=True)
    with pytest.raises(CorruptFile, match=r"not a whole \.npy file"):
        GlobalOrder.open(folder, "train")


@pytest.mark.parametrize("field", ["snapshot", "version"])
def test_names_that_would_leave_the_lake_are_damage(folder, field):
    """Snapshots and versions become folders, so a name such as ``../..`` is refused while it is
    read.
    """
    document = json.loads((folder / "sources.json").read_text())
    document["sources"][0][field] = "../../etc"
    (folder / "sources.json").write_text(json.dumps(document))
    with pytest.raises(CorruptFile, match=r"sources\.json: not the sources"):
        GlobalOrder.open(folder, "train")


def test_what_is_no_order_is_not_written(tmp_path):
    with pytest.raises(BadInput, match="no split is called 'test'"):
        write_order(tmp_path, "test", *riffle([1]))
    with pytest.raises(BadInput, match="cannot have -1"):
        source_of("2023-06", -1)
    with pytest.raises(BadInput, match="at least one token per row"):
        write_sources(tmp_path, [], row_tokens=0, vocab_size=1)
    assert not list(tmp_path.iterdir())


def test_an_order_that_loses_or_repeats_a_row_is_no_riffle(folder):
    order = GlobalOrder.open(folder, "train")
    order.require_riffle()
    row = np.array(order.row)
    row[np.flatnonzero(order.source == 2)[0]] = 1
    write_order(folder, "train", np.array(order.source), row)
    with pytest.raises(Mismatch, match="names 3 rows of 2023-02, which has 3"):
        GlobalOrder.open(folder, "train").require_riffle()


def interleaved(folder, arrays, source, row):
    """Rows of grids that hold some arrays, by an order written to files."""
    sources = [source_of(f"s{number}", len(array)) for number, array in enumerate(arrays)]
    write_sources(folder, sources, row_tokens=arrays[0].shape[1], vocab_size=50_257)
    write_order(folder, "train", source, row)
    cache = ChunkCache()
    return InterleavedRows(
        GlobalOrder.open(folder, "train"),
        [
            ZarrRows(GridReader(write_grid(folder / f"{number}.zarr", array)), cache)
            for number, array in enumerate(arrays)
        ],
    )


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_a_riffled_read_is_a_naive_gather(tmp_path_factory, counts, seed, data):
    """Any sources, any order, any rectangle: row by row, each row is the one its position names."""
    arrays = [ids(count, 6, seed=number) for number, count in enumerate(counts)]
    source, row = riffle(counts, seed=seed)
    reader = interleaved(tmp_path_factory.mktemp("order"), arrays, source, row)
    top, bottom = sorted(data.draw(st.tuples(*[st.integers(0, len(source))] * 2)))
    slow = np.array(
        [
            arrays[which][number, 1:5]
            for which, number in zip(source[top:bottom], row[top:bottom], strict=True)
        ],
        np.uint16,
    )
    np.testing.assert_array_equal(reader.read(slice(top, bottom), slice(1, 5)), slow.reshape(-1, 4))


@given(st.permutations(range(7)))
def test_an_order_that_is_no_riffle_is_read_too(tmp_path_factory, shuffled):
    """Rows of a source in any sequence: slower, and right."""
    rows = ids(7, 6)
    reader = interleaved(
        tmp_path_factory.mktemp("order"),
        [rows],
        np.zeros(7, np.uint16),
        np.array(shuffled, np.uint32),
    )
    np.testing.assert_array_equal(reader.read(), rows[list(shuffled)])


def test_each_chunk_is_decoded_once_per_rectangle(tmp_path):
    """30 positions over 3 sources of one chunk each cost 3 reads, not 30."""
    reader = interleaved(tmp_path, [ids(10, 6), ids(10, 6), ids(10, 6)], *riffle([10, 10, 10]))
    reader.read(slice(3, 29))
    assert reader.sources[0].cache.misses == 3


def test_a_position_tells_where_its_row_came_from(tmp_path):
    source, row = riffle([4, 5])
    reader = interleaved(tmp_path, [ids(4, 6), ids(5, 6)], source, row)
    for position in range(9):
        assert reader.place(position) == (reader.sources[source[position]], row[position])
    for position in (-1, 9):
        with pytest.raises(BadInput, match=f"no position {position}: the train order has 9"):
            reader.place(position)


def test_a_row_that_no_grid_has_is_damage(tmp_path):
    reader = interleaved(
        tmp_path, [ids(4, 6)], np.zeros(4, np.uint16), np.array([0, 1, 4, 2], np.uint32)
    )
    assert reader.read(slice(0, 2)).shape == (2, 6)
    with pytest.raises(CorruptFile, match="names row 4 of s0 at position 2; that grid has 4 rows"):
        reader.read(slice(1, 4))


@pytest.mark.parametrize("shape", [(5, 6), (4, 7)])
def test_another_grid_than_the_orders_is_refused(tmp_path, shape):
    """A grid with other rows or another width than the order was made for."""
    order = interleaved(tmp_path / "order", [ids(4, 6)], *riffle([4])).order
    with pytest.raises(
        Mismatch,
        match=r"s0: train rows, row_tokens and vocab_size are .*, the order was made for \(4, 6, 50257\)",
    ):
        InterleavedRows(
            order,
            [ZarrRows(GridReader(write_grid(tmp_path / "a.zarr", ids(*shape))), ChunkCache())],
        )
    with pytest.raises(Mismatch, match="the order is over 1 sources, got 0"):
        InterleavedRows(order, [])


def test_another_order_is_another_identity(tmp_path):
    """So a saved position is not resumed in a reshuffled data set."""
    arrays = [ids(4, 6), ids(5, 6)]
    identities = {
        interleaved(tmp_path / str(number), arrays, *riffle([4, 5], seed=seed)).identity
        for number, seed in enumerate((1, 2, 1))
    }
    assert len(identities) == 2
