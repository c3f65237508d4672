"""Whose text a batch is: each row's document, address and grid, by the row tables of the chain
itself.
"""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.loaders.contracts import NumberedRows
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets_tests.grid_builders import ids, write_grid


@pytest.fixture
def lake(published_lake, tmp_path):
    """A copy of a built lake."""
    return shutil.copytree(published_lake.context.lake.root, tmp_path / "lake")


def test_a_batchs_rows_have_documents(published_lake):
    """Every row of every step of an epoch: the same document that `lc trace` finds, and the tokens
    are its grid's.
    """
    lake = published_lake.context.lake
    loader = GridLoader(open_rows(lake.root), batch_rows=5, context_tokens=32)
    for step in range(len(loader)):
        documents = loader.provenance(step)
        assert [document.position for document in documents] == list(loader.rows_of(step))
        for document, tokens in zip(documents, loader[step].targets, strict=True):
            row = row_of_order(lake, "train", document.position)
            assert document.stretch == 0
            assert (document.id, document.url, document.shift, document.n_tokens) == (
                row.id,
                row.url,
                row.shift,
                row.n_tokens,
            )
            assert (document.snapshot, document.version, document.row) == (
                row.snapshot,
                row.published.version,
                row.row,
            )
            left = loader.part_of(step)[1].start
            grid = open_rows(row.published.home).read(
                slice(row.row, row.row + 1), slice(left, left + 32)
            )
            np.testing.assert_array_equal(tokens, grid[0])


def test_one_grids_rows_have_documents_too(lake):
    folder = next((lake / "token_grid").glob("*/*/train.zarr")).parent
    loader = GridLoader(open_rows(folder), batch_rows=4, context_tokens=64)
    found = loader.provenance(1)
    table = (
        pq.read_table(folder / "rows.parquet").filter(pc.field("split") == "train").sort_by("row")
    )
    assert [document.id for document in found] == table["id"].to_pylist()[4:8]
    assert {(document.snapshot, document.version) for document in found} == {
        (folder.parent.name, folder.name)
    }


def test_only_the_needed_row_groups_are_read(lake, monkeypatch):
    """A table of many row groups, all but one of them damaged: the rows of that one are found."""
    folder = next((lake / "token_grid").glob("*/*/train.zarr")).parent
    path = folder / "rows.parquet"
    table = pq.read_table(path).sort_by([("split", "ascending"), ("row", "ascending")])
    pq.write_table(table, path, row_group_size=2, compression="zstd", write_page_checksum=False)
    rows = GridLoader(open_rows(folder), batch_rows=2, context_tokens=64)
    expected = [document.id for document in rows.provenance(0)]
    metadata, content = pq.read_metadata(path), bytearray(path.read_bytes())
    needed = {
        group
        for group in range(metadata.num_row_groups)
        if not misses(metadata.row_group(group), rows.rows_of(0))
    }
    assert 0 < len(needed) < metadata.num_row_groups
    for group in set(range(metadata.num_row_groups)) - needed:
        column = next(c for c in columns(metadata.row_group(group)) if c.path_in_schema == "url")
        content[column.data_page_offset : column.data_page_offset + 8] = b"\xff" * 8
    path.write_bytes(content)
    assert [document.id for document in rows.provenance(0)] == expected


def columns(group):
    return [group.column(number) for number in range(group.num_columns)]


def misses(group, wanted):
    at = {column.path_in_schema: column.statistics for column in columns(group)}
    return (
        at["split"].min > "train"
        or at["split"].max < "train"
        or at["row"].min > max(wanted)
        or at["row"].max < min(wanted)
    )


def test_a_row_table_that_does_not_match_the_array_is_an_error(lake):
    """A line too few: its rows could be anybody's."""
    folder = next((lake / "token_grid").glob("*/*/train.zarr")).parent
    path = folder / "rows.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter(pc.field("row") != 1), path)
    loader = GridLoader(open_rows(folder), batch_rows=1, context_tokens=64)
    with pytest.raises(
        Mismatch,
        match=r"rows.parquet: \d+ train rows, the array beside it has \d+; .*: build the grid again",
    ):
        loader.provenance(0)


def test_a_missing_or_damaged_row_table_is_an_error(lake, tmp_path):
    folder = next((lake / "token_grid").glob("*/*/train.zarr")).parent
    loader = GridLoader(open_rows(folder), batch_rows=1, context_tokens=64)
    (folder / "rows.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CorruptFile, match="rows.parquet: not a readable row table"):
        loader.provenance(0)
    pq.write_table(pa.table({"a": [1]}), folder / "rows.parquet")
    with pytest.raises(CorruptFile, match="rows.parquet: not a readable row table"):
        loader.provenance(0)
    (folder / "rows.parquet").unlink()
    with pytest.raises(NotPublished, match="no row table here"):
        loader.provenance(0)
    bare = GridLoader(
        open_rows(write_grid(tmp_path / "a.zarr", ids(8, 32))), batch_rows=2, context_tokens=32
    )
    with pytest.raises(NotPublished, match="no row table here"):
        bare.provenance(0)


def test_rows_without_documents_say_so():
    with pytest.raises(BadInput, match="NumberedRows has no row table"):
        GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3).provenance(0)
    with pytest.raises(IndexError):
        GridLoader(NumberedRows(4, 6), batch_rows=2, context_tokens=3).provenance(99)
