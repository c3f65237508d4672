"""Tables are checked against their schemas; Arrow and pandera agree."""

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, strategies as st

from lc_assets.builds.table_checks import checked_columns, failures_of, fits, table_failures
from lc_assets.builds.tables import TOKENIZED

WORDS = {
    "url": "u",
    "digest": "d",
    "source_domain": "s",
    "cc_segment": "c",
    "language": "en",
    "bucket": "head",
    "tokenized_digest": "t",
}
COUNTS = {"n_tokens": 3, "n_chars": 9, "n_bytes": 9}


def lines(shard: int, n_lines: int, **changes) -> list[dict]:
    return [
        WORDS
        | COUNTS
        | {"id": f"2023-06/{shard:04d}/en_head.json.gz/{line}", "document": line}
        | changes
        for line in range(n_lines)
    ]


TABLES = {
    "0000.parquet": lines(0, 3),
    "0001.parquet": [],
    "0002.parquet": lines(2, 2, n_tokens=-1),
    "0003.parquet": lines(3, 4, id="not/an/id"),
    "0004.parquet": lines(4, 1, url=None),
    "0005.parquet": lines(5, 2),
}


def written(folder, tables) -> list:
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows, schema=TOKENIZED), folder / name)
    return sorted(folder.iterdir())


def test_each_table_gets_its_own_failures(tmp_path):
    """A sentence names its table; empty tables are valid."""
    said = [table_failures(path, TOKENIZED, unique="id") for path in written(tmp_path, TABLES)]
    assert [bool(failures) for failures in said] == [False, False, True, True, True, False]
    for number in (2, 3, 4):
        assert all(words.startswith(f"{number:04d}.parquet: column ") for words in said[number])


def test_only_columns_are_read_in_which_a_value_can_be_wrong(tmp_path):
    """Not texts, nor the measures, of which a table has dozens; the schema names all of them."""
    table = pa.Table.from_pylist(lines(0, 3), schema=TOKENIZED)
    for name in ("a_measure", "raw_content"):
        table = table.append_column(name, pa.array([0.5, None, 1.0]))
    pq.write_table(table, tmp_path / "a.parquet")
    read, found = checked_columns(tmp_path / "a.parquet", ["id"])
    assert read.column_names == TOKENIZED.names
    assert found.names == table.column_names


def test_an_id_twice_in_a_table_is_found(tmp_path):
    """Each line alone is valid."""
    (path,) = written(tmp_path, {"a.parquet": [*lines(0, 1), *lines(0, 1)]})
    (said, *_) = table_failures(path, TOKENIZED, unique="id")
    assert said.startswith("a.parquet: column id: ")


def test_other_columns_are_reported_alone(tmp_path):
    """A table with other columns is not checked further."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    (said,) = table_failures(path, TOKENIZED, unique="id")
    assert said.startswith("a.parquet: columns are ['x'], declared are ['id', ")


COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("split", pa.string()),
        ("n_tokens", pa.int64()),
        ("n_bytes", pa.int64()),
        ("kept_alone", pa.int64()),
        ("similarity", pa.float64()),
        ("url", pa.string()),
    ]
)
IDS = st.sampled_from(
    ["2023-06/0000/en_head.json.gz/1", "books/part-1/a b", "books/part-1/line-2", "x", "", None]
)
COUNT = st.sampled_from([0, 1, -1, None])
ROWS = st.lists(
    st.tuples(
        IDS,
        st.sampled_from(["train", "heldout", "test", None]),
        COUNT,
        COUNT,
        COUNT,
        st.sampled_from([0.5, -1.0, float("nan"), None]),
        st.sampled_from(["u", "", None]),
    ),
    max_size=3,
)


@given(
    rows=ROWS,
    unique=st.sampled_from([None, "id"]),
    width=st.sets(st.sampled_from(COLUMNS.names), min_size=1),
)
def test_arrow_and_pandera_agree_on_which_tables_fit(rows, unique, width):
    """Any values in any of the columns, nulls and repeated ids among them."""
    table = pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )
    table = table.select([name for name in COLUMNS.names if name in width])
    assert fits(table, unique) == (not failures_of(table, unique))
