"""Some rows of a row group: as Arrow reads them, of pages that hold one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.builds.table_writer import TableWriter
from lc_assets.errors import CorruptFile
from lc_assets.formats.parquet import pages
from lc_assets.formats.parquet.opening import rows_of
from lc_assets_tests.fuzzing.parquet_bytes import data_page, flat, levels, parquet_bytes


def rows(path, group, places, columns=("id", "text")):
    with pq.ParquetFile(path) as file:
        return rows_of(path, file, group, places, columns)


@given(
    texts=st.lists(st.none() | st.text(max_size=30), min_size=1, max_size=300),
    group_rows=st.integers(1, 300),
    how=st.fixed_dictionaries(
        {
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "compression": st.sampled_from(["zstd", "none"]),
            "column_encoding": st.none() | st.just({"text": "DELTA_LENGTH_BYTE_ARRAY"}),
            "write_batch_size": st.sampled_from([1, 64]),
        }
    ),
    nulls=st.booleans(),
    data=st.data(),
)
def test_some_rows_are_those_that_arrow_reads(
    tmp_path_factory, texts, group_rows, how, nulls, data
):
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    texts = texts if nulls else [text or "" for text in texts]
    table = pa.table(
        {"text": pa.array(texts, pa.string()), "id": list(map(str, range(len(texts))))}
    )
    if how["column_encoding"]:
        how["use_dictionary"] = False
    pq.write_table(table, path, row_group_size=group_rows, data_page_size=64, **how)
    group = data.draw(st.integers(0, (len(texts) - 1) // group_rows))
    part = table.slice(group * group_rows, group_rows).select(["id", "text"])
    places = data.draw(st.sets(st.integers(0, part.num_rows - 1), min_size=1).map(sorted))
    assert rows(path, group, places).to_pylist() == part.take(places).to_pylist()


def test_pages_without_a_wanted_text_are_not_decompressed(tmp_path, monkeypatch):
    path, unpacked = tmp_path / "a.parquet", []
    table = TableWriter(path, pa.schema({"id": "string", "raw_content": "string"}))
    for number in range(640):
        table.add({"id": str(number), "raw_content": str(number) * 4000})
    table.close()
    plain = pages._plain
    monkeypatch.setattr(pages, "_plain", lambda *page: unpacked.append(page[2]) or plain(*page))
    found = rows(path, 0, [1, 2, 639], ["id", "raw_content"]).to_pydict()
    assert found == {"id": ["1", "2", "639"], "raw_content": [n * 4000 for n in ("1", "2", "639")]}
    assert len(unpacked) == 2
    assert sum(unpacked) < 0.4 * sum(len(str(number)) * 4000 for number in range(640))


def test_lengths_beyond_their_page_are_damage(tmp_path):
    path = tmp_path / "a.parquet"
    content = levels((2, 1)) + bytes.fromhex("01000000 61 ffffff00 62")
    path.write_bytes(parquet_bytes([flat(b"text", [data_page(content, 2)], 2, optional=True)], 2))
    assert rows(path, 0, [0], ["text"]).to_pydict() == {"text": ["a"]}
    with pytest.raises(CorruptFile, match=r"a.parquet.*strings that are cut short"):
        rows(path, 0, [0, 1], ["text"])
