"""Tables that are checked in batches get the failures that each would get alone."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.build import table_checks
from lc_assets.build.table_checks import failures_of, fits, table_failures
from lc_assets.build.tables import TOKENIZED

WORDS = {
    "url": "u",
    "digest": "d",
    "source_domain": "s",
    "cc_segment": "c",
    "language": "en",
    "bucket": "head",
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


@pytest.mark.parametrize("at_once", [2, 4, 1 << 17])
def test_tables_checked_in_batches_get_the_failures_of_each(tmp_path, monkeypatch, at_once):
    """Batches of any size give the same sentences, each with its table."""
    paths = written(tmp_path, TABLES)
    monkeypatch.setattr(table_checks, "LINES_AT_ONCE", 1)
    alone = table_failures(paths, TOKENIZED, unique="id")
    monkeypatch.setattr(table_checks, "LINES_AT_ONCE", at_once)
    assert table_failures(paths, TOKENIZED, unique="id") == alone
    assert {words.partition(":")[0] for words in alone} == {
        "0002.parquet",
        "0003.parquet",
        "0004.parquet",
    }


def test_valid_tables_have_no_failures(tmp_path):
    """Empty tables among them."""
    sound = {name: TABLES[name] for name in ("0000.parquet", "0001.parquet", "0005.parquet")}
    assert table_failures(written(tmp_path, sound), TOKENIZED, unique="id") == []
    assert table_failures([], TOKENIZED, unique="id") == []


def test_an_id_in_two_tables_of_a_batch_is_found(tmp_path):
    """Each table alone is valid; the message names both ends of the batch."""
    (said,) = table_failures(
        written(tmp_path, {"a.parquet": lines(0, 1), "b.parquet": lines(0, 1)}),
        TOKENIZED,
        unique="id",
    )
    assert said.startswith("a.parquet to b.parquet: column id: ")


def test_other_columns_are_reported_for_their_table_alone(tmp_path):
    """A table with other columns is not checked further, the others are."""
    paths = written(tmp_path, {name: TABLES[name] for name in ("0000.parquet", "0002.parquet")})
    pq.write_table(pa.table({"x": [1]}), paths[0])
    first, *others = table_failures(paths, TOKENIZED, unique="id")
    assert first.startswith("0000.parquet: columns are ['x'], declared are ['id', ")
    assert len(others) == 2
    assert all(words.startswith("0002.parquet: column n_tokens: ") for words in others)


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
