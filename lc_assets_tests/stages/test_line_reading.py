"""Single lines of a table: those of the whole table, whatever its row groups are."""

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.builds.lookups import (
    GROUP_LINES,
    read_some,
    write_in_groups,
    write_parts_in_groups,
)
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import read_lines, writing_table
from lc_assets.errors import CorruptFile
from lc_assets.formats.parquet.footer import read_footer
from lc_assets.formats.parquet.pages import walk

N_LINES = 2 * GROUP_LINES + 7


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same lines in groups of the package's size, of one line, and in one."""
    folder = tmp_path_factory.mktemp("tables")
    table = pa.table(
        {"number": range(N_LINES), "word": [f"w{number}" for number in range(N_LINES)]}
    )
    write_in_groups(folder / "groups.parquet", table)
    pq.write_table(table.slice(0, 50), folder / "single.parquet", row_group_size=1)
    pq.write_table(table, folder / "one.parquet")
    return folder


@given(st.lists(st.integers(0, 49) | st.integers(0, N_LINES - 1), max_size=8))
def test_lines_come_in_the_order_asked_for(tables, lines):
    wanted = [{"number": line, "word": f"w{line}"} for line in lines]
    assert (
        read_some(tables / "groups.parquet", lines)
        == read_some(tables / "one.parquet", lines)
        == wanted
    )
    few = [line for line in lines if line < 50]
    assert read_some(tables / "single.parquet", few, ["word"]) == [
        {"word": f"w{line}"} for line in few
    ]


def test_a_table_is_written_in_small_groups(tables):
    assert pq.read_metadata(tables / "groups.parquet").num_row_groups == 3


@pytest.mark.parametrize(("lines", "columns"), [([N_LINES], None), ([-1], None), ([0], ["letter"])])
def test_lines_and_columns_that_are_not_there_are_refused(tables, lines, columns):
    with pytest.raises(CorruptFile, match="groups.parquet"):
        read_some(tables / "groups.parquet", lines, columns)


def test_an_empty_table_has_no_lines(tmp_path):
    write_in_groups(tmp_path / "empty.parquet", pa.table({"a": pa.array([], pa.int64())}))
    assert read_some(tmp_path / "empty.parquet", []) == []
    with pytest.raises(CorruptFile):
        read_some(tmp_path / "empty.parquet", [0])


@given(st.lists(st.integers(0, 3 * GROUP_LINES), max_size=5))
def test_a_table_that_comes_in_parts_has_the_same_bytes(tmp_path_factory, sizes):
    folder = tmp_path_factory.mktemp("parts")
    columns = {
        "number": range(sum(sizes)),
        "word": [f"w{number % 99}" for number in range(sum(sizes))],
    }
    table = pa.table(columns, schema=pa.schema([("number", pa.int64()), ("word", pa.string())]))
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    parts = [table.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    write_in_groups(folder / "whole.parquet", table)
    assert write_parts_in_groups(folder / "parts.parquet", parts, table.schema) == sum(sizes)
    assert (folder / "parts.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()


def test_bytes_that_are_no_text_are_no_utf8(tmp_path):
    """A damaged page may decompress to such; a kernel would read beyond the end of a text."""
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    wrong = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"a\xf0"))
    pq.write_table(pa.table({"raw_content": wrong}), tmp_path / "a.parquet")
    with pytest.raises(CorruptFile, match=r"a\.parquet"):
        list(read_lines(tmp_path / "a.parquet", utf8="raw_content"))


def test_a_text_is_read_without_the_others_of_its_row_group(tmp_path):
    """Texts are in pages of about a mebibyte, and in no dictionary, which would be one page."""
    path, text = tmp_path / "texts.parquet", "word " * 2_000
    lines = [{"id": "the same", "raw_content": f"{number} {text}"} for number in range(1_000)]
    with writing_table(path, pa.schema({"id": "string", "raw_content": "string"})) as table:
        for line in lines:
            table.add(dict(line), n_bytes=len(text))
    ids, texts = (pq.read_metadata(path).row_group(0).column(at) for at in (0, 1))
    assert (ids.has_dictionary_page, texts.has_dictionary_page) == (True, False)
    with path.open("rb") as file:
        (group,) = read_footer(file).groups
        chunk = group[1]
        pages = walk(lambda at, n: (file.seek(at), file.read(n))[1], chunk, most_longest=0)
    assert max(n_bytes for _, n_bytes in pages.sizes) < 2 << 20
    assert list(read_lines(path)) == lines


@given(st.lists(st.integers(1, 40), max_size=20), st.integers(0, 20))
def test_lines_added_by_columns_are_those_added_one_by_one(tmp_path_factory, sizes, n_first):
    """The same bytes, whatever their row groups are; a column that is not given is null."""
    folder, schema = tmp_path_factory.mktemp("added"), pa.schema({"id": "string", "n": "int64"})
    parts = sizes[:n_first], sizes[n_first:]
    with contextlib.ExitStack() as stack:
        paths = folder / "lines", folder / "columns"
        lines, columns = (TableWriter(path, schema, group_bytes=60) for path in paths)
        stack.callback(lines.close)
        stack.callback(columns.close)
        for part in parts:
            for size in part:
                lines.add({"n": size}, n_bytes=size)
            given_columns = {"n": list(part), "other": list(part)}
            columns.extend(given_columns, part)
            assert not given_columns
    assert paths[0].read_bytes() == paths[1].read_bytes()
